"""The service's HTTP interface, as the tests need it: the only place that knows its paths and bodies."""

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request

URL = os.environ.get("SLUICE_URL", "")


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, body: str):
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body

    @property
    def problem(self) -> dict:
        return json.loads(self.body)


def call(method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> dict:
    """One request; a `str` or `bytes` body is sent as it is, anything else as JSON. Returns the JSON answer."""
    text = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
    data = text.encode() if isinstance(text, str) else text
    request = urllib.request.Request(URL + path, data=data, method=method)
    if data is not None:
        request.add_header("content-type", "application/json")
    for name, value in (headers or {}).items():
        request.add_header(name, value)
    try:
        with urllib.request.urlopen(request, timeout=90) as response:
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


def send(name: str, records: list[dict], query: str = "", **headers: str) -> dict:
    """Sends records as NDJSON; the answer is a receipt. `query`: of the address, with its question mark."""
    return call("POST", f"{_path(name)}/rows{query}", _lines(records), {"content-type": "application/x-ndjson", **headers})


def _lines(records: list[dict]) -> str:
    return "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records)


def receipt(name: str, receipt_id: str) -> dict:
    return call("GET", f"{_path(name)}/receipts/{receipt_id}")


def append(name: str, records: list[dict], query: str = "", **headers: str) -> dict:
    """Sends records and sees them into a snapshot: a receipt with `snapshot_id` and `version`."""
    answer = settled(name, send(name, records, query, **headers))
    assert answer["state"] == "committed", f"rows are not in a snapshot: {answer}"
    return answer


def settled(name: str, answer: dict, seconds: float = 30) -> dict:
    """The receipt once it is no longer buffered, or as it is after `seconds`; flushes meanwhile."""
    end = time.monotonic() + seconds
    while answer["state"] == "buffered" and time.monotonic() < end:
        flush(name)
        answer = receipt(name, answer["receipt"])
    return answer


def attach(name: str) -> dict:
    """Takes over a table that another engine made."""
    return call("POST", _path(name) + "/attach", {})


def flush(name: str) -> dict:
    return call("POST", _path(name) + "/flush", {})


def admin(name: str, method: str, path: str, body: object = None) -> dict:
    """A change of the table below its address; the answer is a report."""
    return call(method, _path(name) + path, body)


def overwrite(name: str, records: list[dict], filter: dict) -> dict:
    """Puts records in the place of all files that the filter covers."""
    query = urllib.parse.urlencode({"filter": json.dumps(filter)})
    return call("POST", f"{_path(name)}/overwrite?{query}", _lines(records), {"content-type": "application/x-ndjson"})


def describe(name: str) -> dict:
    return call("GET", _path(name))
