"""
One viewer's stream: RFB bytes between a desktop and whatever carries them to the viewer.

Owns the copying, the role of the moment and the figures. The desktop's greeting is answered here, so
that a viewer that gives up in the middle of its own never counts against the desktop's server; what
the viewer sends reaches the server as whole messages or not at all.

Invariant: when ``run`` returns, nothing that this viewer pressed is down; nor is it two seconds after the
last sign of life of a viewer that is gone without a word.
"""

import asyncio
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from agentd.feed import Feed
from agentd.lease import Party
from agentd.silence import Silence
from agentd.wire.control import ViewerGrant
from agentd.wishes import Wishes
from computer.errors import DisplayLost
from computer.geometry import Rect
from computer.rfb.acknowledged import Acknowledged
from computer.rfb.handshake import handshake
from computer.rfb.messages import (
    Encoding,
    FenceFlag,
    render_continuous_updates,
    render_encodings,
    render_fence,
)
from computer.rfb.roles import HIDE_CLIPBOARD, Role, RoleFilter
from computer.rfb.viewer import ClipboardMessage, ViewerMessage, ViewerParser

__all__ = ["DesktopEnd", "Ending", "Relay", "ViewerEnd", "greet"]

log = structlog.get_logger("agentd.relay")

# Bytes read at once. Xvnc writes at most 64 KiB pieces; more only adds latency.
CHUNK_BYTES = 64 * 1024
# Seconds in which a desktop's server must finish its greeting.
GREET_LIMIT_S = 10.0
# Seconds in which a viewer must finish its own; people may be asked something meanwhile.
VIEWER_GREET_LIMIT_S = 30.0
# Bytes of a WebSocket's close reason.
MAX_REASON_BYTES = 123
# Bytes of the word by which the head of a message is found, and seconds that a server may be silent
# before it has said it.
MARK_BYTES = 16
MARK_LIMIT_S = 10.0
# What a server must believe of a viewer whose pictures come from elsewhere. One that can't follow another
# size is thrown out; one that answers no fence any more is held to be slow, and gets no picture ever after.
UNWATCHED = render_encodings([Encoding.RAW, Encoding.DESKTOP_SIZE, Encoding.FENCE])
# Seconds in which a server must take what releases the viewer's keys and buttons.
RELEASE_LIMIT_S = 1.0
# Of a viewer that holds something down: seconds between two pings at most, without any sign of life until
# it is let go of, and for a ping to be on its way. All together must stay below two.
HELD_PING_S = 0.5
HELD_SILENCE_S = 1.5
HELD_PING_LIMIT_S = 0.2


class ViewerEnd(Protocol):
    """What carries bytes to a viewer and back, in pieces of any size."""

    async def send(self, data: bytes) -> None:
        """Hand bytes over, waiting for room; raises ConnectionError when the viewer is gone."""

    async def receive(self) -> bytes | None:
        """The next bytes, none for a mere sign of life; None when the viewer has gone."""

    async def ping(self) -> None:
        """Ask for a sign of life; raises ConnectionError when the viewer is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DesktopEnd:
    """A connection to a desktop's server, greeted; *init* is its ServerInit message."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    init: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Why a stream ended: a WebSocket's close code and a sentence of at most 123 bytes."""

    code: int
    reason: str


VIEWER_LEFT = Ending(code=1000, reason="the viewer left")
OTHER_SIZE = Ending(code=1001, reason="the screen has another size now; connect again")
DESKTOP_LEFT = Ending(code=1001, reason="the desktop ended the stream")


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> DesktopEnd:
    """
    Shake hands with a desktop's server, as a client that shares the screen.

    Raises:
        DisplayLost, RfbProtocolError: it does not let us in; the connection is closed.

    Cancellation: the connection is closed.
    """
    try:
        async with asyncio.timeout(GREET_LIMIT_S):
            return DesktopEnd(reader=reader, writer=writer, init=await _greet(reader, writer))
    except (OSError, asyncio.IncompleteReadError) as exc:
        # TimeoutError is an OSError.
        writer.close()
        raise DisplayLost(f"the desktop takes no viewer: {str(exc) or 'no answer'}") from exc
    except BaseException:
        writer.close()
        raise


async def _greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    machine = handshake(writer.write, None)
    needed = next(machine)
    while True:
        data = await reader.readexactly(needed)
        try:
            needed = machine.send(data)
        except StopIteration as done:
            return bytes(done.value.init)


@dataclass(slots=True, kw_only=True)
class Relay:
    """
    One viewer at one desktop.

    Args:
        grant: what the viewer may do.
        wishes: how the viewer wants its picture.
        on_input: called when input of the viewer's got through.
        on_press: called when it pressed something without being in control.
        on_paste: called when it asked for the desktop's clipboard, and may have it.
        on_watching: called when it is told that it does not have control.
        feed: what it gets in the place of the desktop's own stream, until it has control.

    Attributes:
        sent_bytes, received_bytes: to and from the viewer.
        acknowledged: the updates that it has taken in.
        waiting_since: monotonic seconds since which the viewer has not taken what it was sent.
    """

    grant: ViewerGrant
    desktop: DesktopEnd
    viewer: ViewerEnd
    wishes: Wishes
    on_input: Callable[[], None]
    on_press: Callable[[], None]
    on_paste: Callable[[], None] = lambda: None
    on_watching: Callable[[], None] = lambda: None
    feed: Feed | None = None
    clock: Callable[[], float] = time.monotonic
    sent_bytes: int = 0
    received_bytes: int = 0
    waiting_since: float | None = None
    filter: RoleFilter = field(default_factory=RoleFilter)
    acknowledged: Acknowledged = field(default_factory=Acknowledged)
    _parser: ViewerParser = field(init=False)
    # Up to here the server's bytes are the viewer's; from here on the feed's are.
    _mark: bytes | None = None
    _passing: asyncio.Task[None] | None = None
    _is_reading: bool = False
    _holds: asyncio.Event = field(default_factory=asyncio.Event)
    _heard_at: float = 0.0

    def __post_init__(self) -> None:
        self._parser = ViewerParser(self.desktop.init)
        self.filter.sees_clipboard = self.grant.sees_clipboard

    async def run(self) -> Ending:
        """
        Greet the viewer, then copy both ways until either side ends; the desktop's is closed then.

        Back-pressure: each direction waits for its writer, so memory stays bounded.

        Cancellation: as at any other end.
        """
        if not self.grant.sees_clipboard:
            self.desktop.writer.write(HIDE_CLIPBOARD)
        try:
            async with asyncio.timeout(VIEWER_GREET_LIMIT_S):
                ending = await self._greet()
            return ending or await self._copy()
        except TimeoutError:
            return Ending(code=1002, reason="the viewer did not finish its greeting in time")
        finally:
            await asyncio.shield(self._leave())

    def control_changed(self, holder: Party | None) -> None:
        """*holder* has control from now on; whoever loses it lets go of everything."""
        is_ours = holder is not None and holder.seat == self.grant.seat and self.grant.may != "view"
        self.filter.role = Role.CONTROLLER if is_ours else Role.VIEWER
        if not is_ours:
            self.desktop.writer.write(self.filter.release())
            self.on_watching()
        elif self.feed is not None:
            self.feed.leave()

    @property
    def can_join(self) -> bool:
        """Whether a feed can take the place of the server's stream now."""
        return (
            self.feed is None
            and self._passing is not None
            and self.grant.may != "take"
            and self.filter.role is Role.VIEWER
            and self.wishes.style is not None
            and self.wishes.has_fences
        )

    def join(self, feed: Feed) -> None:
        """
        Have *feed* send the pictures, where ``can_join``.

        The server's bytes are not parsed on their way to the viewer. It is asked to say a word that nobody
        can guess: what follows that begins a message. Before, it is told to send raw pixels, so that what
        the viewer misses of its stream is needed for nothing later.
        """
        self.feed = feed
        feed.resume()
        word = secrets.token_bytes(MARK_BYTES)
        self._mark = render_fence(0, word)
        whole = Rect(left=0, top=0, right=1, bottom=1)
        end = render_continuous_updates(whole, enabled=False) if self.wishes.is_continuous else b""
        self.desktop.writer.write(end + UNWATCHED + render_fence(FenceFlag.REQUEST, word))
        if self._passing is not None and self._is_reading:
            self._passing.cancel()

    async def _greet(self) -> Ending | None:
        while not self._parser.is_ready:
            try:
                await self._send(self._parser.data_to_send())
            except OSError:
                return VIEWER_LEFT
            data = await self.viewer.receive()
            if data is None:
                return VIEWER_LEFT
            self._take(data)
            if self._parser.error is not None:
                return self._broken()
        await self._send(self._parser.data_to_send())
        return None

    async def _copy(self) -> Ending:
        directions = [asyncio.ensure_future(self._to_viewer()), asyncio.ensure_future(self._to_desktop())]
        watching = asyncio.ensure_future(self._watch_silence())
        try:
            done, _ = await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            return next(task for task in directions if task in done).result()
        finally:
            for task in (*directions, watching):
                task.cancel()
            await asyncio.gather(*directions, watching, return_exceptions=True)

    async def _watch_silence(self) -> None:
        """
        Let go of what a viewer holds that gives no sign of life any more.

        It may only be slow, and its answers wait behind pictures: it keeps control, and may press again.
        """
        while True:
            await self._holds.wait()
            left_s = self._heard_at + HELD_SILENCE_S - self.clock()
            if not self.filter.is_holding:
                self._holds.clear()
            elif left_s <= 0:
                log.info("held input released", action="viewer_silent", seat=self.grant.seat)
                self.desktop.writer.write(self.filter.release())
            else:
                with suppress(OSError):
                    async with asyncio.timeout(min(HELD_PING_LIMIT_S, left_s)):
                        await self.viewer.ping()
                await asyncio.sleep(
                    max(0.0, min(HELD_PING_S, self._heard_at + HELD_SILENCE_S - self.clock()))
                )

    async def _to_viewer(self) -> Ending:
        try:
            while True:
                if self.feed is not None and (ending := await self._feed_viewer(self.feed)):
                    return ending
                await self._pass_on_server()
                if self._mark is None or not await self._pass_to_mark(self._mark):
                    return DESKTOP_LEFT
        except OSError:
            return VIEWER_LEFT

    async def _pass_on_server(self) -> None:
        """Copy what the server sends until it ends, or a feed joins."""
        self._passing = asyncio.create_task(self._pass_plainly(), name="server's stream")
        try:
            await self._passing
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if self._mark is None or current is None or current.cancelling():
                raise
        finally:
            self._passing.cancel()
            self._passing = None

    async def _pass_plainly(self) -> None:
        while self._mark is None:
            self._is_reading = True
            data = await self._read()
            self._is_reading = False
            if not data:
                return
            await self._send(data)

    async def _pass_to_mark(self, mark: bytes) -> bool:
        """Copy up to the mark; False: the server ended before, or says nothing any more."""
        reader = self.desktop.reader
        try:
            while True:
                try:
                    async with asyncio.timeout(MARK_LIMIT_S):
                        data = await reader.readuntil(mark)
                except OSError:
                    # A TimeoutError is one.
                    return False
                except asyncio.LimitOverrunError as exc:
                    await self._send(await reader.readexactly(exc.consumed))
                    continue
                if data := data.removesuffix(mark):
                    await self._send(data)
                self._mark = None
                return True
        except asyncio.IncompleteReadError as exc:
            await self._send(exc.partial)
            return False

    async def _feed_viewer(self, feed: Feed) -> Ending | None:
        """Send what the feed has, until it is left or over; then let the desktop go on for it, if it can."""
        self.desktop.writer.write(UNWATCHED)
        silence = Silence(self.desktop.reader, self.desktop.writer.write, feed.leave)
        try:
            while (data := await feed.next()) is not None:
                await self._send(data)
        finally:
            await silence.end()
        self.feed = None
        feed.close()
        if feed.is_stuck:
            return OTHER_SIZE
        self.desktop.writer.write(feed.replay())
        return None

    async def _read(self) -> bytes:
        try:
            return await self.desktop.reader.read(CHUNK_BYTES)
        except OSError:
            return b""

    async def _send(self, data: bytes) -> None:
        self.waiting_since = self.clock()
        await self.viewer.send(data)
        self.waiting_since = None
        self.sent_bytes += len(data)

    async def _to_desktop(self) -> Ending:
        while (data := await self.viewer.receive()) is not None:
            self._take(data)
            if self._parser.error is not None:
                return self._broken()
            try:
                await self.desktop.writer.drain()
            except OSError:
                return DESKTOP_LEFT
        return VIEWER_LEFT

    def _take(self, data: bytes) -> None:
        """Pass on what *data* completes, as far as the role of the moment allows."""
        self.received_bytes += len(data)
        self._heard_at = self.clock()
        self.filter.has_pressed = False
        messages = self._parser.receive(data)
        if not messages:
            return
        self.desktop.writer.write(b"".join(map(self._pass_on, messages)))
        if self.filter.is_holding:
            self._holds.set()
        if self.filter.role is Role.CONTROLLER:
            self.on_input()
        elif self.filter.has_pressed:
            self.on_press()

    def _pass_on(self, message: ViewerMessage) -> bytes:
        self.acknowledged.note(message)
        passed = self.filter.pass_on(message)
        if passed and isinstance(message, ClipboardMessage) and message.is_request:
            self.on_paste()
        self.wishes.note(message, passed)
        return b"" if self.feed is not None and self.feed.take(message) else passed

    def _broken(self) -> Ending:
        text = str(self._parser.error).encode()[:MAX_REASON_BYTES]
        return Ending(code=1002, reason=text.decode(errors="ignore"))

    async def _leave(self) -> None:
        """Let go of what is held, before the server hears that this viewer is gone."""
        if self.feed is not None:
            self.feed.close()
        writer = self.desktop.writer
        with suppress(OSError):
            async with asyncio.timeout(RELEASE_LIMIT_S):
                writer.write(self.filter.release())
                await writer.drain()
        writer.close()
