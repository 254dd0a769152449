"""
Which desktops may show a secret, and pictures of them without it.

Owns one shade for each desktop at which a secret was typed, until nothing of it is to be seen. Encoding and
decoding run in a thread of asyncio's.
"""

import asyncio
import io
import time
from collections.abc import Callable
from dataclasses import dataclass

import pybase64
from PIL import Image

from agentd.trace.pixels import decode
from agentd.trace.shade import Shade
from computer.wire import ScreenshotData

__all__ = ["Shading"]

# Seconds in which programs have shown what was typed; a change after them is another one.
ECHO_S = 1.0
# Seconds after which a call that never told its end is over: none may take as long.
LONGEST_CALL_S = 400.0
# Pictures are many, and most of one is black or text.
LEVEL = 1


@dataclass(slots=True)
class _Shaded:
    shade: Shade
    # Calls that type a secret now, when the last one began, and when one ended.
    typing: int = 0
    began_at: float = 0.0
    typed_at: float = 0.0

    def is_typed(self, now: float) -> bool:
        """Whether programs have had time to show all of it."""
        is_typing = self.typing > 0 and now - self.began_at < LONGEST_CALL_S
        return not is_typing and now - self.typed_at >= ECHO_S


class Shading:
    """
    The shades of all desktops.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._shaded: dict[str, _Shaded] = {}

    def covers(self, desktop: str) -> bool:
        """Whether pictures of *desktop* may show a secret: they must be native ones, and covered."""
        return desktop in self._shaded

    async def begin(self, desktop: str, before: ScreenshotData | None) -> None:
        """A secret is about to be typed; *before* is the whole screen until then, native."""
        shaded = self._shaded.get(desktop)
        if shaded is None:
            pixels = None if before is None else await asyncio.to_thread(decode, before)
            is_lossy = before is not None and before.media_type != "image/png"
            # Another call may have begun meanwhile.
            shaded = self._shaded.setdefault(desktop, _Shaded(Shade(pixels, is_lossy=is_lossy)))
        shaded.shade.reopen()
        shaded.typing += 1
        shaded.began_at = self._clock()

    def end(self, desktop: str) -> None:
        """It was typed."""
        shaded = self._shaded[desktop]
        shaded.typing -= 1
        shaded.typed_at = self._clock()

    async def cover(self, desktop: str, picture: ScreenshotData) -> ScreenshotData:
        """*picture*, native, of a desktop that ``covers``; black where a secret may be seen."""
        shaded = self._shaded[desktop]
        is_typed = shaded.is_typed(self._clock())
        covered = await asyncio.to_thread(_cover, shaded.shade, picture, is_typed=is_typed)
        if is_typed and shaded.shade.is_over:
            self._shaded.pop(desktop, None)
        return covered


def _cover(shade: Shade, picture: ScreenshotData, *, is_typed: bool) -> ScreenshotData:
    covered = shade.cover(decode(picture), is_typed=is_typed)
    out = io.BytesIO()
    Image.fromarray(covered).save(out, "PNG", compress_level=LEVEL)
    return picture.model_copy(
        update={"media_type": "image/png", "data": pybase64.b64encode(out.getvalue()).decode()}
    )
