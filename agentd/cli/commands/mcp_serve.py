"""``agentd mcp serve`` and ``agentd mcp url``: the desktop for MCP clients."""

import asyncio
import sys
import threading
from contextlib import AsyncExitStack, suppress

import aiohttp

from agentd.cli.exits import CliError, Exit, print_json
from agentd.cli.run import Json, load_settings, run
from agentd.errors import AgentError
from agentd.mcp_server.access import MAX_MESSAGE_BYTES, PIPE, read_token
from agentd.settings import SOCKET_NAME, AgentdSettings

__all__ = ["mcp_serve", "mcp_url"]

# Lines that wait to be sent; a client that writes faster is not read meanwhile.
MAX_WAITING = 64


def mcp_serve() -> None:
    """Join stdio to the daemon's MCP server."""
    settings = load_settings()

    async def work() -> None:
        async with AsyncExitStack() as stack:
            websocket = await _connected(stack, settings)
            reading = asyncio.create_task(_forward_input(websocket))
            writing = asyncio.create_task(_forward_output(websocket))
            await asyncio.wait({reading, writing}, return_when=asyncio.FIRST_COMPLETED)
            for task in (reading, writing):
                task.cancel()
            await asyncio.gather(reading, writing, return_exceptions=True)

    run(work)


async def _connected(stack: AsyncExitStack, settings: AgentdSettings) -> aiohttp.ClientWebSocketResponse:
    """A pipe to the running daemon, or to one of our own for the time."""
    connector = aiohttp.UnixConnector(path=str(settings.runtime_dir / SOCKET_NAME))
    session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
    try:
        return await _pipe(stack, session)
    except aiohttp.ClientConnectorError:
        # Only here: joining a daemon that runs must not wait for all that one loads.
        from agentd.app import Daemon  # noqa: PLC0415

        daemon = Daemon(settings.model_copy(update={"control_url": None}))
        stack.push_async_callback(daemon.stop)
    except aiohttp.ClientError as exc:
        raise CliError(Exit.FAILED, f"agentd does not serve MCP: {exc}", code="no_answer") from exc
    try:
        await daemon.start()
    except (AgentError, OSError) as exc:
        raise CliError(Exit.CANNOT_START, str(exc), code=getattr(exc, "code", "os_error")) from exc
    return await _pipe(stack, session)


async def _pipe(stack: AsyncExitStack, session: aiohttp.ClientSession) -> aiohttp.ClientWebSocketResponse:
    websocket = session.ws_connect(f"http://agentd{PIPE}", max_msg_size=MAX_MESSAGE_BYTES, compress=0)
    return await stack.enter_async_context(websocket)


async def _forward_input(websocket: aiohttp.ClientWebSocketResponse) -> None:
    lines: asyncio.Queue[bytes] = asyncio.Queue(MAX_WAITING)
    loop = asyncio.get_running_loop()

    def read() -> None:
        # A thread: stdin may be a pipe, a file or a terminal, and only pipes can be waited for.
        with suppress(RuntimeError):
            for line in iter(sys.stdin.buffer.readline, b""):
                asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
            asyncio.run_coroutine_threadsafe(lines.put(b""), loop).result()

    threading.Thread(target=read, daemon=True).start()
    while line := await lines.get():
        if line.strip():
            await websocket.send_str(line.decode("utf-8", "replace"))


async def _forward_output(websocket: aiohttp.ClientWebSocketResponse) -> None:
    async for message in websocket:
        if message.type is aiohttp.WSMsgType.TEXT:
            sys.stdout.buffer.write(message.data.encode() + b"\n")
            sys.stdout.buffer.flush()


def mcp_url(*, as_json: Json = False) -> None:
    """Print address and token of /mcp."""
    settings = load_settings()
    token = read_token(settings.mcp_token_file)
    url = f"http://127.0.0.1:{settings.mcp_port}/mcp" if settings.mcp_port else None
    if as_json:
        print_json({"url": url, "token": token})
        return
    sys.stdout.write(f"{url or 'set AGENTD_MCP_PORT for the daemon: /mcp is not served'}\n")
    sys.stdout.write(f"Authorization: Bearer {token}\n")
