"""The chain of a table's versions, read as plain files through the gateway: not through any engine's idea of it."""

import json
import re
import time
from dataclasses import dataclass

import engines
import pyarrow.fs as fs
from engines import storage


def keys(name: str) -> list[str]:
    """Paths of all objects in the table's folder, relative to it; none when there is no folder."""
    folder = engines.location(name).removeprefix("s3://") + "/"
    selector = fs.FileSelector(folder, allow_not_found=True, recursive=True)
    return sorted(i.path.removeprefix(folder) for i in storage().get_file_info(selector) if i.is_file)


@dataclass(frozen=True)
class Version:
    number: int
    metadata: dict

    @property
    def snapshot(self) -> dict | None:
        """The snapshot that main is at."""
        current = self.metadata.get("current-snapshot-id")
        return next((s for s in self.metadata.get("snapshots", []) if s["snapshot-id"] == current), None)

    @property
    def commit_id(self) -> str | None:
        """Id of the service's commit that made the current snapshot; None when an engine made it."""
        return None if self.snapshot is None else self.snapshot["summary"].get("sluice.commit-id")


def versions(name: str) -> list[Version]:
    """All versions in the table's folder, oldest first."""
    folder = engines.location(name).removeprefix("s3://") + "/"
    bucket = storage()
    found = []
    for key in keys(name):
        match = re.fullmatch(r"metadata/v(\d+)\.metadata\.json", key)
        if match:
            with bucket.open_input_stream(folder + key) as stream:
                found.append(Version(int(match[1]), json.loads(stream.read())))
    return sorted(found, key=lambda version: version.number)


def has_version(name: str, number: int) -> bool:
    return f"metadata/v{number}.metadata.json" in keys(name)


def remove_version(name: str, number: int, pointer: int) -> None:
    """As an operator would: the newest version goes, and the pointer names an older one."""
    folder = engines.location(name).removeprefix("s3://") + "/metadata"
    bucket = storage()
    bucket.delete_file(f"{folder}/v{number}.metadata.json")
    with bucket.open_output_stream(f"{folder}/version-hint.text") as stream:
        stream.write(str(pointer).encode())


def await_hint(name: str, version: int, seconds: float = 20) -> None:
    """Waits until the pointer names that version: it is moved at most once a second, behind the commits."""
    path = engines.location(name).removeprefix("s3://") + "/metadata/version-hint.text"
    bucket = storage()
    end = time.monotonic() + seconds
    while True:
        with bucket.open_input_stream(path) as stream:
            hint = int(stream.read())
        if hint == version:
            return
        assert hint < version and time.monotonic() < end, f"pointer is at {hint}, not at {version}"
        time.sleep(0.1)


def check(found: list[Version], location: str) -> None:
    """One chain: no number is missing, each version names the one before it, all are of one table."""
    assert found, "table has no version"
    first = found[0].number
    assert [v.number for v in found] == list(range(first, first + len(found)))
    assert {v.metadata["table-uuid"] for v in found} == {found[0].metadata["table-uuid"]}
    for before, after in zip(found, found[1:]):
        named = after.metadata["metadata-log"][-1]["metadata-file"]
        assert named == f"{location}/metadata/v{before.number}.metadata.json", f"v{after.number} names {named}"
        numbers = [v.metadata["last-sequence-number"] for v in (before, after)]
        assert numbers[0] <= numbers[1] <= numbers[0] + 1, f"v{after.number}: sequence numbers {numbers}"
        log = [entry["snapshot-id"] for entry in after.metadata.get("snapshot-log", [])]
        assert log[-1:] == [after.metadata["current-snapshot-id"]], f"v{after.number}: snapshot log"
