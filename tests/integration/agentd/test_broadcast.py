"""One encoder for all who only watch, on a real X server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import numpy as np
import pytest
from aiohttp import ClientSession, ClientWebSocketResponse, UnixConnector, WSMsgType, web
from aiohttp.test_utils import TestServer

from agentd.app import Daemon
from agentd.lease import Party
from agentd.settings import AgentdSettings
from agentd.streams import accept
from agentd.wire.control import ViewerGrant
from computer.display.x11 import paint_root
from computer.geometry import Rect
from computer.keys import Keysym
from computer.rfb.client import RfbClient
from computer.rfb.messages import (
    Event,
    Updated,
    render_continuous_updates,
    render_encodings,
    render_key,
    render_update_request,
)
from computer.wire import ComputerCall, Held
from tests.bench.vnc.viewers import Viewer, WebSocketWire
from tests.bench.vnc.viewers import run as run_viewer
from tests.integration.agentd.control_plane import LIMIT_S

RED, BLUE = 0xFF0000, 0x0000FF
# Each another: what comes to the same as before is no update.
COLOURS = (RED, BLUE, 0x00FF00)
SHIFT = 0xFFE1
# As an encoding.
CONTINUOUS_UPDATES = -313


@pytest.fixture
async def daemon(runtime_dir: Path, request: pytest.FixtureRequest) -> AsyncIterator[Daemon]:
    """A daemon whose watchers share one encoder from the first on, or the one that is the parameter."""
    daemon = Daemon(
        AgentdSettings(
            runtime_dir=runtime_dir, desktop_backend="xvnc", desktop_width=400, desktop_height=300,
            broadcast_from=getattr(request, "param", 1),
        )
    )  # fmt: skip
    await daemon.start()
    yield daemon
    await daemon.stop()


class Watcher:
    """A viewer that knows no more than raw pixels, so that what it shows is exact."""

    def __init__(self, websocket: ClientWebSocketResponse) -> None:
        self.websocket = websocket
        self.rfb = RfbClient()

    async def start(self) -> None:
        """See the screen for the first time."""
        while self.rfb.size is None:
            await self._read()
        await self.update(is_incremental=False)

    async def update(self, *, is_incremental: bool = True) -> None:
        """Ask for what is new, or for all, and wait for it."""
        whole = Rect(left=0, top=0, right=400, bottom=300)
        self.rfb.send(render_update_request(whole, incremental=is_incremental))
        await self.read_update()

    async def read_update(self) -> None:
        """Wait for a picture."""
        while not any(isinstance(event, Updated) for event in await self._read()):
            pass

    async def _read(self) -> list[Event]:
        if data := self.rfb.data_to_send():
            await self.websocket.send_bytes(data)
        message = await self.websocket.receive()
        assert message.type is WSMsgType.BINARY, message
        events = list(self.rfb.receive(message.data))
        if data := self.rfb.data_to_send():
            await self.websocket.send_bytes(data)
        return events

    def colour(self) -> int:
        """Of the corner, where nothing else is."""
        blue, green, red = (int(value) for value in self.rfb.framebuffer[290, 390, :3])
        return red << 16 | green << 8 | blue

    async def until(self, colour: int) -> None:
        """Watch until the corner has it."""
        while self.colour() != colour:
            await self.update()


class Stage:
    """Watchers of one daemon."""

    def __init__(self, daemon: Daemon, stack: AsyncExitStack, client: ClientSession) -> None:
        self.daemon, self._stack, self._client = daemon, stack, client

    async def watcher(self, query: str = "view_only=true") -> Watcher:
        """One more, who has seen the screen once."""
        url = f"ws://agentd/api/v0/desktop/main/vnc?{query}"
        made = Watcher(await self._stack.enter_async_context(self._client.ws_connect(url)))
        await made.start()
        return made

    async def paint(self, colour: int) -> None:
        """Change the whole screen."""
        await asyncio.to_thread(paint_root, *await self.daemon.desktops.get().x_server(), colour)

    def sources(self) -> list[str]:
        """Where each watcher's pictures come from."""
        return [row.source for row in self.daemon.viewers.figures()]


@pytest.fixture
async def stage(daemon: Daemon) -> AsyncIterator[Stage]:
    """A desktop, and room for watchers."""
    connector = UnixConnector(str(daemon.socket_path), limit=0)
    async with (
        asyncio.timeout(2 * LIMIT_S),
        ClientSession(connector=connector) as client,
        AsyncExitStack() as stack,
    ):
        yield Stage(daemon, stack, client)


async def test_all_see_the_same_screen_each_at_its_own_pace(stage: Stage) -> None:
    """The issue: one encoder, late joiners served a full frame, who stalls holds up nobody."""
    quick, stalled = await stage.watcher(), await stage.watcher()
    for colour in (RED, BLUE):
        await stage.paint(colour)
        await quick.until(colour)
    late = await stage.watcher()
    look = ComputerCall.model_validate({"actions": [{"action": "mouse_move", "coordinate": [30, 40]}]})
    await stage.daemon.desktops.get().perform(look)
    while (
        not np.array_equal(quick.rfb.framebuffer, late.rfb.framebuffer)
        or quick.rfb.framebuffer[40, 30, 0] == 255
    ):
        for watcher in (quick, late):
            await asyncio.wait_for(watcher.update(), LIMIT_S)
    before = stalled.colour()
    await stalled.until(BLUE)

    assert stage.sources() == ["broadcast"] * 3
    assert late.colour() == BLUE
    assert before not in (RED, BLUE)


async def test_who_takes_control_goes_on_at_the_server(stage: Stage) -> None:
    """Ours: the same connection, from the broadcast to the server's own stream, and input gets through."""
    daemon = stage.daemon
    seat = "ann"
    grant = ViewerGrant(seat=seat, may="control")

    async def serve(request: web.Request) -> web.WebSocketResponse:
        return await accept(request, daemon.viewers, await daemon.viewers.admit("main", grant))

    app = web.Application()
    app.router.add_get("/", serve)
    async with (
        TestServer(app) as server,
        ClientSession() as client,
        client.ws_connect(server.make_url("/")) as websocket,
    ):
        ann = Watcher(websocket)
        await ann.start()
        before = stage.sources()
        await daemon.control.take("main", Party(seat=seat, name="Ann"))
        await ann.read_update()
        ann.rfb.send(render_key(Keysym(SHIFT), down=True))
        await stage.paint(RED)
        await ann.until(RED)
        while await _held(daemon) != Held(keys=("Shift_L",)):  # noqa: ASYNC110 -- it can only be asked
            await asyncio.sleep(0.02)
        during = stage.sources()

        await daemon.control.give_back("main", seat)
        for colour in (BLUE, RED, BLUE):
            await stage.paint(colour)
            await ann.until(colour)
        after = stage.sources()

        await daemon.control.take("main", Party(seat=seat, name="Ann"))
        await stage.paint(RED)
        await ann.until(RED)
        again = stage.sources()

    assert (before, during, after, again) == (["broadcast"], ["server"], ["broadcast"], ["server"])


@pytest.mark.parametrize("daemon", [3], indirect=True)
@pytest.mark.parametrize("is_continuous", [False, True], ids=["asking", "continuous"])
async def test_the_first_share_the_encoder_too_once_there_is_a_crowd(
    stage: Stage, *, is_continuous: bool
) -> None:
    """The issue: the shared encoder feeds all who only watch; their connections go on."""
    watchers = [await stage.watcher(), await stage.watcher()]
    for watcher in watchers:
        if is_continuous:
            whole = Rect(left=0, top=0, right=400, bottom=300)
            known = (*watcher.rfb._encodings, CONTINUOUS_UPDATES)
            watcher.rfb.send(render_encodings(known) + render_continuous_updates(whole, enabled=True))
        await watcher.update()
    before = stage.sources()
    late = await stage.watcher()
    while stage.sources() != ["broadcast"] * 3:  # noqa: ASYNC110 -- it can only be asked
        await asyncio.sleep(0.01)
    for colour in (RED, BLUE):
        await stage.paint(colour)
        for watcher in (*watchers, late):
            while watcher.colour() != colour:
                await (watcher.read_update() if is_continuous and watcher is not late else watcher.update())

    assert before == ["server"] * 2
    assert stage.sources() == ["broadcast"] * 3
    assert np.array_equal(watchers[0].rfb.framebuffer, late.rfb.framebuffer)


@pytest.mark.parametrize("daemon", [2], indirect=True)
async def test_frames_of_who_gets_them_unasked_are_counted(stage: Stage) -> None:
    """The issue: figures of each viewer, also with noVNC's settings; at the server and in a broadcast."""
    url = "ws://agentd/api/v0/desktop/main/vnc?view_only=true"
    async with stage._client.ws_connect(url) as websocket:
        viewer = Viewer()
        running = asyncio.create_task(run_viewer(viewer, WebSocketWire(websocket)))
        while not viewer.is_live or not _frames(stage):  # noqa: ASYNC110 -- nothing tells
            await asyncio.sleep(0.01)
        await _paint_for(stage, viewer)
        # One that is on its way while the viewer goes over to updates unasked may count twice, or not.
        while abs(viewer.updates - _frames(stage)) > 1:  # noqa: ASYNC110 -- the last answer is on its way
            await asyncio.sleep(0.01)
        at_server = _frames(stage)

        await stage.watcher()
        while stage.sources() != ["broadcast"] * 2:  # noqa: ASYNC110 -- it can only be asked
            await asyncio.sleep(0.01)
        await _paint_for(stage, viewer)
        # Its size and no pointer are updates as well, of which nothing is told.
        while abs(viewer.updates - 2 - _frames(stage)) > 1:  # noqa: ASYNC110 -- as above
            await asyncio.sleep(0.01)
        in_all = _frames(stage)
        running.cancel()

    assert at_server >= len(COLOURS)
    assert in_all >= at_server + len(COLOURS) - 1


async def _paint_for(stage: Stage, viewer: Viewer) -> None:
    """Change the whole screen, each time once *viewer* has seen the last change."""
    for colour in COLOURS:
        shown = viewer.updates
        await stage.paint(colour)
        while viewer.updates == shown:  # noqa: ASYNC110 -- nothing tells
            await asyncio.sleep(0.01)


def _frames(stage: Stage) -> int:
    """What the first viewer has taken in."""
    return stage.daemon.viewers.figures()[0].frames or 0


async def _held(daemon: Daemon) -> Held | None:
    look = ComputerCall.model_validate({"actions": [{"action": "screenshot"}]})
    return (await daemon.desktops.get().perform(look)).held


async def test_broadcast_ends_with_its_last_watcher_and_with_its_desktop(stage: Stage) -> None:
    """Ours: no thread is left that looks at a screen for nobody."""
    broadcasts = stage.daemon.viewers._broadcasts
    first, second = await stage.watcher(), await stage.watcher()
    await first.websocket.close()
    during = len(broadcasts._live)
    await stage.daemon.desktops.get().stop()
    end = await second.websocket.receive()
    while broadcasts._live or broadcasts._ending:  # noqa: ASYNC110 -- a thread's end
        await asyncio.sleep(0.01)

    assert during == 1
    assert (end.type, end.extra) == (WSMsgType.CLOSE, "the desktop ended the stream")


async def test_clipboard_of_the_desktop_does_not_pile_up(stage: Stage) -> None:
    """Ours: a watcher of a broadcast is told nothing of it, and the server keeps nothing for it."""
    watcher = await stage.watcher()
    for number in range(20):
        text = {"action": "set_clipboard", "text": f"{number}" * 50_000}
        await stage.daemon.desktops.get().perform(ComputerCall.model_validate({"actions": [text]}))
    await stage.paint(RED)
    await watcher.until(RED)

    (row,) = stage.daemon.viewers.figures()
    assert row.source == "broadcast"
    assert row.sent_bytes < 20 * 400 * 300 * 4


async def test_screen_that_changes_its_size_is_followed(stage: Stage) -> None:
    """Ours: RandR while somebody watches."""
    watcher = await stage.watcher()
    await stage.daemon.desktops.get().resize_screen(500, 350)
    while watcher.rfb.size is None or watcher.rfb.size.width != 500:
        await watcher.update()
    await stage.paint(BLUE)
    await watcher.until(BLUE)

    assert watcher.rfb.framebuffer.shape == (350, 500, 4)
