"""The lake whose clock is moved by hand (`stepped-lake.ts`): steps, and what it is like after one."""

import json
import os
import urllib.request

URL = os.environ.get("SLUICE_STEPPED_URL", "")
S3 = os.environ.get("SLUICE_STEPPED_S3", "")
HOUR_MS = 3_600_000


def _step(step: dict) -> dict:
    request = urllib.request.Request(URL, data=json.dumps(step).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.loads(response.read())


def begin() -> dict:
    """A new lake with an empty table."""
    return _step({"begin": True})


def append(rows: int) -> dict:
    """Rows with the values that follow the last ones, committed."""
    return _step({"rows": rows})


def wait(ms: int) -> dict:
    """Time passes, and then what is due is done."""
    return _step({"passMs": ms})
