"""Maintenance by the service and by the Timelake engine in turn, and what it means to rollups that the engine keeps."""

import datetime as dt

import engines
import pytest
import service
from check import same_rows
from data import COLUMNS, DAY, FIELDS, arrow, ndjson, records
from engines import rows

pytestmark = pytest.mark.usefixtures("served")


def _create(name: str) -> None:
    service.create(name, FIELDS, time_column="time", series_key=["device"], chunk="day")
    # Only when it is asked for.
    service.admin(name, "PATCH", "/properties", {"set": {"timelake.auto-maintain": "false"}})


def _distinct(start: int, count: int) -> list[dict]:
    """Records of which no two have the same key, with nulls in it too."""
    return [dict(r, time=r["time"] + dt.timedelta(hours=i % 20)) for i, r in enumerate(records(start, count))]


def _newest(held: list[dict]) -> list[dict]:
    newest: dict = {}
    for record in sorted(held, key=lambda r: r["time"]):
        newest[record["device"]] = record
    return list(newest.values())


def _check(name: str, held: list[dict], step: str) -> None:
    """Rows by all three, and what the engine answers from its index and from statistics."""
    same_rows(name, held)
    lake = engines.lake()
    assert rows(lake.latest(name), COLUMNS) == rows(arrow(_newest(held)), COLUMNS), f"latest after {step}"
    asked = lake.sql(f"SELECT count(*) AS n, min(time) AS first, max(time) AS last FROM {name}").to_pylist()[0]
    times = [r["time"] for r in held]
    assert (asked["n"], asked["first"], asked["last"]) == (len(held), min(times), max(times)), f"SQL after {step}"


def test_service_and_engine_maintain_in_turn(name: str) -> None:
    _create(name)
    held: list[dict] = []

    def ours(start: int) -> None:
        part = _distinct(start, 20)
        held.extend(part)
        service.append(name, ndjson(part))

    def theirs(start: int) -> None:
        part = _distinct(start, 20)
        held.extend(part)
        engines.append(name, arrow(part), maintain=False)

    for start in (0, 20, 40):
        ours(start)
    _check(name, held, "appends of ours")
    report = service.admin(name, "POST", "/maintain", {"full": True})
    assert report["changed"] and report["left_alone"] == [] and report["remaining"] == 0
    _check(name, held, "our maintenance")
    theirs(60)
    ours(80)
    maintained = engines.lake().table(name).maintain()
    assert maintained["files_rewritten"] > 0 and maintained["rows_rewritten"] == len(held)
    _check(name, held, "theirs")
    ours(100)
    theirs(120)
    report = service.admin(name, "POST", "/maintain", {"full": True})
    assert report["changed"] and report["left_alone"] == []
    assert service.admin(name, "GET", "/files")["files"] == 3
    _check(name, held, "ours of files that both made")
    keep_one = {"timelake.min-snapshots": "1", "timelake.max-snapshots": "1"}
    service.admin(name, "PATCH", "/properties", {"set": keep_one})
    assert len(service.admin(name, "POST", "/expire")["snapshots"]) > 3
    _check(name, held, "our expiry")
    assert engines.lake().table(name).maintain()["files_rewritten"] == 0
    ours(140)
    theirs(160)
    assert engines.lake().table(name).maintain()["files_rewritten"] > 0
    _check(name, held, "theirs over an expired past")


ROLLUP = (
    "SELECT device, time_bucket(INTERVAL '1 hour', time) AS bucket,"
    " count(*) AS n, min(ticks) AS lo, max(ticks) AS hi FROM {} GROUP BY 1, 2"
)


class Rollup:
    """An hourly rollup that the engine keeps of a table, and the answers it should give."""

    def __init__(self, table: str):
        self.table = table
        self.name = table + "_hourly"
        self.query = ROLLUP.format(table)

    def create(self) -> int:
        return engines.lake().sql(f"CREATE MATERIALIZED ROLLUP {self.name} AS {self.query}")["rows"][0].as_py()

    def refresh(self) -> int:
        """Rows that had to be computed again."""
        return engines.lake().sql(f"REFRESH MATERIALIZED ROLLUP {self.name}")["rows"][0].as_py()

    def stored(self) -> list[tuple]:
        read = engines.lake().sql(f"SELECT device, bucket, n, lo, hi FROM {self.name}")
        return rows(read, ["device", "bucket", "n", "lo", "hi"])

    def asked(self) -> list[tuple]:
        """What the query over the table answers; the engine takes what it can from the rollup."""
        return rows(engines.lake().sql(self.query), ["device", "bucket", "n", "lo", "hi"])

    def raw_files(self) -> int:
        """Files of the table itself that answering the query takes."""
        plan = "".join(engines.lake().sql("EXPLAIN " + self.query)["plan"].to_pylist())
        assert self.name in plan, "the engine does not ask the rollup"
        return plan.count(f"{self.table.replace('.', '/')}/data/")


def _hourly(held: list[dict]) -> list[tuple]:
    groups: dict = {}
    for record in held:
        bucket = record["time"].replace(minute=0, second=0, microsecond=0)
        groups.setdefault((record["device"], bucket), []).append(record["ticks"])
    out = []
    for (device, bucket), ticks in groups.items():
        known = [t for t in ticks if t is not None]
        key = ("<null>" if device is None else device, (bucket.timestamp(), 0))
        out.append((*key, len(ticks), min(known, default="<null>"), max(known, default="<null>")))
    return sorted(out, key=repr)


def test_a_rollup_answers_the_same_after_our_compaction_and_expiry(name: str) -> None:
    _create(name)
    held: list[dict] = []

    def append(start: int) -> str:
        part = _distinct(start, 20)
        held.extend(part)
        return service.append(name, ndjson(part))["snapshot_id"]

    append(0)
    append(20)
    source = append(40)
    rollup = Rollup(name)
    assert rollup.create() == len(_hourly(held))
    assert rollup.stored() == rollup.asked() == _hourly(held)
    assert rollup.raw_files() == 0

    # A merged file counts as the youngest of those in it did: nothing of the rollup is out of date.
    assert service.admin(name, "POST", "/maintain")["changed"]
    assert rollup.raw_files() == 0 and rollup.refresh() == 0
    assert rollup.stored() == rollup.asked() == _hourly(held)

    # Rows that the rollup does not know yet come from the table, before they are merged with others and after.
    append(60)
    before = rollup.stored()
    assert rollup.raw_files() > 0 and rollup.asked() == _hourly(held) != before
    assert service.admin(name, "POST", "/maintain")["changed"]
    assert rollup.raw_files() > 0 and rollup.asked() == _hourly(held)
    assert rollup.stored() == before

    # The snapshot that the rollup says it was made of goes.
    keep_one = {"timelake.min-snapshots": "1", "timelake.max-snapshots": "1"}
    service.admin(name, "PATCH", "/properties", {"set": keep_one})
    assert source in service.admin(name, "POST", "/expire")["snapshots"]
    assert rollup.stored() == before and rollup.asked() == _hourly(held)

    assert rollup.refresh() > 0
    assert rollup.stored() == rollup.asked() == _hourly(held)
    assert rollup.raw_files() == 0 and rollup.refresh() == 0


def test_a_rollup_does_not_see_what_is_taken_away(name: str) -> None:
    """The engine looks for files that were added; see the contract document for what to do about it."""
    _create(name)
    held = _distinct(0, 60)
    service.append(name, ndjson(held))
    rollup = Rollup(name)
    rollup.create()
    gone = DAY.date().isoformat()
    service.admin(name, "POST", "/delete", {"filter": {"partitions": [{"time_day": gone}]}})
    left = [r for r in held if r["time"].date().isoformat() != gone]
    assert 0 < len(left) < len(held)
    same_rows(name, left)
    assert rollup.refresh() == 0 and rollup.asked() == _hourly(held)
    engines.lake().sql(f"DROP MATERIALIZED ROLLUP {rollup.name}")
    rollup.create()
    assert rollup.stored() == rollup.asked() == _hourly(left)
