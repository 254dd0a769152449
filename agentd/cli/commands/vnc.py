"""``agentd vnc``: a desktop for VNC programs."""

import asyncio
import sys
from typing import Annotated
from urllib.parse import quote

import aiohttp
from cyclopts import Parameter

from agentd.app import SOCKET_NAME
from agentd.cli.exits import CliError, Exit, print_json
from agentd.cli.run import DesktopName, Json, load_settings, run
from agentd.cli.stack import read_run_file
from agentd.cli.vnc import VncPort, parse_listen

__all__ = ["vnc"]

# Bytes of one frame; the desktop's picture comes in pieces of 64 KiB.
MAX_FRAME_BYTES = 4 * 1024 * 1024
DEFAULT_LISTEN = "127.0.0.1:5901"


def vnc(
    *,
    chat: Annotated[str | None, Parameter(help="The desktop of this chat.")] = None,
    agent: Annotated[str | None, Parameter(help="The main desktop of this workspace.")] = None,
    listen: Annotated[
        str, Parameter(help="Loopback address and port; port 0: a free one.")
    ] = "127.0.0.1:5901",
    view_only: Annotated[bool, Parameter(negative="", help="Watch, without control.")] = False,
    name: DesktopName = "main",
    as_json: Json = False,
) -> None:
    """Open a local TCP port for VNC programs."""

    async def work() -> None:
        if chat is not None and agent is not None:
            raise CliError(Exit.USAGE, "--chat and --agent exclude each other", code="usage")
        host, port = parse_listen(listen)
        session, url = _target(chat, agent, name, view_only=view_only)
        async with session:
            server = VncPort(
                lambda: session.ws_connect(
                    # Without a heartbeat: a program that takes nothing for a while is slow, not gone.
                    url,
                    protocols=("binary",),
                    max_msg_size=MAX_FRAME_BYTES,
                )
            )
            address = await server.start(host, port)
            try:
                _tell(address, as_json=as_json)
                await asyncio.Event().wait()
            finally:
                await server.close()

    run(work, as_json=as_json)


def _target(
    chat: str | None, agent: str | None, name: str, *, view_only: bool
) -> tuple[aiohttp.ClientSession, str]:
    """A client and the address of the stream; the running `agentd up` where a chat or workspace is named."""
    settings = load_settings()
    if chat is None and agent is None:
        connector = aiohttp.UnixConnector(path=str(settings.runtime_dir / SOCKET_NAME))
        query = f"?view_only={str(view_only).lower()}"
        session = aiohttp.ClientSession(connector=connector)
        return session, f"http://agentd/api/v0/desktop/{quote(name, safe='')}/vnc{query}"
    info = read_run_file(settings.runtime_dir)
    if info is None:
        raise CliError(Exit.NOT_RUNNING, "no `agentd up` is running", code="not_running")
    path = f"chats/{quote(chat, safe='')}" if chat is not None else f"agents/{quote(agent or '', safe='')}"
    query = "view_only=true" if view_only else "take_control=true"
    session = aiohttp.ClientSession(headers={"Authorization": f"Bearer {info.token}"})
    return session, f"{info.api}/{path}/desktop?{query}"


def _tell(address: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"listen": address})
        return
    host, _, port = address.rpartition(":")
    sys.stdout.write(f"{address} (vncviewer {host}::{port}); Ctrl-C ends it\n")
    sys.stdout.flush()
