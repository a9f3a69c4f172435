"""Expiry and erasing while hours pass: readers of an old state go on until the time of grace is over, and what is in use stays."""

import time
from collections.abc import Callable

import catalog
import duckdb
import engines
import pyarrow.fs as fs
import pytest
import stepped
from pyiceberg.table import StaticTable

FILE_IO = {**engines.FILE_IO, "s3.endpoint": stepped.S3}
COUNTED = "SELECT v FROM iceberg_scan('{}') ORDER BY v"


def _by_duckdb(metadata: str) -> list[int]:
    """With nothing known from before."""
    return [v for (v,) in engines.duck(stepped.S3).execute(COUNTED.format(metadata)).fetchall()]


def _by_timelake(location: str) -> list[int]:
    warehouse, namespace, table = location.rsplit("/", 2)
    lake = engines.lake(warehouse, stepped.S3)
    return lake.sql(f"SELECT v FROM {namespace}.{table} ORDER BY v")["v"].to_pylist()


def test_an_old_state_is_read_until_the_grace_is_over() -> None:
    stepped.begin()
    for _ in range(7):
        old = stepped.append(10)
        stepped.wait(1000)
    metadata = f"{old['location']}/metadata/v{old['version']}.metadata.json"
    held = StaticTable.from_metadata(metadata, FILE_IO)
    # Its files are all merged into one with the eighth.
    now = stepped.append(10)
    now = stepped.wait(1000)
    assert now["version"] > old["version"] + 1
    # The snapshots that the table keeps whatever their age.
    for _ in range(5):
        now = stepped.append(10)
        stepped.wait(1000)

    readers: dict[str, Callable[[], list[int]]] = {
        "PyIceberg": lambda: sorted(held.scan().to_arrow()["v"].to_pylist()),
        "DuckDB": lambda: _by_duckdb(metadata),
    }

    def check_old(when: str) -> None:
        for engine, read in readers.items():
            assert read() == list(range(1, 71)), f"{when}, by {engine}"

    check_old("before")
    batches = held.scan().to_arrow_batch_reader()
    begun = next(batches).num_rows
    assert 0 < begun < 70, "the reader has read it all: nothing is left to be deleted under it"

    expired = stepped.wait(2 * stepped.HOUR_MS)
    assert expired["snapshots"] == 5 and expired["version"] == now["version"] + 1
    assert expired["eraseInMs"] == stepped.HOUR_MS and expired["doomed"] > 0
    check_old("expired")

    last = stepped.wait(stepped.HOUR_MS - 1)
    assert last["objects"] == expired["objects"], "files went before the grace was over"
    check_old("a moment before the end")
    assert begun + sum(batch.num_rows for batch in batches) == 70, "the reader that began before"

    over = stepped.wait(1)
    assert over["doomed"] == 0 and over["objects"] < last["objects"]
    with pytest.raises(FileNotFoundError):
        readers["PyIceberg"]()
    with pytest.raises(duckdb.Error, match="404"):
        readers["DuckDB"]()
    newest = f"{over['location']}/metadata/v{over['version']}.metadata.json"
    everything = list(range(1, 131))
    assert sorted(StaticTable.from_metadata(newest, FILE_IO).scan().to_arrow()["v"].to_pylist()) == everything
    assert _by_duckdb(newest) == everything
    assert _by_timelake(over["location"]) == everything


def test_files_of_deleted_rows_outlive_expiry_and_erasing_as_long_as_a_snapshot_needs_them() -> None:
    begun = StaticTable.from_metadata(f"{stepped.begin()['location']}/metadata/v1.metadata.json", FILE_IO)
    # DuckDB goes by the real clock: it takes a table as it was when its transaction began, and stamps its snapshot.
    stepped.wait(int(time.time() * 1000) - 20_000 - begun.metadata.last_updated_ms)

    def append(count: int) -> dict:
        for _ in range(count):
            stepped.append(10)
            state = stepped.wait(100)
        return state

    # All but the last of the files are merged.
    location = append(9)["location"]
    warehouse, namespace, table = location.rsplit("/", 2)
    with catalog.duck(stepped.S3, warehouse) as connection:
        assert connection.execute(f"DELETE FROM lake.{namespace}.{table} WHERE v % 2 = 0").fetchall() == [(45,)]
    deletes = _delete_files(location)
    assert deletes, "DuckDB writes delete files"
    now = append(6)
    expired = stepped.wait(2 * stepped.HOUR_MS)
    assert expired["snapshots"] == 5 and expired["doomed"] > 0
    over = stepped.wait(stepped.HOUR_MS)
    assert over["doomed"] == 0 and over["objects"] < now["objects"]
    assert _delete_files(location) == deletes
    newest = f"{location}/metadata/v{over['version']}.metadata.json"
    expected = [*range(1, 91, 2), *range(91, 151)]
    assert sorted(StaticTable.from_metadata(newest, FILE_IO).scan().to_arrow()["v"].to_pylist()) == expected
    assert _by_duckdb(newest) == expected


def _delete_files(location: str) -> set[str]:
    everything = fs.FileSelector(location.removeprefix("s3://") + "/data", recursive=True)
    return {i.path for i in engines.storage(stepped.S3).get_file_info(everything) if i.path.endswith("-deletes.parquet")}
