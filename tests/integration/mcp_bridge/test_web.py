"""Servers over HTTP that point elsewhere, refuse, break off or forget us."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from mcp_bridge.bridge import Bridge
from mcp_bridge.errors import BridgeError
from mcp_bridge.wire import ServerStatus
from tests.integration.mcp_bridge.setting import config, text_of

Handle = Callable[[web.Request], Awaitable[web.StreamResponse]]
SECRET = "Bearer planted-secret"
# Seconds in which a cause must be told; without one it is the limit of a connect, 30 s.
PROMPT_S = 10


@asynccontextmanager
async def _listening(handle: Handle) -> AsyncIterator[str]:
    """An origin at which *handle* answers everything."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.fixture
async def stage() -> AsyncIterator[AsyncExitStack]:
    """Servers that end with the test."""
    async with AsyncExitStack() as stack:
        yield stack


async def _connect(bridge: Bridge, transport: str, url: str) -> ServerStatus:
    entry = {"type": transport, "url": url, "headers": {"Authorization": SECRET}}
    async with asyncio.timeout(PROMPT_S):
        await bridge.apply(config({"far": entry}))
    return bridge.statuses()[0]


async def _events(request: web.Request, *lines: str) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    await response.write("".join(lines).encode())
    return response


class Stranger:
    """Another origin, which must see no header of ours."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Note who came."""
        self.seen.append(f"{request.method} {request.headers.get('Authorization')}")
        return web.json_response({})


@pytest.mark.parametrize("status", [302, 307, 308])
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_redirect_to_another_origin_is_refused_by_name(
    bridge: Bridge, stage: AsyncExitStack, transport: str, status: int
) -> None:
    """Required: headers are locked to their origin."""
    stranger = Stranger()
    elsewhere = await stage.enter_async_context(_listening(stranger.answer))

    async def redirect(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, headers={"Location": f"{elsewhere}/mcp"})

    home = await stage.enter_async_context(_listening(redirect))
    told = await _connect(bridge, transport, f"{home}/mcp")

    assert told.state == "failed"
    assert elsewhere in (told.last_error or "")
    assert stranger.seen == []


async def test_an_endpoint_at_another_origin_is_refused_by_name(
    bridge: Bridge, stage: AsyncExitStack
) -> None:
    """A server of events that wants the messages, with our headers, elsewhere: told at once."""
    stranger = Stranger()
    elsewhere = await stage.enter_async_context(_listening(stranger.answer))

    async def point(request: web.Request) -> web.StreamResponse:
        response = await _events(request, f"event: endpoint\ndata: {elsewhere}/messages\n\n")
        await asyncio.sleep(60)
        return response

    told = await _connect(bridge, "sse", await stage.enter_async_context(_listening(point)) + "/sse")

    assert told.state == "failed"
    assert elsewhere in (told.last_error or "")
    assert stranger.seen == []


@pytest.mark.parametrize(
    ("transport", "status", "word"),
    [
        ("http", 401, "401 Unauthorized"),
        ("http", 503, "503 Service Unavailable"),
        ("sse", 401, "401 Unauthorized"),
    ],
)
async def test_a_server_that_refuses_is_told_by_its_status(
    bridge: Bridge, stage: AsyncExitStack, transport: str, status: int, word: str
) -> None:
    """A token that is wrong, a service that is away."""

    async def refuse(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text=SECRET)

    told = await _connect(bridge, transport, await stage.enter_async_context(_listening(refuse)) + "/x")

    assert told.state == "failed"
    assert word in (told.last_error or "")
    assert SECRET not in repr(told)


@pytest.mark.parametrize(
    ("first", "then", "word"),
    [
        ("event: endpoint\ndata: /post\n\n", "wait", "403 Forbidden"),
        (": hello\n\n", "end", "before it said where to post"),
        (": hello\n\n", "abort", "peer closed connection"),
        ("event: endpoint\ndata: /post\n\n", "abort", "broke"),
    ],
)
async def test_events_that_break_off_are_told_by_their_cause(
    bridge: Bridge, stage: AsyncExitStack, first: str, then: str, word: str
) -> None:
    """Not as silence, 30 s later: messages that are refused, a stream that ends or breaks."""
    posted = asyncio.Event()

    async def break_off(request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            posted.set()
            return web.Response(status=403 if then == "wait" else 202)
        response = await _events(request, first)
        if "endpoint" in first:
            await posted.wait()
        if then == "abort" and request.transport is not None:
            request.transport.abort()
        if then == "wait":
            await asyncio.sleep(60)
        return response

    told = await _connect(bridge, "sse", await stage.enter_async_context(_listening(break_off)) + "/sse")

    assert told.state == "failed"
    assert word in (told.last_error or "")


class Forgetful:
    """A server with sessions over HTTP; *on_call* may answer a call in its own way."""

    def __init__(self, on_call: Callable[[str], web.StreamResponse | None]) -> None:
        self.on_call = on_call
        self.heard: Counter[str] = Counter()
        self.ran: list[str] = []
        self.sessions: set[str] = set()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one message."""
        if request.method != "POST":
            return web.Response(status=405 if request.method == "GET" else 200)
        message = await request.json()
        method = message["method"]
        self.heard[method] += 1
        if method == "initialize":
            session = f"session-{self.heard[method]}"
            self.sessions.add(session)
            return self._answer(message, self._hello(), {"Mcp-Session-Id": session})
        if method == "server/discover":
            error = {"code": -32601, "message": "Method not found"}
            return web.json_response({"jsonrpc": "2.0", "id": message["id"], "error": error})
        if "id" not in message:
            return web.Response(status=202)
        if method == "tools/list":
            tools = [{"name": "count", "inputSchema": {"type": "object"}}]
            return self._answer(message, {"tools": tools})
        return self._call(request, message)

    def _hello(self) -> dict[str, Any]:
        info = {"name": "forgetful", "version": "1"}
        return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}

    def _call(self, request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        session = request.headers.get("Mcp-Session-Id", "")
        own = self.on_call(session)
        if own is not None:
            return own
        self.ran.append(session)
        return self._answer(message, {"content": [{"type": "text", "text": session}]})

    def _answer(
        self, message: dict[str, Any], result: dict[str, Any], headers: dict[str, str] | None = None
    ) -> web.StreamResponse:
        body = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return web.json_response(body, headers=headers)


def _gone(*, in_json: bool) -> web.StreamResponse:
    if not in_json:
        return web.Response(status=404, text="no such session")
    error = {"code": -32001, "message": "Session not found"}
    return web.json_response({"jsonrpc": "2.0", "id": None, "error": error}, status=404)


@pytest.mark.parametrize("in_json", [True, False])
async def test_a_call_of_a_forgotten_session_is_made_once_more_in_a_new_one(
    bridge: Bridge, stage: AsyncExitStack, in_json: bool
) -> None:
    """BUGS MCP 55: one more handshake, and the call runs once, however many found out at once."""
    server = Forgetful(lambda session: _gone(in_json=in_json) if session == "session-1" else None)
    await _connect(bridge, "http", await stage.enter_async_context(_listening(server.answer)) + "/mcp")
    async with asyncio.timeout(PROMPT_S):
        outcomes = await asyncio.gather(*(bridge.call("far__count", {}) for _ in range(3)))
        again = await bridge.call("far__count", {})

    assert [text_of(outcome) for outcome in (*outcomes, again)] == ["session-2"] * 4
    assert server.ran == ["session-2"] * 4
    assert server.heard["initialize"] == 2
    assert bridge.statuses()[0].starts == 2


async def test_a_session_that_is_forgotten_again_and_again_fails_the_call(
    bridge: Bridge, stage: AsyncExitStack
) -> None:
    """Repeated once, not for ever."""
    server = Forgetful(lambda _: _gone(in_json=True))
    await _connect(bridge, "http", await stage.enter_async_context(_listening(server.answer)) + "/mcp")
    with pytest.raises(BridgeError, match="no longer knows this session"):
        await bridge.call("far__count", {})

    assert (server.heard["tools/call"], server.ran) == (2, [])


@pytest.mark.parametrize("status", [400, 408, 429, 500, 502, 504])
async def test_a_call_that_may_have_run_is_not_repeated(
    bridge: Bridge, stage: AsyncExitStack, status: int
) -> None:
    """Only a session's 404 says that nothing ran."""
    server = Forgetful(lambda _: web.Response(status=status))
    await _connect(bridge, "http", await stage.enter_async_context(_listening(server.answer)) + "/mcp")
    with pytest.raises(BridgeError, match=str(status)):
        await bridge.call("far__count", {})

    assert server.heard["tools/call"] == 1
    assert server.heard["initialize"] == 1


async def test_a_connection_that_is_cut_during_a_call_fails_it_and_nothing_is_repeated(
    bridge: Bridge, stage: AsyncExitStack
) -> None:
    """Nobody knows whether it ran."""
    server = Forgetful(lambda _: None)

    async def cut(request: web.Request) -> web.StreamResponse:
        response = await server.answer(request)
        if server.ran and request.transport is not None:
            request.transport.abort()
        return response

    await _connect(bridge, "http", await stage.enter_async_context(_listening(cut)) + "/mcp")
    with pytest.raises(BridgeError):
        await bridge.call("far__count", {}, timeout_s=PROMPT_S)

    assert server.ran == ["session-1"]
    assert server.heard["tools/call"] == 1
