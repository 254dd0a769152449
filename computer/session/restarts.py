"""
When to start again what has died, and when to stop trying.

Pure but for its clock and its dice. The first restart comes almost at once: whoever acts next
should not notice more than a warning. The following ones wait longer each time, and spread, so
that many desktops on one host don't start in step.
"""

import random
import time
from collections import deque
from collections.abc import Callable

__all__ = ["LIMIT", "WINDOW_S", "RestartPolicy"]

# Deaths within so many seconds after which it is not started again by itself.
LIMIT = 5
WINDOW_S = 60.0
# Seconds before the first restart at most, and before the second at least; doubled each time.
FIRST_S = 0.1
SECOND_S = 0.25
CAP_S = 8.0


class RestartPolicy:
    """Deaths of the last minute, and the pause that follows from them."""

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, dice: Callable[[], float] = random.random
    ) -> None:
        self._clock = clock
        self._dice = dice
        self._deaths: deque[float] = deque(maxlen=LIMIT)

    def forget(self) -> None:
        """Forget all deaths: somebody has stopped the desktop, and what made it die may be mended."""
        self._deaths.clear()

    def after_death(self) -> float | None:
        """Count a death; seconds to wait before the restart, None when it is a loop."""
        now = self._clock()
        while self._deaths and now - self._deaths[0] > WINDOW_S:
            self._deaths.popleft()
        self._deaths.append(now)
        if len(self._deaths) >= LIMIT:
            return None
        if len(self._deaths) == 1:
            return FIRST_S * self._dice()
        pause: float = min(CAP_S, SECOND_S * 2 ** (len(self._deaths) - 2))
        return pause * (1 + self._dice())
