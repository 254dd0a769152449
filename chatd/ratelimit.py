"""
How often somebody may ask: one number for each, and no more of them than fit.

Pure: the caller brings the time.

Source: the Generic Cell Rate Algorithm (ITU-T I.371), as a virtual schedule: instead of counting, it keeps
when the next request would be due if they came evenly; one that comes earlier than the burst allows waits.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable

__all__ = ["RateLimit"]


class RateLimit:
    """
    Requests a minute of each sender, with a burst of a minute's worth.

    Args:
        per_minute: 0: no limit. A function is asked each time, so that the limit may change.
        most: senders that are remembered; the one not seen for longest is forgotten, to its advantage.
    """

    def __init__(self, per_minute: int | Callable[[], int], *, most: int = 10_000) -> None:
        self._per_minute = per_minute
        self._most = most
        self._due: OrderedDict[Hashable, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._due)

    def wait_s(self, sender: Hashable, now: float) -> float:
        """Seconds until *sender* may ask; 0.0: at once. Nothing is counted."""
        interval_s = self._interval_s()
        due = self._due.get(sender, now)
        # Of a minute's worth one is the request itself.
        return max(0.0, due - now - (60 - interval_s)) if interval_s else 0.0

    def take(self, sender: Hashable, now: float) -> float:
        """Count a request of *sender* unless it comes too early; seconds until it may come, 0.0: it may."""
        interval_s = self._interval_s()
        if not interval_s:
            return 0.0
        wait = self.wait_s(sender, now)
        if wait <= 0.0:
            self._due[sender] = max(self._due.get(sender, now), now) + interval_s
            self._due.move_to_end(sender)
            self._forget(now)
        return wait

    def _interval_s(self) -> float:
        """Seconds between requests that come evenly; 0.0: no limit."""
        per_minute = self._per_minute if isinstance(self._per_minute, int) else self._per_minute()
        return 60 / per_minute if per_minute else 0.0

    def _forget(self, now: float) -> None:
        """Drop who has a whole burst again, a few each time, and who is too many."""
        for _ in range(2):
            oldest = next(iter(self._due), None)
            if oldest is None or self._due[oldest] > now:
                break
            del self._due[oldest]
        while len(self._due) > self._most:
            self._due.popitem(last=False)
