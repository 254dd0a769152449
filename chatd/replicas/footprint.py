"""What a process leaves in its data directory for the next one there, which knows that it is dead."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

__all__ = ["FILE", "Footprint"]

FILE = "replica.json"


@dataclass(frozen=True, slots=True)
class _Left:
    replica_id: UUID | None = None
    token_hashes: tuple[str, ...] = ()


class Footprint:
    """
    The file, and what the process before us wrote there: *before*.

    A file that can't be read is none: then the others find out by themselves that it is dead.
    """

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / FILE
        self.before = self._read()
        self._now = _Left(token_hashes=self.before.token_hashes)

    def _read(self) -> _Left:
        with suppress(OSError, ValueError, TypeError, KeyError):
            left = json.loads(self._path.read_bytes())
            return _Left(
                UUID(left["replica_id"]), tuple(bytes.fromhex(one).hex() for one in left["token_hashes"])
            )
        return _Left()

    @property
    def ended_hashes(self) -> tuple[bytes, ...]:
        """Hashes of the tokens that the process before us printed."""
        return tuple(bytes.fromhex(one) for one in self.before.token_hashes)

    def note_replica(self, replica_id: UUID) -> None:
        """We go by this id."""
        self._write(_Left(replica_id, self._now.token_hashes))

    def note_tokens(self, hashes: tuple[str, ...]) -> None:
        """We printed tokens of these hashes; the next process ends them."""
        self._write(_Left(self._now.replica_id, hashes))

    def _write(self, left: _Left) -> None:
        self._now = left
        partial = self._path.with_suffix(".part")
        text = json.dumps({"replica_id": str(left.replica_id), "token_hashes": left.token_hashes})
        partial.write_text(text)
        partial.chmod(0o600)
        partial.replace(self._path)
