"""A watcher's part of a broadcast: its own pace, its wishes, and leaving."""

import asyncio
import struct
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from agentd.feed import Feed
from agentd.wishes import Wishes
from computer.broadcast import Broadcast, Frame
from computer.geometry import Size
from computer.rfb.messages import CAPTURE_FORMAT
from computer.rfb.tiles import TileGrid
from computer.rfb.updates import Style
from computer.rfb.viewer import Control, Encodings, FenceMessage, PointerMessage, UpdateRequest, ViewerMessage

INIT = struct.pack(">HH", 200, 100) + CAPTURE_FORMAT + struct.pack(">I", 0)
ASK = UpdateRequest(raw=b"ask", is_incremental=True)
TIGHT = Encodings(numbers=(7, -26, -223))
LIMIT_S = 10


def _frame(changed: int, width: int = 200) -> Frame:
    grid = TileGrid(Size(width=width, height=100))
    return Frame(pixels=np.zeros((100, width, 4), np.uint8), grid=grid, changed=changed)


class _Broadcast:
    """A broadcast whose updates are their tiles."""

    def __init__(self) -> None:
        self.frame = _frame(0)
        self.is_over = False
        self.styles: list[Style] = []
        self._see: Callable[[Frame | None], None] = lambda _: None

    def listen(self, see: Callable[[Frame | None], None]) -> Callable[[], None]:
        """One listener."""
        self._see = see
        return lambda: None

    def prefer(self, _: object, style: Style) -> None:
        """Note."""
        self.styles.append(style)

    async def update(self, tiles: int, style: Style) -> bytes:
        """The tiles."""
        return f"{tiles:b}".encode()

    def show(self, changed: int, width: int = 200) -> None:
        """A new picture."""
        self.frame = _frame(changed, width)
        self._see(self.frame)

    def end(self) -> None:
        """The desktop is gone."""
        self.is_over = True
        self._see(None)


class _World:
    def __init__(self) -> None:
        self.broadcast = _Broadcast()
        self.closed = 0
        self.wishes = Wishes(INIT)
        self.feed = Feed(cast("Broadcast", self.broadcast), self.wishes, self._close)

    def tell(self, message: ViewerMessage, passed: bytes = b"") -> bool:
        """As the relay does."""
        self.wishes.note(message, passed)
        return self.feed.take(message)

    def _close(self) -> None:
        self.closed += 1

    async def next(self) -> bytes | None:
        async with asyncio.timeout(LIMIT_S):
            return await self.feed.next()

    async def is_waiting(self) -> bool:
        """Whether there is nothing to send now."""
        task = asyncio.ensure_future(self.feed.next())
        for _ in range(3):
            await asyncio.sleep(0)
        is_waiting = not task.done()
        task.cancel()
        return is_waiting


@pytest.fixture
async def world() -> _World:
    """A watcher that has said how it wants updates."""
    world = _World()
    world.tell(TIGHT, b"tight")
    return world


async def test_watcher_gets_what_it_misses_when_it_asks(world: _World) -> None:
    """Required: each at its own pace, by dropping to the newest; a late one begins with all."""
    assert await world.is_waiting()
    world.tell(ASK, b"ask")
    first = await world.next()
    world.broadcast.show(0b0001)
    world.broadcast.show(0b1001)
    assert await world.is_waiting()
    world.tell(ASK, b"ask")
    second = await world.next()
    world.tell(ASK, b"ask")
    assert await world.is_waiting()
    world.broadcast.show(0b0100)

    assert (first, second, await world.next()) == (b"11111111", b"1001", b"100")
    assert world.broadcast.styles == [Style()]


async def test_whole_picture_is_sent_again_on_request(world: _World) -> None:
    """RFC 6143, 7.5.3: a request that is not incremental."""
    world.tell(ASK, b"")
    await world.next()
    world.tell(UpdateRequest(raw=b"", is_incremental=False), b"")

    assert await world.next() == b"11111111"


async def test_fences_are_answered_and_input_is_not_taken(world: _World) -> None:
    """Rfbproto 7.4.9: the same payload, without the request's bit; what is no concern of a feed's is left."""
    world.tell(FenceMessage(raw=b"\xf8\0\0\0\x80\0\0\x01\x02hi", is_reply=False), b"")
    is_taken = world.tell(FenceMessage(raw=b"\xf8\0\0\0\0\0\0\x01\x02no", is_reply=True), b"")

    assert not is_taken
    assert await world.next() == b"\xf8\0\0\0\0\0\0\x01\x02hi"
    assert await world.is_waiting()
    assert not world.tell(PointerMessage(raw=b"", x=1, y=1, mask=1), b"")


async def test_who_leaves_is_handed_to_the_server_with_its_wishes(world: _World) -> None:
    """Ours: a watcher that takes control goes on without a new connection."""
    wish = Control(raw=b"\0\0\0\0" + CAPTURE_FORMAT)
    world.tell(wish, wish.raw)
    world.tell(ASK, b"ask")
    await world.next()
    world.feed.leave()
    end = await world.next()
    world.feed.close()
    world.feed.close()

    assert end is None
    assert world.feed.replay() == wish.raw + b"tight" + struct.pack(">BBHHHH", 3, 0, 0, 0, 200, 100)
    assert world.closed == 1


@pytest.mark.parametrize("way", ["over", "format"])
async def test_feed_ends_by_itself_where_it_can_t_go_on(world: _World, way: str) -> None:
    """Ours: the desktop is gone; or the watcher wants pixels that are not made here."""
    waiting = asyncio.ensure_future(world.next())
    await asyncio.sleep(0)
    if way == "over":
        world.broadcast.end()
    else:
        world.tell(Control(raw=bytes(20)), bytes(20))

    assert await waiting is None


async def test_new_size_is_told_before_its_pixels(world: _World) -> None:
    """Ours: RandR while somebody watches; who does not understand that gets the server's own stream."""
    world.tell(ASK, b"")
    await world.next()
    world.broadcast.show(0b1, width=100)
    world.tell(ASK, b"")
    told = await world.next()
    world.tell(ASK, b"")
    picture = await world.next()
    world.tell(Encodings(numbers=(7,)), b"")
    world.broadcast.show(0b1)
    world.tell(ASK, b"")

    assert told is not None
    assert struct.unpack_from(">HHi", told, 8) == (100, 100, -223)
    assert picture == b"1111"
    assert await world.next() is None
    assert world.feed.is_stuck


def test_nothing_is_replayed_that_was_not_wished() -> None:
    """Ours: a viewer that never asked gets nothing unasked."""

    async def run() -> Any:
        return _World().feed.replay()

    assert asyncio.run(run()) == b""


SWITCH_ON = Control(raw=b"\x96\1" + bytes(8))


async def test_watcher_that_comes_from_the_server_begins_with_the_whole_picture(world: _World) -> None:
    """Ours: its size, no pointer of its own, then all; it asked the server, so it does not ask again."""
    world.tell(Encodings(numbers=(7, -223, -239)), b"")
    world.feed.resume()
    head, picture = await world.next(), await world.next()

    assert head is not None
    assert struct.unpack_from(">HHi", head, 8) == (200, 100, -223)
    assert struct.unpack_from(">HHi", head, 16 + 8) == (0, 0, -239)
    assert picture == b"11111111"
    assert await world.is_waiting()


async def test_who_was_promised_updates_unasked_gets_one_for_each_fence(world: _World) -> None:
    """Rfbproto 7.4.11: nothing is asked for; the answer to a fence tells that there is room for more."""
    world.tell(SWITCH_ON, SWITCH_ON.raw)
    fence = b"\xf8\0\0\0\x80\0\0\0\x0cagentd: seen"
    first = await world.next()
    world.broadcast.show(0b1)
    assert await world.is_waiting()
    world.tell(FenceMessage(raw=fence.replace(b"\x80", b"\0"), is_reply=True))
    second = await world.next()
    world.tell(Control(raw=b"\x96\0" + bytes(8)))

    assert (first, second) == (b"11111111" + fence, b"1" + fence)
    assert await world.next() == b"\x96"
    assert world.feed.replay() == b"tight"


async def test_updates_unasked_are_switched_on_again_at_the_server(world: _World) -> None:
    """Ours: what the watcher was promised holds wherever its pictures come from."""
    world.tell(SWITCH_ON, SWITCH_ON.raw)

    assert world.feed.replay() == b"tight" + SWITCH_ON.raw
