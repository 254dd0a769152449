"""
Files read for context: bounded, never followed out of their root.

A symlink counts only if it leads to a regular file inside the canonical scan root.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from context_push.bounds import MAX_PAYLOAD_BYTES
from context_push.wire.resources import ResourceStatus

__all__ = ["Located", "Problem", "ReadFile", "is_inside", "locate", "read"]


@dataclass(frozen=True, slots=True)
class Located:
    """A regular file; *path* is resolved if *lexical* is a link."""

    lexical: str
    path: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a file can't be used."""

    status: ResourceStatus
    text: str


@dataclass(frozen=True, slots=True)
class ReadFile:
    """At most ``MAX_PAYLOAD_BYTES`` of a file; *size_bytes* is its whole size."""

    data: bytes
    size_bytes: int

    @property
    def is_oversize(self) -> bool:
        """Whether there is more than was read."""
        return self.size_bytes > MAX_PAYLOAD_BYTES


def is_inside(path: str, root: str) -> bool:
    """Whether the canonical *path* is *root* or below it."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def locate(path: str, root: str) -> Located | Problem | None:
    """
    Where the file called *path* really is; None when there is none, or a directory.

    *root* is the canonical scan root that a link may not leave.
    """
    try:
        mode = Path(path).lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as exc:
        return Problem(ResourceStatus.UNREADABLE, f"can't be looked at: {exc.strerror}")
    if stat.S_ISLNK(mode):
        return _follow(path, root)
    if stat.S_ISDIR(mode):
        return None
    if not stat.S_ISREG(mode):
        return Problem(ResourceStatus.INVALID, "is no regular file")
    return Located(path, path)


def _follow(path: str, root: str) -> Located | Problem:
    try:
        target = os.path.realpath(path, strict=True)
        mode = Path(target).lstat().st_mode
    except OSError as exc:
        return Problem(ResourceStatus.UNREADABLE, f"is a link that leads nowhere: {exc.strerror}")
    if not is_inside(target, root):
        return Problem(ResourceStatus.INVALID, f"is a link that leads out of {root}")
    if not stat.S_ISREG(mode):
        return Problem(ResourceStatus.INVALID, "is a link to something that is no regular file")
    return Located(path, target)


def read(path: str) -> ReadFile | Problem:
    """The file's first ``MAX_PAYLOAD_BYTES``; a link or a device that took its place is not followed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as exc:
        return Problem(ResourceStatus.UNREADABLE, f"can't be opened: {exc.strerror}")
    with os.fdopen(descriptor, "rb") as file:
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return Problem(ResourceStatus.INVALID, "is no regular file")
            data = file.read(MAX_PAYLOAD_BYTES + 1)
        except OSError as exc:
            return Problem(ResourceStatus.UNREADABLE, f"can't be read: {exc.strerror}")
    size = max(status.st_size, len(data)) if len(data) > MAX_PAYLOAD_BYTES else len(data)
    return ReadFile(data[:MAX_PAYLOAD_BYTES], size)
