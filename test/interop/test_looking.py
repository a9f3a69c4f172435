"""What `GET …/rows` and `GET …/latest` answer as Arrow, read by pyarrow: the types, nulls and values that PyIceberg and DuckDB
read from the table itself."""

import datetime as dt
import urllib.parse
import urllib.request
from decimal import Decimal

import engines
import pyarrow as pa
import pytest
import service
from data import COLUMNS, DAY, FIELDS, NOTES, SCHEMA, UTC, arrow, ndjson, records
from engines import Readers, rows
from folder_catalog import FolderCatalog
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.types import DoubleType, LongType, NestedField, StringType, TimestamptzType
from test_types import CASES, _arrow, _found, _records

pytestmark = pytest.mark.usefixtures("served")

TIME = {"name": "time", "type": "timestamptz", "required": True}


def _look(name: str, what: str, *query: tuple[str, str]) -> pa.Table:
    """The answer as pyarrow reads it; whether there are more rows, and what was read, stands in the schema's metadata."""
    address = f"{service.URL}/v1/tables/{name.replace('.', '/')}/{what}?{urllib.parse.urlencode(query)}"
    request = urllib.request.Request(address, headers={"accept": "application/vnd.apache.arrow.stream"})
    with urllib.request.urlopen(request, timeout=90) as response:
        table = pa.ipc.open_stream(response.read()).read_all()
        table.validate(full=True)
        told = {k: str(response.headers[f"x-sluice-{k}"]) for k in ("more", "bytes-read")}
        return table.replace_schema_metadata(told)


def _plain(type_: pa.DataType) -> pa.DataType:
    """A type without what engines choose freely: the width of offsets, and whether a uuid has a name."""
    if pa.types.is_large_string(type_):
        return pa.string()
    if pa.types.is_large_binary(type_):
        return pa.binary()
    if isinstance(type_, pa.UuidType):
        return pa.binary(16)
    if pa.types.is_large_list(type_) or pa.types.is_list(type_):
        field = type_.value_field
        return pa.list_(pa.field("element", _plain(field.type), field.nullable))
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(f.name, _plain(f.type), f.nullable) for f in type_])
    if pa.types.is_map(type_):
        return pa.map_(_plain(type_.key_type), pa.field("value", _plain(type_.item_type), type_.item_field.nullable))
    return type_


def _columns(table: pa.Table) -> list[tuple]:
    return [(f.name, _plain(f.type), f.nullable) for f in table.schema]


def _values(table: pa.Table, names: list[str], types: dict[str, str], by: str) -> list[list]:
    found = [[_found(record[n], types.get(n, "")) for n in names] for record in table.to_pylist()]
    return sorted(found, key=lambda row: row[names.index(by)])


def test_every_type_is_read_by_pyarrow_as_the_engines_read_the_table(name: str) -> None:
    fields = [TIME, {"name": "id", "type": "long", "required": True}]
    fields += [{"name": n, "type": type_} for n, (type_, _, _) in CASES.items()]
    service.create(name, fields, time_column="time", series_key=["id"])
    sent = _arrow(_records())
    times = [dt.datetime(1969, 12, 31, tzinfo=UTC) + dt.timedelta(hours=i) for i in range(sent.num_rows)]
    sent = sent.append_column(pa.field("time", pa.timestamp("us", tz="UTC"), False), pa.array(times, pa.timestamp("us", tz="UTC")))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, sent.schema) as writer:
        writer.write_table(sent)
    content_type = {"content-type": "application/vnd.apache.arrow.stream"}
    service.call("POST", f"/v1/tables/{name.replace('.', '/')}/rows", sink.getvalue().to_pybytes(), content_type)
    service.flush(name)

    names = ["time", "id", *CASES]
    types = {n: type_ for n, (type_, _, _) in CASES.items()}
    readers = Readers(name)
    theirs = {"PyIceberg": readers.pyiceberg(), "DuckDB": readers.duckdb()}
    for what in ("rows", "latest"):
        ours = _look(name, what)
        assert _columns(ours) == _columns(theirs["PyIceberg"]), what
        for n, (_, type_, _) in CASES.items():
            assert ours.schema.field(n).type == type_, f"{what}: {n}"
        for engine, table in theirs.items():
            assert _values(ours, names, types, "id") == _values(table, names, types, "id"), f"{what}: {engine}"
        for n in names:
            assert ours[n].null_count == theirs["PyIceberg"][n].null_count, f"{what}: {n}"
    assert _look(name, "rows")["time"].to_pylist() == sorted(times)


def test_nested_values_are_read_by_pyarrow_as_the_engines_read_the_table(name: str) -> None:
    struct = {"type": "struct", "fields": [{"name": "n", "type": "long"}, {"name": "price", "type": "decimal(20,2)"}]}
    fields = [
        TIME,
        {"name": "device", "type": "string"},
        {"name": "tags", "type": {"type": "list", "element": "string", "element-required": False}},
        {"name": "at", "type": struct},
        {"name": "by", "type": {"type": "map", "key": "string", "value": "double", "value-required": False}},
        {"name": "deep", "type": {"type": "list", "element": struct, "element-required": False}},
    ]
    service.create(name, fields, time_column="time", series_key=["device"])
    at = {"n": str(2**63 - 1), "price": "-12.50"}
    given = [
        {"tags": ["x", None, ""], "at": at, "by": {"p": 0.5, "q": None}, "deep": [at, None, {"n": None, "price": None}]},
        {"tags": [], "at": {"n": None, "price": None}, "by": {}, "deep": []},
        {"tags": None, "at": None, "by": None, "deep": None},
    ]
    start = dt.datetime(1950, 1, 1, tzinfo=UTC)
    for turn in range(2):
        part = [
            {"time": (start + dt.timedelta(seconds=3 * turn + i)).isoformat(), "device": f"d{i}", **values}
            for i, values in enumerate(given)
        ]
        service.append(name, part)

    readers = Readers(name)
    want = readers.pyiceberg().sort_by("time")
    ours = _look(name, "rows")
    assert _columns(ours) == _columns(want)
    duckdb = readers.duckdb().sort_by("time")
    assert ours.to_pylist() == duckdb.to_pylist()
    # PyIceberg makes an empty list of a null where the elements are structs.
    single = [n for n in ours.column_names if n != "deep"]
    assert ours.select(single).to_pylist() == want.select(single).to_pylist()
    assert ours["at"].to_pylist()[0] == {"n": 2**63 - 1, "price": Decimal("-12.50")}
    newest = _look(name, "latest")
    assert _columns(newest) == _columns(want)
    assert newest.to_pylist() == duckdb.to_pylist()[3:]
    assert _look(name, "rows", ("columns", "deep"), ("order", "desc"), ("limit", "1")).to_pylist() == [{"deep": None}]


def _sql(text: str | None) -> str:
    return "note IS NULL" if text is None else "note = '" + text.replace("'", "''") + "'"


def test_time_ranges_series_and_limits_choose_as_duckdb_does(name: str) -> None:
    """Files of the service and of the engine, merged and not, whose text bounds are cut."""
    service.create(name, FIELDS, time_column="time", series_key=["device"], chunk="day", dedup=False)
    for turn in range(4):
        part = records(turn * 120, 120)
        service.append(name, ndjson(part)) if turn % 2 == 0 else engines.append(name, arrow(part))
        if turn == 1:
            service.admin(name, "POST", "/maintain", {"compact": True})
    readers = Readers(name)

    def same(query: list[tuple[str, str]], where: str) -> None:
        found = _look(name, "rows", *query, ("limit", "1000"))
        assert rows(found, COLUMNS) == rows(readers.duckdb(where), COLUMNS), (query, where)
        assert found["time"].to_pylist() == sorted(found["time"].to_pylist()), query

    assert _columns(_look(name, "rows", ("columns", ",".join(COLUMNS)))) == _columns(SCHEMA.empty_table())
    same([], "true")
    for note in NOTES:
        same([("is_null", "note") if note is None else ("note", note)], _sql(note))
    same([("note", NOTES[0]), ("note", NOTES[1]), ("is_null", "note")], f"{_sql(NOTES[0])} OR {_sql(NOTES[1])} OR note IS NULL")
    same([("device", "device-0001-alpha"), ("ok", "false")], "device = 'device-0001-alpha' AND ok = false")
    same([("ticks", str(2**63 - 1)), ("ticks", str(-(2**63)))], f"ticks IN ({2**63 - 1}, {-(2**63)})")
    same([("reading", "0")], "reading = 0")
    same([("day", "2026-03-05")], "day = DATE '2026-03-05'")
    for first, last in [(0, 37), (37, 60 * 60), (24 * 3600, 2 * 24 * 3600), (10 * 24 * 3600, 11 * 24 * 3600)]:
        low, high = (DAY + dt.timedelta(seconds=s) for s in (first, last))
        same(
            [("from", low.isoformat()), ("to", high.isoformat())],
            f"time >= TIMESTAMPTZ '{low.isoformat()}' AND time < TIMESTAMPTZ '{high.isoformat()}'",
        )
    times = sorted(readers.duckdb()["time"].to_pylist())
    for order, want in (("asc", times), ("desc", times[::-1])):
        found = _look(name, "rows", ("order", order), ("limit", "50"), ("columns", "time"))
        assert found["time"].to_pylist() == want[:50]
        assert found.schema.metadata[b"more"] == b"true"


@pytest.mark.parametrize(("codec", "count"), [("zstd", 150_000), ("gzip", 50_000)])
def test_large_files_of_pyiceberg_are_read_once_and_as_duckdb_reads_them(name: str, codec: str, count: int) -> None:
    """One row group without a page index. gzip is read by the general reader, which has a bound of memory for it."""
    schema = Schema(
        NestedField(1, "time", TimestamptzType(), required=False),
        NestedField(2, "device", StringType(), required=False),
        NestedField(3, "n", LongType(), required=False),
        NestedField(4, "v", DoubleType(), required=False),
    )
    properties = {"format-version": "2", "write.parquet.compression-codec": codec}
    where = engines.location(name)
    table = FolderCatalog().create_table(
        name, schema, where, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, properties
    )
    numbers = [None if i % 11 == 0 else (i * 7919) % count for i in range(count)]
    table.append(
        pa.table(
            {
                "time": pa.array([DAY + dt.timedelta(seconds=i) for i in range(count)], pa.timestamp("us", tz="UTC")),
                "device": [None if i % 13 == 0 else f"device-{i % 1009}" for i in range(count)],
                "n": pa.array(numbers, pa.int64()),
                "v": [i / 7 for i in range(count)],
            }
        )
    )
    service.admin(name, "POST", "/attach", {"metadata_location": table.metadata_location})
    [file] = service.admin(name, "GET", "/files")["partitions"]
    readers = Readers(name)
    names = ["time", "device", "n", "v"]
    for query, sql in [
        ([("device", "device-7"), ("is_null", "device")], "device = 'device-7' OR device IS NULL"),
        ([("n", "4"), ("n", str(count - 1))], f"n IN (4, {count - 1})"),
        ([("v", "-1")], "v = -1"),
    ]:
        found = _look(name, "rows", *query, ("limit", "100000"))
        assert _columns(found) == _columns(readers.pyiceberg().slice(0, 0))
        assert rows(found, names) == rows(readers.duckdb(sql), names), sql
        assert int(found.schema.metadata[b"bytes-read"]) < 1.5 * int(file["bytes"]) + 200_000, sql
    last = _look(name, "rows", ("limit", "100000"), ("columns", "v"))
    assert last["v"].to_pylist() == [i / 7 for i in range(min(count, 100_000))]
