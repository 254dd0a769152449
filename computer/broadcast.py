"""
One desktop's screen, looked at and encoded once for everybody who only watches.

Owns a thread that sees what changes, and the newest picture. An X server encodes for each of its viewers
anew, on one thread; here a watcher costs the sending of bytes that are there already. Each has its own set
of tiles that it has not got yet, so that who is slow misses what lies between and never the end.
"""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from computer.display.x11 import Screen, connect, disconnect, translate_errors
from computer.errors import ComputerError, DisplayLost
from computer.pixels import Framebuffer, frame_size
from computer.rfb.tiles import TileGrid
from computer.rfb.updates import Style, render_update
from computer.shielding import finish

__all__ = ["Broadcast", "Frame"]

# Seconds between two pictures at least, and that a drawing program gets to finish what it has begun.
LEAST_INTERVAL_S = 0.02
SETTLE_S = 0.005
# Seconds between two looks where the pointer is, which no damage tells; a stop waits as long.
POINTER_S = 0.05
# Tiles of one rectangle's height: some that are photos and some that are text are told apart.
BAND_ROWS = 2
START_LIMIT_S = 10.0


@dataclass(slots=True, kw_only=True)
class Frame:
    """
    One picture of the screen, with the pointer in it.

    Attributes:
        changed: the tiles that differ from the picture before.
    """

    pixels: Framebuffer
    grid: TileGrid
    changed: int
    ready: dict[tuple[int, Style], bytes] = field(default_factory=dict)
    making: dict[tuple[int, Style], "asyncio.Future[bytes]"] = field(default_factory=dict)

    def render(self, tiles: int, style: Style) -> bytes:
        """An update that shows *tiles*."""
        return render_update(self.pixels, self.grid.rects(tiles, BAND_ROWS), style)


class Broadcast:
    """
    The screen of one X server; made by ``start``.

    Args:
        name, cookie: of the server.

    Attributes:
        frame: the newest picture.
        is_over: the server is gone, or this was closed; nothing new comes.
    """

    def __init__(self, name: str, cookie: bytes | None) -> None:
        self._name, self._cookie = name, cookie
        self._loop = asyncio.get_running_loop()
        self._first: asyncio.Future[None] = self._loop.create_future()
        self._listeners: dict[Callable[[Frame | None], None], Style | None] = {}
        self._styles: Counter[Style] = Counter()
        self._encoder = ThreadPoolExecutor(max_workers=1, thread_name_prefix="encoder")
        self._thread = threading.Thread(target=self._run, name=f"broadcast {name}", daemon=True)
        self._is_stopping = threading.Event()
        self.is_over = False
        self.frame: Frame

    @classmethod
    async def start(cls, name: str, cookie: bytes | None) -> "Broadcast":
        """
        Begin to watch; returns with the first picture.

        Raises:
            DisplayLost: the server can't be looked at.
        """
        made = cls(name, cookie)
        made._thread.start()
        try:
            async with asyncio.timeout(START_LIMIT_S):
                await asyncio.shield(made._first)
        except TimeoutError as exc:
            await finish(made.close())
            raise DisplayLost("the screen shows nothing to those who watch") from exc
        except BaseException:
            await finish(made.close())
            raise
        return made

    def listen(self, listener: Callable[[Frame | None], None]) -> Callable[[], None]:
        """Call *listener* with each new frame, and with None at the end; returns what ends that."""
        self._listeners[listener] = None
        return lambda: self._forget(listener)

    def prefer(self, listener: Callable[[Frame | None], None], style: Style) -> None:
        """Have updates of this *style* ready for who listens so."""
        before = self._listeners.get(listener)
        if before is not None:
            self._styles[before] -= 1
        self._listeners[listener] = style
        self._styles[style] += 1

    async def update(self, tiles: int, style: Style) -> bytes:
        """An update with these tiles of the newest picture; made once for all who need the same."""
        frame, key = self.frame, (tiles, style)
        found = frame.ready.get(key)
        if found is not None:
            return found
        making = frame.making.get(key)
        if making is None:
            work = self._loop.run_in_executor(self._encoder, frame.render, tiles, style)
            making = frame.making[key] = asyncio.ensure_future(work)
        return await asyncio.shield(making)

    async def close(self) -> None:
        """Watch no more; harmless when repeated."""
        self._is_stopping.set()
        await asyncio.to_thread(self._thread.join)
        self._end(None)
        await asyncio.to_thread(self._encoder.shutdown)

    def _forget(self, listener: Callable[[Frame | None], None]) -> None:
        style = self._listeners.pop(listener, None)
        if style is not None:
            self._styles[style] -= 1

    def _publish(self, frame: Frame) -> None:
        self.frame = frame
        if not self._first.done():
            self._first.set_result(None)
        for listener in tuple(self._listeners):
            listener(frame)

    def _end(self, problem: ComputerError | None) -> None:
        if self.is_over:
            return
        self.is_over = True
        if not self._first.done():
            self._first.set_exception(problem or DisplayLost("nobody watches any more"))
            self._first.exception()
        for listener in tuple(self._listeners):
            listener(None)

    # The rest runs in the thread.

    def _run(self) -> None:
        problem: ComputerError | None = None
        try:
            connection = connect(self._name, self._cookie)
            try:
                with translate_errors():
                    screen = Screen(connection, self._name, self._cookie)
                    try:
                        self._watch(screen)
                    finally:
                        screen.close()
            finally:
                disconnect(connection)
        except ComputerError as exc:
            problem = exc
        self._tell(self._end, problem)

    def _watch(self, screen: Screen) -> None:
        last: Framebuffer | None = None
        while not self._is_stopping.is_set():
            began = time.monotonic()
            screen.mark()
            pixels = screen.capture()
            frame = _compare(last, pixels)
            if frame is not None:
                for style in [style for style, count in self._styles.copy().items() if count > 0]:
                    frame.ready[frame.changed, style] = frame.render(frame.changed, style)
                self._tell(self._publish, frame)
                last = pixels
            self._is_stopping.wait(max(0.0, began + LEAST_INTERVAL_S - time.monotonic()))
            self._wait_change(screen)

    def _wait_change(self, screen: Screen) -> None:
        while not self._is_stopping.is_set():
            if screen.wait(POINTER_S):
                time.sleep(SETTLE_S)
                return
            if not screen.is_unchanged():
                return

    def _tell(self, work: Callable[..., None], *arguments: object) -> None:
        # The loop may have ended before us.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(work, *arguments)


def _compare(last: Framebuffer | None, pixels: Framebuffer) -> Frame | None:
    """The frame of *pixels*; None when nothing is new."""
    grid = TileGrid(frame_size(pixels))
    if last is None or last.shape != pixels.shape:
        return Frame(pixels=pixels, grid=grid, changed=grid.everything)
    changed = grid.differing(last, pixels)
    return Frame(pixels=pixels, grid=grid, changed=changed) if changed else None
