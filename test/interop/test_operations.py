"""After each operation: main, a branch, a tag and old snapshots hold what they must, for PyIceberg and DuckDB; main for the
Timelake engine too. Then the engine and the service append on top, and all of it still holds."""

import dataclasses
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import chain
import duckdb
import engines
import pyarrow as pa
import pytest
import service
from data import COLUMNS, FIELDS, SCHEMA, arrow, ndjson, records
from engines import rows

pytestmark = pytest.mark.usefixtures("served")


@dataclasses.dataclass
class Expected:
    """What a table must hold: each snapshot its rows, each ref its snapshot."""

    name: str
    snapshots: dict[int, list[dict]] = dataclasses.field(default_factory=dict)
    refs: dict[str, int] = dataclasses.field(default_factory=dict)
    expired: list[int] = dataclasses.field(default_factory=list)
    columns: list[str] = dataclasses.field(default_factory=lambda: list(COLUMNS))
    schema: pa.Schema = SCHEMA

    def now(self) -> list[dict]:
        """Rows of main."""
        return self.snapshots[self.refs["main"]]

    def moves(self, snapshot_id: str | int, held: list[dict]) -> None:
        """Main is at a new snapshot that holds these rows."""
        self.refs["main"] = int(snapshot_id)
        self.snapshots[int(snapshot_id)] = held

    def appends(self, part: list[dict]) -> int:
        """The service appends; returns the snapshot's id."""
        answer = service.append(self.name, ndjson(part))
        self.moves(answer["snapshot_id"], self.now() + part if self.refs else part)
        return self.refs["main"]


def _prepare(name: str) -> Expected:
    """Main, and a branch that has left it, over a common past with a tag."""
    table = Expected(name)
    first = table.appends(records(0, 30))
    second = table.appends(records(30, 30))
    third = table.appends(records(60, 30))
    for ref, kind, snapshot in (("released", "tag", first), ("side", "branch", third)):
        service.admin(name, "PUT", f"/refs/{ref}", {"type": kind, "snapshot_id": str(snapshot)})
        table.refs[ref] = snapshot
    service.admin(name, "POST", "/rollback", {"snapshot_id": str(second)})
    table.refs["main"] = second
    table.appends(records(90, 30))
    return table


def _check(expected: Expected) -> None:
    name, version = expected.name, service.describe(expected.name)["version"]
    chain.await_hint(name, version)
    table = engines.static_table(name)
    assert {n: r.snapshot_id for n, r in table.metadata.refs.items()} == expected.refs
    connection = engines.duck()
    where = engines.location(name)

    def by_duckdb(snapshot_id: int) -> pa.Table:
        sql = f"SELECT * FROM iceberg_scan('{where}', snapshot_from_id => {snapshot_id}::UBIGINT)"
        return connection.execute(sql).to_arrow_table()

    main = {
        "PyIceberg": table.scan().to_arrow(),
        "DuckDB": connection.execute(f"SELECT * FROM iceberg_scan('{where}')").to_arrow_table(),
        "Timelake": engines.lake().sql(f"SELECT * FROM {name}"),
    }
    want = rows(pa.Table.from_pylist(expected.now(), schema=expected.schema), expected.columns)
    for engine, read in main.items():
        assert rows(read, expected.columns) == want, f"main by {engine}"
    named = {ref: (snapshot_id, table.scan().use_ref(ref)) for ref, snapshot_id in expected.refs.items()}
    others = set(expected.snapshots) - set(expected.refs.values())
    named.update({f"snapshot {id}": (id, table.scan(snapshot_id=id)) for id in others})
    for what, (snapshot_id, scan) in named.items():
        want = rows(arrow(expected.snapshots[snapshot_id]), COLUMNS)
        assert rows(scan.to_arrow(), COLUMNS) == want, f"{what} by PyIceberg"
        assert rows(by_duckdb(snapshot_id), COLUMNS) == want, f"{what} by DuckDB"
    for snapshot_id in expected.expired:
        with pytest.raises(ValueError, match="Snapshot not found"):
            table.scan(snapshot_id=snapshot_id).to_arrow()
        with pytest.raises(duckdb.Error, match="(?i)snapshot"):
            by_duckdb(snapshot_id)


DAYS = ["2026-03-04", "2026-03-05", "2026-03-06"]


def _is_on(day: str) -> Callable[[dict], bool]:
    return lambda record: record["time"].date().isoformat() == day


def _append(table: Expected) -> None:
    table.appends(records(200, 30))


def _overwrite_partition(table: Expected) -> None:
    new = [r for r in records(300, 60) if _is_on(DAYS[1])(r)]
    report = service.overwrite(table.name, ndjson(new), {"partitions": [{"time_day": DAYS[1]}]})
    assert report["operation"] == "overwrite" and report["added"]["rows"] == str(len(new))
    kept = [r for r in table.now() if not _is_on(DAYS[1])(r)]
    assert report["removed"]["rows"] == str(len(table.now()) - len(kept))
    table.moves(report["snapshot_id"], kept + new)


def _overwrite_all(table: Expected) -> None:
    new = records(400, 20)
    report = service.overwrite(table.name, ndjson(new), {"all": True})
    table.moves(report["snapshot_id"], new)


def _delete_partition(table: Expected) -> None:
    report = service.admin(table.name, "POST", "/delete", {"filter": {"partitions": [{"time_day": DAYS[0]}]}})
    assert report["operation"] == "delete"
    table.moves(report["snapshot_id"], [r for r in table.now() if not _is_on(DAYS[0])(r)])


def _delete_time_range(table: Expected) -> None:
    span = {"from": f"{DAYS[1]}T00:00:00Z", "to": f"{DAYS[2]}T00:00:00Z"}
    report = service.admin(table.name, "POST", "/delete", {"filter": {"time_range": span}})
    table.moves(report["snapshot_id"], [r for r in table.now() if not _is_on(DAYS[1])(r)])


def _delete_all(table: Expected) -> None:
    report = service.admin(table.name, "POST", "/delete", {"filter": {"all": True}})
    table.moves(report["snapshot_id"], [])


def _rewrite_manifests(table: Expected) -> None:
    report = service.admin(table.name, "POST", "/rewrite-manifests")
    assert report["changed"] and report["manifests"]["created"] < report["manifests"]["replaced"]
    table.moves(report["snapshot_id"], table.now())


def _expire(table: Expected) -> None:
    keep_one = {"timelake.min-snapshots": "1", "timelake.max-snapshots": "1"}
    service.admin(table.name, "PATCH", "/properties", {"set": keep_one})
    report = service.admin(table.name, "POST", "/expire")
    gone = {int(s) for s in report["snapshots"]}
    # What a branch or a tag stands at stays.
    assert gone == set(table.snapshots) - set(table.refs.values()) and gone
    for snapshot_id in gone:
        del table.snapshots[snapshot_id]
        table.expired.append(snapshot_id)
    # The later appends are no longer bounded so.
    many = {key: "100" for key in keep_one}
    service.admin(table.name, "PATCH", "/properties", {"set": many})


def _add_column(table: Expected) -> None:
    report = service.admin(table.name, "POST", "/schema", {"changes": [{"add": "extra", "type": "string"}]})
    assert report["warnings"] == []
    current = engines.static_table(table.name, report["version"]).metadata.current_snapshot_id
    table.columns = [*COLUMNS, "extra"]
    table.schema = SCHEMA.append(pa.field("extra", pa.string()))
    assert current is not None
    table.moves(current, table.now())
    table.appends([dict(r, extra=f"extra {i}") for i, r in enumerate(records(500, 30))])


def _properties(table: Expected) -> None:
    change = {"set": {"owner": "tests", "timelake.compact-min-files": "4"}, "remove": ["timelake.snapshot-retention"]}
    assert service.admin(table.name, "PATCH", "/properties", change)["changed"]


def _make_refs(table: Expected) -> None:
    second = list(table.snapshots)[1]
    for ref, kind in (("later", "tag"), ("other", "branch")):
        service.admin(table.name, "PUT", f"/refs/{ref}", {"type": kind, "snapshot_id": str(second)})
        table.refs[ref] = second


def _move_refs(table: Expected) -> None:
    second = list(table.snapshots)[1]
    service.admin(table.name, "PUT", "/refs/side", {"snapshot_id": str(second)})
    service.admin(table.name, "POST", "/refs/side/fast-forward", {"to": "main"})
    table.refs["side"] = table.refs["main"]


def _drop_refs(table: Expected) -> None:
    for ref in ("released", "side"):
        service.admin(table.name, "DELETE", f"/refs/{ref}")
        del table.refs[ref]


def _rollback(table: Expected) -> None:
    second = list(table.snapshots)[1]
    service.admin(table.name, "POST", "/rollback", {"snapshot_id": str(second)})
    table.refs["main"] = second


def _fast_forward_main(table: Expected) -> None:
    """A rollback, and then main taken forward to where a branch is."""
    _rollback(table)
    service.admin(table.name, "POST", "/refs/main/fast-forward", {"to": "side"})
    table.refs["main"] = table.refs["side"]


def _upgrade(table: Expected) -> None:
    before = service.admin(table.name, "GET", "/properties")["properties"]
    assert service.admin(table.name, "POST", "/upgrade")["changed"]
    after = service.admin(table.name, "GET", "/properties")["properties"]
    assert set(after) - set(before) >= {"timelake.max-snapshots", "timelake.min-snapshots"}
    assert not service.admin(table.name, "POST", "/upgrade")["changed"]


OPERATIONS = [
    _append,
    _overwrite_partition,
    _overwrite_all,
    _delete_partition,
    _delete_time_range,
    _delete_all,
    _rewrite_manifests,
    _expire,
    _add_column,
    _properties,
    _make_refs,
    _move_refs,
    _drop_refs,
    _rollback,
    _fast_forward_main,
    _upgrade,
]


def _after(name: str, operation: Callable[[Expected], None]) -> None:
    if operation is _upgrade:
        # Of a table that the engine made: it says less of itself than one of ours.
        engines.lake().create_table(name, SCHEMA, time_column="time", series_key=["device"], dedup=False)
        service.attach(name)
    else:
        service.create(name, FIELDS, time_column="time", series_key=["device"], dedup=False)
    # What is compared is which snapshot each ref stands at: nobody else makes any.
    service.admin(name, "PATCH", "/properties", {"set": {"timelake.auto-maintain": "false"}})
    table = _prepare(name)
    operation(table)
    _check(table)
    _append_on_top(table)
    _check(table)


@pytest.fixture(scope="module")
def done(request: pytest.FixtureRequest) -> Iterator[dict[Callable, Future]]:
    """All operations asked for, on a table each, a few at a time: most of it is waiting for the pointers."""
    asked = [item.callspec.params["operation"] for item in request.session.items if "done" in item.fixturenames]
    with ThreadPoolExecutor(4) as pool:
        yield {
            operation: pool.submit(_after, f"interop.operations_{operation.__name__}_{uuid.uuid4().hex[:8]}", operation)
            for operation in asked
        }


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__.strip("_"))
def test_each_ref_and_snapshot_is_read_alike_after(operation: Callable[[Expected], None], done: dict) -> None:
    done[operation].result()


def _append_on_top(table: Expected) -> None:
    """Rows by the engine and by the service; branch, tag and old snapshots stay what they are."""
    theirs = records(1000, 20)
    engines.append(table.name, arrow(theirs), maintain=False)
    version = service.describe(table.name)
    table.moves(version["snapshot"]["snapshot_id"], table.now() + theirs)
    table.appends(records(1100, 20))
