"""
The picture of an RFB connection: up to date, and what changed in it.

A server sends changes when it is asked for them, and holds them back for some milliseconds. A
picture is true when an update has come that the server made after we asked: behind a fence where
it has fences, and where it has none, one of the whole screen.
"""

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from computer.display.vnc.connection import RfbConnection
from computer.errors import CaptureTimeout
from computer.geometry import Point, Rect, Size, add_box
from computer.pixels import Cursor, Framebuffer, blend_cursor, crop
from computer.rfb import Event, FenceReply, Resized, Updated
from computer.rfb.messages import render_update_request
from computer.wire import MAX_CHANGED_BOXES

__all__ = ["Screen"]


class Screen:
    """Reads the screen of *connection*."""

    def __init__(self, connection: RfbConnection) -> None:
        self._connection = connection
        self._client = connection.client
        self._unread: list[Rect] = []
        self._boxes: list[Rect] = []
        self._is_marked = False
        self._seen = 0
        self._updates = 0
        self._updates_at_fence = 0
        self._changes = 0
        self._covered: NDArray[np.bool_] | None = None
        self._shown: tuple[object, ...] | None = None
        self.position: Point | None = None
        connection.listeners.append(self.note)
        self._refresh_whole()

    def size(self) -> Size:
        """Size of the screen."""
        self._connection.sync()
        return self._whole().size

    def capture(self) -> Framebuffer:
        """A copy of the picture as it is now, pointer included."""
        self.refresh()
        frame = self._client.framebuffer.copy()
        # Where it is not known, the server draws the pointer itself.
        if (cursor := self._client.cursor) is not None and self.position is not None:
            x, y = self.position.x + cursor.origin.x, self.position.y + cursor.origin.y
            blend_cursor(frame, Cursor(pixels=cursor.pixels, origin=Point(x=x, y=y)))
        self._shown = self._state()
        return frame

    def read(self, region: Rect) -> Framebuffer:
        """Copy of *region*, without the pointer unless the server draws it."""
        self.refresh()
        return crop(self._client.framebuffer, region)

    def is_unchanged(self) -> bool:
        """Whether nothing has changed since ``capture``; never known without fences."""
        if self._shown is None or not self._client.has_fences:
            return False
        self.refresh()
        return self._shown == self._state()

    def refresh(self) -> None:
        """Bring the picture up to date."""
        if self._client.has_fences:
            self._refresh_behind_fence()
        else:
            self._refresh_whole()

    def mark(self) -> None:
        """Forget what has changed so far, but for the boxes that are still to be taken."""
        if self._client.has_fences:
            self.refresh()
        else:
            while self._connection.pump(0):
                pass
        self._unread.clear()
        if not self._is_marked:
            self._is_marked = True
            self._boxes.clear()

    def wait(self, timeout_s: float) -> tuple[Rect, ...]:
        """Areas that changed since this was last called; blocks while there are none."""
        deadline = time.monotonic() + timeout_s
        self._ask()
        while not self._unread:
            left = deadline - time.monotonic()
            seen = self._seen
            if not self._connection.pump(left) and left <= 0:
                break
            if self._seen != seen:
                self._ask()
        areas, self._unread = tuple(self._unread), []
        return areas

    def take_boxes(self) -> tuple[Rect, ...]:
        """Boxes that changed since the first ``mark``, which is forgotten with this."""
        if self._is_marked and self._client.has_fences:
            self.refresh()
        boxes, self._boxes = tuple(self._boxes), []
        self._is_marked = False
        return boxes

    def note(self, event: Event) -> None:
        """Take account of what the server sent."""
        if isinstance(event, Resized):
            self._covered = None
            self._note_change(self._whole())
            self._ask(incremental=False)
        elif isinstance(event, Updated):
            # One without pixels (a pointer, a size) uses up what was asked for all the same.
            self._seen += 1
            self._updates += bool(event.sent)
            for area in event.changed:
                self._note_change(area)
            if self._covered is not None:
                for area in event.sent:
                    self._covered[area.top : area.bottom, area.left : area.right] = True
        elif isinstance(event, FenceReply):
            self._updates_at_fence = self._updates
        if self._client.pointer is not None:
            self.position = self._client.pointer

    def _note_change(self, area: Rect) -> None:
        self._changes += 1
        add_box(self._unread, area, MAX_CHANGED_BOXES)
        add_box(self._boxes, area, MAX_CHANGED_BOXES)

    def _refresh_behind_fence(self) -> None:
        size = self._client.size
        fence = self._connection.set_fence()
        self._ask_at_once()
        self._wait_asking(
            lambda: self._connection.has_passed(fence) and self._updates > self._updates_at_fence
        )
        if self._client.size != size:
            self._refresh_whole()

    def _refresh_whole(self) -> None:
        for _ in range(10):
            whole = self._whole()
            covered = self._covered = np.zeros((whole.bottom, whole.right), bool)
            self._ask(incremental=False)
            self._wait_asking(self._is_covered)
            is_done, self._covered = self._covered is covered, None
            if is_done:
                return
        raise CaptureTimeout("the VNC server changes the size of its screen all the time")

    def _wait_asking(self, is_done: Callable[[], bool]) -> None:
        """
        Wait, and ask again after an update that was not yet what is waited for.

        The server remembers what it was told to send whole; told so again, it would begin anew.
        """
        asked = self._seen

        def is_over() -> bool:
            nonlocal asked
            if is_done():
                return True
            if self._seen != asked:
                asked = self._seen
                self._ask()
            return False

        self._connection.wait(is_over)

    def _ask_at_once(self) -> None:
        self._ask()
        # One pixel that has not changed makes the server answer at once; the rest comes with it.
        pixel = Rect(left=0, top=0, right=1, bottom=1)
        self._connection.send(render_update_request(pixel, incremental=False))

    def _is_covered(self) -> bool:
        # Forgotten when the size changes meanwhile: then the rest is not worth waiting for.
        return self._covered is None or bool(self._covered.all())

    def _ask(self, *, incremental: bool = True) -> None:
        self._connection.send(render_update_request(self._whole(), incremental=incremental))

    def _whole(self) -> Rect:
        size = self._client.size
        assert size is not None  # noqa: S101  the handshake is done
        return Rect(left=0, top=0, right=size.width, bottom=size.height)

    def _state(self) -> tuple[object, ...]:
        return (self._changes, self.position, id(self._client.cursor))
