"""
Notice what changes on the screen, by XDamage on a connection of its own.

A separate connection, because replies read elsewhere would swallow its events. Two damages of
the root window (which cover every window on it): one says that anything changed since the last
picture; the other, made for the time of a call, says what.
"""

import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from Xlib.ext import damage

from computer.display.x11.connection import XConnection, connect, disconnect, shut_down
from computer.geometry import Rect, Size, add_box
from computer.pixels import Framebuffer
from computer.wire import MAX_CHANGED_BOXES

__all__ = ["DamageWatch", "HasDrawn", "PollWatch"]

# Whether anything is drawn in an area within so many seconds.
HasDrawn = Callable[[Rect, float], bool]

# Events taken in one go: a client that draws without end must not keep us here.
MAX_EVENTS = 512
# Seconds between two pictures where the server does not tell of changes.
POLL_S = 0.05


class DamageWatch:
    """
    Changes of the whole screen.

    Raises:
        DisplayLost: the server can't be reached, or lacks DAMAGE or XFIXES.
    """

    def __init__(self, name: str, cookie: bytes | None) -> None:
        self._connection: XConnection = connect(name, cookie)
        self._is_dirty = True
        self._fine: int | None = None
        self._boxes: list[Rect] = []
        self._unread: list[Rect] = []
        try:
            self._connection.damage_query_version()
            self._connection.xfixes_query_version()
            self._root = self._connection.screen().root
            self._coarse = self._root.damage_create(damage.DamageReportNonEmpty)
            self._connection.sync()
        except BaseException:
            disconnect(self._connection)
            raise

    def mark(self) -> None:
        """Forget what has changed so far, but for the boxes that are still to be taken."""
        if self._fine is None:
            self._boxes.clear()
            self._fine = self._root.damage_create(damage.DamageReportDeltaRectangles)
            # A new damage reports the whole window.
            self._connection.damage_subtract(self._fine)
            self._connection.sync()
            self._read(keep=False)
            return
        self._connection.sync()
        self._read()
        self._unread.clear()

    def wait(self, timeout_s: float) -> tuple[Rect, ...]:
        """Areas that changed since this was last called; blocks while there are none."""
        if self._fine is None:
            self.mark()
        if not self._unread:
            self._read()
        if not self._unread:
            select.select([self._connection.fileno()], [], [], max(0.0, timeout_s))
            self._read()
        areas, self._unread = tuple(self._unread), []
        return areas

    def take_boxes(self) -> tuple[Rect, ...]:
        """Boxes that changed since the first ``mark``, which is forgotten with this."""
        if self._fine is not None:
            self._connection.sync()
            self._read()
            self._connection.damage_destroy(self._fine)
            self._fine = None
        boxes, self._boxes = tuple(self._boxes), []
        self._unread.clear()
        return boxes

    @contextmanager
    def following(self) -> Iterator[HasDrawn]:
        """Notice what is drawn from here on; whoever waits for changes still gets all of them."""
        is_own = self._fine is None
        if is_own:
            self.mark()
        self._connection.sync()
        self._read()
        first = len(self._unread)

        def has_drawn(area: Rect, limit_s: float) -> bool:
            deadline = time.monotonic() + limit_s
            while True:
                self._read()
                if any(box.is_near(area) for box in self._unread[first:]):
                    return True
                if (left := deadline - time.monotonic()) <= 0:
                    return False
                select.select([self._connection.fileno()], [], [], left)

        try:
            yield has_drawn
        finally:
            if is_own:
                self.take_boxes()

    def begin_picture(self) -> None:
        """Count from here whether a picture, taken after this, is still true."""
        self._connection.damage_subtract(self._coarse)
        self._connection.sync()
        self._read()
        self._is_dirty = False

    def is_unchanged(self) -> bool:
        """Whether nothing was drawn since ``begin_picture``."""
        if not self._is_dirty:
            # The server has drawn what came before our question once it answers.
            self._connection.sync()
            self._read()
        return not self._is_dirty

    def close(self) -> None:
        """Disconnect."""
        disconnect(self._connection)

    def abort(self) -> None:
        """Break the connection, from any thread."""
        shut_down(self._connection)

    def _read(self, *, keep: bool = True) -> None:
        has_fine = False
        for _ in range(min(self._connection.pending_events(), MAX_EVENTS)):
            event = self._connection.next_event()
            source = getattr(event, "damage", None)
            if source is None or source != self._fine:
                # News of the keyboard go to every client.
                self._is_dirty = self._is_dirty or source is not None
                continue
            has_fine = True
            area = event.area
            if keep and area.width and area.height:
                box = Rect(left=area.x, top=area.y, right=area.x + area.width, bottom=area.y + area.height)
                self._unread.append(box)
                add_box(self._boxes, box, MAX_CHANGED_BOXES)
        if has_fine and keep:
            self._connection.damage_subtract(self._fine)
            self._connection.flush()


class PollWatch:
    """
    The same by comparing pictures, for servers without DAMAGE.

    Args:
        grab: takes a picture without the pointer.
    """

    def __init__(self, grab: Callable[[], Framebuffer]) -> None:
        self._grab = grab
        self._last: Framebuffer | None = None
        self._boxes: list[Rect] = []

    def mark(self) -> None:
        """Forget what has changed so far."""
        self._last = self._grab()

    def wait(self, timeout_s: float) -> tuple[Rect, ...]:
        """Areas that changed since this was last called; looks a second time after a while."""
        areas = self._take()
        if not areas:
            time.sleep(min(POLL_S, max(0.0, timeout_s)))
            areas = self._take()
        return areas

    def take_boxes(self) -> tuple[Rect, ...]:
        """Boxes that changed since the first ``mark``."""
        if self._last is not None:
            self._take()
        boxes, self._boxes, self._last = tuple(self._boxes), [], None
        return boxes

    @contextmanager
    def following(self) -> Iterator[HasDrawn]:
        """Nobody tells; pictures would cost more than they say."""
        yield lambda _area, _limit_s: False

    def begin_picture(self) -> None:
        """Nothing to prepare."""

    def is_unchanged(self) -> bool:
        """Never known."""
        return False

    def close(self) -> None:
        """Nothing to close."""

    def abort(self) -> None:
        """Nothing to break."""

    def _take(self) -> tuple[Rect, ...]:
        last, now = self._last, self._grab()
        self._last = now
        box = None if last is None else _difference(last, now)
        if box is None:
            return ()
        add_box(self._boxes, box, MAX_CHANGED_BOXES)
        return (box,)


def _difference(before: Framebuffer, after: Framebuffer) -> Rect | None:
    if before.shape != after.shape:
        size = Size(width=after.shape[1], height=after.shape[0])
        return Rect(left=0, top=0, right=size.width, bottom=size.height)
    differs = (before[..., :3] != after[..., :3]).any(axis=2)
    rows, columns = np.flatnonzero(differs.any(axis=1)), np.flatnonzero(differs.any(axis=0))
    if not len(rows):
        return None
    return Rect(left=int(columns[0]), top=int(rows[0]), right=int(columns[-1]) + 1, bottom=int(rows[-1]) + 1)
