"""A small Iceberg REST catalog over tables in the Hadoop layout, so that an engine that commits by catalog writes to the service's tables.

It answers what DuckDB and Spark ask: configuration, namespaces, one table, one commit. A commit becomes the next `vN.metadata.json`, created only
when it is absent, as everybody writes to such a table; the pointer follows.
"""

import contextlib
import http.server
import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import engines
import pyarrow.fs as fs
from pydantic import TypeAdapter
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata

_REQUIREMENTS = TypeAdapter(tuple[TableRequirement, ...])
_UPDATES = TypeAdapter(tuple[TableUpdate, ...])


@dataclass(frozen=True)
class _Lake:
    s3: str
    warehouse: str

    def loaded(self, name: str) -> dict:
        location, _ = self._newest(name)
        with engines.storage(self.s3).open_input_stream(location.removeprefix("s3://")) as stream:
            return {"metadata-location": location, "metadata": json.loads(stream.read()), "config": {}}

    def commit(self, name: str, body: dict) -> None:
        location, number = self._newest(name)
        base = TableMetadataUtil.parse_obj(self.loaded(name)["metadata"])
        for requirement in _REQUIREMENTS.validate_python(body.get("requirements", [])):
            requirement.validate(base)
        updates = _UPDATES.validate_python(body["updates"])
        after = update_table_metadata(base, updates, metadata_location=location)
        folder = location.removeprefix("s3://").rsplit("/", 1)[0]
        self._put(f"{folder}/v{number + 1}.metadata.json", after.model_dump_json(exclude_none=True), absent=True)
        self._put(f"{folder}/version-hint.text", str(number + 1))

    def _newest(self, name: str) -> tuple[str, int]:
        folder = f"{engines.location(name, self.warehouse)}/metadata"
        listed = engines.storage(self.s3).get_file_info(fs.FileSelector(folder.removeprefix("s3://")))
        matches = (re.fullmatch(r"v(\d+)\.metadata\.json", i.base_name) for i in listed)
        number = max(int(m[1]) for m in matches if m)
        return f"{folder}/v{number}.metadata.json", number

    def _put(self, key: str, text: str, absent: bool = False) -> None:
        headers = {"if-none-match": "*"} if absent else {}
        request = urllib.request.Request(f"{self.s3}/{key}", data=text.encode(), method="PUT", headers=headers)
        urllib.request.urlopen(request, timeout=60).read()


@contextlib.contextmanager
def served(s3: str = engines.S3, warehouse: str = engines.WAREHOUSE) -> Iterator[str]:
    """Address of the catalog."""
    handler = type("Handler", (_Catalog,), {"lake": _Lake(s3, warehouse)})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@contextlib.contextmanager
def duck(s3: str = engines.S3, warehouse: str = engines.WAREHOUSE) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with the catalog attached as `lake`: its tables can be written to."""
    with served(s3, warehouse) as address:
        connection = engines.duck(s3)
        try:
            connection.execute(
                f"ATTACH 'lake' AS lake (TYPE iceberg, ENDPOINT '{address}',"
                " AUTHORIZATION_TYPE 'none', ACCESS_DELEGATION_MODE 'none')"
            )
            yield connection
        finally:
            connection.close()


class _Catalog(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lake: _Lake

    def do_GET(self) -> None:
        path = self.path.split("?")[0].strip("/")
        if path == "v1/config":
            return self._answer(200, {"defaults": {}, "overrides": {}})
        if namespace := re.fullmatch(r"v1/namespaces/([^/]+)", path):
            return self._answer(200, {"namespace": [namespace[1]], "properties": {}})
        name = _table_of(path)
        if name is None:
            return self._refuse(404, "NoSuchTableException", path)
        try:
            return self._answer(200, self.lake.loaded(name))
        except FileNotFoundError:
            # Spark asks whether `table.snapshots` is a table before it takes it for a part of one.
            return self._refuse(404, "NoSuchTableException", name)

    def do_HEAD(self) -> None:
        self.send_response(204 if _table_of(self.path.strip("/")) or "/tables" not in self.path else 404)
        self.end_headers()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.split("?")[0].strip("/")
        if path == "v1/transactions/commit":
            [body] = body["table-changes"]
            name = ".".join([*body["identifier"]["namespace"], body["identifier"]["name"]])
        else:
            name = _table_of(path)
        if name is None:
            return self._refuse(404, "NoSuchTableException", path)
        try:
            self.lake.commit(name, body)
        except (CommitFailedException, urllib.error.HTTPError) as error:
            return self._refuse(409, "CommitFailedException", str(error))
        return self._answer(200, self.lake.loaded(name))

    def _answer(self, status: int, body: dict) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _refuse(self, status: int, kind: str, message: str) -> None:
        self._answer(status, {"error": {"message": message, "type": kind, "code": status}})

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def _table_of(path: str) -> str | None:
    match = re.fullmatch(r"v1/namespaces/([^/]+)/tables/([^/]+)", path)
    return None if match is None else f"{match[1]}.{match[2]}"
