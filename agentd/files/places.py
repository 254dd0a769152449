"""Which files a tool may touch: absolute paths, inside the roots where there are any, regular files only."""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentd.errors import FileRefused

__all__ = ["Places", "refuse"]

MAX_PATH_BYTES = 4_096


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """
    Directories that files must lie in, after symbolic links are followed; none: anywhere.

    Names are checked, then used: a program of the same user that swaps a directory for a link in
    between can do nothing here that it could not do itself.
    """

    roots: tuple[Path, ...] = ()

    def resolve(self, path: str) -> Path:
        """
        Where *path* really is; it need not exist.

        Raises:
            FileRefused: not absolute, not a path at all, in a ring of links, or outside the roots.
        """
        if not path or "\0" in path or len(os.fsencode(path)) > MAX_PATH_BYTES:
            raise FileRefused("give a path without NUL, of 1 to 4096 bytes")
        given = Path(path).expanduser() if path.startswith("~/") else Path(path)
        if not given.is_absolute():
            msg = f"{path!r} is not absolute; begin it with / or ~/"
            raise FileRefused(msg)
        try:
            resolved = given.resolve()
        except (OSError, RuntimeError) as exc:
            msg = f"{path} can't be followed: a ring of symbolic links?"
            raise FileRefused(msg) from exc
        if self.roots and not any(resolved.is_relative_to(root.resolve()) for root in self.roots):
            msg = f"{path} is outside the places that tools may use: {_listed(self.roots)}"
            raise FileRefused(msg)
        return resolved

    def require_only(self, path: str, only: str | None) -> None:
        """
        See that *path* is the one file *only*, and that no link leads it elsewhere; None: any file.

        Raises:
            FileRefused: it is another.
        """
        if only is None:
            return
        allowed = Path(only).expanduser()
        home = allowed.parent.resolve() / allowed.name
        if self.resolve(path) != home or self.resolve(only) != home:
            msg = f"nothing was written: now only {only} may be written, and it may be no link"
            raise FileRefused(msg)

    def regular(self, path: str) -> tuple[Path, os.stat_result]:
        """
        Resolve *path*, which must be a regular file or a directory.

        Raises:
            FileRefused: as ``resolve``, or missing, or a device, pipe or socket (reading one may never end).
        """
        resolved = self.resolve(path)
        try:
            info = resolved.stat()
        except OSError as exc:
            raise refuse(path, exc) from exc
        if not (stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode)):
            msg = f"{path} is neither a file nor a directory"
            raise FileRefused(msg)
        return resolved, info


def refuse(path: str, exc: OSError) -> FileRefused:
    """Say what the system said of *path*."""
    match exc:
        case FileNotFoundError():
            return FileRefused(f"{path} does not exist")
        case PermissionError():
            return FileRefused(f"{path}: permission denied")
        case NotADirectoryError():
            return FileRefused(f"{path}: a part of it is not a directory")
        case IsADirectoryError():
            return FileRefused(f"{path} is a directory")
        case _:
            return FileRefused(f"{path}: {exc.strerror or exc}")


def _listed(roots: Sequence[Path]) -> str:
    return ", ".join(map(str, roots))
