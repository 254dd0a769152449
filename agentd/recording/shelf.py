"""
Recordings on disk: ``ID.mp4``, ``ID.thumb.jpg`` and ``ID.json`` in one directory.

Owns file names, whole writes, and which recordings make room for others. Synchronous and quick.
"""

from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from pydantic import ValidationError

from agentd.wire.recordings import RecordingInfo
from computer.recording.orders import CHANGES_SUFFIX, THUMBNAIL_SUFFIX

__all__ = ["Shelf"]

SUFFIXES = (".mp4", THUMBNAIL_SUFFIX, CHANGES_SUFFIX, ".part", ".json")


class Shelf:
    """
    One directory of recordings; made when it is first written to.

    Args:
        directory: private to this user.
        max_bytes: of all that have ended; the oldest go first.
        max_age: an ended recording is kept that long.
    """

    def __init__(self, directory: Path, *, max_bytes: int, max_age: timedelta) -> None:
        self._directory = directory
        self._max_bytes = max_bytes
        self._max_age = max_age

    def film(self, number: UUID) -> Path:
        """Where the film of a recording is."""
        return self._directory / f"{number}.mp4"

    def thumbnail(self, number: UUID) -> Path:
        """Where its small picture is, if there is one."""
        return self._directory / f"{number}{THUMBNAIL_SUFFIX}"

    def describe(self, info: RecordingInfo) -> RecordingInfo:
        """*info* with what the files say now."""
        size = None
        with suppress(OSError):
            size = self.film(info.id).stat().st_size
        has_thumbnail = self.thumbnail(info.id).exists()
        return info.model_copy(update={"size_bytes": size, "has_thumbnail": has_thumbnail})

    def load(self) -> dict[UUID, RecordingInfo]:
        """All recordings that are described here; a damaged description is left out."""
        found = {}
        for path in sorted(self._directory.glob("*.json")):
            with suppress(OSError, ValidationError, ValueError):
                info = RecordingInfo.model_validate_json(path.read_bytes())
                found[info.id] = info
        return found

    def save(self, info: RecordingInfo) -> None:
        """Write a description, whole or not at all."""
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._directory / f"{info.id}.json"
        partial = path.with_suffix(".json.part")
        partial.write_text(info.model_dump_json())
        partial.replace(path)

    def delete(self, number: UUID) -> None:
        """Take a recording away, film first: a description without a film is told as failed."""
        for suffix in SUFFIXES:
            (self._directory / f"{number}{suffix}").unlink(missing_ok=True)

    def surplus(self, recordings: dict[UUID, RecordingInfo], now: datetime) -> list[UUID]:
        """Ended recordings that are too old, or too many bytes with those that are newer."""
        ended = [info for info in recordings.values() if info.state in {"ready", "failed"}]
        ended.sort(key=lambda info: info.stopped_at or info.started_at, reverse=True)
        kept_bytes, gone = 0, []
        for info in ended:
            kept_bytes += self.describe(info).size_bytes or 0
            age = now - (info.stopped_at or info.started_at)
            if kept_bytes > self._max_bytes or age > self._max_age:
                gone.append(info.id)
        return gone
