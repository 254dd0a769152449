"""
When has a screen come to rest?

Pure but for the clock that is passed in. The rule, from a stream of changed rectangles:

- a change restarts the quiet time; rest is a quiet time without one;
- without any first change, rest is assumed after ``first_change_s``;
- before ``least_s`` there is no rest: what was clicked may answer at once and act later;
- what is small (at most ``ANIMATION_EDGE`` pixels either way) and has changed in the same
  place at least ``ANIMATION_TURNS`` times over at least ``ANIMATION_SPAN_S`` is an animation: a
  caret, a spinner. Neither its past nor its further changes count any more in this wait;
- after ``cap_s`` the wait ends, and the screen is said to be changing still.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from computer.display import Display, Patience, Settled
from computer.geometry import Rect

__all__ = ["RestTracker", "wait_settled"]

# Pixels. Larger than carets, throbbers and clocks; smaller than a line of text or a picture.
ANIMATION_EDGE = 64
# Redraws of one place, and seconds from the first to the last, after which it is an animation. A
# button that fades or a letter that is drawn twice is done sooner.
ANIMATION_TURNS = 4
ANIMATION_SPAN_S = 0.4
# Seconds. Drawing within this time is one redraw.
TURN_S = 0.02
# Places watched at a time; the one that has been still for longest makes room.
MAX_PLACES = 128


@dataclass(slots=True, kw_only=True)
class _Place:
    """A small part of the screen that changes."""

    area: Rect
    first: float
    last: float
    turned: float
    turns: int = 1

    @property
    def is_animation(self) -> bool:
        return self.turns >= ANIMATION_TURNS and self.last - self.first >= ANIMATION_SPAN_S

    def take(self, area: Rect, now: float) -> bool:
        joint = self.area.union(area)
        if not self.area.is_near(area) or not _is_small(joint):
            return False
        self.area = joint
        if now - self.turned >= TURN_S:
            self.turns += 1
            self.turned = now
        self.last = now
        return True


class RestTracker:
    """The rule above, for one wait that began at *started* (seconds of any clock)."""

    def __init__(self, patience: Patience, started: float) -> None:
        self._patience = patience
        self._started = started
        self._large: float | None = None
        self._places: list[_Place] = []
        self.has_changed = False

    def add(self, area: Rect, now: float) -> None:
        """Note that *area* has changed."""
        self.has_changed = True
        if not _is_small(area):
            self._large = now
        elif not any(place.take(area, now) for place in self._places):
            if len(self._places) >= MAX_PLACES:
                oldest = min(self._places, key=lambda place: place.last)
                self._places.remove(oldest)
                self._large = max(self._large or oldest.last, oldest.last)
            self._places.append(_Place(area=area, first=now, last=now, turned=now))

    def rest_at(self) -> float:
        """Time at which the screen will have come to rest if nothing more changes."""
        return max(self._rest_of_changes(), self._started + self._patience.least_s)

    def judge(self, now: float) -> Settled | None:
        """The end of the wait, or None while it goes on."""
        is_settled = now >= self.rest_at()
        if not is_settled and now < self._started + self._patience.cap_s:
            return None
        return Settled(changed=self.has_changed, is_settled=is_settled, waited_s=now - self._started)

    def time_left(self, now: float) -> float:
        """Seconds until the wait ends if nothing more changes."""
        return max(0.0, min(self.rest_at(), self._started + self._patience.cap_s) - now)

    def animations(self) -> tuple[Rect, ...]:
        """Places that were left out of account."""
        return tuple(place.area for place in self._places if place.is_animation)

    def _rest_of_changes(self) -> float:
        times = [place.last for place in self._places if not place.is_animation]
        if self._large is not None:
            times.append(self._large)
        if times:
            return max(times) + self._patience.quiet_s
        if self.has_changed:
            return self._started + self._patience.quiet_s
        return self._started + self._patience.first_change_s


def _is_small(area: Rect) -> bool:
    return area.right - area.left <= ANIMATION_EDGE and area.bottom - area.top <= ANIMATION_EDGE


def wait_settled(
    display: Display, patience: Patience, clock: Callable[[], float] = time.monotonic
) -> Settled:
    """
    Block by the rule above, in the thread of *display*.

    Raises:
        DisplayLost, DisplayClosed: see ``Display``.
    """
    tracker = RestTracker(patience, clock())
    while (settled := tracker.judge(clock())) is None:
        for area in display.wait_changes(tracker.time_left(clock())):
            tracker.add(area, clock())
    return settled
