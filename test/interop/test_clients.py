"""Clients that nobody here wrote deliver rows: InfluxDB's Python client line protocol, curl CSV that pyarrow wrote."""

import shutil
import subprocess
from datetime import datetime, timedelta, timezone

import pyarrow as pa
import pyarrow.csv
import pytest
import service
from engines import Readers
from influxdb_client import InfluxDBClient, Point, WritePrecision
from influxdb_client.client.write_api import SYNCHRONOUS, WriteOptions
from influxdb_client.rest import ApiException

pytestmark = pytest.mark.usefixtures("served")

COUNT = 10_000
START = datetime(2026, 1, 3, tzinfo=timezone.utc)
FIELDS = [
    {"name": "time", "type": "timestamptz", "required": True},
    {"name": "host", "type": "string"},
    {"name": "n", "type": "long"},
    {"name": "x", "type": "double"},
    {"name": "ok", "type": "boolean"},
    {"name": "note", "type": "string"},
]
NOTES = ["plain", "", "two\nlines", 'say "hi"', "C:\\", "a,b=c d", "é😀", None]


def _records() -> list[dict]:
    return [
        {
            "time": START + timedelta(microseconds=1_000_001 * i),
            "host": f"h, {i % 7}=x",
            "n": 9_007_199_254_740_993 + i if i % 3 else -i,
            "x": i / 7,
            "ok": None if i % 5 == 0 else i % 2 == 0,
            "note": NOTES[i % len(NOTES)],
        }
        for i in range(COUNT)
    ]


def _create(name: str) -> None:
    service.create(name, FIELDS, time_column="time", series_key=["host"], chunk="day", dedup=False)


def _same(name: str, expected: list[dict]) -> None:
    service.flush(name)
    for engine, table in Readers(name).all().items():
        found = table.select([f["name"] for f in FIELDS]).to_pylist()
        for row in found:
            row["time"] = row["time"].astimezone(timezone.utc)
        assert len(found) == len(expected), engine
        assert sorted(found, key=lambda r: r["time"]) == expected, engine


def _point(measurement: str, record: dict) -> Point:
    # As a number: the client counts the microseconds of a datetime in floating point.
    micros = (record["time"] - datetime(1970, 1, 1, tzinfo=timezone.utc)) // timedelta(microseconds=1)
    point = Point(measurement).tag("host", record["host"]).time(micros, WritePrecision.US)
    for field in ("n", "x", "ok", "note"):
        point = point.field(field, record[field])
    return point


@pytest.mark.parametrize("gzip", [False, True], ids=["plain", "gzip"])
def test_influxdb_client(name: str, gzip: bool) -> None:
    _create(name)
    bucket, measurement = name.split(".")
    expected = _records()
    with InfluxDBClient(service.URL, token="any", org="home", enable_gzip=gzip) as client:
        assert client.ping()
        with client.write_api(WriteOptions(batch_size=1_000, flush_interval=100)) as api:
            for record in expected:
                api.write(bucket, record=_point(measurement, record))
    _same(name, expected)


def test_influxdb_client_hears_what_is_refused(name: str) -> None:
    _create(name)
    bucket, measurement = name.split(".")
    with InfluxDBClient(service.URL, token="any", org="home") as client:
        api = client.write_api(SYNCHRONOUS)
        with pytest.raises(ApiException) as refused:
            api.write(bucket, record=[Point(measurement).field("nope", 1), Point(f"{measurement}_none").field("n", 1)])
    assert refused.value.status == 400
    # What the client shows of the answer.
    assert "nothing written" in refused.value.message
    assert "nope is a column that the table does not have" in refused.value.message
    assert "dropped=2" in refused.value.message


def test_curl_with_csv(name: str, tmp_path) -> None:
    curl = shutil.which("curl")
    assert curl is not None, "curl is not installed"
    _create(name)
    expected = _records()
    file = tmp_path / "rows.csv"
    # Every value in quotes but None, which is apart from the empty text so.
    pa.csv.write_csv(pa.Table.from_pylist(expected), file, pa.csv.WriteOptions(quoting_style="all_valid"))
    address = f"{service.URL}/v1/tables/{name.replace('.', '/')}/rows"
    command = [curl, "-sS", "--fail-with-body", address, "-H", "content-type: text/csv", "--data-binary", f"@{file}"]
    sent = subprocess.run(command, capture_output=True, text=True, timeout=90)
    assert sent.returncode == 0, sent.stdout + sent.stderr
    assert f'"rows":{COUNT}' in sent.stdout
    _same(name, expected)
