"""
Record one display: look often, encode what changed, repeat what did not.

Runs in a process of its own, which only looks: it presses nothing and takes no focus. Ends well on SIGTERM
and SIGINT, when the display is lost, the disk is full or a limit is reached; killed, it leaves a
film that lacks less than a second.
"""

import signal
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from PIL import Image

from computer.display.x11.authority import read_cookie
from computer.display.x11.connection import connect, disconnect, translate_errors
from computer.display.x11.screen import Screen
from computer.errors import DisplayLost, Unavailable
from computer.geometry import Size, fit_within
from computer.pixels import Framebuffer, frame_size, to_rgb
from computer.recording.encoder import FRAGMENT_MS, VideoWriter
from computer.recording.frames import changed_pixels, even_size, onto_canvas
from computer.recording.orders import CHANGES_SUFFIX, THUMBNAIL_SUFFIX, RecordOrder, Report

__all__ = ["STOP_SIGNALS", "record", "save_thumbnail"]

STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT})
# Milliseconds after which a screen that stands still is written again.
REPEAT_MS = 250
# Pixels. Fewer that change are a caret or a clock: they are filmed, but count as standing still.
NOISE_PIXELS = 100
# Longer side of a thumbnail in pixels, and its JPEG quality.
THUMBNAIL = Size(width=640, height=640)
THUMBNAIL_QUALITY = 80


def record(order: RecordOrder, tell: Callable[[Report], None]) -> None:
    """
    Record until a stop signal comes, which must be blocked in this thread.

    Raises:
        DisplayLost, CaptureTimeout: there is nothing to record.
    """
    cookie = read_cookie(Path(order.authority), order.display) if order.authority else None
    connection = connect(order.display, cookie)
    try:
        with translate_errors():
            screen = Screen(connection, order.display, cookie)
            try:
                _Film(order, screen, tell).run()
            finally:
                with suppress(DisplayLost):
                    screen.close()
    finally:
        disconnect(connection)


class _Film:
    """A recording in progress."""

    def __init__(self, order: RecordOrder, screen: Screen, tell: Callable[[Report], None]) -> None:
        self._order, self._screen, self._tell = order, screen, tell
        self._path = Path(order.path)
        self._frame = screen.capture()
        self._size = frame_size(self._frame)
        self._canvas = even_size(self._size)
        self._began = self._looked = time.monotonic()
        self._shown_ms = 0

    def run(self) -> None:
        """Film until something says stop; the film is complete when this returns."""
        writer = VideoWriter(self._path, self._canvas)
        changes = self._path.with_suffix(CHANGES_SUFFIX).open("wb", buffering=0)
        with changes:
            # The first picture stands for one fragment before anything else, so that there is a film at once.
            writer.write(onto_canvas(self._frame, self._canvas, self._size), 0)
            writer.repeat(FRAGMENT_MS)
            self._shown_ms = FRAGMENT_MS
            self._tell(Report(event="started", width=self._canvas.width, height=self._canvas.height))
            reason, detail = self._film(writer, changes.write)
        with suppress(OSError):
            writer.close()
        with suppress(OSError):
            save_thumbnail(self._frame, self._path)
        duration_s = self._shown_ms / 1000
        self._tell(Report(event="stopped", reason=reason, detail=detail, duration_s=duration_s))

    def _film(self, writer: VideoWriter, note: Callable[[bytes], object]) -> tuple[str, str]:
        pause_s = 1 / self._order.frames_per_s
        try:
            while (reason := self._limit()) is None:
                if signal.sigtimedwait(STOP_SIGNALS, self._until_next(pause_s)) is not None:
                    self._look(writer, note, is_last=True)
                    return "asked", ""
                self._look(writer, note)
        except Unavailable as exc:
            return "desktop_lost", str(exc)
        except OSError as exc:
            return "disk", str(exc)
        return reason, ""

    def _now_ms(self) -> int:
        return FRAGMENT_MS + int((time.monotonic() - self._began) * 1000)

    def _until_next(self, pause_s: float) -> float:
        """Seconds until the next look; where looking takes long, others get as long a turn."""
        passed_s = time.monotonic() - self._looked
        return pause_s - passed_s if passed_s < pause_s / 2 else passed_s

    def _look(self, writer: VideoWriter, note: Callable[[bytes], object], *, is_last: bool = False) -> None:
        self._looked = time.monotonic()
        now_ms = max(self._now_ms(), self._shown_ms + 1)
        frame = self._new_frame()
        if frame is not None and (changed := changed_pixels(self._frame, frame)):
            self._frame = frame
            writer.write(onto_canvas(frame, self._canvas, self._size), now_ms)
            self._shown_ms = now_ms
            if changed >= NOISE_PIXELS:
                note(struct.pack("<I", now_ms))
            return
        if is_last or now_ms - self._shown_ms >= REPEAT_MS:
            writer.repeat(now_ms)
            self._shown_ms = now_ms

    def _new_frame(self) -> Framebuffer | None:
        """The screen, unless it is known to be as it was."""
        # Around these questions only: a full disk is no lost display.
        with translate_errors():
            return None if self._screen.is_unchanged() else self._screen.capture()

    def _limit(self) -> str | None:
        if self._now_ms() / 1000 >= self._order.max_duration_s:
            return "duration_limit"
        if self._path.stat().st_size >= self._order.max_bytes:
            return "size_limit"
        return None


def save_thumbnail(frame: Framebuffer, film: Path) -> None:
    """Write a small JPEG of *frame* beside *film*, whole or not at all."""
    size = frame_size(frame)
    small = to_rgb(frame, fit_within(size, THUMBNAIL))
    target = film.with_suffix(THUMBNAIL_SUFFIX)
    partial = target.with_suffix(".part")
    Image.fromarray(small).save(partial, "JPEG", quality=THUMBNAIL_QUALITY)
    partial.replace(target)
