"""What every table must pass: the three engines give the same rows, aggregates and answers as plain Python does."""

import pyarrow as pa
import pyarrow.compute as pc
from data import COLUMNS, QUESTIONS, arrow
from engines import Readers, rows


def _aggregates(table: pa.Table) -> dict:
    ticks = [t for t in table["ticks"].to_pylist() if t is not None]
    return {
        "count": table.num_rows,
        "sum of ticks": sum(ticks),
        "range of ticks": (min(ticks, default=None), max(ticks, default=None)),
        "range of time": (pc.min(table["time"]).value, pc.max(table["time"]).value),
        "range of device": (pc.min(table["device"]).as_py(), pc.max(table["device"]).as_py()),
        "nulls": {name: table[name].null_count for name in COLUMNS},
    }


ASKED = "count(*) AS n, min(ticks) AS lo, max(ticks) AS hi, min(note) AS a, max(note) AS z"
"""Aggregates that an engine may answer from statistics, without reading rows."""


def same_rows(name: str, expected: list[dict]) -> None:
    """`expected`: the records the table must hold, once each, whichever engine reads it."""
    for engine, table in Readers(name).all().items():
        assert rows(table, COLUMNS) == rows(arrow(expected), COLUMNS), f"rows by {engine}"


def same_everywhere(name: str, expected: list[dict]) -> None:
    """`expected`: the records the table must hold, once each. Compares the columns of the test data alone."""
    want = arrow(expected)
    readers = Readers(name)
    for engine, table in readers.all().items():
        got = table.select(COLUMNS).cast(want.schema.remove_metadata(), safe=True)
        looked_at = f"{engine}; PyIceberg was at {readers.static_table.metadata_location}"
        assert _aggregates(got) == _aggregates(want), f"aggregates by {looked_at}"
        assert rows(got, COLUMNS) == rows(want, COLUMNS), f"rows by {engine}"

    notes = sorted((r["note"] for r in expected if r["note"] is not None), key=lambda note: note.encode())
    ticks = [r["ticks"] for r in expected if r["ticks"] is not None]
    answer = [{"n": len(expected), "lo": min(ticks), "hi": max(ticks), "a": notes[0], "z": notes[-1]}]
    assert readers.duckdb(select=ASKED).to_pylist() == answer, "aggregates asked of DuckDB"
    assert readers.timelake(select=ASKED).to_pylist() == answer, "aggregates asked of Timelake"

    for question in QUESTIONS:
        held = rows(arrow([r for r in expected if question.holds(r)]), COLUMNS)
        assert rows(readers.pyiceberg(question.iceberg), COLUMNS) == held, f"PyIceberg: {question.name}"
        assert rows(readers.duckdb(question.sql), COLUMNS) == held, f"DuckDB: {question.name}"
        assert rows(readers.timelake(question.sql), COLUMNS) == held, f"Timelake: {question.name}"
