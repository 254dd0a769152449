"""
Where context comes from: sources that people add, the built-in ones, the working directory.

A source's identity is its cleaned lexical path. What it resolves to must lie in a
place of this user's, so that no request can point the daemon at the whole disk.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from context_push.errors import SourceNotFound, SourceRefused
from context_push.reading import is_inside
from context_push.wire.push import MAX_SOURCE_BYTES

__all__ = ["BUILT_IN", "MAX_SOURCES", "Sources"]

# Below the home directory, in order of priority.
BUILT_IN = (".coder", ".coder/skills", ".claude/plugins/cache")
# Sources that may be added; each costs a few system calls at every pass.
MAX_SOURCES = 100


class Sources:
    """The roots of a pass, in order of priority."""

    def __init__(self, *, home: Path, working_dir: Path, seeds: Iterable[str] = ()) -> None:
        self._home = home
        self._working_dir = working_dir
        self._added: list[str] = []
        for seed in seeds:
            self._added.append(self.clean(seed))
        self._added = list(dict.fromkeys(self._added))

    @property
    def added(self) -> Sequence[str]:
        """What people added, in order."""
        return tuple(self._added)

    @property
    def working_dir(self) -> str:
        """The last root, and the directory of the prompt's header."""
        return str(self._working_dir)

    def roots(self) -> tuple[str, ...]:
        """Every root once: added ones, built-in ones, the working directory."""
        built_in = (str(self._home / name) for name in BUILT_IN)
        return tuple(dict.fromkeys((*self._added, *built_in, self.working_dir)))

    def clean(self, path: str) -> str:
        """
        The identity of a path that is absolute or starts with ``~/``.

        Raises:
            SourceRefused: it is neither, too long, or no text.
        """
        if path == "~" or path.startswith("~/"):
            path = str(self._home) + path[1:]
        if not path.startswith("/"):
            raise SourceRefused("a source must be an absolute path, or start with ~/")
        try:
            size = len(path.encode())
        except UnicodeEncodeError:
            raise SourceRefused("a source's path must be UTF-8") from None
        if "\0" in path or size > MAX_SOURCE_BYTES:
            raise SourceRefused(f"a source's path has no NUL and at most {MAX_SOURCE_BYTES} bytes")
        # POSIX keeps two leading slashes apart; no system that we run on does.
        return os.path.normpath(path).replace("//", "/", 1)

    def add(self, path: str) -> str:
        """
        Add a source at the end of the added ones; adding it again changes nothing.

        Raises:
            SourceRefused: it lies outside the places of this user, or there are too many.
        """
        source = self.clean(path)
        if source in self._added:
            return source
        real = os.path.realpath(source)
        allowed = [os.path.realpath(place) for place in self._places()]
        if not any(is_inside(real, place) for place in allowed):
            raise SourceRefused(f"{source} lies outside {', '.join(map(str, self._places()))}; move it there")
        if len(self._added) >= MAX_SOURCES:
            raise SourceRefused(f"there are {MAX_SOURCES} sources already; remove one")
        self._added.append(source)
        return source

    def _places(self) -> tuple[Path, ...]:
        return (self._home, self._home / ".coder", self._home / ".claude", self._working_dir)

    def get(self, path: str) -> str:
        """
        The identity of a source that was added.

        Raises:
            SourceNotFound: it was not.
        """
        source = self.clean(path)
        if source not in self._added:
            raise SourceNotFound(f"{source} is no source that was added")
        return source

    def remove(self, path: str) -> None:
        """
        Remove a source that was added.

        Raises:
            SourceNotFound: it was not.
        """
        self._added.remove(self.get(path))
