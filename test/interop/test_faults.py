"""Tables with something wrong in them: told by kind, nothing is deleted, and rows go on being taken."""

import engines
import pyarrow.fs as fs
import pytest
import service
from check import same_rows
from data import FIELDS, arrow, ndjson, records

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
    engines.lake().table(name).append(arrow(theirs), maintain=False)
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
    engines.lake().table(name).append(arrow(records(0, 30)), maintain=False)
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
