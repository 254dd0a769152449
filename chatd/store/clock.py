"""A clock that all replicas of a database share, whatever their machines' clocks do."""

import time
from datetime import UTC, datetime, timedelta

__all__ = ["DatabaseClock"]


class DatabaseClock:
    """The database's time, carried on by our steady clock between two looks at it."""

    def __init__(self) -> None:
        self._base = datetime.now(UTC)
        self._at = time.monotonic()

    def set(self, now: datetime, *, between: tuple[float, float]) -> None:
        """The database said *now* at some moment *between* two readings of the steady clock."""
        self._base, self._at = now, sum(between) / 2

    def __call__(self) -> datetime:
        """Now, aware."""
        return self._base + timedelta(seconds=time.monotonic() - self._at)
