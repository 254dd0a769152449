"""
What a desktop's server says to a viewer whose pictures come from elsewhere, read and thrown away.

Owns the boundary between messages: whoever goes on with the stream begins at the head of one. Without
this a clipboard that changes often would pile up in the server. It has been told to send raw pixels, and
may still send some that were asked for before.
"""

import asyncio
import struct
from collections.abc import Callable
from contextlib import suppress

from computer.rfb.messages import Encoding, FenceFlag, ServerMessage, render_fence

__all__ = ["Silence"]

CHUNK_BYTES = 64 * 1024
# Of the only format in which a broadcast is shown.
PIXEL_BYTES = 4
# Seconds for the rest of a message that has begun.
REST_LIMIT_S = 5.0


class Silence:
    """
    Reads *reader* until it is ended.

    Args:
        answer: sends bytes to the server, which may measure how quick the viewer is.
        on_end: called when the server ends the stream, or says what no server may.
    """

    def __init__(
        self, reader: asyncio.StreamReader, answer: Callable[[bytes], None], on_end: Callable[[], None]
    ) -> None:
        self._reader = reader
        self._answer = answer
        self._on_end = on_end
        self._is_between = True
        self._is_ending = False
        self._task = asyncio.create_task(self._run(), name="silence")

    async def end(self) -> None:
        """Stop before the next message; harmless when repeated."""
        self._is_ending = True
        if self._is_between:
            self._task.cancel()
        with suppress(asyncio.CancelledError, TimeoutError):
            async with asyncio.timeout(REST_LIMIT_S):
                await asyncio.wait({self._task})
        self._task.cancel()

    async def _run(self) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while not self._is_ending:
                kind = (await self._reader.readexactly(1))[0]
                self._is_between = False
                if not await self._skip(kind):
                    break
                self._is_between = True
        if not self._is_ending:
            self._on_end()

    async def _skip(self, kind: int) -> bool:
        match kind:
            case ServerMessage.BELL | ServerMessage.END_OF_CONTINUOUS_UPDATES:
                return True
            case ServerMessage.CUT_TEXT:
                # Of either clipboard: the newer one counts its bytes below zero.
                (length,) = struct.unpack(">xxxi", await self._reader.readexactly(7))
                return await self._skip_bytes(abs(length))
            case ServerMessage.FENCE:
                flags, length = struct.unpack(">xxxIB", await self._reader.readexactly(8))
                payload = await self._reader.readexactly(length)
                if flags & FenceFlag.REQUEST:
                    self._answer(render_fence(flags & ~FenceFlag.REQUEST, payload))
                return True
            case ServerMessage.UPDATE:
                return await self._skip_update()
        return False

    async def _skip_update(self) -> bool:
        (count,) = struct.unpack(">xH", await self._reader.readexactly(3))
        for _ in range(count):
            width, height, encoding = struct.unpack(">4xHHi", await self._reader.readexactly(12))
            if encoding not in (Encoding.RAW, Encoding.DESKTOP_SIZE):
                return False
            is_raw = encoding == Encoding.RAW
            if is_raw and not await self._skip_bytes(width * height * PIXEL_BYTES):
                return False
        return True

    async def _skip_bytes(self, count: int) -> bool:
        while count and (data := await self._reader.read(min(count, CHUNK_BYTES))):
            count -= len(data)
        return not count
