"""A table that PyIceberg made and wrote, in no order and with nested columns: attached, compacted here, and read as before."""

import datetime as dt
import decimal
import random

import engines
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import service
from engines import Readers, rows
from folder_catalog import FolderCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
)

pytestmark = pytest.mark.usefixtures("served")

SCHEMA = Schema(
    NestedField(1, "time", TimestamptzType(), required=False),
    NestedField(2, "device", StringType(), required=False),
    NestedField(3, "n", LongType(), required=False),
    NestedField(4, "price", DecimalType(20, 2), required=False),
    NestedField(5, "tags", ListType(20, StringType(), element_required=False), required=False),
    NestedField(
        6,
        "place",
        StructType(
            NestedField(11, "floor", LongType(), required=False),
            NestedField(12, "rooms", ListType(13, StringType(), element_required=False), required=False),
        ),
        required=False,
    ),
    NestedField(7, "counts", MapType(14, StringType(), 15, DoubleType(), value_required=False), required=False),
    NestedField(8, "site", StringType(), required=False),
)
DAY = dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc)


def _record(i: int) -> dict:
    return {
        "time": DAY + dt.timedelta(minutes=i % 1440, microseconds=i),
        "device": None if i % 17 == 0 else f"device-{i % 23}",
        "n": None if i % 5 == 0 else i * 10**12,
        "price": None if i % 7 == 0 else decimal.Decimal(i).scaleb(-2),
        "tags": None if i % 3 == 0 else [None if t == 1 else f"tag {t}" for t in range(i % 4)],
        "place": None if i % 4 == 0 else {"floor": i % 9, "rooms": None if i % 6 == 0 else [f"room {i % 31}"]},
        "counts": None if i % 8 == 0 else {f"k{k}": None if k == 2 else k / 7 for k in range(i % 4)},
        "site": "a",
    }


def _shuffled(start: int, count: int) -> list[dict]:
    records = [_record(i) for i in range(start, start + count)]
    random.Random(start).shuffle(records)
    return records


def _arrow(records: list[dict], schema: Schema) -> pa.Table:
    return pa.Table.from_pylist(records, schema=schema.as_arrow())


def _without_ids(table: pa.Table) -> pa.Table:
    """As a writer makes it that knows nothing of Iceberg."""
    def plain(field: pa.Field) -> pa.Field:
        kind = field.type
        if pa.types.is_struct(kind):
            kind = pa.struct([plain(child) for child in kind])
        elif pa.types.is_map(kind):
            kind = pa.map_(kind.key_type, plain(kind.item_field))
        elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
            kind = pa.list_(plain(kind.value_field))
        return pa.field(field.name, pa.string() if pa.types.is_large_string(kind) else kind, field.nullable)

    return table.cast(pa.schema([plain(field) for field in table.schema]))


def test_files_of_pyiceberg_are_compacted_and_read_the_same(name: str) -> None:
    table = FolderCatalog().create_table(
        name,
        SCHEMA,
        engines.location(name),
        PartitionSpec(PartitionField(8, 1000, IdentityTransform(), "site")),
        SortOrder(SortField(2, IdentityTransform()), SortField(1, IdentityTransform())),
        {"format-version": "2"},
    )
    start = 0
    for codec in ("zstd", "snappy", "gzip", "uncompressed"):
        with table.transaction() as transaction:
            transaction.set_properties({"write.parquet.compression-codec": codec})
        table.append(_arrow(_shuffled(start, 300), table.schema()))
        start += 300
    path = f"{engines.location(name)}/data/plain.parquet"
    with engines.storage().open_output_stream(path.removeprefix("s3://")) as stream:
        pq.write_table(
            _without_ids(_arrow(_shuffled(start, 300), table.schema())),
            stream,
            compression="snappy",
            data_page_version="2.0",
            use_dictionary=False,
            column_encoding={"device": "DELTA_BYTE_ARRAY", "n": "DELTA_BINARY_PACKED"},
            row_group_size=100,
        )
    table.add_files([path])
    held = rows(_arrow([_record(i) for i in range(start + 300)], table.schema()))

    attached = service.admin(name, "POST", "/attach", {"metadata_location": table.metadata_location})
    assert attached["attached"]
    assert service.admin(name, "GET", "/files")["files"] == 5

    def check(step: str) -> None:
        readers = Readers(name)
        for engine, read in {"PyIceberg": readers.pyiceberg(), "DuckDB": readers.duckdb()}.items():
            assert rows(read) == held, f"rows by {engine} {step}"

    check("before")
    report = service.admin(name, "POST", "/maintain", {"full": True})
    assert report["changed"] and report["left_alone"] == [] and report["remaining"] == 0
    assert service.admin(name, "GET", "/files")["files"] == 1
    check("after")
    [file] = Readers(name).static_table.inspect.files().to_pylist()
    assert (file["record_count"], file["sort_order_id"]) == (start + 300, 1)
    read = Readers(name).pyiceberg().select(["device", "time"]).to_pylist()
    order = [(r["device"] or "", r["time"]) for r in read]
    assert order == sorted(order)
