"""Tables with something wrong in them: told by kind, nothing is deleted, and rows go on being taken."""

from unittest.mock import ANY

import catalog
import chain
import engines
import pyarrow.fs as fs
import pytest
import service
from check import same_rows
from data import COLUMNS, FIELDS, arrow, ndjson, records

pytestmark = pytest.mark.usefixtures("served")


def _create(name: str) -> None:
    service.create(name, FIELDS, time_column="time", series_key=["device"], chunk="day", dedup=False)
    service.admin(name, "PATCH", "/properties", {"set": {"timelake.auto-maintain": "false"}})


def _faults(name: str) -> dict[str, str]:
    return {fault["kind"]: fault["what"] for fault in service.describe(name)["status"]["faults"]}


def _paths(name: str) -> set[str]:
    folder = engines.location(name).removeprefix("s3://")
    return {i.path for i in engines.storage().get_file_info(fs.FileSelector(folder, recursive=True)) if i.is_file}


def test_a_data_file_that_is_gone_is_told_rows_go_on_and_the_table_is_mended(name: str) -> None:
    _create(name)
    theirs = records(0, 30)
    engines.append(name, arrow(theirs), maintain=False)
    lost = min(p for p in _paths(name) if "/data/" in p)
    rest = [r for r in theirs if r["time"].date().isoformat() not in lost]
    assert 0 < len(rest) < len(theirs)
    ours = records(30, 30)
    service.append(name, ndjson(ours))
    assert _faults(name) == {}
    engines.storage().delete_file(lost)

    before = _paths(name)
    report = service.admin(name, "POST", "/maintain")
    # Other partitions are merged all the same.
    assert report["changed"] and {left["reason"] for left in report["left_alone"]} == {"unreadable"}
    faults = _faults(name)
    assert faults.keys() == {"missing-data-file"} and faults["missing-data-file"].endswith(lost.split("/data/")[1])
    assert before <= _paths(name), "files were deleted"
    after = records(60, 30)
    service.append(name, ndjson(after))

    service.admin(name, "POST", "/delete", {"filter": {"paths": ["s3://" + lost]}})
    same_rows(name, rest + ours + after)
    service.admin(name, "POST", "/maintain")
    assert _faults(name) == {}
    same_rows(name, rest + ours + after)


def test_a_manifest_that_is_no_manifest_is_told_and_rows_go_on(name: str) -> None:
    _create(name)
    before = _paths(name)
    engines.append(name, arrow(records(0, 30)), maintain=False)
    made = [p for p in _paths(name) - before if p.endswith(".avro") and not p.rsplit("/", 1)[1].startswith("snap-")]
    assert len(made) == 1
    with engines.storage().open_input_stream(made[0]) as stream:
        held = stream.read()
    with engines.storage().open_output_stream(made[0]) as stream:
        stream.write(held[: len(held) // 2])
    service.append(name, ndjson(records(30, 30)))
    before = _paths(name)
    with pytest.raises(service.Refused):
        service.admin(name, "POST", "/maintain", {"compact": True})
    assert "corrupt-manifest" in _faults(name) and made[0].rsplit("/", 1)[1] in _faults(name)["corrupt-manifest"]
    assert service.append(name, ndjson(records(60, 30)))["state"] == "committed"
    assert before <= _paths(name), "files were deleted"
    # The object is restored: all of it is there, and nothing is wrong any more.
    with engines.storage().open_output_stream(made[0]) as stream:
        stream.write(held)
    service.admin(name, "POST", "/maintain")
    assert _faults(name) == {}
    same_rows(name, records(0, 90))


def test_rows_that_another_engine_deleted_by_delete_files_stay_deleted_and_nothing_of_them_is_touched(name: str) -> None:
    _create(name)
    theirs = records(0, 30)
    service.append(name, ndjson(theirs))
    assert service.admin(name, "GET", "/latest")["source"] == "index"
    before = _paths(name)
    with catalog.duck() as connection:
        assert connection.execute(f"DELETE FROM lake.{name} WHERE ticks >= 0").fetchall() == [(20,)]
    deletes = sorted(p for p in _paths(name) - before if p.endswith("-deletes.parquet"))
    summary = chain.versions(name)[-1].snapshot["summary"]
    assert len(deletes) == 3 and summary["added-position-deletes"] == "20", "DuckDB deletes by position, a file a partition"
    left = [r for r in theirs if r["ticks"] is None or r["ticks"] < 0]
    _read_by_engines(name, left)
    with pytest.raises(RuntimeError, match="'time' is missing from the physical schema"):
        engines.Readers(name).timelake()

    ours = records(30, 30)
    service.append(name, ndjson(ours))
    summary = chain.versions(name)[-1].snapshot["summary"]
    assert (summary["total-delete-files"], summary["total-position-deletes"]) == ("3", "20")
    before = _paths(name)
    report = service.admin(name, "POST", "/maintain")
    assert not report["changed"] and report["left_alone"] == [{"reason": "delete-files", "files": 6, "bytes": ANY}]
    assert report["steps"]["index"]["report"]["reason"] == "delete-files"
    [(kind, what)] = _faults(name).items()
    assert kind == "foreign-delete-files" and what.endswith(" and 2 more")
    assert any(path.endswith(what.removesuffix(" and 2 more")) for path in deletes)
    # What is not known is not answered: neither rows that may be deleted, nor which are the newest.
    for path, problem in (("/rows", "delete-files"), ("/latest", "no-last-value-index")):
        with pytest.raises(service.Refused) as refused:
            service.admin(name, "GET", path)
        assert refused.value.status == 422 and refused.value.problem["type"].endswith(f":{problem}")

    # Of older snapshots nothing stays but what the newest needs too, and their delete files are among that.
    few = {"timelake.min-snapshots": "1", "timelake.max-snapshots": "1"}
    service.admin(name, "PATCH", "/properties", {"set": few})
    service.admin(name, "POST", "/rewrite-manifests")
    expired = service.admin(name, "POST", "/maintain", {"expire": True})["steps"]["expire"]["report"]
    assert expired["retained_snapshots"] == 1 and expired["files"] > 0
    assert before <= _paths(name), "files were deleted"
    last = records(60, 30)
    service.append(name, ndjson(last))
    _read_by_engines(name, left + ours + last)
    # Rows that are put in the place of whole partitions are later than the deletes, which do not touch them.
    again = records(0, 30)
    days = [{"time_day": day} for day in sorted({r["time"].date().isoformat() for r in again})]
    service.overwrite(name, ndjson(again), {"partitions": days})
    _read_by_engines(name, again)


def _read_by_engines(name: str, expected: list[dict]) -> None:
    """By those that apply delete files; the Timelake engine knows none, and takes them for data files."""
    readers = engines.Readers(name)
    for engine, table in {"PyIceberg": readers.pyiceberg(), "DuckDB": readers.duckdb()}.items():
        assert engines.rows(table, COLUMNS) == engines.rows(arrow(expected), COLUMNS), f"rows by {engine}"
