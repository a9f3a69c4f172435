"""The service's HTTP interface, as the tests need it: the only place that knows its paths and bodies."""

import json
import os
import time
import urllib.error
import urllib.request

URL = os.environ.get("SLUICE_URL", "")


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, body: str):
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body


def call(method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> dict:
    """One request; a `str` body is sent as it is, anything else as JSON. Returns the JSON answer."""
    data = None if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
    request = urllib.request.Request(URL + path, data=data, method=method)
    if data is not None:
        request.add_header("content-type", "application/json")
    for name, value in (headers or {}).items():
        request.add_header(name, value)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            text = response.read().decode()
    except urllib.error.HTTPError as error:
        raise Refused(error.code, error.read().decode()) from None
    return json.loads(text) if text else {}


def _path(name: str) -> str:
    return "/v1/tables/" + name.replace(".", "/")


def create(
    name: str,
    fields: list[dict],
    time_column: str | None = None,
    series_key: list[str] | None = None,
    chunk: str | None = None,
    dedup: bool | None = None,
    properties: dict[str, str] | None = None,
) -> dict:
    """`fields` of an Iceberg schema, without ids."""
    body: dict = {"schema": {"type": "struct", "fields": fields}}
    if time_column is not None:
        body["time_column"] = time_column
    if series_key is not None:
        body["series_key"] = series_key
    if chunk is not None:
        body["chunk"] = chunk
    if dedup is not None:
        body["dedup"] = dedup
    if properties is not None:
        body["properties"] = properties
    return call("PUT", _path(name), body)


def send(name: str, records: list[dict], **headers: str) -> dict:
    """Sends records as NDJSON; the answer is a receipt."""
    lines = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records)
    return call("POST", _path(name) + "/rows", lines, {"content-type": "application/x-ndjson", **headers})


def append(name: str, records: list[dict], **headers: str) -> dict:
    """Sends records and sees them into a snapshot: a receipt with `snapshot_id` and `version`."""
    receipt = send(name, records, **headers)
    end = time.monotonic() + 30
    while receipt["state"] == "buffered" and time.monotonic() < end:
        flush(name)
        receipt = call("GET", f"{_path(name)}/receipts/{receipt['receipt']}")
    assert receipt["state"] == "committed", f"rows are not in a snapshot: {receipt}"
    return receipt


def attach(name: str) -> dict:
    """Takes over a table that another engine made."""
    return call("POST", _path(name) + "/attach", {})


def flush(name: str) -> dict:
    return call("POST", _path(name) + "/flush", {})


def describe(name: str) -> dict:
    return call("GET", _path(name))
