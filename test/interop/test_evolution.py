"""Columns that come with rows: other engines see each of them with the rows that brought it, and go on with the table."""

import engines
import pyarrow as pa
import pytest
import service
from engines import rows
from pyiceberg.expressions import EqualTo, GreaterThan, IsNull

pytestmark = pytest.mark.usefixtures("served")

FIELDS = [{"name": "time", "type": "timestamptz"}, {"name": "device", "type": "string"}, {"name": "n", "type": "long"}]
ADDITIVE = {"sluice.schema-evolution": "additive"}


def _row(second: int, **more: object) -> dict:
    return {"time": f"2026-01-03T00:00:{second:02}Z", "device": "a", **more}


def test_new_columns_are_read_alike_and_the_engine_goes_on(name: str) -> None:
    service.create(name, FIELDS, time_column="time", series_key=["device"], properties=ADDITIVE)
    first = service.append(name, [_row(1, n=1)])
    second = service.append(name, [_row(2, n=2, color="red"), _row(3, ratio=0.5)])
    assert second["version"] == first["version"] + 1
    expected = [("<null>", 1, "<null>"), ("<null>", "<null>", 0.5), ("red", 2, "<null>")]
    columns = ["color", "n", "ratio"]
    for engine, table in engines.Readers(name).all().items():
        assert rows(table, columns) == sorted(expected, key=repr), engine
    # As of before, the table has neither the columns nor the rows.
    old = engines.static_table(name, first["version"])
    assert old.schema().column_names == ["time", "device", "n", "_ingest_ts"]
    assert old.scan().to_arrow().num_rows == 1

    lake = engines.lake()
    time = pa.array([1767398404000000], pa.timestamp("us", "UTC"))
    lake.table(name).append(pa.table({"time": time, "device": ["b"], "n": [4], "color": ["blue"], "ratio": [1.5]}))
    service.append(name, [_row(5, color="green", more=True)])
    expected += [("blue", 4, 1.5), ("green", "<null>", "<null>")]
    for engine, table in engines.Readers(name).all().items():
        assert rows(table, columns) == sorted(expected, key=repr), engine
        assert table.column("more").to_pylist().count(True) == 1, engine


def test_wider_types_are_read_alike_by_value_and_by_bound(name: str) -> None:
    fields = [{"name": "i", "type": "int"}, {"name": "f", "type": "float"}, {"name": "d", "type": "decimal(4, 2)"}]
    service.create(name, fields, properties=ADDITIVE)
    service.append(name, [{"i": -1, "f": 0.5, "d": "1.25"}])
    service.append(name, [{"i": 5_000_000_000, "f": 1e39, "d": "123456.78"}])
    readers = engines.Readers(name)
    for table in (readers.pyiceberg(), readers.duckdb()):
        found = sorted(zip(*(table.column(c).to_pylist() for c in ("i", "f")), map(str, table.column("d").to_pylist())))
        assert found == [(-1, 0.5, "1.25"), (5_000_000_000, 1e39, "123456.78")]
    # Bounds of the first file are of the narrow types.
    assert readers.pyiceberg(EqualTo("i", -1)).num_rows == 1
    assert readers.pyiceberg(GreaterThan("f", 1.0)).num_rows == 1
    assert readers.pyiceberg(IsNull("i")).num_rows == 0
    assert readers.duckdb("i = -1").num_rows == 1
    assert readers.duckdb("d > 100").num_rows == 1
