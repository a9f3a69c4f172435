"""The service and the Timelake engine append to one table at the same time; and the engine drops a table under us.

No faults are planted: whatever is seen here happens with a store that answers everything. `SLUICE_RACE_SECONDS` is how long
the race runs.
"""

import collections
import datetime as dt
import os
import threading
import time
import uuid
from collections.abc import Callable

import chain
import engines
import pyarrow as pa
import pytest
import service
from check import same_rows
from data import COLUMNS, DAY, FIELDS, SCHEMA, arrow, ndjson, records
from engines import Readers, rows

pytestmark = pytest.mark.usefixtures("served")

SECONDS = float(os.environ.get("SLUICE_RACE_SECONDS", "60"))
LOST_RACES_MIN = 20
BATCH = 10
"""Rows of one batch on either side."""


def batch(device: str, number: int) -> list[dict]:
    """Batch `number` of a device: rows of one day that no other batch has."""
    first = number * BATCH
    return [
        dict(r, device=device, time=DAY + dt.timedelta(milliseconds=first + i))
        for i, r in enumerate(records(first, BATCH))
    ]


class Side:
    """One producer: what it sent and what it was told, for the rows of a device of its own."""

    pause = 0.0
    """Seconds between two batches."""

    def __init__(self, device: str):
        self.device = device
        self.acknowledged: list[int] = []
        self.failed: list[tuple[int, str]] = []

    def run(self, ended: threading.Event) -> None:
        number = 0
        while not ended.is_set():
            try:
                self.write(number)
                self.acknowledged.append(number)
            except Exception as error:
                self.failed.append((number, f"{type(error).__name__}: {error}"))
            number += 1
            ended.wait(self.pause)

    def write(self, number: int) -> None:
        raise NotImplementedError

    def rows(self) -> list[dict]:
        return [r for number in self.acknowledged for r in batch(self.device, number)]


class Ours(Side):
    """Sends to the service. Every fifth batch is sent twice, when `named` gives it a name that tells it again."""

    def __init__(self, name: str, device: str, named: Callable[[int], tuple[str, dict[str, str]]] | None):
        super().__init__(device)
        self.name = name
        self.named = named
        self.receipts: list[dict] = []
        self.duplicates = 0

    def write(self, number: int) -> None:
        query, headers = ("", {}) if self.named is None else self.named(number)
        body = ndjson(batch(self.device, number))
        answer = service.send(self.name, body, query, prefer="wait=30", **headers)
        self.receipts.append(answer)
        if self.named is not None and number % 5 == 4:
            again = service.send(self.name, body, query, **headers)
            assert again["duplicate"] and again["receipt"] == answer["receipt"]
            self.duplicates += 1


class Theirs(Side):
    """Appends through the engine, each batch under an id; `maintain` as the engine's own argument."""

    pause = 0.15

    def __init__(self, name: str, device: str, maintain: bool | None):
        super().__init__(device)
        self.table = engines.lake().table(name)
        self.maintain = maintain
        self.attempts = 0

    def write(self, number: int) -> None:
        answer = self.table.append(
            arrow(batch(self.device, number)), batch_id=f"{self.device}-{number}", maintain=self.maintain
        )
        self.attempts += answer["attempts"]
        # Said of a batch that was never sent before: the engine takes a version of its own for another's (contract, 11).
        assert not answer["duplicate"], "engine calls a first append a duplicate"


def _race(sides: list[Side], name: str) -> float:
    """Lets all write for `SECONDS`, and longer on a slow machine until enough races were lost. Returns how long."""
    ended = threading.Event()
    threads = [threading.Thread(target=side.run, args=(ended,)) for side in sides]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for rounds in range(1, 4):
        time.sleep(max(0.0, started + rounds * SECONDS - time.monotonic()))
        if _marks(name).get("lost-race", 0) >= LOST_RACES_MIN:
            break
    ended.set()
    for thread in threads:
        thread.join()
    return time.monotonic() - started


def _marks(name: str) -> dict[str, int]:
    return service.describe(name)["status"]["incarnation"]["marks"]


def _of(table: pa.Table, device: str) -> list[tuple]:
    return rows(table.filter(pa.compute.equal(table["device"], device)), COLUMNS)


@pytest.mark.parametrize("is_open", [False, True], ids=["base is stale", "intent is open"])
def test_the_engine_drops_the_table_and_makes_it_anew(name: str, is_open: bool) -> None:
    """Nothing of ours lands in the new table, and nothing that was acknowledged is forgotten silently."""
    service.create(
        name,
        FIELDS,
        time_column="time",
        series_key=["device"],
        dedup=False,
        properties={"sluice.flush-interval": "1h"},
    )
    old = service.append(name, ndjson(batch("old", 0)))
    key = {"idempotency-key": "key-1"}
    waiting = [
        service.send(name, ndjson(batch("old", 1)), "?app=race&epoch=1"),
        service.send(name, ndjson(batch("old", 2)), **key),
        service.send(name, ndjson(batch("old", 3))),
    ]
    assert {r["state"] for r in waiting} == {"buffered"}

    engines.lake().drop_table(name)
    assert chain.keys(name) == []
    if is_open:
        with pytest.raises(service.Refused) as gone:
            service.flush(name)
        told = gone.value.problem
        assert told["status"] == 404 and told["type"].endswith(":unknown-table")
        assert told["table_status"]["buffer"]["rows"] == 3 * BATCH
        assert told["table_status"]["intent"]["rows"] == 3 * BATCH
        assert told["table_status"]["last_error"]["type"] == "table-gone"
        assert {service.receipt(name, r["receipt"])["state"] for r in waiting} == {"buffered"}
        assert not [v for v in chain.keys(name) if v.endswith(".metadata.json")], "a version of a dropped table"

    table = engines.lake().create_table(name, SCHEMA, time_column="time", series_key=["device"], dedup=False)
    theirs = batch("new", 0)
    table.append(arrow(theirs), batch_id="new-0")
    # With the intent open, nobody needs to call: it is run again by itself.
    end = time.monotonic() + 30
    while any(service.receipt(name, r["receipt"])["state"] == "buffered" for r in waiting) and time.monotonic() < end:
        if not is_open:
            with pytest.raises(service.Refused, match="not-attached"):
                service.flush(name)
        time.sleep(0.2)
    for r in waiting:
        verdict = service.receipt(name, r["receipt"])
        assert (verdict["state"], verdict["type"]) == ("refused", "table-replaced"), verdict
    # What was committed stays a fact about the table that is no more.
    assert service.receipt(name, old["receipt"])["state"] == "committed"
    with pytest.raises(service.Refused) as replaced:
        service.describe(name)
    told = replaced.value.problem
    assert told["type"].endswith(":not-attached")
    assert told["table_status"]["last_error"]["type"] == "table-replaced"
    assert told["table_status"]["buffer"]["rows"] == 0 and told["table_status"]["intent"] is None
    with pytest.raises(service.Refused, match="not-attached"):
        service.send(name, ndjson(batch("old", 4)))
    same_rows(name, theirs)
    assert [v.number for v in chain.versions(name)] == [1, 2]

    service.attach(name)
    status = service.describe(name)["status"]
    assert status["last_error"]["type"] == "table-replaced"
    # The new table has not seen these: what is sent again is taken, under the same names.
    ours = [batch("old", n) for n in (1, 2, 3)]
    service.append(name, ndjson(ours[0]), "?app=race&epoch=1")
    service.append(name, ndjson(ours[1]), **key)
    service.append(name, ndjson(ours[2]))
    more = batch("new", 1)
    engines.lake().table(name).append(arrow(more), batch_id="new-1")
    same_rows(name, [*theirs, *more, *(r for part in ours for r in part)])
    chain.check(chain.versions(name), engines.location(name))


def test_a_version_on_its_way_while_the_engine_drops_the_table_can_be_taken_out() -> None:
    """
    What nobody can prevent on a store without transactions (docs/timelake-contract.md, section 15): the base is confirmed,
    the folder is emptied and begun anew, and then the version arrives. It stands above the new table until it is removed.
    """
    for _ in range(3):
        name = f"interop.held_{uuid.uuid4().hex[:8]}"
        service.create(name, FIELDS, time_column="time", series_key=["device"], dedup=False)
        service.append(name, ndjson(batch("old", 0)))
        held = service.send(name, ndjson(batch("old", 1)))
        flush = threading.Thread(target=service.flush, args=(name,))
        flush.start()
        while sum(key.startswith("data/") for key in chain.keys(name)) < 2:
            time.sleep(0.05)
        engines.lake().drop_table(name)
        table = engines.lake().create_table(name, SCHEMA, time_column="time", series_key=["device"], dedup=False)
        theirs = batch("new", 0)
        is_in_time = not chain.has_version(name, 3)
        if is_in_time:
            table.append(arrow(theirs), batch_id="new-0")
        flush.join()
        if is_in_time and chain.has_version(name, 3):
            break
    found = chain.versions(name)
    assert [v.number for v in found] == [1, 2, 3], "the version did not arrive behind the drop"
    uuids = [v.metadata["table-uuid"] for v in found]
    assert uuids[0] == uuids[1] != uuids[2], "the last one is of the table that was dropped"
    # The commit was before the drop as far as anybody can tell, and its rows went with the table.
    verdict = service.receipt(name, held["receipt"])
    assert (verdict["state"], verdict["version"]) == ("committed", 3)
    with pytest.raises(Exception):
        Readers(name).timelake()

    chain.remove_version(name, 3, pointer=2)
    same_rows(name, theirs)
    with pytest.raises(service.Refused, match="not-attached"):
        service.describe(name)
    service.attach(name)
    more = batch("old", 2)
    service.append(name, ndjson(more))
    same_rows(name, theirs + more)
    chain.check(chain.versions(name), engines.location(name))


def _brought_by_us(found: list[chain.Version]) -> list[chain.Version]:
    """
    Versions with which a snapshot of the service became current. A version that only takes snapshots out, as an expiry
    does, has the snapshot of the one before; of the oldest version that is kept, nobody can tell.
    """
    return [
        after
        for before, after in zip(found, found[1:])
        if after.commit_id is not None
        and after.metadata["current-snapshot-id"] != before.metadata.get("current-snapshot-id")
    ]


def test_service_and_engine_append_at_the_same_time(capsys: pytest.CaptureFixture) -> None:
    name = f"interop.race_{uuid.uuid4().hex[:8]}"
    service.create(
        name,
        FIELDS,
        time_column="time",
        series_key=["device"],
        dedup=False,
        properties={
            "sluice.flush-interval": "1s",
            # The engine expires as it appends: neither metadata nor what it costs to copy may grow without end.
            "timelake.max-snapshots": "100",
            "timelake.snapshot-retention": "1h",
        },
    )
    ours = [
        Ours(name, "ours-epochs", lambda n: (f"?app=race&epoch={n + 1}", {})),
        Ours(name, "ours-keys", lambda n: ("", {"idempotency-key": f"key-{n}"})),
        Ours(name, "ours-plain", None),
    ]
    theirs = [Theirs(name, "theirs-appending", False), Theirs(name, "theirs-maintaining", None)]
    took = _race([*ours, *theirs], name)

    service.flush(name)
    receipts = [service.settled(name, r) for side in ours for r in side.receipts]
    status = service.describe(name)["status"]
    found = chain.versions(name)
    brought_by_us = _brought_by_us(found)
    marks = status["incarnation"]["marks"]
    numbers = {r["version"] for r in receipts}
    report = {
        "seconds": round(took, 1),
        "marks": marks,
        "our batches": sum(len(s.acknowledged) for s in ours),
        "sent again": sum(s.duplicates for s in ours),
        "our commits": len(numbers),
        "their batches": sum(len(s.acknowledged) for s in theirs),
        "their attempts": sum(s.attempts for s in theirs),
        "their failures": dict(collections.Counter(error for s in theirs for _, error in s.failed)),
        "versions": found[-1].number,
        "versions kept": len(found),
    }
    with capsys.disabled():
        print(f"\nrace: {report}")

    assert [s.failed for s in ours] == [[], [], []]
    assert status["incarnation"]["found"] == {"open_intent": False, "buffered_batches": 0}, "object ran in one piece"
    assert status["buffer"]["rows"] == 0 and status["intent"] is None
    assert {r["state"] for r in receipts} == {"committed"}
    for engine, table in Readers(name).all().items():
        for side in [*ours, *theirs]:
            assert _of(table, side.device) == rows(arrow(side.rows()), COLUMNS), f"{side.device} by {engine}"
        assert table.num_rows == sum(len(s.acknowledged) for s in [*ours, *theirs]) * BATCH, engine
    chain.check(found, engines.location(name))
    kept = {v.number: v for v in found}
    for r in receipts:
        if r["version"] in kept:
            assert str(kept[r["version"]].metadata["current-snapshot-id"]) == r["snapshot_id"], r
    assert brought_by_us, "no version of ours is kept"
    for version in brought_by_us:
        # That of a compaction is a replace, which no batch waits for.
        is_replace = version.snapshot["summary"]["operation"] == "replace"
        assert version.number in numbers or is_replace, f"a commit that no receipt names: v{version.number}"
    # Older snapshots are whole as well, whoever made them.
    table = engines.static_table(name)
    for snapshot in found[-1].metadata["snapshots"][::20]:
        read = table.scan(snapshot_id=snapshot["snapshot-id"]).to_arrow()
        assert read.num_rows == int(snapshot["summary"]["total-records"])
    assert marks.get("lost-race", 0) >= LOST_RACES_MIN, "too few lost races: the test has not reached what it is for"
