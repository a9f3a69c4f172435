"""Three engines over the S3 gateway: each reads a table by its folder, with no catalog.

Every reader gives Arrow tables with the same column names, so that answers compare. `SLUICE_S3` is the gateway's
address, `SLUICE_WAREHOUSE` where tables are.
"""

import importlib.util
import os
import pathlib
import re
import time

import duckdb
import pyarrow as pa
import pyarrow.fs as fs
import timelake
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.table import StaticTable

S3 = os.environ.get("SLUICE_S3", "")
ALWAYS_TRUE = AlwaysTrue()
WAREHOUSE = os.environ.get("SLUICE_WAREHOUSE", "s3://sluice-lake/warehouse")


def location(name: str, warehouse: str = WAREHOUSE) -> str:
    """Folder of table `namespace.table`."""
    return f"{warehouse}/{name.replace('.', '/')}"


def storage(s3: str = S3) -> fs.S3FileSystem:
    """The bucket as files."""
    return fs.S3FileSystem(
        endpoint_override=s3,
        access_key="dev",
        secret_key="dev",
        region="auto",
        connect_timeout=60,
        request_timeout=60,
    )


def pointed(name: str, seconds: float = 30) -> None:
    """Waits until the version hint names the newest version, in two looks in a row.

    Every writer moves it behind its commits, and compaction commits by itself. PyIceberg asks for the hint's length and
    then for that many bytes: of a hint that goes from 9 to 10 in between it reads 1, the empty table.
    """
    folder = location(name).removeprefix("s3://") + "/metadata"
    bucket, end, before = storage(), time.monotonic() + seconds, None
    while True:
        names = (i.base_name for i in bucket.get_file_info(fs.FileSelector(folder)))
        newest = max(int(m[1]) for m in (re.fullmatch(r"v(\d+)\.metadata\.json", n) for n in names) if m)
        with bucket.open_input_stream(f"{folder}/version-hint.text") as stream:
            hint = stream.read().decode()
        if hint == str(newest) == before:
            return
        assert time.monotonic() < end, f"version hint stays at {hint}, the newest version is {newest}"
        before = hint
        time.sleep(0.2)


def lake(warehouse: str = WAREHOUSE, s3: str = S3, **options: str) -> timelake.Lake:
    """The warehouse through the Timelake engine. A new one each time has nothing cached."""
    return timelake.Lake(
        warehouse,
        storage_options={
            "aws_endpoint": s3,
            "aws_allow_http": "true",
            "aws_access_key_id": "dev",
            "aws_secret_access_key": "dev",
            "aws_region": "auto",
            **options,
        },
    )


def append(name: str, part: pa.Table, **options: object) -> dict:
    """An append by the Timelake engine.

    It writes the version hint in the background, after the call has returned and over whatever is there: a hint that the
    service has moved on meanwhile would go back, and stay there until the next commit. So that is waited for.
    """
    report = lake().table(name).append(part, **options)
    pointed(name)
    return report


FILE_IO = {
    "s3.endpoint": S3,
    "s3.access-key-id": "dev",
    "s3.secret-access-key": "dev",
    "s3.region": "auto",
    "s3.force-virtual-addressing": "false",
    # The gateway answers when it has the whole object; a busy machine needs more than the 3 s of the default.
    "s3.connect-timeout": "60",
    "s3.request-timeout": "60",
}


def static_table(name: str, version: int | None = None) -> StaticTable:
    """The table through PyIceberg: of the version the hint names, or of metadata file `version`."""
    where = location(name)
    if version is not None:
        where += f"/metadata/v{version}.metadata.json"
    return StaticTable.from_metadata(where, FILE_IO)


def _extension(name: str) -> str:
    spec = importlib.util.find_spec(f"duckdb_extension_{name}")
    assert spec is not None and spec.origin is not None, f"package duckdb-extension-{name} is missing"
    folder = pathlib.Path(spec.origin).parent / "extensions" / f"v{duckdb.__version__}"
    return str(folder / f"{name}.duckdb_extension")


def duck(s3: str = S3) -> duckdb.DuckDBPyConnection:
    """A connection that finds the gateway; times come in UTC."""
    connection = duckdb.connect()
    for name in ("httpfs", "avro", "iceberg"):
        connection.execute(f"LOAD '{_extension(name)}'")
    endpoint = s3.removeprefix("http://")
    connection.execute(
        f"CREATE SECRET (TYPE s3, ENDPOINT '{endpoint}', URL_STYLE 'path', USE_SSL false,"
        " KEY_ID 'dev', SECRET 'dev', REGION 'auto')"
    )
    connection.execute("SET TimeZone = 'UTC'")
    return connection


class Readers:
    """One look at a table through each engine, with nothing cached from before; further reads may use its caches."""

    def __init__(self, name: str):
        self.name = name
        pointed(name)
        self.static_table = static_table(name)
        self.connection = duck()
        self.lake = lake()

    def pyiceberg(self, where: BooleanExpression = ALWAYS_TRUE) -> pa.Table:
        return self.static_table.scan(row_filter=where).to_arrow()

    def duckdb(self, where: str = "true", select: str = "*") -> pa.Table:
        sql = f"SELECT {select} FROM iceberg_scan('{location(self.name)}') WHERE {where}"
        return self.connection.execute(sql).to_arrow_table()

    def timelake(self, where: str = "true", select: str = "*") -> pa.Table:
        return self.lake.sql(f"SELECT {select} FROM {self.name} WHERE {where}")

    def all(self) -> dict[str, pa.Table]:
        """The whole table by each engine."""
        return {"PyIceberg": self.pyiceberg(), "DuckDB": self.duckdb(), "Timelake": self.timelake()}


def rows(table: pa.Table, columns: list[str] | None = None) -> list[tuple]:
    """Rows as comparable tuples, sorted: NaN and null become texts, strings of every width one type."""
    names = columns if columns is not None else sorted(table.column_names)
    out = []
    for row in table.select(names).to_pylist():
        out.append(tuple(_comparable(row[n]) for n in names))
    return sorted(out, key=repr)


def _comparable(value: object) -> object:
    if value is None:
        return "<null>"
    if isinstance(value, float):
        return "<nan>" if value != value else value
    if hasattr(value, "tzinfo") and getattr(value, "tzinfo") is not None:
        return value.timestamp(), getattr(value, "microsecond")
    return value
