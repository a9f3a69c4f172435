"""Spark reads what the service wrote, by folder, with no catalog; what it writes through a catalog the service goes on from.

Skipped unless Spark is there, since it takes 400 MB and Java: see docs/readers.md.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import catalog
import engines
import pytest
import service
import test_types as types

pyspark = pytest.importorskip("pyspark", reason="Spark is not installed: see docs/readers.md")
from pyspark.sql import Row, SparkSession  # noqa: E402

pytestmark = pytest.mark.usefixtures("served")

PACKAGES = "org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.12.0,org.apache.hadoop:hadoop-aws:3.3.4"

Ask = Callable[[str], list[Row]]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """Answers SQL. Catalog `lake` is the folders of the lake, `rest` one that may be written to."""
    jars = os.environ.get("SPARK_JARS")
    with ExitStack() as stack:
        address = stack.enter_context(catalog.served())
        settings = {
            **({"spark.jars.packages": PACKAGES} if jars is None else {"spark.jars": jars}),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
            **_catalog("lake", {"type": "hadoop", "warehouse": engines.WAREHOUSE}),
            **_catalog("rest", {"type": "rest", "uri": address, "io-impl": "org.apache.iceberg.hadoop.HadoopFileIO"}),
            "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
            "spark.hadoop.fs.s3a.endpoint": engines.S3,
            "spark.hadoop.fs.s3a.endpoint.region": "auto",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.access.key": "dev",
            "spark.hadoop.fs.s3a.secret.key": "dev",
        }
        builder = SparkSession.builder.master("local[2]")
        for key, value in settings.items():
            builder = builder.config(key, value)
        session = stack.enter_context(builder.getOrCreate())
        yield lambda sql: session.sql(sql).collect()


def _catalog(name: str, settings: dict[str, str]) -> dict[str, str]:
    key = f"spark.sql.catalog.{name}"
    # A cached table would hide what the service has committed since.
    given = {**settings, "cache-enabled": "false"}
    return {key: "org.apache.iceberg.spark.SparkCatalog", **{f"{key}.{k}": v for k, v in given.items()}}


def test_every_type_but_time(name: str, ask: Ask) -> None:
    service.create(name, [field for field in types.FIELDS if field["name"] != "t"])
    records = [{k: v for k, v in record.items() if k != "t"} for record in types._records()]
    service.call("POST", f"/v1/tables/{name.replace('.', '/')}/rows", types._ndjson(records), _NDJSON)
    service.flush(name)
    # Times as text: Python has no year 0, which the first hours of the year 1 are in a zone west of UTC.
    texts = ", ".join(f"CAST({c} AS STRING) {c}" for c in ("day", "ts", "tz"))
    binaries = ", ".join(f"lower(hex({c})) {c}" for c in ("bin", "fix"))
    kept = "id, b, i, l, f, d, d9, d18, d38, s, u"
    found = ask(f"SELECT {kept}, {texts}, {binaries} FROM lake.{name} ORDER BY id")
    expected = sorted(records, key=lambda record: record["id"])
    assert len(found) == len(expected)
    for row, record in zip(found, expected):
        for column, value in record.items():
            assert _same(column, row[column], value), f"{column} of row {record['id']}: {row[column]!r}, not {value!r}"


_NDJSON = {"content-type": "application/x-ndjson"}


def _same(column: str, found: object, sent: object) -> bool:
    if sent is None or found is None:
        return sent is found
    if column == "f":
        return types.pa.scalar(sent, types.pa.float32()).as_py() == found
    if column == "d":
        return found == sent or (found != found and sent != sent)
    if column in ("day", "ts", "tz", "u"):
        return str(found) == str(sent).removesuffix("+00:00")
    if column in ("bin", "fix"):
        return found == sent.hex()
    return found == sent


def test_time_of_day_is_what_spark_does_not_have(name: str, ask: Ask) -> None:
    service.create(name, [{"name": "id", "type": "long"}, {"name": "t", "type": "time"}])
    service.append(name, [{"id": 1, "t": "12:00:00"}])
    with pytest.raises(Exception, match="does not support time"):
        ask(f"SELECT id FROM lake.{name}")


FIELDS = [
    {"name": "time", "type": "timestamptz", "required": True},
    {"name": "device", "type": "string"},
    {"name": "v", "type": "int"},
    {"name": "old", "type": "string"},
    {"name": "gone", "type": "long"},
]


def _rows(day: int, hours: int, **values: object) -> list[dict]:
    return [
        {"time": f"2026-01-{day:02d}T{hour:02d}:00:00Z", "device": device, "v": hour, **values}
        for hour in range(hours)
        for device in ("a", "b", None)
    ]


def _evolved(name: str) -> str:
    """A table with late rows, changed columns, a tag and a branch; the id of its first snapshot."""
    service.create(name, FIELDS, time_column="time", series_key=["device"], chunk="day")
    first = service.append(name, _rows(3, 24, old="o", gone=5) + _rows(3, 24, old="again", gone=6))
    late = service.append(name, _rows(2, 4, old="late", gone=7))
    service.admin(name, "PUT", "/refs/before", {"type": "tag", "snapshot_id": late["snapshot_id"]})
    changes = [
        {"rename": "old", "to": "new"},
        {"drop": "gone"},
        {"promote": "v", "type": "long"},
        {"add": "extra", "type": "double"},
    ]
    service.admin(name, "POST", "/schema", {"changes": changes})
    # So many that the writer tries other encodings than the plain one.
    halves = [{**row, "extra": i / 7} for i, row in enumerate(_rows(4, 24, new="n"))]
    service.append(name, halves)
    service.admin(name, "PUT", "/refs/staging", {"type": "branch"})
    service.append(name, _rows(5, 1, new="st"), query="?branch=staging")
    service.append(name, _rows(3, 2, new="twice"))
    return first["snapshot_id"]


SUMS = "SELECT count(*) n, sum(v) v, count(DISTINCT new) new, round(sum(extra)) extra FROM"


def test_all_that_happens_to_a_table(name: str, ask: Ask) -> None:
    first = _evolved(name)
    # 72 of the third, deduplicated, 12 late, 72 of the fourth, and 6 of the third again.
    before = [Row(n=162, v=3 * (276 + 6 + 276 + 1), new=4, extra=round(sum(i / 7 for i in range(72))))]
    assert ask(f"{SUMS} lake.{name}") == before
    assert ask(f"SELECT count(*) n, sum(gone) s FROM lake.{name} VERSION AS OF 'before'") == [Row(n=84, s=72 * 6 + 12 * 7)]
    assert ask(f"SELECT count(*) n FROM lake.{name} VERSION AS OF 'staging'") == [Row(n=159)]
    assert ask(f"SELECT count(*) n FROM lake.{name} VERSION AS OF {first}") == [Row(n=72)]
    assert ask(f"SELECT count(*) n FROM lake.{name} WHERE device IS NULL AND time < '2026-01-03'") == [Row(n=4)]
    refs = ask(f"SELECT name, type FROM lake.{name}.refs ORDER BY name")
    assert [tuple(ref) for ref in refs] == [("before", "TAG"), ("main", "BRANCH"), ("staging", "BRANCH")]

    report = service.admin(name, "POST", "/maintain")
    assert report["steps"]["compact"]["report"]["changed"]
    after = [Row(n=156, v=3 * (276 + 6 + 276), new=4, extra=before[0].extra)]
    assert ask(f"{SUMS} lake.{name}") == after
    partitions = ask(f"SELECT partition.time_day, record_count, file_count FROM lake.{name}.partitions ORDER BY 1")
    assert [(str(day), rows, files) for day, rows, files in partitions] == [
        ("2026-01-02", 12, 1),
        ("2026-01-03", 72, 1),
        ("2026-01-04", 72, 1),
    ]
    described = service.describe(name)
    newest = ask(f"SELECT snapshot_id FROM lake.{name}.snapshots ORDER BY committed_at DESC, snapshot_id LIMIT 1")
    assert str(newest[0].snapshot_id) == described["snapshot"]["snapshot_id"]
    assert {row.operation for row in ask(f"SELECT operation FROM lake.{name}.snapshots")} == {"append", "replace"}
    assert ask(f"SELECT sum(existing_data_files_count + added_data_files_count) n FROM lake.{name}.manifests") == [Row(n=3)]


def test_the_service_goes_on_from_what_spark_writes(name: str, ask: Ask) -> None:
    short = name.split(".")[1]
    _evolved(name)
    columns = "(time, device, v, new, extra, _ingest_ts)"
    ask(f"INSERT INTO rest.{name} {columns} VALUES (TIMESTAMP'2026-01-06 00:00:00', 'spark', 7, 's', 1.5, current_timestamp())")
    assert service.append(name, _rows(6, 1, new="us"))["state"] == "committed"
    assert ask(f"SELECT count(*) n FROM lake.{name} WHERE time >= '2026-01-06'") == [Row(n=4)]
    assert service.admin(name, "POST", "/maintain")["steps"]["index"]["error"] is None
    [newest] = service.admin(name, "GET", "/latest?device=spark")["rows"]
    assert newest["v"] == 7

    # Deletes by row that write the files anew are as any other commit.
    ask(f"DELETE FROM rest.{name} WHERE device = 'b' AND time = '2026-01-04 06:00:00'")
    assert service.append(name, _rows(6, 2, new="us"))["state"] == "committed"
    assert ask(f"SELECT count(*) n FROM lake.{name} WHERE device = 'b' AND time < '2026-01-05' AND time >= '2026-01-04'") == [Row(n=23)]

    # Those that add delete files: honoured by Spark, told by the service, whose appends go on.
    ask(f"ALTER TABLE rest.{name} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
    ask(f"DELETE FROM rest.{name} WHERE device = 'a' AND time >= '2026-01-04' AND time < '2026-01-04 05:00:00'")
    service.append(name, _rows(7, 1, new="us"))
    assert ask(f"SELECT count(*) n FROM lake.{name} WHERE device = 'a' AND time >= '2026-01-04'") == [Row(n=19 + 1 + 2 + 1)]
    # Faults are told by the work that meets them.
    assert service.admin(name, "POST", "/maintain")["steps"]["index"]["report"]["reason"] == "delete-files"
    assert [fault["kind"] for fault in service.describe(name)["status"]["faults"]] == ["foreign-delete-files"]
    with pytest.raises(service.Refused, match="delete-files"):
        service.admin(name, "GET", "/rows?from=2026-01-04")

    # What Spark has for it puts the table right again.
    options = "map('delete-file-threshold', '1', 'min-input-files', '1', 'remove-dangling-deletes', 'true')"
    ask(f"CALL rest.system.rewrite_data_files(table => 'interop.{short}', options => {options})")
    ask(f"CALL rest.system.rewrite_manifests(table => 'interop.{short}')")
    rows = ask(f"SELECT count(*) n, sum(v) v FROM lake.{name}")
    assert service.admin(name, "GET", "/rows?device=a&from=2026-01-04&to=2026-01-05")["rows"][0]["v"] == 5
    report = service.admin(name, "POST", "/maintain")
    assert [step["error"] for step in report["steps"].values() if step is not None] == [None] * 5
    assert service.describe(name)["status"]["faults"] == []
    assert ask(f"SELECT count(*) n, sum(v) v FROM lake.{name}") == rows
