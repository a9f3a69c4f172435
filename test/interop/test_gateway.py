"""The gateway itself: the Timelake engine writes through it, the two others read. Needs no service."""

import json
import threading

import engines
import fastavro
import pyarrow as pa
import pyarrow.fs as fs
import pytest
import timelake
from check import same_everywhere
from data import SCHEMA, arrow, records


def _engine_table(name: str, **options) -> timelake.Table:
    return engines.lake().create_table(name, SCHEMA, time_column="time", series_key=["device"], dedup=False, **options)


@pytest.mark.parametrize("chunk", ["hour", "day", "month"])
def test_an_engine_table_is_read_alike_by_all(name: str, chunk: str) -> None:
    table = _engine_table(name, chunk=chunk)
    first, second = records(0, 120), records(120, 45)
    table.append(arrow(first), batch_id="one")
    table.append(arrow(second))
    same_everywhere(name, first + second)


def test_an_engine_table_is_read_alike_after_compaction(name: str) -> None:
    table = _engine_table(name)
    everything = []
    for i in range(10):
        part = records(i * 20, 20)
        table.append(arrow(part), maintain=False)
        everything += part
    assert table.maintain()["files_written"] == 3
    same_everywhere(name, everything)


def test_a_large_file_goes_up_in_parts(name: str) -> None:
    table = engines.lake().create_table(
        name, pa.schema([("payload", pa.binary())]), properties={"write.parquet.compression-codec": "uncompressed"}
    )
    chunk = bytes(range(256)) * 4096
    payload = [i.to_bytes(4, "big") + chunk for i in range(13)]
    table.append(pa.table({"payload": pa.array(payload, pa.binary())}))
    assert table.info()["bytes"] > 12 * 2**20
    for engine, read in engines.Readers(name).all().items():
        assert read["payload"].to_pylist() == payload, engine


def test_writers_at_the_same_time_lose_no_rows(name: str) -> None:
    _engine_table(name)
    parts = [records(i * 10, 10) for i in range(4)]
    attempts, failures = [], []

    def write(part: list[dict]) -> None:
        try:
            attempts.append(engines.lake().table(name).append(arrow(part), maintain=False)["attempts"])
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert max(attempts) > 1, "no writer lost a race: the test has not reached what it is for"
    same_everywhere(name, [r for part in parts for r in part])


def test_another_s3_client_lists_and_reads(name: str) -> None:
    _engine_table(name).append(arrow(records(0, 5)))
    s3 = fs.S3FileSystem(
        endpoint_override=engines.S3,
        access_key="dev",
        secret_key="dev",
        region="auto",
        connect_timeout=60,
        request_timeout=60,
    )
    folder = engines.location(name).removeprefix("s3://") + "/metadata"
    found = sorted(i.base_name for i in s3.get_file_info(fs.FileSelector(folder)))
    assert {"v1.metadata.json", "v2.metadata.json", "version-hint.text"} <= set(found)
    metadata = json.loads(s3.open_input_stream(f"{folder}/v2.metadata.json").read())
    listed = metadata["snapshots"][0]["manifest-list"].removeprefix("s3://")
    assert len(list(fastavro.reader(s3.open_input_stream(listed)))) == 1
    with s3.open_output_stream(f"{folder}/written by arrow") as out:
        out.write(b"chunked body")
    assert s3.open_input_stream(f"{folder}/written by arrow").read() == b"chunked body"
    s3.delete_file(f"{folder}/written by arrow")
    assert s3.get_file_info(f"{folder}/written by arrow").type == fs.FileType.NotFound


def test_a_dropped_table_is_gone(name: str) -> None:
    _engine_table(name).append(arrow(records(0, 5)))
    lake = engines.lake()
    lake.drop_table(name)
    assert name not in engines.lake().tables()
    with pytest.raises(KeyError):
        engines.lake().table(name)
