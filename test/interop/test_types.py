"""Every flat type in every format that has it: nulls, both ends, odd values; read back by PyIceberg and DuckDB."""

import base64
import datetime as dt
import io
import json
import uuid
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import service
from engines import Readers

pytestmark = pytest.mark.usefixtures("served")

UTC = dt.timezone.utc
COUNT = 10_000

# Iceberg type, Arrow type, values. The first row of a table is null in every column, each value has a row of its own.
CASES: dict[str, tuple[str, pa.DataType, list]] = {
    "b": ("boolean", pa.bool_(), [False, True]),
    "i": ("int", pa.int32(), [-(2**31), 2**31 - 1, 0, -1]),
    "l": ("long", pa.int64(), [-(2**63), 2**63 - 1, 9_007_199_254_740_993, -4_503_599_627_370_497]),
    "f": ("float", pa.float32(), [-3.4028234663852886e38, 3.4028234663852886e38, 1.401298464324817e-45, -0.0, 0.1]),
    "d": (
        "double",
        pa.float64(),
        [-1.7976931348623157e308, 1.7976931348623157e308, 5e-324, float("nan"), float("inf"), float("-inf"), 0.1],
    ),
    "d9": ("decimal(9,2)", pa.decimal128(9, 2), [Decimal("-9999999.99"), Decimal("9999999.99"), Decimal("1.25")]),
    "d18": ("decimal(18,4)", pa.decimal128(18, 4), [Decimal("-99999999999999.9999"), Decimal("99999999999999.9999")]),
    "d38": (
        "decimal(38,10)",
        pa.decimal128(38, 10),
        [Decimal("-" + "9" * 28 + "." + "9" * 10), Decimal("9" * 28 + "." + "9" * 10), Decimal("12345678901234567.8900000000")],
    ),
    "day": ("date", pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(1969, 12, 31), dt.date(2024, 2, 29)]),
    "t": ("time", pa.time64("us"), [dt.time(0), dt.time(23, 59, 59, 999_999), dt.time(12, 0, 0, 1)]),
    "ts": (
        "timestamp",
        pa.timestamp("us"),
        [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)],
    ),
    "tz": (
        "timestamptz",
        pa.timestamp("us", tz="UTC"),
        [
            dt.datetime(1, 1, 1, tzinfo=UTC),
            dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
            dt.datetime(1950, 6, 1, 0, 0, 0, 1, tzinfo=UTC),
        ],
    ),
    "s": ("string", pa.string(), ["", "\ufffdx", "😀x", 'quote " and \\, comma', "two\nlines", "\u0000", "e\u0301", "x" * 5000]),
    "bin": ("binary", pa.binary(), [b"", b"\x00\xff", bytes(range(256))]),
    "fix": ("fixed[4]", pa.binary(4), [b"\x00\x00\x00\x00", b"\xff\xff\xff\xff", b"\x80\x00\x7f\xff"]),
    "u": (
        "uuid",
        pa.binary(16),
        [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")],
    ),
}
NAMES = ["id", *CASES]
FIELDS = [{"name": "id", "type": "long", "required": True}] + [
    {"name": name, "type": type_} for name, (type_, _, _) in CASES.items()
]


def _records() -> list[dict]:
    most = max(len(values) for _, _, values in CASES.values())
    out = [{"id": 0, **dict.fromkeys(CASES)}]
    for i in range(most):
        out.append({"id": i + 1, **{name: values[i % len(values)] for name, (_, _, values) in CASES.items()}})
        # The same value among nulls.
        out.append({"id": most + i + 1, **{name: (v[i] if i < len(v) and n % 2 == i % 2 else None) for n, (name, (_, _, v)) in enumerate(CASES.items())}})
    return out


def _text(value: object) -> object:
    """A value as JSON and CSV have it."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (Decimal, uuid.UUID)):
        return str(value)
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return value


def _ndjson(records: list[dict]) -> bytes:
    return b"".join(json.dumps({k: _text(v) for k, v in r.items()}).encode() + b"\n" for r in records)


def _json(records: list[dict]) -> bytes:
    return json.dumps([{k: _text(v) for k, v in r.items() if v is not None} for r in records]).encode()


def _csv(records: list[dict], delimiter: str = ",") -> bytes:
    def cell(value: object) -> str:
        if value is None:
            return ""
        text = repr(value) if isinstance(value, float) and value == value and abs(value) != float("inf") else str(_text(value))
        return '"' + text.replace('"', '""') + '"'

    lines = [delimiter.join(NAMES)] + [delimiter.join(cell(r[n]) for n in NAMES) for r in records]
    return "\n".join(lines).encode()


def _arrow(records: list[dict]) -> pa.Table:
    schema = pa.schema([pa.field("id", pa.int64(), False)] + [pa.field(n, t) for n, (_, t, _) in CASES.items()])
    plain = [{k: v.bytes if isinstance(v, uuid.UUID) else v for k, v in r.items()} for r in records]
    return pa.Table.from_pylist(plain, schema)


def _stream(records: list[dict]) -> bytes:
    table, sink = _arrow(records), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _file(records: list[dict]) -> bytes:
    table, sink = _arrow(records), io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _parquet(records: list[dict], **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(_arrow(records), sink, **options)
    return sink.getvalue()


FORMATS = {
    "ndjson": ("application/x-ndjson", _ndjson),
    "json": ("application/json", _json),
    "csv": ("text/csv", _csv),
    "tsv": ("text/tab-separated-values", lambda records: _csv(records, "\t")),
    "arrow_stream": ("application/vnd.apache.arrow.stream", _stream),
    "arrow_file": ("application/vnd.apache.arrow.file", _file),
    "parquet": ("application/vnd.apache.parquet", _parquet),
    "parquet_zstd_plain": (
        "application/vnd.apache.parquet",
        lambda records: _parquet(records, compression="zstd", use_dictionary=False, row_group_size=5, data_page_version="2.0"),
    ),
}


def _found(value: object, type_: str) -> object:
    """A value as `_expected` gives it, whichever engine it came from."""
    if value is None:
        return "<null>"
    if isinstance(value, float):
        return "<nan>" if value != value else (value, str(value)[:1] == "-")
    if type_ == "uuid":
        return str(uuid.UUID(bytes=value)) if isinstance(value, bytes) else str(value)
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value


def _same(name: str, records: list[dict]) -> None:
    types = {"id": "long", **{n: t for n, (t, _, _) in CASES.items()}}

    def key(record: dict) -> list:
        # A float of 32 bits as the engines give it.
        single = lambda v: v if v is None else pa.scalar(v, pa.float32()).as_py()  # noqa: E731
        return [_found(single(record[n]) if n == "f" else record[n], types[n]) for n in NAMES]

    expected = sorted(map(key, records), key=lambda r: r[0])
    readers = Readers(name)
    for engine, table in {"PyIceberg": readers.pyiceberg(), "DuckDB": readers.duckdb()}.items():
        found = sorted(map(key, table.select(NAMES).to_pylist()), key=lambda r: r[0])
        assert found == expected, engine


@pytest.mark.parametrize("format_", FORMATS)
def test_every_type_comes_back_as_it_was_sent(name: str, format_: str) -> None:
    service.create(name, FIELDS)
    content_type, encode = FORMATS[format_]
    records = _records()
    answer = service.call(
        "POST", f"/v1/tables/{name.replace('.', '/')}/rows", encode(records), {"content-type": content_type}
    )
    assert answer["rows"] == len(records)
    service.flush(name)
    _same(name, records)


@pytest.mark.parametrize("format_", ["arrow_stream", "parquet"])
def test_pyarrow_delivers_many_rows(name: str, format_: str) -> None:
    service.create(name, FIELDS)
    content_type, encode = FORMATS[format_]
    records = [{**_records()[i % 3 + 1], "id": i} for i in range(COUNT)]
    answer = service.call(
        "POST", f"/v1/tables/{name.replace('.', '/')}/rows", encode(records), {"content-type": content_type}
    )
    assert answer["rows"] == COUNT
    service.flush(name)
    _same(name, records)
