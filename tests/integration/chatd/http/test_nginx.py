"""A desktop's stream through a real nginx: below a prefix, with a limit on silence."""

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
from aiohttp import WSMsgType, web
from aiohttp.test_utils import TestServer, unused_port

from agentd import link, streams
from agentd.app import Daemon
from agentd.settings import AgentdSettings
from chatd.agents.fetching import FetchedStreams
from chatd.outbound import LOOPBACK_NETWORKS, parse_outbound
from chatd.routes import viewing
from tests.integration.chatd.http.site import API, LIMIT_S, Site, bearer
from tests.peers import NGINX

# Seconds of silence after which this nginx cuts a connection, for the 60 that are usual; pings for theirs.
IDLE_S = 2
PING_S = 0.4
GREETING = b"RFB 003.008\n"
HELLO = GREETING + b"\x01\x01"
CONFIGURATION = """
daemon off; pid {home}/pid; error_log {home}/error.log;
events {{}}
http {{
  access_log off;
  client_body_temp_path {home}; proxy_temp_path {home}; fastcgi_temp_path {home};
  uwsgi_temp_path {home}; scgi_temp_path {home};
  proxy_http_version 1.1;
  proxy_set_header Upgrade $http_upgrade;
  proxy_set_header Connection upgrade;
  proxy_set_header Host $http_host;
  proxy_read_timeout {idle}s;
  server {{
    listen 127.0.0.1:{port};
    location /team/box/ {{ proxy_pass {site}/; }}
    location /fetched/ {{ proxy_pass http://127.0.0.1:{streams}/; }}
    location /silent {{ proxy_pass {silent}; }}
  }}
}}
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory with a path short enough for sockets, which nginx may read."""
    directory = Path(tempfile.mkdtemp(prefix="ngx-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@asynccontextmanager
async def silent_server() -> AsyncIterator[TestServer]:
    """What says nothing over a WebSocket, for comparison."""

    async def serve(request: web.Request) -> web.WebSocketResponse:
        websocket = web.WebSocketResponse()
        await websocket.prepare(request)
        await websocket.receive()
        return websocket

    app = web.Application()
    app.router.add_get("/silent", serve)
    async with TestServer(app) as server:
        yield server


@asynccontextmanager
async def nginx(home: Path, site: str, silent: str, streams: int) -> AsyncIterator[str]:
    """An nginx before the three; its address."""
    port = unused_port()
    text = CONFIGURATION.format(
        home=home, idle=IDLE_S, port=port, site=site, silent=silent.rstrip("/"), streams=streams
    )
    (home / "nginx.conf").write_text(text)
    argv = [NGINX, "-p", str(home), "-c", str(home / "nginx.conf"), "-e", str(home / "error.log")]
    process = subprocess.Popen(argv)  # noqa: ASYNC220 -- as quick as any
    try:
        async with asyncio.timeout(LIMIT_S):
            while True:
                with suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait, LIMIT_S)


async def until_cut(http: aiohttp.ClientSession, url: str) -> None:
    """As long as nginx bears silence."""
    async with http.ws_connect(url) as silent:
        message = await silent.receive()
        assert message.type in (WSMsgType.CLOSE, WSMsgType.CLOSED, WSMsgType.ERROR)


async def read(viewer: aiohttp.ClientWebSocketResponse, count: int) -> bytes:
    """So many bytes."""
    data = b""
    while len(data) < count:
        data += await viewer.receive_bytes()
    return data


@pytest.mark.parametrize("is_fetched", [False, True], ids=["dialled back", "fetched"])
async def test_still_desktop_stays_connected_behind_a_proxy_that_cuts_silence(
    site: Site, home: Path, monkeypatch: pytest.MonkeyPatch, is_fetched: bool
) -> None:
    """BUGS 52, and the issue: pings, and a URL prefix, for the viewer and for the workspace."""
    for module, name in ((link, "PING_INTERVAL_S"), (streams, "PING_INTERVAL_S"), (viewing, "PING_S")):
        monkeypatch.setattr(module, name, PING_S)
    monkeypatch.setattr(
        site.plane.services.directory,
        "_fetched",
        FetchedStreams(parse_outbound(LOOPBACK_NETWORKS)) if is_fetched else None,
    )
    port = unused_port()
    async with (
        asyncio.timeout(2 * LIMIT_S),
        silent_server() as silent,
        nginx(home, site.plane.url, str(silent.make_url("/")), port) as proxy,
        aiohttp.ClientSession() as http,
    ):
        settings = AgentdSettings(
            runtime_dir=home / "run", data_dir=home / "data", working_dir=home, desktop_backend="xvnc",
            control_url=f"{proxy}/team/box", agent_token=site.tokens["agent"],
            stream_listen=f"127.0.0.1:{port}" if is_fetched else None, stream_url=f"{proxy}/fetched",
        )  # fmt: skip
        daemon = Daemon(settings)
        await daemon.start()
        try:
            assert daemon.link is not None
            await daemon.link.connected.wait()
            chat_id = await site.new_chat(who="owner")
            url = f"{proxy}/team/box{API}/chats/{chat_id}/desktop"
            async with http.ws_connect(url, headers=bearer(site.tokens["owner"])) as viewer:
                await viewer.send_bytes(HELLO)
                await read(viewer, 12 + 2 + 4 + 24)
                # Pings are answered while reading.
                reading = asyncio.create_task(viewer.receive())
                for _ in range(2):
                    await until_cut(http, f"{proxy}/silent")
                assert not reading.done()
                await viewer.send_bytes(b"\x03\x00" + bytes(4) + b"\x00\x08\x00\x08")
                assert (await reading).type is WSMsgType.BINARY
        finally:
            await daemon.stop()
