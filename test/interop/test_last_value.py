"""The last-value index that the service and the engine share: whoever writes extends what the other left, and both answer
`latest` from it alike."""

import urllib.request

import engines
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import service
from data import COLUMNS, FIELDS, arrow, ndjson, records
from engines import rows

pytestmark = pytest.mark.usefixtures("served")

KEY = "timelake.last-value-index"


def _latest(name: str) -> tuple[pa.Table, str]:
    """The service's answer as Arrow, and where it was found."""
    request = urllib.request.Request(service.URL + "/v1/tables/" + name.replace(".", "/") + "/latest")
    request.add_header("accept", "application/vnd.apache.arrow.stream")
    with urllib.request.urlopen(request, timeout=90) as response:
        return pa.ipc.open_stream(response.read()).read_all(), response.headers["x-sluice-source"]


def _index(name: str) -> str | None:
    return service.describe(name)["snapshot"]["summary"].get(KEY)


def _agree(name: str, everything: list[dict], source: str, step: str) -> None:
    newest = {r["device"]: r for r in sorted(everything, key=lambda r: r["time"])}
    want = rows(arrow(list(newest.values())), COLUMNS)
    assert rows(engines.lake().latest(name), COLUMNS) == want, step
    ours, found = _latest(name)
    assert rows(ours, COLUMNS) == want, step
    assert found == source, step


def _indexed(name: str) -> list:
    """The rows of the index file, read by nobody's `latest`."""
    location = _index(name)
    assert location is not None
    return rows(pq.read_table(location.removeprefix("s3://"), filesystem=engines.storage()), COLUMNS)


def test_both_extend_the_index_that_the_other_left_and_answer_from_it(name: str) -> None:
    service.create(name, FIELDS, time_column="time", series_key=["device"], chunk="day", dedup=False)
    everything: list[dict] = []
    named = set()
    for turn in range(6):
        part = records(turn * 25, 25)
        if turn > 3:
            # A series that only one of them has written, and rows older than what is known.
            part = [dict(r, device=f"only-{turn}") for r in part[:5]] + records(0, 3)
        everything += part
        if turn % 2 == 0:
            service.append(name, ndjson(part))
        else:
            engines.append(name, arrow(part))
        location = _index(name)
        assert location is not None and location not in named, f"turn {turn}"
        named.add(location)
        newest = {r["device"]: r for r in sorted(everything, key=lambda r: r["time"])}
        assert _indexed(name) == rows(arrow(list(newest.values())), COLUMNS), f"turn {turn}"
        _agree(name, everything, "index", f"turn {turn}")
    engines.lake().table(name).maintain(expire=False)
    _agree(name, everything, "index", "their maintenance")
    service.admin(name, "POST", "/maintain")
    _agree(name, everything, "index", "our maintenance")


def test_an_index_that_was_lost_is_made_again_and_the_engine_goes_on_from_it(name: str) -> None:
    service.create(name, FIELDS, time_column="time", series_key=["device"], chunk="day", dedup=False)
    everything = records(0, 60)
    service.append(name, ndjson(everything))
    service.admin(name, "POST", "/delete", {"filter": {"partitions": [{"time_day": "2026-03-06"}]}})
    everything = [r for r in everything if r["time"].day != 6]
    assert _index(name) is None
    _agree(name, everything, "scan", "without an index")
    more = records(60, 20)
    everything += more
    engines.append(name, arrow(more))
    assert _index(name) is None
    report = service.admin(name, "POST", "/maintain", {"index": True})
    assert report["steps"]["index"]["report"]["state"] == "made"
    _agree(name, everything, "index", "made again")
    theirs, ours = records(80, 20), records(100, 20)
    engines.append(name, arrow(theirs))
    _agree(name, everything + theirs, "index", "the engine on top")
    service.append(name, ndjson(ours))
    _agree(name, everything + theirs + ours, "index", "the service on top")


def test_the_engine_appends_after_columns_changed(name: str) -> None:
    """The index is written anew under another name: the engine keeps old ones in memory, by name."""
    service.create(name, FIELDS, time_column="time", series_key=["device"], chunk="day", dedup=False)
    lake = engines.lake()
    first = records(0, 20)
    service.append(name, ndjson(first))
    lake.table(name).append(arrow(records(20, 20)))
    before = _index(name)
    service.admin(name, "POST", "/schema", {"changes": [{"add": "extra", "type": "long"}]})
    assert _index(name) not in (None, before)
    everything = first + records(20, 40)
    engines.append(name, arrow(records(40, 20)).append_column("extra", pa.array(range(20), pa.int64())))
    _agree(name, everything, "index", "the engine after the change")
    service.append(name, ndjson(records(60, 20)))
    _agree(name, everything + records(60, 20), "index", "the service after the engine")
