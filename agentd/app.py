"""Builds the daemon's object graph and runs it; no logic of its own."""

import asyncio
import os
import stat
import uuid
from contextlib import suppress
from pathlib import Path

import structlog
from aiohttp import web

from agentd.calls import CallTable
from agentd.desktops import Desktops
from agentd.errors import AlreadyRunning, RuntimeDirUnusable
from agentd.link import Link
from agentd.routes import desktop as desktop_routes
from agentd.routes.errors import error_middleware
from agentd.settings import AgentdSettings
from agentd.tools.desktop import computer_tool
from agentd.tools.registry import Registry
from agentd.wire.version import VERSION

__all__ = ["SOCKET_NAME", "Daemon", "make_private_dir"]

SOCKET_NAME = "agentd.sock"
# Bytes of a local request; actions carry at most 100,000 characters of text.
MAX_BODY_BYTES = 2 * 1024 * 1024

# A socket's path has at most 107 bytes; the longest of ours below the directory is "/desktop-main/rfb.sock".
MAX_RUNTIME_DIR_BYTES = 107 - len("/desktop-main/rfb.sock")
ELSEWHERE = "set AGENTD_RUNTIME_DIR to a short path of your own"

log = structlog.get_logger("agentd")


def make_private_dir(path: Path) -> Path:
    """
    Create *path* with mode 0700, or check that it is ours and private.

    Raises:
        RuntimeDirUnusable: it can't be made, belongs to another user, or is too long a path.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = path.lstat()
    except OSError as exc:
        msg = f"the runtime directory {path} can't be made: {exc.strerror}; {ELSEWHERE}"
        raise RuntimeDirUnusable(msg) from exc
    if info.st_uid != os.getuid() or not stat.S_ISDIR(info.st_mode):
        msg = f"the runtime directory {path} belongs to another user; {ELSEWHERE}"
        raise RuntimeDirUnusable(msg)
    if len(os.fsencode(path)) > MAX_RUNTIME_DIR_BYTES:
        msg = f"the runtime directory {path} is too long a path for sockets in it; {ELSEWHERE}"
        raise RuntimeDirUnusable(msg)
    path.chmod(0o700)
    return path


class Daemon:
    """The workspace daemon: desktops, tools, local API, link."""

    def __init__(self, settings: AgentdSettings) -> None:
        self.settings = settings
        self.desktops = Desktops(settings)
        self.calls = CallTable(boot_id=uuid.uuid4().hex)
        self.registry = Registry([computer_tool(self.desktops)])
        self.link = self._make_link()
        self._runner: web.AppRunner | None = None
        self._link_task: asyncio.Task[None] | None = None

    @property
    def socket_path(self) -> Path:
        """Where the local API listens."""
        return self.settings.runtime_dir / SOCKET_NAME

    def _make_link(self) -> Link | None:
        if self.settings.control_url is None:
            return None
        return Link(
            control_url=self.settings.control_url,
            token=self.settings.agent_token or "",
            name=self.settings.name,
            version=VERSION,
            registry=self.registry,
            calls=self.calls,
            desktops=self.desktops,
        )

    async def start(self) -> None:
        """
        Listen on the local socket and dial the control plane.

        Raises:
            AlreadyRunning: another daemon answers on the socket.
        """
        make_private_dir(self.settings.runtime_dir)
        await self._take_socket()
        app = web.Application(middlewares=[error_middleware], client_max_size=MAX_BODY_BYTES)
        app[desktop_routes.DESKTOPS] = self.desktops
        app.add_routes(desktop_routes.routes)
        self._runner = web.AppRunner(app, shutdown_timeout=2)
        await self._runner.setup()
        await web.UnixSite(self._runner, str(self.socket_path)).start()
        self.socket_path.chmod(0o600)
        if self.link is not None:
            self._link_task = asyncio.get_running_loop().create_task(self.link.run(), name="link")
        log.info("agentd ready", action="ready", socket=str(self.socket_path))

    async def _take_socket(self) -> None:
        """Remove a socket that nobody answers on."""
        if not self.socket_path.exists():
            return
        try:
            _, writer = await asyncio.open_unix_connection(str(self.socket_path))
        except (ConnectionRefusedError, FileNotFoundError):
            self.socket_path.unlink(missing_ok=True)
            return
        writer.close()
        msg = f"another agentd answers on {self.socket_path}; stop it, or set AGENTD_RUNTIME_DIR"
        raise AlreadyRunning(msg)

    async def wait_failed(self) -> None:
        """Wait until the link gives up (a refused token); for ever when there is no link."""
        if self._link_task is None:
            await asyncio.Event().wait()
            return
        await asyncio.shield(self._link_task)

    async def stop(self) -> None:
        """Stop everything this daemon started, newest first."""
        if self._link_task is not None:
            self._link_task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await self._link_task
        await self.calls.close()
        await self.desktops.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self.socket_path.unlink(missing_ok=True)
