"""One viewer's stream: greeting, roles, back-pressure, and the end of it."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from agentd import relay
from agentd.feed import Feed
from agentd.lease import Party
from agentd.relay import DESKTOP_LEFT, VIEWER_LEFT, greet
from agentd.wire.control import ViewerGrant
from computer.errors import DisplayLost, RfbProtocolError
from computer.rfb.roles import Role
from tests.integration.agentd.desk import LIMIT_S, WELCOME, Scene, connect, open_desk, scene

ANN = Party(seat="ann", name="Ann")
REQUEST = struct.pack(">BB4H", 3, 1, 0, 0, 8, 4)
PRESS_A = struct.pack(">BBxxI", 4, 1, 0x61)
RELEASE_A = struct.pack(">BBxxI", 4, 0, 0x61)
HOLD_BUTTON = struct.pack(">BBHH", 5, 1, 3, 2)
FREE_BUTTON = struct.pack(">BBHH", 5, 0, 3, 2)


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Scene]:
    """Ann's page, which may have control."""
    async with scene(tmp_path, ViewerGrant(seat="ann", name="Ann", may="control")) as made:
        yield made


async def test_viewer_watches_and_does_nothing_else(stage: Scene) -> None:
    """The issue: input of a viewer is dropped by the relay and counted."""
    await stage.enter()
    stage.viewer.say(PRESS_A + REQUEST + HOLD_BUTTON)
    await stage.desk.wait_heard(REQUEST)
    (await stage.desk.writers.get()).write(b"picture")

    assert await stage.viewer.wait_got(len(WELCOME) + 7) == WELCOME + b"picture"
    assert stage.relay.filter.dropped.input == 2
    assert stage.pressed == ["press"]


async def test_holder_s_input_passes_and_ends_with_its_control(stage: Scene) -> None:
    """The issue: whoever loses control lets go of keys and buttons, at once."""
    await stage.enter()
    stage.relay.control_changed(ANN)
    stage.viewer.say(PRESS_A + HOLD_BUTTON)
    await stage.desk.wait_heard(PRESS_A + HOLD_BUTTON)
    stage.relay.control_changed(None)
    stage.viewer.say(PRESS_A + REQUEST)

    await stage.desk.wait_heard(PRESS_A + HOLD_BUTTON + RELEASE_A + FREE_BUTTON + REQUEST)
    assert stage.pressed == ["input", "press"]


@pytest.mark.parametrize("holder", [Party(seat="bob", name="Bob"), Party(seat="ann2", name="Ann"), None])
async def test_only_the_own_seat_s_control_counts(stage: Scene, holder: Party | None) -> None:
    """The issue: one lease; another page of the same person is no controller."""
    await stage.enter()
    stage.relay.control_changed(holder)

    assert stage.relay.filter.role is Role.VIEWER


async def test_view_only_stays_so_whoever_has_control(tmp_path: Path) -> None:
    """The issue: never more than was granted, even if the seat has control elsewhere."""
    async with scene(tmp_path, ViewerGrant(seat="ann", may="view")) as stage:
        await stage.enter()
        stage.relay.control_changed(ANN)
        stage.viewer.say(PRESS_A + REQUEST)
        await stage.desk.wait_heard(REQUEST)


@pytest.mark.parametrize("way", ["leaves", "breaks", "cancelled"])
async def test_who_goes_while_holding_lets_go_first(stage: Scene, way: str) -> None:
    """The issue: Xvnc frees the keys of a lost viewer, but not its buttons."""
    await stage.enter()
    stage.relay.control_changed(ANN)
    stage.viewer.say(HOLD_BUTTON + PRESS_A)
    await stage.desk.wait_heard(HOLD_BUTTON + PRESS_A)
    if way == "leaves":
        stage.viewer.leave()
    elif way == "breaks":
        stage.viewer.say(b"\xfa")
    else:
        stage.running.cancel()
    await asyncio.wait({stage.running}, timeout=LIMIT_S)
    async with asyncio.timeout(LIMIT_S):
        await stage.desk.ended.wait()

    assert bytes(stage.desk.heard) == HOLD_BUTTON + PRESS_A + RELEASE_A + FREE_BUTTON


async def test_who_is_gone_without_a_word_lets_go_and_keeps_control(
    stage: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Required: released within 2 s; whoever was only slow goes on, and may press again."""
    monkeypatch.setattr(relay, "HELD_SILENCE_S", 0.2)
    await stage.enter()
    stage.relay.control_changed(ANN)
    stage.viewer.is_silent = True
    stage.viewer.say(HOLD_BUTTON + PRESS_A)
    await stage.desk.wait_heard(HOLD_BUTTON + PRESS_A + RELEASE_A + FREE_BUTTON)
    stage.viewer.is_silent = False
    stage.viewer.say(PRESS_A)
    await stage.desk.wait_heard(HOLD_BUTTON + PRESS_A + RELEASE_A + FREE_BUTTON + PRESS_A)

    assert stage.relay.filter.role is Role.CONTROLLER
    assert not stage.running.done()
    assert stage.viewer.pings


async def test_who_holds_and_answers_keeps_holding(stage: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a key may be held for minutes; who holds nothing is not asked."""
    monkeypatch.setattr(relay, "HELD_PING_S", 0.01)
    await stage.enter()
    stage.relay.control_changed(ANN)
    stage.viewer.say(PRESS_A + RELEASE_A)
    await stage.desk.wait_heard(PRESS_A + RELEASE_A)
    before = stage.viewer.pings
    stage.viewer.say(PRESS_A)
    await stage.viewer.wait_pings(int(relay.HELD_SILENCE_S / 0.01) + 10)

    assert before <= 1
    assert bytes(stage.desk.heard) == PRESS_A + RELEASE_A + PRESS_A


def test_silence_is_noticed_within_what_is_required() -> None:
    """Required: 2 s, with a ping that hangs and the wait for the next."""
    assert relay.HELD_SILENCE_S + relay.HELD_PING_LIMIT_S < 2
    assert 2 * relay.HELD_PING_S < relay.HELD_SILENCE_S


async def test_unknown_message_ends_the_stream_with_a_reason(stage: Scene) -> None:
    """The issue: unknown types close, never pass; nor does what follows."""
    await stage.enter()
    stage.relay.control_changed(ANN)
    stage.viewer.say(b"\xfa" + PRESS_A * 20)

    ending = await stage.end()
    assert (ending.code, ending.reason) == (1002, "the viewer sent a message of unknown type 250")
    assert bytes(stage.desk.heard) == b""


async def test_the_first_end_ends_the_other(stage: Scene) -> None:
    """The issue: the first end closes the other with a reason, after the last byte."""
    await stage.enter()
    writer = await stage.desk.writers.get()
    writer.write(b"x" * 300_000)
    writer.close()

    assert await stage.end() == DESKTOP_LEFT
    assert len(stage.viewer.got) == len(WELCOME) + 300_000


async def test_viewer_that_gives_up_greeting_never_reaches_the_server(stage: Scene) -> None:
    """Measured: Xvnc counts unfinished handshakes, and then refuses everybody."""
    stage.viewer.say(b"RFB 003")
    stage.viewer.leave()

    assert await stage.end() == VIEWER_LEFT
    async with asyncio.timeout(LIMIT_S):
        await stage.desk.ended.wait()


async def test_what_is_no_viewer_is_sent_away(stage: Scene) -> None:
    """Ours: a browser that lost its way."""
    stage.viewer.say(b"GET / HTTP/1.1\r\n")

    assert (await stage.end()).code == 1002


async def test_slow_viewer_stops_the_desktop_s_sending(stage: Scene) -> None:
    """The issue: back-pressure; memory stays bounded while a viewer takes nothing, and its lag shows."""
    await stage.enter()
    writer = await stage.desk.writers.get()
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
    stage.viewer.room.clear()
    writer.write(b"x" * 4_000_000)
    async with asyncio.timeout(LIMIT_S):
        while stage.relay.waiting_since is None:  # noqa: ASYNC110 -- a figure, not an event
            await asyncio.sleep(0.01)
    held_back = writer.transport.get_write_buffer_size()  # type: ignore[attr-defined]  # a write transport
    stage.viewer.room.set()
    await stage.viewer.wait_got(len(WELCOME) + 4_000_000)

    assert held_back > 3_000_000
    assert stage.relay.waiting_since is None
    assert stage.relay.sent_bytes == len(WELCOME) + 4_000_000


async def test_server_that_says_no_or_nothing_is_told(tmp_path: Path) -> None:
    """Ours: typed errors before anything is promised to a viewer; the connection is closed."""
    greetings = [
        (b"RFB 003.008\n" + b"\x00" + struct.pack(">I", 4) + b"full", DisplayLost),
        (b"", DisplayLost),
        (b"220 mail.example ESMTP\r\n", RfbProtocolError),
    ]
    for number, (greeting, error) in enumerate(greetings):
        ended = asyncio.Event()

        async def serve(
            reader: asyncio.StreamReader,
            writer: asyncio.StreamWriter,
            greeting: bytes = greeting,
            ended: asyncio.Event = ended,
        ) -> None:
            writer.write(greeting)
            if greeting:
                await reader.read()
            writer.close()
            await writer.wait_closed()
            ended.set()

        path = tmp_path / f"s{number}"
        async with await asyncio.start_unix_server(serve, path), asyncio.timeout(LIMIT_S):
            with pytest.raises(error):
                await greet(*await asyncio.open_unix_connection(path))
            await ended.wait()


async def test_server_s_own_name_and_size_reach_the_viewer(tmp_path: Path) -> None:
    """RFC 6143, 7.3.2: ServerInit is the desktop's, byte for byte."""
    async with open_desk(tmp_path) as (_, path):
        end = await connect(path)
        end.writer.close()

    assert WELCOME.endswith(end.init)


class _Feed:
    """A feed that is joined and never begun."""

    closed = 0

    def resume(self) -> None:
        """Nothing."""

    def close(self) -> None:
        """Count."""
        self.closed += 1


@pytest.mark.parametrize("ending", ["silent", "gone"])
async def test_server_that_does_not_say_the_word_ends_the_stream(
    stage: Scene, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a viewer never waits for ever between two sources."""
    monkeypatch.setattr(relay, "MARK_LIMIT_S", 0.2)
    await stage.enter()
    feed = _Feed()
    writer = await stage.desk.writers.get()
    writer.write(b"before")
    await stage.viewer.wait_got(len(WELCOME) + 6)
    stage.relay.join(cast("Feed", feed))
    if ending == "gone":
        writer.close()

    assert await stage.end() == DESKTOP_LEFT
    assert bytes(stage.viewer.got) == WELCOME + b"before"
    assert feed.closed >= 1
