"""
Which calls have been given a process, on disk, so that none is given two.

An intent is on the disk before its process is started. A key that is found here and whose
process is not held belongs to an earlier keeper: whether its command ran can't be known.
"""

import json
import os
from contextlib import suppress
from pathlib import Path

__all__ = ["Ledger"]

# Keys kept; a repeat comes within seconds of a lost link, never thousands of commands later.
MAX_KEYS = 5_000


class Ledger:
    """Keys in the order they came, in a file of one JSON line each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        keys = _read(path)[-MAX_KEYS:]
        self._keys = dict.fromkeys(keys)
        self._lines = 0
        self._rewrite()

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def record(self, key: str) -> None:
        """
        Write that *key* is about to get its process; blocks until the disk has it.

        Raises:
            OSError: the disk did not take it, so nothing may be started.
        """
        with self._path.open("ab") as stream:
            stream.write(json.dumps(key).encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        self._keys[key] = None
        self._lines += 1
        if self._lines > 2 * MAX_KEYS:
            self._keys = dict.fromkeys(list(self._keys)[-MAX_KEYS:])
            self._rewrite()

    def _rewrite(self) -> None:
        """Drop old keys and a last line that a crash tore."""
        fresh = self._path.with_suffix(".new")
        with fresh.open("wb") as stream:
            stream.writelines(json.dumps(key).encode() + b"\n" for key in self._keys)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(self._path)
        self._lines = len(self._keys)


def _read(path: Path) -> list[str]:
    keys = []
    with suppress(FileNotFoundError):
        for line in path.read_bytes().splitlines():
            with suppress(ValueError):
                key = json.loads(line)
                if isinstance(key, str):
                    keys.append(key)
    return keys
