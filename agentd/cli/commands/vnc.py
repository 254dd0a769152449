"""``agentd vnc``: a desktop for VNC programs."""

import asyncio
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated
from urllib.parse import quote, urlsplit

import aiohttp
from cyclopts import Parameter

from agentd.app import SOCKET_NAME
from agentd.cli.exits import CliError, Exit, print_json
from agentd.cli.run import DesktopName, Json, load_settings, run
from agentd.cli.stack import read_run_file
from agentd.cli.vnc import VncPort, parse_listen

__all__ = ["Elsewhere", "vnc"]

# Bytes of one frame; the desktop's picture comes in pieces of 64 KiB.
MAX_FRAME_BYTES = 4 * 1024 * 1024
DEFAULT_LISTEN = "127.0.0.1:5901"
# Where a control plane has its API, and what holds a token of the caller's: arguments are seen by others.
API = "/api/experimental"
TOKEN_VARIABLE = "AGENTD_TOKEN"  # noqa: S105 -- its name


@dataclass(frozen=True, slots=True, kw_only=True)
class Elsewhere:
    """
    A control plane that is not the running `agentd up`.

    Args:
        url: its address.
        token_file: holds a token of the caller's.
    """

    url: Annotated[str | None, Parameter(help="Control plane [the running `agentd up`].")] = None
    token_file: Annotated[
        Path | None, Parameter(help="File with a token of the control plane [AGENTD_TOKEN].")
    ] = None


def vnc(
    *,
    chat: Annotated[str | None, Parameter(help="The desktop of this chat.")] = None,
    agent: Annotated[str | None, Parameter(help="The main desktop of this workspace.")] = None,
    listen: Annotated[
        str, Parameter(help="Loopback address and port; port 0: a free one.")
    ] = "127.0.0.1:5901",
    view_only: Annotated[bool, Parameter(negative="", help="Watch, without control.")] = False,
    elsewhere: Annotated[Elsewhere | None, Parameter(name="*")] = None,
    name: DesktopName = "main",
    as_json: Json = False,
) -> None:
    """Open a local TCP port for VNC programs."""

    async def work() -> None:
        if chat is not None and agent is not None:
            raise CliError(Exit.USAGE, "--chat and --agent exclude each other", code="usage")
        host, port = parse_listen(listen)
        plane = _plane_at(elsewhere or Elsewhere())
        session, address = _target(chat, agent, name, plane, view_only=view_only)
        async with session:
            server = VncPort(
                lambda: session.ws_connect(
                    # Without a heartbeat: a program that takes nothing for a while is slow, not gone.
                    address,
                    protocols=("binary",),
                    max_msg_size=MAX_FRAME_BYTES,
                )
            )
            bound = await server.start(host, port)
            try:
                _tell(bound, as_json=as_json)
                await asyncio.Event().wait()
            finally:
                await server.close()

    run(work, as_json=as_json)


def _target(
    chat: str | None, agent: str | None, name: str, plane: "_Plane | None", *, view_only: bool
) -> tuple[aiohttp.ClientSession, str]:
    """A client and the address of the stream; of a control plane where a chat or workspace is named."""
    settings = load_settings()
    if chat is None and agent is None:
        if plane is not None:
            msg = "--url needs --chat or --agent: which of its desktops?"
            raise CliError(Exit.USAGE, msg, code="usage")
        connector = aiohttp.UnixConnector(path=str(settings.runtime_dir / SOCKET_NAME))
        query = f"?view_only={str(view_only).lower()}"
        session = aiohttp.ClientSession(connector=connector)
        return session, f"http://agentd/api/v0/desktop/{quote(name, safe='')}/vnc{query}"
    plane = plane or _running_here(settings.runtime_dir)
    path = f"chats/{quote(chat, safe='')}" if chat is not None else f"agents/{quote(agent or '', safe='')}"
    query = "view_only=true" if view_only else "take_control=true"
    session = aiohttp.ClientSession(headers={"Authorization": f"Bearer {plane.token}"})
    return session, f"{plane.api}/{path}/desktop?{query}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plane:
    """A control plane: where its API is, and the caller's token."""

    api: str
    token: str = field(repr=False)


def _running_here(runtime_dir: Path) -> _Plane:
    info = read_run_file(runtime_dir)
    if info is None:
        msg = (
            "no `agentd up` is running here; start it, or name a control plane by --url, with a token of it "
            f"in {TOKEN_VARIABLE} or --token-file"
        )
        raise CliError(Exit.NOT_RUNNING, msg, code="not_running")
    return _Plane(api=info.api, token=info.token)


def _plane_at(elsewhere: Elsewhere) -> _Plane | None:
    """The control plane that the arguments name, if they do."""
    url, token_file = elsewhere.url, elsewhere.token_file
    if url is None:
        if token_file is not None:
            raise CliError(Exit.USAGE, "--token-file goes with --url", code="usage")
        return None
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        msg = f"--url {url}: an address such as https://chats.example.com is needed"
        raise CliError(Exit.USAGE, msg, code="usage")
    return _Plane(api=url.rstrip("/") + API, token=_read_token(token_file))


def _read_token(file: Path | None) -> str:
    where = TOKEN_VARIABLE if file is None else str(file)
    try:
        token = os.environ.get(TOKEN_VARIABLE, "") if file is None else file.expanduser().read_text()
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is no text"
        raise CliError(Exit.USAGE, f"can't read the token in {where}: {reason}", code="usage") from exc
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        msg = (
            f"--url needs a token of that control plane in {TOKEN_VARIABLE} or --token-file; {where} has none"
        )
        raise CliError(Exit.USAGE, msg, code="usage")
    return token


def _tell(address: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"listen": address})
        return
    host, _, port = address.rpartition(":")
    sys.stdout.write(f"{address} (vncviewer {host}::{port}); Ctrl-C ends it\n")
    sys.stdout.flush()
