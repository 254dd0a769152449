"""
Which calls have been given a process, on disk, so that none is given two.

An intent is on the disk before its process is started. A key that is found here and whose
process is not held belongs to an earlier keeper: whether its command ran can't be known. So
does the id of such a process: who asks for it is told that, not that there never was one.
"""

import json
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Begun", "Ledger"]

# Keys kept; a repeat comes within seconds of a lost link, never thousands of commands later.
MAX_KEYS = 5_000
# Seconds that an id is answered for: a chat goes on the next day, seldom after a week.
KNOWN_S = 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """The process that a key is about to get, and whose it is; *at*: seconds since 1970."""

    key: str
    process_id: str = ""
    chat_id: str | None = None
    at: float = 0.0

    def line(self) -> bytes:
        """As it is stored."""
        return json.dumps([self.key, self.process_id, self.chat_id, round(self.at)]).encode() + b"\n"


class Ledger:
    """What was begun, in the order it came, in a file of one JSON line each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begun = {begun.key: begun for begun in _read(path)[-MAX_KEYS:]}
        # By id; what this keeper begins is not among them.
        self._earlier = {begun.process_id: begun for begun in self._begun.values() if begun.process_id}
        self._lines = 0
        self._rewrite()

    def __contains__(self, key: str) -> bool:
        return key in self._begun

    def was_earlier(self, process_id: str, chat_id: str | None) -> bool:
        """Whether an earlier keeper held this process of this chat, not too long ago."""
        begun = self._earlier.get(process_id)
        return begun is not None and begun.chat_id == chat_id and time.time() - begun.at <= KNOWN_S

    def record(self, key: str, process_id: str, chat_id: str | None) -> None:
        """
        Write that *key* is about to get its process; blocks until the disk has it.

        Raises:
            OSError: the disk did not take it, so nothing may be started.
        """
        begun = Begun(key=key, process_id=process_id, chat_id=chat_id, at=time.time())
        with self._path.open("ab") as stream:
            stream.write(begun.line())
            stream.flush()
            os.fsync(stream.fileno())
        self._begun[key] = begun
        self._lines += 1
        if self._lines > 2 * MAX_KEYS:
            self._begun = dict(list(self._begun.items())[-MAX_KEYS:])
            self._rewrite()

    def _rewrite(self) -> None:
        """Drop what is old and a last line that a crash tore."""
        fresh = self._path.with_suffix(".new")
        with fresh.open("wb") as stream:
            stream.writelines(begun.line() for begun in self._begun.values())
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(self._path)
        self._lines = len(self._begun)


def _read(path: Path) -> list[Begun]:
    begun = []
    with suppress(FileNotFoundError):
        for line in path.read_bytes().splitlines():
            with suppress(ValueError):
                begun += _parsed(json.loads(line))
    return begun


def _parsed(said: object) -> list[Begun]:
    match said:
        # The form before ids were kept.
        case str(key):
            return [Begun(key=key)]
        case [str(key), str(process_id), (str() | None) as chat_id, (int() | float()) as at]:
            return [Begun(key=key, process_id=process_id, chat_id=chat_id, at=at)]
        case _:
            return []
