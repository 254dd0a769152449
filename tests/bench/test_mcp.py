"""
What a proxy adds to an MCP call: ours, mcp-proxy and fastmcp's, in front of the same server, in the same run.

Each number is a whole round trip of ``echo``; "direct" is the SDK's client on the server's own stdio,
so what a proxy adds is its row less that one. Ours is the daemon's way: bridge, registry, local socket.
"""

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from pytest_benchmark.fixture import BenchmarkFixture

from agentd.cli.client import local_client
from agentd.mcp_host import McpHost
from agentd.routes import mcp as mcp_routes
from agentd.settings import SOCKET_NAME, AgentdSettings
from agentd.tools.registry import Registry
from tests.peers import FASTMCP, MCP1

Call = Callable[[], Awaitable[Any]]
ECHO = """
from mcp.server import MCPServer
server = MCPServer("echo")
@server.tool()
def echo(message: str) -> str:
    return message
server.run()
"""
FASTMCP_PROXY = """
import sys
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy
create_proxy(StdioTransport(sys.argv[2], ["-c", sys.argv[3]])).run(
    transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
"""
ARGUMENTS = {"message": "hello"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def direct() -> AsyncIterator[Call]:
    """The server itself."""
    async with Client(
        StdioServerParameters(command=sys.executable, args=["-c", ECHO]), mode="legacy"
    ) as client:
        yield lambda: client.call_tool("echo", ARGUMENTS)


@asynccontextmanager
async def ours() -> AsyncIterator[Call]:
    """The daemon's host of MCP servers behind the daemon's local API."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        home = Path(directory)
        settings = AgentdSettings(runtime_dir=home, working_dir=home)
        (home / ".mcp.json").write_text(_config())
        host = McpHost(settings, Registry([]), os.environ)
        await host.reload()
        app = web.Application()
        app[mcp_routes.HOST] = host
        app.add_routes(mcp_routes.routes)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.UnixSite(runner, str(home / SOCKET_NAME)).start()
        body = {"tool_name": "echo__echo", "arguments": ARGUMENTS}
        async with local_client(home) as client:
            yield lambda: client.request("POST", "/api/v0/mcp/call-tool", body)
        await runner.cleanup()
        await host.close()


def _config() -> str:
    import json  # noqa: PLC0415 -- only here

    return json.dumps({"mcpServers": {"echo": {"command": sys.executable, "args": ["-c", ECHO]}}})


@asynccontextmanager
async def _proxied(argv: list[str], port: int) -> AsyncIterator[Call]:
    process = await asyncio.create_subprocess_exec(
        *argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(60):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except OSError:
                    await asyncio.sleep(0.1)
                else:
                    writer.close()
                    break
        async with Client(streamable_http_client(f"http://127.0.0.1:{port}/mcp"), mode="legacy") as client:
            yield lambda: client.call_tool("echo", ARGUMENTS)
    finally:
        process.terminate()
        await process.wait()


def mcp_proxy() -> AbstractAsyncContextManager[Call]:
    """mcp-proxy, HTTP to stdio."""
    port = _free_port()
    argv = [str(MCP1 / "mcp-proxy"), "--port", str(port), "--", sys.executable, "-c", ECHO]
    return _proxied(argv, port)


def fastmcp_proxy() -> AbstractAsyncContextManager[Call]:
    """The proxy of fastmcp, HTTP to stdio."""
    port = _free_port()
    argv = [str(FASTMCP / "python"), "-c", FASTMCP_PROXY, str(port), sys.executable, ECHO]
    return _proxied(argv, port)


class Loop:
    """An event loop in a thread of its own, so that a benchmark can call into it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of *work*."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(120)

    def close(self) -> None:
        """End it."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    """One loop for all."""
    made = Loop()
    yield made
    made.close()


WAYS = {"direct": direct, "ours": ours, "mcp_proxy": mcp_proxy, "fastmcp_proxy": fastmcp_proxy}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("parallel", [1, 50])
@pytest.mark.parametrize("way", WAYS)
def test_mcp_call(benchmark: BenchmarkFixture, loop: Loop, way: str, parallel: int) -> None:
    """Round trips, one after another or 50 at once."""
    benchmark.group = f"MCP call, {parallel} at once"
    benchmark.name = f"test_{way}"
    stack = AsyncExitStack()
    opened: list[Call] = []
    ready, done = threading.Event(), asyncio.Event()

    async def hold() -> None:
        # Opened and closed in one task, as cancel scopes want it.
        async with stack:
            opened.append(await stack.enter_async_context(WAYS[way]()))
            ready.set()
            await done.wait()

    async def round_of_calls() -> list[Any]:
        return await asyncio.gather(*(opened[0]() for _ in range(parallel)))

    holding = asyncio.run_coroutine_threadsafe(hold(), loop.loop)
    assert ready.wait(90)
    answers = benchmark.pedantic(
        lambda: loop.run(round_of_calls()), rounds=200 if parallel == 1 else 20, warmup_rounds=3
    )
    loop.loop.call_soon_threadsafe(done.set)
    holding.result(30)

    assert len(answers) == parallel
    assert "hello" in str(answers[0])
