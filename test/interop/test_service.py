"""Tables of the service, read by three engines, and written by the service and the Timelake engine in turn."""

import math

import engines
import pyarrow as pa
import pytest
import service
from check import same_everywhere
from data import COLUMNS, FIELDS, SCHEMA, arrow, ndjson, records
from engines import Readers, rows
from pyiceberg.expressions import IsNaN

pytestmark = pytest.mark.usefixtures("served")


def _create(name: str, chunk: str = "day") -> None:
    service.create(name, FIELDS, time_column="time", series_key=["device"], chunk=chunk, dedup=False)


@pytest.mark.parametrize("chunk", ["hour", "day", "month"])
def test_rows_sent_are_read_alike_by_all(name: str, chunk: str) -> None:
    _create(name, chunk)
    first, second = records(0, 120), records(120, 45)
    one = service.append(name, ndjson(first))
    two = service.append(name, ndjson(second))
    assert two["version"] > one["version"]
    same_everywhere(name, first + second)


def test_a_version_named_in_an_answer_holds_its_rows(name: str) -> None:
    _create(name)
    answer = service.send(name, ndjson(records(0, 30)), prefer="wait=30")
    assert answer["state"] == "committed"
    table = engines.static_table(name, answer["version"])
    assert str(table.metadata.current_snapshot_id) == str(answer["snapshot_id"])
    assert table.scan().to_arrow().num_rows == 30


def test_a_plain_table_without_time_is_read_alike(name: str) -> None:
    fields = [
        {"name": "id", "type": "long", "required": True},
        {"name": "label", "type": "string", "required": False},
    ]
    service.create(name, fields)
    items = [{"id": i, "label": None if i % 3 == 0 else f"label {i}"} for i in range(50)]
    service.append(name, items)
    want = rows(pa.Table.from_pylist(items), ["id", "label"])
    for engine, table in Readers(name).all().items():
        assert rows(table, ["id", "label"]) == want, engine


def test_nan_is_found_and_never_a_bound(name: str) -> None:
    _create(name)
    expected = records(0, 20)
    items = ndjson(expected)
    for i in range(0, 20, 4):
        expected[i]["reading"] = math.nan
        items[i]["reading"] = "NaN"
    service.append(name, items)
    readers = Readers(name)
    for engine, table in readers.all().items():
        assert rows(table, COLUMNS) == rows(arrow(expected), COLUMNS), engine
    assert readers.duckdb("isnan(reading)").num_rows == 5
    assert readers.timelake("isnan(reading)").num_rows == 5
    assert readers.pyiceberg(IsNaN("reading")).num_rows == 5
    huge = sum(1 for r in expected if r["reading"] is not None and r["reading"] > 1e299)
    assert huge > 0
    assert readers.duckdb("reading > 1e299 AND NOT isnan(reading)").num_rows == huge
    assert readers.timelake("reading > 1e299 AND NOT isnan(reading)").num_rows == huge


def test_the_engine_takes_our_table_for_its_own(name: str) -> None:
    """Same properties, spec, sort order and schema as the engine gives a table of the same options."""
    _create(name)
    twin = name + "_twin"
    engines.lake().create_table(twin, SCHEMA, time_column="time", series_key=["device"], dedup=False)
    ours, theirs = (engines.static_table(n, 1).metadata for n in (name, twin))
    # How long the metadata log is, is our own choice, but never shorter than the engine's.
    log_length = "write.metadata.previous-versions-max"
    assert int(ours.properties[log_length]) >= int(theirs.properties[log_length])
    for key, value in theirs.properties.items():
        assert key == log_length or ours.properties.get(key) == value, key
    assert ours.schemas[0].model_dump() == theirs.schemas[0].model_dump()
    assert ours.partition_specs == theirs.partition_specs
    assert [o for o in ours.sort_orders if o.order_id == 1] == theirs.sort_orders
    assert ours.default_sort_order_id == theirs.default_sort_order_id
    assert ours.last_column_id == theirs.last_column_id
    assert ours.last_partition_id == theirs.last_partition_id
    assert engines.lake().table(name).upgrade(dry_run=True)["steps"] in ([], ["write the head object"])


def test_service_and_engine_append_in_turn_to_our_table(name: str) -> None:
    _create(name)
    everything = []
    for turn in range(6):
        part = records(turn * 25, 25)
        everything += part
        if turn % 2 == 0:
            service.append(name, ndjson(part))
        else:
            engines.append(name, arrow(part), batch_id=f"turn-{turn}")
    same_everywhere(name, everything)


def test_service_and_engine_append_in_turn_to_the_engines_table(name: str) -> None:
    table = engines.lake().create_table(name, SCHEMA, time_column="time", series_key=["device"], dedup=False)
    everything = records(0, 30)
    table.append(arrow(everything))
    service.attach(name)
    for turn in range(1, 6):
        part = records(turn * 30, 30)
        everything += part
        if turn % 2 == 1:
            service.append(name, ndjson(part))
        else:
            engines.append(name, arrow(part))
    same_everywhere(name, everything)


def test_a_stale_engine_handle_rebases_over_our_commits(name: str) -> None:
    _create(name)
    handle = engines.lake().table(name)
    first, second = records(0, 20), records(20, 20)
    service.append(name, ndjson(first))
    assert handle.append(arrow(second))["attempts"] == 2
    same_everywhere(name, first + second)


def test_the_engines_maintenance_keeps_our_rows_and_we_go_on(name: str) -> None:
    _create(name)
    # Else some of it is merged already when the engine comes.
    service.admin(name, "PATCH", "/properties", {"set": {"timelake.auto-maintain": "false"}})
    everything = []
    for turn in range(4):
        part = records(turn * 20, 20)
        everything += part
        service.append(name, ndjson(part))
    report = engines.lake().table(name).maintain(expire=False)
    assert report["files_rewritten"] > 0 and report["rows_rewritten"] == 80
    part = records(80, 20)
    everything += part
    service.append(name, ndjson(part))
    same_everywhere(name, everything)


def test_our_compaction_keeps_everybodys_rows_and_the_engine_goes_on(name: str) -> None:
    _create(name)
    everything = []
    for turn in range(5):
        part = records(turn * 20, 20)
        everything += part
        if turn % 2 == 0:
            service.append(name, ndjson(part))
        else:
            engines.append(name, arrow(part))
    report = service.admin(name, "POST", "/maintain")
    assert report["changed"] and report["left_alone"] == [] and report["remaining"] == 0
    same_everywhere(name, everything)
    part = records(100, 20)
    everything += part
    engines.append(name, arrow(part))
    same_everywhere(name, everything)
    newest = {r["device"]: r for r in sorted(everything, key=lambda r: r["time"])}
    assert rows(engines.lake().latest(name), COLUMNS) == rows(arrow(list(newest.values())), COLUMNS)
    engines.lake().table(name).maintain(expire=False)
    assert service.admin(name, "POST", "/maintain")["left_alone"] == []
    same_everywhere(name, everything)


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_our_compaction_right_after_the_engine_wrote_is_read_by_all(name: str, turns: int) -> None:
    _create(name)
    # Only when it is asked for.
    service.admin(name, "PATCH", "/properties", {"set": {"timelake.auto-maintain": "false"}})
    everything = []
    for turn in range(turns):
        ours, theirs = records(turn * 40, 20), records(turn * 40 + 20, 20)
        everything += ours + theirs
        service.append(name, ndjson(ours))
        engines.append(name, arrow(theirs))
    assert service.admin(name, "POST", "/maintain")["changed"]
    same_everywhere(name, everything)


def test_the_engine_deduplicates_our_rows_as_its_own(name: str) -> None:
    service.create(name, FIELDS, time_column="time", series_key=["device"], chunk="day")
    first = [dict(r, device="one", note="first") for r in records(0, 40)]
    again = [dict(r, note="again") for r in first[:10]]
    service.append(name, ndjson(first))
    engines.append(name, arrow(again))
    third = [dict(r, note="third") for r in first[:5]]
    service.append(name, ndjson(third))
    want = rows(arrow(third + again[5:] + first[10:]), COLUMNS)
    assert rows(Readers(name).timelake(), COLUMNS) == want
    engines.lake().table(name).maintain(expire=False)
    for engine, table in Readers(name).all().items():
        assert rows(table, COLUMNS) == want, engine


def test_latest_rows_are_right_whoever_wrote_last(name: str) -> None:
    """From an index that covers the whole table, or by a scan when there is none: never from an index that lags."""
    _create(name)
    everything: list[dict] = []
    for turn in range(4):
        part = records(turn * 30, 30)
        everything += part
        if turn % 2 == 0:
            service.append(name, ndjson(part))
        else:
            engines.append(name, arrow(part))
        newest: dict = {}
        for record in sorted(everything, key=lambda r: r["time"]):
            newest[record["device"]] = record
        assert rows(engines.lake().latest(name), COLUMNS) == rows(arrow(list(newest.values())), COLUMNS), f"turn {turn}"


def test_a_replayed_batch_is_there_once(name: str) -> None:
    _create(name)
    batch = records(0, 25)
    first = service.append(name, ndjson(batch), **{"idempotency-key": "batch-1"})
    again = service.append(name, ndjson(batch), **{"idempotency-key": "batch-1"})
    assert again["snapshot_id"] == first["snapshot_id"]
    same_everywhere(name, batch)
    duplicate = engines.append(name, arrow(batch), batch_id="batch-1")
    assert duplicate["duplicate"], "the engine does not know our batch id"
