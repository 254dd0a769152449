"""The desktop as an MCP server, driven by the clients of others."""

import asyncio
import json
import os
import re
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.integration.agentd.command import MAIN, Command, Running
from tests.peers import FASTMCP, INSPECTOR, NODE

LIMIT_S = 90
TOOLS = ["computer", "screenshot", "windows", "clipboard", "open_program", "recording"]


@dataclass(frozen=True, kw_only=True)
class Served:
    """A daemon that serves /mcp."""

    url: str
    token: str
    command: Command

    @property
    def headers(self) -> dict[str, str]:
        """What it wants."""
        return {"Authorization": f"Bearer {self.token}"}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """One daemon for all tests here; each leaves the desktop usable."""
    with tempfile.TemporaryDirectory(prefix="agd-") as directory:
        command = Command(home=Path(directory))
        running = Running(command, "daemon", AGENTD_MCP_PORT="0")
        try:
            url = _wait_url(Path(directory) / "daemon.log", running)
            token = (Path(directory) / "state" / "agentd" / "mcp-token").read_text().strip()
            yield Served(url=url, token=token, command=command)
        finally:
            running.close()


def _wait_url(log: Path, running: Running) -> str:
    while True:
        with suppress(subprocess.TimeoutExpired):
            running.process.wait(0.1)
            break
        found = re.search(r'"url": "(http://[^"]+/mcp)"', log.read_text())
        if found and '"action": "ready"' in log.read_text():
            return found[1]
    raise AssertionError(log.read_text())


@asynccontextmanager
async def _http_client(served: Served, mode: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers=served.headers, timeout=LIMIT_S) as http,
        Client(streamable_http_client(served.url, http_client=http), mode=mode) as client,
    ):
        yield client


@asynccontextmanager
async def _stdio_client(command: Command, mode: str) -> AsyncIterator[Client]:
    server = StdioServerParameters(
        command=MAIN[0], args=[*MAIN[1:], "mcp", "serve"], env=command.environment(), cwd=command.home
    )
    async with Client(server, mode=mode) as client:
        yield client


async def _work_through(client: Client) -> None:
    """What a client does with a desktop, and what it must get."""
    tools = (await client.list_tools()).tools
    picture = await client.call_tool("screenshot", {})
    moved = await client.call_tool(
        "computer", {"actions": [{"action": "mouse_move", "coordinate": [10, 20]}], "screenshot": False}
    )
    await client.call_tool("clipboard", {"action": "set", "text": "from a client"})
    text = await client.call_tool("clipboard", {})
    windows = await client.call_tool("windows", {})
    wrong = await client.call_tool("computer", {"actions": [{"action": "fly"}]})
    resource = await client.read_resource("desktop://main/screenshot")

    assert [tool.name for tool in tools] == TOOLS
    assert [tool.name for tool in tools if tool.annotations and tool.annotations.read_only_hint] == [
        "screenshot"
    ]
    assert [block.type for block in picture.content][-1] == "image"
    assert moved.structured_content["pointer"] == [10, 20]
    assert text.content[0].text == "from a client"  # type: ignore[union-attr]
    assert windows.structured_content == {"windows": []}
    assert wrong.is_error
    assert resource.contents[0].mime_type == "image/png"


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_sdk_over_http(served: Served, mode: str) -> None:
    """Today's protocol without a session, and the older one with."""
    async with _http_client(served, mode) as client:
        await _work_through(client)


@pytest.mark.timeout(LIMIT_S)
async def test_the_sdk_over_stdio_with_the_running_daemon(served: Served) -> None:
    """`agentd mcp serve` joins the daemon that runs; the protocol is what today's clients speak."""
    async with _stdio_client(served.command, "legacy") as client:
        await _work_through(client)


@pytest.mark.timeout(LIMIT_S)
async def test_stdio_without_a_daemon_brings_one_for_the_time() -> None:
    """Nothing to start first: the client's configuration is enough."""
    with tempfile.TemporaryDirectory(prefix="agd-") as directory:
        command = Command(home=Path(directory))
        async with _stdio_client(command, "auto") as client:
            picture = await client.call_tool("screenshot", {})
            assert command.runtime_dir.joinpath("agentd.sock").exists()

        assert [block.type for block in picture.content][-1] == "image"
        assert not command.runtime_dir.joinpath("agentd.sock").exists()


@pytest.mark.timeout(LIMIT_S)
async def test_a_long_call_tells_progress_and_is_stopped_with_its_client(served: Served) -> None:
    """Seconds of work; a cancelled call does not hold the desktop."""
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    wait = {"actions": [{"action": "wait", "duration_ms": 2_500}], "screenshot": False}
    long = {"actions": [{"action": "wait", "duration_ms": 200_000}], "screenshot": False}
    async with _http_client(served, "auto") as client:
        await client.call_tool("computer", wait, progress_callback=hear)
        calling = asyncio.create_task(client.call_tool("computer", long))
        await asyncio.sleep(0.5)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        async with asyncio.timeout(30):
            after = await client.call_tool("clipboard", {})

    assert heard == [1.0, 2.0]
    assert not after.is_error


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Origin": "http://evil.example"}, 403),
        ({"Host": "evil.example"}, 421),
    ],
)
async def test_strangers_are_turned_away(served: Served, headers: dict[str, str], status: int) -> None:
    """No token, a page of another origin, another host's name for our address."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    accept = {"Accept": "application/json, text/event-stream"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(served.url, json=body, headers=served.headers | accept | headers) as response,
    ):
        assert response.status == status


async def _run(*argv: str, home: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *argv,
        env={"PATH": f"{Path(NODE).parent}:{os.environ['PATH']}", "HOME": str(home)},
        cwd=home,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    assert process.returncode == 0, out.decode()
    return out.decode()


@pytest.mark.timeout(LIMIT_S)
async def test_the_inspector(served: Served, tmp_path: Path) -> None:
    """The reference client, from the command line: list, call, read."""
    base = [
        *INSPECTOR, "--cli", served.url, "--transport", "http",
        "--header", f"Authorization: Bearer {served.token}", "--method",
    ]  # fmt: skip
    listed = json.loads(await _run(*base, "tools/list", home=tmp_path))
    called = json.loads(
        await _run(*base, "tools/call", "--tool-name", "clipboard", "--tool-arg", "action=get", home=tmp_path)
    )
    read = json.loads(
        await _run(*base, "resources/read", "--uri", "desktop://main/screenshot", home=tmp_path)
    )

    assert [tool["name"] for tool in listed["tools"]] == TOOLS
    assert not called["isError"]
    assert read["contents"][0]["mimeType"] == "image/png"


FASTMCP_CLIENT = """
import asyncio, sys
from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport

async def main():
    headers = {"Authorization": "Bearer " + sys.argv[2]}
    async with Client(StreamableHttpTransport(sys.argv[1], headers=headers)) as client:
        print([tool.name for tool in await client.list_tools()])
        result = await client.call_tool("screenshot", {})
        print(result.content[-1].type)

asyncio.run(main())
"""


@pytest.mark.timeout(LIMIT_S)
async def test_fastmcp(served: Served, tmp_path: Path) -> None:
    """Another client in Python."""
    said = await _run(str(FASTMCP / "python"), "-c", FASTMCP_CLIENT, served.url, served.token, home=tmp_path)

    assert said.split("\n")[:2] == [str(TOOLS), "image"]
