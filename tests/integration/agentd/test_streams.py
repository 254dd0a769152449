"""Desktop streams that the daemon dials back."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from aiohttp import (
    ClientSession,
    ClientWebSocketResponse,
    UnixConnector,
    WSMsgType,
    WSServerHandshakeError,
    web,
)

from agentd import streams
from agentd.app import Daemon
from agentd.errors import NotFound
from agentd.settings import AgentdSettings
from agentd.wire.content import ImageContent, ToolResult
from agentd.wire.control import ControlParams, ControlState, ViewerGrant
from agentd.wire.link import (
    DESKTOP_CONTROL,
    STREAMS_OPEN,
    TOOLS_CALL,
    Empty,
    StreamOpenParams,
    ToolCallParams,
)
from agentd.wire.peer import RpcError
from computer.wire import ComputerCall, Held, ScreenshotAction
from tests.integration.agentd.control_plane import LIMIT_S, TOKEN, ControlPlane, LiveLink, control_plane
from tests.support.cluster.proxy import CutProxy

GREETING = b"RFB 003.008\n"
# Version, security "none", ClientInit.
HELLO = GREETING + b"\x01\x01"
PRESS_SHIFT = struct.pack(">BBxxI", 4, 1, 0xFFE1)
HOLD_BUTTON = struct.pack(">BBHH", 5, 1, 300, 200)


@pytest.fixture
async def plane() -> AsyncIterator[ControlPlane]:
    """A control plane."""
    async with control_plane() as plane:
        yield plane


@pytest.fixture
async def daemon(plane: ControlPlane, runtime_dir: Path) -> AsyncIterator[Daemon]:
    """A whole daemon that is linked."""
    settings = AgentdSettings(
        runtime_dir=runtime_dir, desktop_backend="xvnc", control_url=plane.url, agent_token=TOKEN
    )
    daemon = Daemon(settings)
    await daemon.start()
    yield daemon
    await daemon.stop()


async def _open(
    plane: ControlPlane, link: LiveLink, name: str, *, may: Literal["view", "control", "take"] = "control"
) -> web.WebSocketResponse:
    params = StreamOpenParams(stream_id=name, viewer=ViewerGrant(seat=name, name=name.title(), may=may))
    async with asyncio.timeout(LIMIT_S):
        await link.peer.call(STREAMS_OPEN, params, Empty, timeout_s=LIMIT_S)
        stream_id, websocket = await plane.streams.get()
    assert stream_id == name
    return websocket


Socket = web.WebSocketResponse | ClientWebSocketResponse


async def _read(websocket: Socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        data += await websocket.receive_bytes()
    return data


async def _greet(websocket: Socket) -> None:
    """Until the viewer has the screen's size."""
    await websocket.send_bytes(HELLO)
    await _read(websocket, 12 + 2 + 4 + 24)


async def _set_control(link: LiveLink, wish: Literal["take", "give_back"], seat: str) -> ControlState:
    params = ControlParams(wish=wish, seat=seat, name=seat.title())
    return await link.peer.call(DESKTOP_CONTROL, params, ControlState, timeout_s=LIMIT_S)


async def _computer(link: LiveLink, call_id: str, *actions: dict[str, Any]) -> ToolResult:
    params = ToolCallParams(
        call_id=call_id, name="computer", arguments={"actions": list(actions)}, chat_id="chat"
    )
    return await link.peer.call(TOOLS_CALL, params, ToolResult, timeout_s=LIMIT_S)


async def _held(daemon: Daemon) -> Held:
    """What the X server says is down."""
    result = await daemon.desktops.get().perform(ComputerCall(actions=(ScreenshotAction(),)))
    assert result.held is not None
    return result.held


async def _until_held(daemon: Daemon, expected: Held) -> None:
    async with asyncio.timeout(LIMIT_S):
        while await _held(daemon) != expected:  # noqa: ASYNC110 -- the truth is outside: it can only be asked
            await asyncio.sleep(0.02)


async def test_no_input_outlives_a_connection_that_swallows_everything(
    plane: ControlPlane, runtime_dir: Path
) -> None:
    """Required: released within 2 s, though no end is told; control stays, for it may be a slow link."""
    proxy = CutProxy(urlsplit(plane.url).port or 0)
    await proxy.start()
    settings = AgentdSettings(
        runtime_dir=runtime_dir,
        desktop_backend="xvnc",
        control_url=f"http://127.0.0.1:{proxy.port}/base/",
        agent_token=TOKEN,
    )
    daemon = Daemon(settings)
    await daemon.start()
    link = await plane.links.get()
    websocket = await _open(plane, link, "ann")
    await _greet(websocket)
    await _set_control(link, "take", "ann")
    async with _answering(websocket):
        await websocket.send_bytes(PRESS_SHIFT + HOLD_BUTTON)
        await _until_held(daemon, Held(keys=("Shift_L",), buttons=(1,)))
        proxy.hole()
        await _until_held(daemon, Held())
    holder, figures = daemon.control.state("main").seat, daemon.viewers.figures()
    await daemon.stop()
    await proxy.close()

    assert holder == "ann"
    assert [row.seat for row in figures] == ["ann"]


@asynccontextmanager
async def _answering(websocket: Socket) -> AsyncIterator[None]:
    """Read what comes, so that pings are answered."""

    async def read() -> None:
        while (await websocket.receive()).type is WSMsgType.BINARY:
            pass

    reading = asyncio.create_task(read())
    yield
    reading.cancel()
    await asyncio.wait({reading})


@pytest.mark.parametrize("way", ["drops", "gives back", "loses it"])
async def test_no_input_outlives_control(plane: ControlPlane, daemon: Daemon, way: str) -> None:
    """The issue: keys and buttons are released; the X server itself says so."""
    link = await plane.links.get()
    websocket = await _open(plane, link, "ann")
    await _greet(websocket)
    await _set_control(link, "take", "ann")
    async with _answering(websocket):
        await websocket.send_bytes(PRESS_SHIFT + HOLD_BUTTON)
        await _until_held(daemon, Held(keys=("Shift_L",), buttons=(1,)))
    if way == "drops":
        assert websocket._req is not None
        assert websocket._req.transport is not None
        websocket._req.transport.abort()
    elif way == "gives back":
        await _set_control(link, "give_back", "ann")
    else:
        daemon.control._change("main", daemon.control._desks["main"].lease.expire(1e12, 1))

    await _until_held(daemon, Held())


async def test_one_lease_for_the_agent_and_everybody(plane: ControlPlane, daemon: Daemon) -> None:
    """The issue: a person takes over; the agent is told so with a picture; hand-back gives it a fresh one."""
    click = {"action": "left_click", "coordinate": [5, 5]}
    link = await plane.links.get()
    ann, bob = await _open(plane, link, "ann"), await _open(plane, link, "bob")
    await _greet(ann)
    await _greet(bob)
    before = await _computer(link, "1", click)
    taken = await _set_control(link, "take", "ann")
    with pytest.raises(RpcError, match="Ann has control") as refused:
        await _set_control(link, "take", "bob")
    await bob.send_bytes(PRESS_SHIFT)
    during = await _computer(link, "2", click)
    held = await _held(daemon)
    await _set_control(link, "give_back", "ann")
    after = [await _computer(link, call_id, click) for call_id in ("3", "4")]

    codes = [(result.structured or {})["error_code"] for result in (before, during, *after)]
    assert codes == [None, "control_held", "control_changed", None]
    assert all(isinstance(result.content[-1], ImageContent) for result in (during, *after))
    assert (taken.seat, refused.value.code, held) == ("ann", "control_held", Held())
    assert [row.dropped["input"] for row in daemon.viewers.figures("main")] == [0, 1]


async def test_who_asks_for_control_when_connecting_gets_it_or_no_stream(
    plane: ControlPlane, daemon: Daemon
) -> None:
    """The issue: refusal, not queueing; `agentd vnc` has no button to take control with."""
    link = await plane.links.get()
    ann = await _open(plane, link, "ann", may="take")
    await _greet(ann)
    with pytest.raises(RpcError) as refused:
        await _open(plane, link, "bob", may="take")
    await _set_control(link, "give_back", "ann")
    await ann.send_bytes(PRESS_SHIFT)
    async with asyncio.timeout(LIMIT_S):
        while daemon.control.state("main").seat != "ann":  # noqa: ASYNC110 -- as above
            await asyncio.sleep(0.02)

    assert refused.value.code == "control_held"


async def test_each_viewer_has_figures_at_metrics(plane: ControlPlane, daemon: Daemon) -> None:
    """The issue: bytes, frames and lag of each viewer as metrics, which go with it."""
    websocket = await _open(plane, await plane.links.get(), "ann")
    await _greet(websocket)
    connector = UnixConnector(str(daemon.socket_path))
    async with asyncio.timeout(LIMIT_S), ClientSession(connector=connector) as client:

        async def read() -> str:
            async with client.get("http://agentd/metrics") as answer:
                assert answer.content_type == "text/plain"
                return await answer.text()

        during = await read()
        await websocket.close()
        while "agentd_viewer_sent_bytes_total{" in await read():  # noqa: ASYNC110 -- it can only be asked
            await asyncio.sleep(0.01)

    labels = '{desktop="main",may="control",viewer="1"}'
    for name in ("sent_bytes_total", "received_bytes_total", "frames_total", "lag_seconds"):
        assert f"agentd_viewer_{name}{labels}" in during
    assert 'agentd_viewer_dropped_total{desktop="main",may="control",viewer="1",what="input"} 0.0' in during
    assert 'agentd_desktop_running{desktop="main"} 1.0' in during


async def test_desktop_greets_through_the_websocket(plane: ControlPlane, daemon: Daemon) -> None:
    """RFC 6143, 7.1.1: bytes pass both ways unchanged; the desktop starts for its viewer."""
    link = await plane.links.get()
    websocket = await _open(plane, link, "view")
    async with asyncio.timeout(LIMIT_S):
        greeting = await _read(websocket, 12)
        await websocket.send_bytes(GREETING)
        security = await _read(websocket, 2)

    assert (greeting, security) == (GREETING, b"\x01\x01")
    assert daemon.desktops.get().status().state == "running"


async def test_streams_are_fetched_where_the_daemon_has_an_address(
    plane: ControlPlane, runtime_dir: Path
) -> None:
    """The issue: dial-in mode; the id works once, and nothing else is served there."""
    settings = AgentdSettings(
        runtime_dir=runtime_dir, desktop_backend="xvnc", control_url=plane.url, agent_token=TOKEN,
        stream_listen="127.0.0.1:0",
    )  # fmt: skip
    daemon = Daemon(settings)
    await daemon.start()
    try:
        link = await plane.links.get()
        url = f"{link.hello.streams_url}/api/agent/streams"
        params = StreamOpenParams(stream_id="one", is_fetched=True, viewer=ViewerGrant(seat="ann"))
        async with asyncio.timeout(LIMIT_S), ClientSession() as client:
            await link.peer.call(STREAMS_OPEN, params, Empty, timeout_s=LIMIT_S)
            async with client.get(f"{url}/one") as plain:
                assert plain.status == 400
            async with client.ws_connect(f"{url}/one", protocols=("binary",)) as stream:
                await _greet(stream)
                for name in ("one", "two"):
                    with pytest.raises(WSServerHandshakeError, match="404"):
                        await client.ws_connect(f"{url}/{name}")
                await daemon.desktops.get().stop()
                end = await stream.receive()
        assert (end.type, end.extra) == (WSMsgType.CLOSE, "the desktop ended the stream")
    finally:
        await daemon.stop()


async def test_stream_that_nobody_fetches_is_given_up(
    plane: ControlPlane, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a place that is not taken is free again; its id is worth nothing then."""
    monkeypatch.setattr(streams, "FETCH_LIMIT_S", 0.01)
    link = await plane.links.get()
    params = StreamOpenParams(stream_id="one", is_fetched=True, viewer=ViewerGrant(seat="ann"))
    await link.peer.call(STREAMS_OPEN, params, Empty, timeout_s=LIMIT_S)
    assert daemon.link is not None
    async with asyncio.timeout(LIMIT_S):
        while daemon.link.fetched._waiting:  # noqa: ASYNC110 -- a timer's work
            await asyncio.sleep(0.01)

    with pytest.raises(NotFound):
        daemon.link.fetched.take("one")


async def test_streams_end_with_their_desktop(plane: ControlPlane, daemon: Daemon) -> None:
    """Ours: the viewer is told, and the link lives on."""
    link = await plane.links.get()
    websockets = [await _open(plane, link, name) for name in ("one", "two")]
    async with asyncio.timeout(LIMIT_S):
        for websocket in websockets:
            await _greet(websocket)
        viewers = daemon.desktops.status().viewers
        await daemon.desktops.get().stop()
        ends = [(await websocket.receive()).type for websocket in websockets]

    assert ends == [WSMsgType.CLOSE, WSMsgType.CLOSE]
    assert viewers == 2
    assert not link.ended.is_set()


async def test_streams_end_with_the_daemon(plane: ControlPlane, daemon: Daemon) -> None:
    """Ours: nothing is left open."""
    websocket = await _open(plane, await plane.links.get(), "view")
    async with asyncio.timeout(LIMIT_S):
        await _read(websocket, 12)
        await asyncio.gather(daemon.stop(), websocket.receive())

    assert websocket.closed


async def test_desktop_that_does_not_come_up_is_told_with_its_word(
    plane: ControlPlane, daemon: Daemon, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Ours: the viewer reads what is missing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    link = await plane.links.get()
    with pytest.raises(RpcError, match="tigervnc-standalone-server") as caught:
        await _open(plane, link, "view")

    assert caught.value.code == "start_failed"
