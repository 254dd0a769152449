"""
Tool calls of a workspace: ``script/bench tools [--rounds 300]``.

chatd in this process, the daemon in another, the link a real WebSocket on loopback; each call is claimed in
SQLite, written down by the daemon before it runs, and answered. Beside it, in the same run: the tool alone,
and a server of the MCP SDK that does the same, over stdio and over HTTP, which write nothing down.
"""

# ruff: noqa: T201 -- a program that prints
import argparse
import asyncio
import itertools
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from agentd.files.places import Places
from agentd.tools.files import file_tools
from agentd.wire.link import ToolCallParams
from chatd.tools.toolset import CallContext
from chatd.tools.workspace import WorkspaceTools
from chatd.wire import ToolCallPart
from tests.integration.chatd.http.site import Site, serving

ROOT = Path(__file__).parents[3]
MAIN = "from agentd.cli import main; main()"
FLOOD_BYTES = 10_000_000
FLOOD = f"yes 0123456789abcdef | head -c {FLOOD_BYTES}"
AT_ONCE = 50
# Seconds after which something hangs.
LIMIT_S = 60
SERVER = """
import asyncio, sys
from mcp.server import MCPServer
server = MCPServer("work")
@server.tool()
def read_file(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return "".join(f"{number}\\t{line}" for number, line in enumerate(file, 1))
@server.tool()
async def execute(command: str) -> str:
    process = await asyncio.create_subprocess_shell(command, stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0].decode()
if len(sys.argv) > 1:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run()
"""

Call = Callable[..., Awaitable[object]]


class Ours:
    """Calls through chatd, the link and the daemon."""

    def __init__(self, site: Site, chat_id: UUID) -> None:
        self._tools = WorkspaceTools(
            site.agent_id, root_chat_id=chat_id, directory=site.plane.services.directory, store=site.store
        )
        self._chat_id = chat_id
        self._numbers = itertools.count(1)

    async def call(self, name: str, **arguments: object) -> object:
        """One call, never made before."""
        call = ToolCallPart(tool_call_id=f"call_{next(self._numbers)}", tool_name=name, args=arguments)
        outcome = await self._tools.run(CallContext(chat_id=self._chat_id, message_id=1, call=call))
        assert not outcome.part.is_error, outcome.part.result
        return outcome.part.result


@asynccontextmanager
async def ours(home: Path) -> AsyncIterator[Call]:
    """A control plane here, a daemon in a process of its own."""
    async with serving(home / "chatd") as site:
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(ROOT),
            "AGENTD_RUNTIME_DIR": str(home / "run"), "AGENTD_DATA_DIR": str(home / "daemon"),
            "AGENTD_CONTROL_URL": site.plane.url, "AGENTD_AGENT_TOKEN": site.tokens["agent"],
        }  # fmt: skip
        daemon = await asyncio.create_subprocess_exec(
            sys.executable, "-c", MAIN, "daemon",
            env=environment, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            await site.plane.services.directory.wait_connected(site.agent_id, grace_s=LIMIT_S)
            yield Ours(site, UUID(await site.new_chat(who="owner"))).call
        finally:
            daemon.terminate()
            await daemon.wait()


async def alone(name: str, **arguments: object) -> object:
    """The tool and nothing around it."""
    if name == "execute":
        process = await asyncio.create_subprocess_exec(
            "/bin/sh", "-c", str(arguments["command"]), stdout=asyncio.subprocess.PIPE
        )
        return (await process.communicate())[0]
    tool = next(one for one in file_tools(Places(roots=())) if one.definition.name == name)
    return await tool.run(ToolCallParams(call_id="x", name=name, arguments=arguments))


@asynccontextmanager
async def mcp_stdio() -> AsyncIterator[Call]:
    """The SDK's server as a child."""
    parameters = StdioServerParameters(command=sys.executable, args=["-c", SERVER])
    async with Client(parameters, mode="legacy") as client:
        yield lambda name, **arguments: client.call_tool(name, arguments)


@asynccontextmanager
async def mcp_http() -> AsyncIterator[Call]:
    """The SDK's server on loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, str(port), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(LIMIT_S):
            while not await _listens(port):  # noqa: ASYNC110 -- another process
                await asyncio.sleep(0.05)
        async with Client(streamable_http_client(f"http://127.0.0.1:{port}/mcp"), mode="legacy") as client:
            yield lambda name, **arguments: client.call_tool(name, arguments)
    finally:
        server.terminate()
        await server.wait()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def _timed(work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return (time.perf_counter() - began) * 1_000


async def one_by_one(call: Call, rounds: int, name: str, **arguments: object) -> list[float]:
    """Milliseconds of each of *rounds* calls, after some that are not counted."""
    for _ in range(10):
        await call(name, **arguments)
    return sorted([await _timed(call(name, **arguments)) for _ in range(rounds)])


async def at_once(call: Call, rounds: int, name: str, **arguments: object) -> float:
    """Milliseconds until the last of fifty calls is answered, median."""

    async def all_of_them() -> None:
        await asyncio.gather(*(call(name, **arguments) for _ in range(AT_ONCE)))

    await all_of_them()
    return statistics.median([await _timed(all_of_them()) for _ in range(rounds)])


def _p99(values: Sequence[float]) -> float:
    return values[min(len(values) - 1, int(len(values) * 0.99))]


async def measure(contenders: dict[str, Call], file: Path, rounds: int) -> None:
    """All rows; contenders alternate within each."""
    works: list[tuple[str, int, dict[str, object]]] = [
        ("read_file", rounds, {"path": str(file)}),
        ("execute", max(20, rounds // 5), {"command": "true"}),
        ("execute", max(5, rounds // 40), {"command": FLOOD}),
    ]
    for name, count, arguments in works:
        what = str(arguments.get("command") or "200 lines")
        print(f"\n{name}: {what[:60]}")
        base = 0.0
        for who, call in contenders.items():
            try:
                values = await one_by_one(call, count, name, **arguments)
            except MCPError as exc:
                print(f"  {who:<22} refused: {exc}")
                continue
            median = statistics.median(values)
            base = base or median
            added = f"added {median - base:7.2f} ms"
            print(f"  {who:<22} p50 {median:8.2f} ms   p99 {_p99(values):8.2f} ms   {added}")
    few = max(3, rounds // 60)
    for name, arguments in (("read_file", {"path": str(file)}), ("execute", {"command": "sleep 0.2"})):
        print(f"\nfifty at once: {name} {arguments.get('command') or '200 lines'}")
        for who, call in contenders.items():
            one = statistics.median(await one_by_one(call, few, name, **arguments))
            all_ms = await at_once(call, few, name, **arguments)
            print(f"  {who:<22} one {one:8.2f} ms   fifty {all_ms:8.2f} ms   {all_ms / one:6.1f} times")


async def main(rounds: int) -> None:
    """Start everybody, then measure."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        home = Path(directory)
        file = home / "lines.txt"
        file.write_text("".join(f"line {number} of a file that an agent reads\n" for number in range(200)))
        async with ours(home) as mine, mcp_stdio() as stdio, mcp_http() as http:
            contenders = {
                "the tool alone": alone,
                "ours": mine,
                "MCP SDK, stdio": stdio,
                "MCP SDK, HTTP": http,
            }
            await measure(contenders, file, rounds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    asyncio.run(main(parser.parse_args().rounds))
