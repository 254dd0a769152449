"""Desktop streams that the daemon dials back."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import WSCloseCode, WSMsgType, web

from agentd.app import Daemon
from agentd.settings import AgentdSettings
from agentd.streams import serve_stream
from agentd.wire.link import STREAMS_OPEN, Empty, StreamOpenParams
from agentd.wire.peer import RpcError
from tests.integration.agentd.control_plane import LIMIT_S, TOKEN, ControlPlane, LiveLink, control_plane

GREETING = b"RFB 003.008\n"


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


async def _open(plane: ControlPlane, link: LiveLink, name: str) -> web.WebSocketResponse:
    async with asyncio.timeout(LIMIT_S):
        await link.peer.call(STREAMS_OPEN, StreamOpenParams(stream_id=name), Empty, timeout_s=LIMIT_S)
        stream_id, websocket = await plane.streams.get()
    assert stream_id == name
    return websocket


async def _read(websocket: web.WebSocketResponse, count: int) -> bytes:
    data = b""
    while len(data) < count:
        data += await websocket.receive_bytes()
    return data


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


async def test_streams_end_with_their_desktop(plane: ControlPlane, daemon: Daemon) -> None:
    """Ours: the viewer is told, and the link lives on."""
    link = await plane.links.get()
    websockets = [await _open(plane, link, name) for name in ("one", "two")]
    async with asyncio.timeout(LIMIT_S):
        for websocket in websockets:
            await _read(websocket, 12)
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


class Desk:
    """A desktop that is only a socket; remembers what it hears."""

    def __init__(self) -> None:
        self.heard = asyncio.Queue[bytes]()
        self.writers = asyncio.Queue[asyncio.StreamWriter]()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Greet and listen."""
        writer.write(GREETING)
        self.writers.put_nowait(writer)
        while data := await reader.read(1 << 16):
            self.heard.put_nowait(data)
        self.heard.put_nowait(b"")
        writer.close()


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[tuple[Desk, str]]:
    """A desk that listens, and where."""
    desk, path = Desk(), str(tmp_path / "desk.sock")
    server = await asyncio.start_unix_server(desk.serve, path)
    yield desk, path
    server.close()
    await server.wait_closed()


async def _serve(plane: ControlPlane, path: str) -> asyncio.Task[None]:
    reader, writer = await asyncio.open_unix_connection(path)
    url = plane.url.replace("http", "ws", 1) + "api/agent/streams/s"
    return asyncio.create_task(serve_stream(url, {"Authorization": f"Bearer {TOKEN}"}, reader, writer))


async def test_viewer_that_leaves_closes_the_desktop_end(plane: ControlPlane, desk: tuple[Desk, str]) -> None:
    """Ours: whichever side ends, both are closed."""
    stream = await _serve(plane, desk[1])
    async with asyncio.timeout(LIMIT_S):
        _, websocket = await plane.streams.get()
        assert await _read(websocket, 12) == GREETING
        await websocket.send_bytes(b"hello")
        assert await desk[0].heard.get() == b"hello"
        await websocket.close(code=WSCloseCode.GOING_AWAY)
        await stream

        assert await desk[0].heard.get() == b""


async def test_desktop_that_ends_closes_the_viewer_end(plane: ControlPlane, desk: tuple[Desk, str]) -> None:
    """Ours: after the last byte has passed."""
    stream = await _serve(plane, desk[1])
    async with asyncio.timeout(LIMIT_S):
        _, websocket = await plane.streams.get()
        writer = await desk[0].writers.get()
        writer.write(b"x" * 1_000_000)
        await writer.drain()
        writer.close()
        data = await _read(websocket, 1_000_012)
        end = await websocket.receive()
        await stream

    assert data == GREETING + b"x" * 1_000_000
    assert end.type is WSMsgType.CLOSE


async def test_control_plane_that_refuses_the_stream_frees_the_desktop(
    plane: ControlPlane, desk: tuple[Desk, str]
) -> None:
    """Ours: an unanswered dial leaves no viewer at the desktop."""
    reader, writer = await asyncio.open_unix_connection(desk[1])
    async with asyncio.timeout(LIMIT_S):
        await serve_stream(plane.url.replace("http", "ws", 1) + "nowhere", {}, reader, writer)

        assert await desk[0].heard.get() == b""


async def test_cancelled_stream_closes_both_ends(plane: ControlPlane, desk: tuple[Desk, str]) -> None:
    """Cancellation: both sides are closed."""
    stream = await _serve(plane, desk[1])
    async with asyncio.timeout(LIMIT_S):
        _, websocket = await plane.streams.get()
        await _read(websocket, 12)
        stream.cancel()
        end, _ = await asyncio.gather(websocket.receive(), asyncio.wait({stream}))

        assert end.type is WSMsgType.CLOSE
        assert await desk[0].heard.get() == b""
    assert stream.cancelled()
