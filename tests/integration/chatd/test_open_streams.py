"""Stopping a server whose streams never end by themselves."""

import asyncio
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import WSMsgType, web

from chatd.routes.open_streams import end_streams, track_streams

# Seconds. Below every grace that aiohttp would wait otherwise.
LIMIT_S = 10
NEVER_S = 60.0


async def _websocket(request: web.Request) -> web.WebSocketResponse:
    websocket = web.WebSocketResponse()
    await websocket.prepare(request)
    try:
        async for _ in websocket:
            pass
    finally:
        await websocket.close()
    return websocket


async def _events(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    await response.write(b": hello\n\n")
    await asyncio.Event().wait()
    return response


async def _plain(_: web.Request) -> web.Response:
    return web.Response(text="done")


@pytest.fixture
async def app() -> AsyncIterator[tuple[web.Application, web.AppRunner, str]]:
    """A server with both kinds of streams and a plain route."""
    app = web.Application()
    app.add_routes([web.get("/ws", _websocket), web.get("/sse", _events), web.get("/plain", _plain)])
    track_streams(app)
    runner = web.AppRunner(app, shutdown_timeout=NEVER_S)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield app, runner, f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_streams_end_at_once_and_websockets_with_a_handshake(
    app: tuple[web.Application, web.AppRunner, str],
) -> None:
    """Ours: nothing is left for aiohttp's own shutdown to wait for."""
    application, runner, url = app
    async with (
        asyncio.timeout(LIMIT_S),
        aiohttp.ClientSession(url) as client,
        client.ws_connect("/ws") as websocket,
        client.get("/sse") as events,
    ):
        first = await events.content.readline()
        end = asyncio.ensure_future(websocket.receive())
        await end_streams(application, LIMIT_S)
        with pytest.raises(aiohttp.ClientPayloadError):
            await events.content.read()
        await runner.cleanup()

    assert first == b": hello\n"
    assert (await end).type is WSMsgType.CLOSE
    assert websocket.close_code == aiohttp.WSCloseCode.OK


async def test_peer_that_does_not_answer_is_not_waited_for(
    app: tuple[web.Application, web.AppRunner, str],
) -> None:
    """Ours: a browser that sleeps holds nothing up."""
    application, _, url = app
    async with asyncio.timeout(LIMIT_S), aiohttp.ClientSession(url) as client:
        websocket = await client.ws_connect("/ws", autoclose=False)
        await end_streams(application, 0.01)
        await websocket.close()


async def test_answered_requests_are_not_touched(
    app: tuple[web.Application, web.AppRunner, str],
) -> None:
    """Ours: only streams are ended."""
    application, _, url = app
    async with asyncio.timeout(LIMIT_S), aiohttp.ClientSession(url) as client:
        async with client.get("/plain") as response:
            assert await response.text() == "done"
        await end_streams(application, LIMIT_S)
        async with client.get("/plain") as response:
            assert await response.text() == "done"
