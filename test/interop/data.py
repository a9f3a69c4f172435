"""Rows whose values catch what readers and writers get wrong, and questions with the answers worked out in Python."""

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg import expressions as ex

UTC = dt.timezone.utc
DAY = dt.datetime(2026, 3, 4, tzinfo=UTC)
US = pa.timestamp("us", tz="UTC")

SCHEMA = pa.schema(
    [
        pa.field("time", US, False),
        ("device", pa.string()),
        ("reading", pa.float64()),
        ("ticks", pa.int64()),
        ("note", pa.string()),
        ("ok", pa.bool_()),
        ("day", pa.date32()),
    ]
)
"""The same columns as `FIELDS`."""

FIELDS = [
    {"name": "time", "type": "timestamptz", "required": True},
    {"name": "device", "type": "string", "required": False},
    {"name": "reading", "type": "double", "required": False},
    {"name": "ticks", "type": "long", "required": False},
    {"name": "note", "type": "string", "required": False},
    {"name": "ok", "type": "boolean", "required": False},
    {"name": "day", "type": "date", "required": False},
]

COLUMNS = [f["name"] for f in FIELDS]

PREFIX = "a prefix that is longer than any cut bound, "
LONG = PREFIX + "and then the part that decides: " + "z" * 80
NOTES = [
    LONG,
    LONG[:-1],
    PREFIX,
    "fifteen chars..😀 and after",
    "\ufffd before the emoji plane",
    "😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀😀",
    "",
    "quote ' and \\ and \u00e9",
    None,
]


def records(start: int, count: int, days: int = 3) -> list[dict]:
    """`count` rows from number `start`: over `days` days, four devices, each special value in its turn."""
    out = []
    for i in range(start, start + count):
        time = DAY + dt.timedelta(days=i % days, seconds=i * 37, microseconds=i % 1000)
        out.append(
            {
                "time": time,
                "device": None if i % 13 == 5 else f"device-{i % 4:04d}-alpha",
                "reading": [i / 7, -0.0, 1e300, -1e-300, None][i % 5],
                "ticks": [2**53 + 1 + i, -(2**63) + i, 2**63 - 1 - i, i, None][(i // 5) % 5],
                "note": NOTES[i % len(NOTES)],
                "ok": [True, False, None][i % 3],
                "day": (time.date() if i % 7 else None),
            }
        )
    return out


def arrow(items: list[dict]) -> pa.Table:
    return pa.Table.from_pylist(items, schema=SCHEMA)


def ndjson(items: list[dict]) -> list[dict]:
    """The records as JSON can hold them."""
    text = {dt.datetime: lambda v: v.isoformat().replace("+00:00", "Z"), dt.date: lambda v: v.isoformat()}
    return [{k: text[type(v)](v) if type(v) in text else v for k, v in r.items()} for r in items]


@dataclass(frozen=True)
class Question:
    name: str
    sql: str
    iceberg: ex.BooleanExpression
    holds: Callable[[dict], bool]


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def _note_is(name: str, value: str) -> Question:
    return Question(name, f"note = '{_quoted(value)}'", ex.EqualTo("note", value), lambda r: r["note"] == value)


NEXT = DAY + dt.timedelta(days=1)
NOON = DAY + dt.timedelta(hours=1)

QUESTIONS = [
    _note_is("a string longer than a cut bound", LONG),
    _note_is("a string that ends before the cut", PREFIX),
    _note_is("an emoji at the cut", NOTES[3]),
    _note_is("the highest emoji", NOTES[5]),
    _note_is("a character of the basic plane next to it", NOTES[4]),
    _note_is("the empty string", ""),
    _note_is("quotes", NOTES[7]),
    Question(
        "one day",
        f"time >= TIMESTAMP '{NEXT:%F} 00:00:00+00:00' AND time < TIMESTAMP '{NEXT + dt.timedelta(days=1):%F} 00:00:00+00:00'",
        ex.And(
            ex.GreaterThanOrEqual("time", NEXT.isoformat()),
            ex.LessThan("time", (NEXT + dt.timedelta(days=1)).isoformat()),
        ),
        lambda r: NEXT <= r["time"] < NEXT + dt.timedelta(days=1),
    ),
    Question(
        "an hour, to the microsecond",
        f"time > TIMESTAMP '{DAY:%F} 00:00:00+00:00' AND time <= TIMESTAMP '{NOON:%F %T}+00:00'",
        ex.And(ex.GreaterThan("time", DAY.isoformat()), ex.LessThanOrEqual("time", NOON.isoformat())),
        lambda r: DAY < r["time"] <= NOON,
    ),
    Question(
        "a date",
        f"day = DATE '{NEXT:%F}'",
        ex.EqualTo("day", f"{NEXT:%F}"),
        lambda r: r["day"] == NEXT.date(),
    ),
    Question("nulls", "device IS NULL", ex.IsNull("device"), lambda r: r["device"] is None),
    Question(
        "numbers above 2^53",
        f"ticks > {2**53}",
        ex.GreaterThan("ticks", 2**53),
        lambda r: r["ticks"] is not None and r["ticks"] > 2**53,
    ),
    Question(
        "the smallest long",
        f"ticks < {-(2**62)}",
        ex.LessThan("ticks", -(2**62)),
        lambda r: r["ticks"] is not None and r["ticks"] < -(2**62),
    ),
    Question(
        "a huge double",
        "reading > 1e299",
        ex.GreaterThan("reading", 1e299),
        lambda r: r["reading"] is not None and r["reading"] > 1e299,
    ),
    Question("false", "ok = false", ex.EqualTo("ok", False), lambda r: r["ok"] is False),
]
