"""
The action log of one desktop on disk: lines of JSON, and pictures by their hash.

Owns file names, rotation and bounds. Lines: a file of ``MAX_FILE_BYTES`` is set aside, ``MAX_FILES`` are
kept; a later line stands for an earlier one of its number. Pictures: each is stored once; when all together
exceed the limit, those that were used longest ago go, and entries that name them stay. Synchronous; belongs
to one thread.
"""

import hashlib
import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pybase64

from agentd.trace.entry import LogEntry, LoggedPicture, read_lines
from computer.wire import ScreenshotData

__all__ = ["LogStorage"]

# Bytes of one file of lines (about 8,000 calls), and how many files are kept, the current one included.
MAX_FILE_BYTES = 8 * 2**20
MAX_FILES = 5
CURRENT = "actions.jsonl"
SUFFIXES = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp"}
# Part of the limit to which pictures are brought down, so that not every new one asks for another look.
TRIM_TO = 0.9
# Lines that may lie between an entry and the one that stands for it, with the picture after it.
MAX_BETWEEN = 16


class LogStorage:
    """
    One directory.

    Args:
        directory: made with the first entry, mode 0700.
        max_picture_bytes: of all pictures together.
    """

    def __init__(self, directory: Path, *, max_picture_bytes: int) -> None:
        self._directory = directory
        self._pictures = directory / "pictures"
        self._max_picture_bytes = max_picture_bytes
        self._picture_bytes: int | None = None
        # An unchanged screen comes as the same text: it is not hashed again.
        self._last_kept = ("", "")

    def last_number(self) -> int:
        """Number of the newest entry; 0 when there is none."""
        return max((entry.number for entry in self.entries(last=1)), default=0)

    def append(self, entry: LogEntry) -> None:
        """Add a line; rotates before it if the file is full."""
        path = self._directory / CURRENT
        self._make()
        if path.exists() and path.stat().st_size >= MAX_FILE_BYTES:
            self._rotate()
        line = entry.model_dump_json(exclude_none=True, exclude_defaults=True) + "\n"
        with path.open("ab+") as file:
            # A line that a crash tore must not take this one along.
            if file.tell() and not _ends_line(file.fileno()):
                file.write(b"\n")
            file.write(line.encode())

    def keep(self, picture: ScreenshotData, region: tuple[int, int, int, int] | None = None) -> LoggedPicture:
        """Store a picture, unless it is stored already."""
        data = None
        if picture.data is not self._last_kept[0]:
            data = pybase64.b64decode(picture.data)
            self._last_kept = (picture.data, hashlib.sha256(data).hexdigest())
        name = self._last_kept[1]
        path = self.picture_path(name, picture.media_type)
        if path.exists():
            os.utime(path)
        else:
            # One that was kept before may have been dropped since.
            data = pybase64.b64decode(picture.data) if data is None else data
            self._make()
            self._make_room(len(data))
            partial = path.with_suffix(".part")
            partial.write_bytes(data)
            partial.replace(path)
        return LoggedPicture(
            sha256=name,
            media_type=picture.media_type,
            size=picture.model_size,
            taken_at=picture.taken_at,
            region=region,
        )

    def picture_path(self, sha256: str, media_type: str) -> Path:
        """Where a picture is, if it is kept still."""
        return self._pictures / f"{sha256}{SUFFIXES.get(media_type, '.bin')}"

    def entries(self, *, last: int | None = None) -> list[LogEntry]:
        """All entries, oldest first; the *last* so many."""
        found: deque[LogEntry] = deque(maxlen=last)
        for path in self._files():
            with suppress(FileNotFoundError), path.open(encoding="utf-8", errors="replace") as file:
                for entry in read_lines(file):
                    _take(found, entry)
        return list(found)

    def _files(self) -> Iterator[Path]:
        for number in range(MAX_FILES - 1, 0, -1):
            yield self._directory / f"actions.{number}.jsonl"
        yield self._directory / CURRENT

    def _rotate(self) -> None:
        files = list(self._files())
        files[0].unlink(missing_ok=True)
        for older, newer in pairwise(files):
            with suppress(FileNotFoundError):
                newer.rename(older)

    def _make(self) -> None:
        self._pictures.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory.chmod(0o700)

    def _make_room(self, size: int) -> None:
        if self._picture_bytes is None:
            self._picture_bytes = sum(path.stat().st_size for path in self._pictures.iterdir())
        self._picture_bytes += size
        if self._picture_bytes <= self._max_picture_bytes:
            return
        oldest = sorted(self._pictures.iterdir(), key=lambda path: path.stat().st_mtime)
        for path in oldest:
            if self._picture_bytes <= self._max_picture_bytes * TRIM_TO:
                break
            self._picture_bytes -= path.stat().st_size
            path.unlink(missing_ok=True)


def _take(found: deque[LogEntry], entry: LogEntry) -> None:
    """Add *entry*, in the place of an earlier one of its number."""
    for index in range(len(found) - 1, max(-1, len(found) - 1 - MAX_BETWEEN), -1):
        if found[index].number == entry.number:
            found[index] = entry
            return
    found.append(entry)


def _ends_line(descriptor: int) -> bool:
    size = os.fstat(descriptor).st_size
    return os.pread(descriptor, 1, size - 1) == b"\n"
