"""
What a watcher gets of a broadcast, in the place of the desktop server's own stream.

Owns one watcher's side of it: which tiles it has not got yet, whether it has asked. Updates are answers to
requests, or to fences where the watcher was promised updates unasked, so each watcher goes at its own pace
and nothing waits in buffers. A feed can be left at any time: the desktop's server goes on where it ended.
"""

import asyncio
from collections.abc import Callable

from agentd.wishes import Wishes
from computer.broadcast import Broadcast, Frame
from computer.errors import ComputerError
from computer.rfb.acknowledged import SEEN
from computer.rfb.messages import (
    CONTINUOUS_UPDATES,
    SET_PIXEL_FORMAT,
    FenceFlag,
    ServerMessage,
    render_fence,
)
from computer.rfb.updates import Style, render_no_cursor, render_resize
from computer.rfb.viewer import Control, Encodings, FenceMessage, UpdateRequest, ViewerMessage

__all__ = ["Feed"]

_FENCE_HEAD = 9
_KNOWN_FLAGS = FenceFlag.BLOCK_BEFORE | FenceFlag.BLOCK_AFTER | FenceFlag.SYNC_NEXT


class Feed:
    """
    One watcher's part of *broadcast*.

    Args:
        wishes: of the watcher; noted there before they are told here.
        on_close: called once when the feed is left.

    Attributes:
        is_stuck: the screen has another size, and the watcher does not understand that; nobody can go on.
    """

    def __init__(self, broadcast: Broadcast, wishes: Wishes, on_close: Callable[[], None]) -> None:
        self._broadcast = broadcast
        self._wishes = wishes
        self._on_close = on_close
        self._style: Style | None = None
        self._size = broadcast.frame.grid.size
        self._missing = broadcast.frame.grid.everything
        self._has_asked = False
        self._is_left = self.is_stuck = False
        self._out = bytearray()
        self._wake = asyncio.Event()
        self._end_listening = broadcast.listen(self._see)

    def resume(self) -> None:
        """Begin with a watcher that got the server's pictures until now, and has asked for the next."""
        self._choose_style()
        self._out += render_resize(self._size, self._wishes.encodings) or b""
        self._out += render_no_cursor(self._wishes.encodings)
        self._has_asked = True

    def take(self, message: ViewerMessage) -> bool:
        """Take a message of the watcher's that is meant for who sends the picture; False: it is not."""
        match message:
            case Control(raw=raw) if raw[0] == CONTINUOUS_UPDATES:
                self._switch(is_on=bool(raw[1]))
            case Encodings():
                self._choose_style()
            case Control(raw=raw) if raw[0] == SET_PIXEL_FORMAT:
                self._choose_style()
            case UpdateRequest():
                self._request(is_whole=not message.is_incremental)
            case FenceMessage(is_reply=False):
                flags = int.from_bytes(message.raw[4:8], "big") & _KNOWN_FLAGS
                self._out += render_fence(flags, message.raw[_FENCE_HEAD:])
            case FenceMessage() if message.raw[_FENCE_HEAD:] == SEEN:
                self._has_asked = True
            case _:
                return False
        self._wake.set()
        return True

    async def next(self) -> bytes | None:
        """The next bytes for the watcher; None once the feed is left or the broadcast is over."""
        while not self._is_over:
            if self._out:
                data = bytes(self._out)
                self._out.clear()
                return data
            if self._has_asked and self._style is not None:
                if self._broadcast.frame.grid.size != self._size:
                    return self._resize()
                if self._missing:
                    return await self._update(self._style)
            self._wake.clear()
            await self._wake.wait()
        return None

    def leave(self) -> None:
        """Have the desktop's server take over, as soon as the update that is on its way has been sent."""
        self._is_left = True
        self._wake.set()

    def close(self) -> None:
        """Take no more of the broadcast; harmless when repeated."""
        self.leave()
        self._end_listening()
        on_close, self._on_close = self._on_close, lambda: None
        on_close()

    def replay(self) -> bytes:
        """What the desktop's server must hear to take over."""
        return self._wishes.replay(self._size)

    @property
    def _is_over(self) -> bool:
        return self._is_left or self._broadcast.is_over

    def _see(self, frame: Frame | None) -> None:
        if frame is not None:
            self._missing |= frame.changed
        self._wake.set()

    def _choose_style(self) -> None:
        self._style = self._wishes.style
        if self._style is None:
            self.leave()
        else:
            self._broadcast.prefer(self._see, self._style)

    def _request(self, *, is_whole: bool) -> None:
        if self._style is None:
            self._choose_style()
        self._has_asked = True
        if is_whole:
            self._missing = self._broadcast.frame.grid.everything

    def _switch(self, *, is_on: bool) -> None:
        if is_on:
            self._has_asked = True
        else:
            self._out.append(ServerMessage.END_OF_CONTINUOUS_UPDATES)

    async def _update(self, style: Style) -> bytes | None:
        tiles, self._missing, self._has_asked = self._missing, 0, False
        try:
            data = await self._broadcast.update(tiles, style)
        except (ComputerError, RuntimeError):
            # Its encoder has been shut down.
            return None
        return data + render_fence(FenceFlag.REQUEST, SEEN) if self._wishes.is_continuous else data

    def _resize(self) -> bytes | None:
        grid = self._broadcast.frame.grid
        self._size, self._missing = grid.size, grid.everything
        self._has_asked = self._wishes.is_continuous
        message = render_resize(grid.size, self._wishes.encodings)
        if message is None:
            self.is_stuck = True
            self.leave()
        return message
