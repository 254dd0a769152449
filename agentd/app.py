"""Builds the daemon's object graph and runs it; no logic of its own."""

import asyncio
import os
import stat
import uuid
from pathlib import Path
from typing import Any

import structlog
from aiohttp import web

from agentd.acting import Hands, Watcher
from agentd.calls import CallTable
from agentd.context import make_context
from agentd.control import Control
from agentd.desktops import DIRECTORY_BYTES, Desktops, workspace_environment
from agentd.errors import AlreadyRunning, RuntimeDirUnusable
from agentd.files.handlers import file_handlers
from agentd.files.places import Places
from agentd.ledger import DiskLedger
from agentd.link import Link
from agentd.mcp_host import McpHost
from agentd.mcp_server.access import read_token
from agentd.mcp_server.http import McpHttp
from agentd.mcp_server.server import make_server
from agentd.mcp_server.tools import served_tools
from agentd.metrics import Metrics
from agentd.processes.client import KeeperClient
from agentd.recording import make_recordings, recording_handlers
from agentd.reloading import LINK_FIELDS, RELOADABLE
from agentd.routes import apps as app_routes
from agentd.routes import context as context_routes
from agentd.routes import desktop as desktop_routes
from agentd.routes import health as health_routes
from agentd.routes import mcp as mcp_routes
from agentd.routes import mcp_serve as mcp_serve_routes
from agentd.routes import recordings as recording_routes
from agentd.routes import trace as trace_routes
from agentd.routes import viewers as viewer_routes
from agentd.routes import windows as window_routes
from agentd.routes.errors import error_middleware, note_begun
from agentd.routes.streams import StreamPort
from agentd.settings import SOCKET_NAME, AgentdSettings
from agentd.startup import Startup
from agentd.tools.apps import apps_tool
from agentd.tools.desktop import computer_tool
from agentd.tools.files import file_tools
from agentd.tools.processes import Commands, process_tools
from agentd.tools.registry import Registry, Tool
from agentd.trace.log import make_action_log
from agentd.turns import Turns
from agentd.viewers import Viewers
from agentd.wire.link import DESKTOP_LEAVE, DesktopLeaveParams, Empty
from agentd.wire.mcp import MCP_SERVERS
from agentd.wire.peer import Handler
from agentd.wire.reload import Reload, plan_reload
from agentd.wire.version import VERSION

__all__ = ["SOCKET_NAME", "Daemon", "make_private_dir"]

LEDGER_NAME = "calls.db"
STARTUP_LOG = "startup.log"
# The only one of the daemon's tasks that ends by itself.
STARTUP_TASK = "startup"
# Bytes of a local request; actions carry at most 100,000 characters of text.
MAX_BODY_BYTES = 2 * 1024 * 1024

# A socket's path has at most 107 bytes; the longest of ours below the directory is a desktop's.
MAX_RUNTIME_DIR_BYTES = 107 - len("/") - DIRECTORY_BYTES - len("/rfb.sock")
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
        self.control = Control(self.desktops, idle_s=settings.control_idle_s)
        self.viewers = Viewers(self.desktops, self.control, broadcast_from=settings.broadcast_from)
        boot_id = uuid.uuid4().hex
        self.ledger = DiskLedger(settings.data_dir / LEDGER_NAME, boot_id)
        self.calls = CallTable(boot_id, self.ledger)
        self.recordings = make_recordings(settings, self.desktops)
        self.action_log = make_action_log(settings, self.desktops)
        watchers: list[Watcher] = [self.action_log] if settings.action_log else []
        self.turns = Turns(idle_s=settings.desktop_turn_s)
        self.hands = Hands(
            self.desktops, [*watchers, self.recordings], control=self.control, turns=self.turns
        )
        self.keeper = KeeperClient(settings.runtime_dir, workspace_environment(os.environ))
        self.places = Places(roots=settings.file_roots)
        self.registry = Registry(self._own_tools())
        self.context = make_context(settings)
        self.startup = Startup(
            script=settings.startup_script,
            must_be_told=settings.wait_ready,
            log_path=settings.runtime_dir / STARTUP_LOG,
            working_dir=settings.working_dir,
            environment=workspace_environment(os.environ),
            on_ready=self._on_ready,
        )
        self.mcp = McpHost(settings, self.registry, os.environ, tell=self.calls.progress.tell)
        self.mcp_tools = served_tools(
            self.hands,
            self.desktops,
            self.recordings,
            self.registry,
            with_builtin="files" in settings.mcp_serve,
        )
        self.mcp_server = make_server(self.mcp_tools, self.calls, self.context)
        self.mcp_http: McpHttp | None = None
        self.link = self._make_link()
        self.stream_port: StreamPort | None = None
        self._runner: web.AppRunner | None = None
        self._link_task: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def socket_path(self) -> Path:
        """Where the local API listens."""
        return self.settings.runtime_dir / SOCKET_NAME

    def _further_methods(self) -> dict[str, Handler]:
        methods = {**recording_handlers(self.recordings), **file_handlers(self.places)}
        return {**methods, MCP_SERVERS: self.mcp.tell, DESKTOP_LEAVE: self._leave_desktop}

    async def _leave_desktop(self, params: dict[str, Any]) -> Empty:
        """An agent is done."""
        chat_id = DesktopLeaveParams.model_validate(params).chat_id
        self.turns.leave(chat_id)
        self.desktops.leave(chat_id)
        return Empty()

    def _own_tools(self) -> list[Tool]:
        commands = Commands(
            self.keeper,
            environment=lambda: workspace_environment(os.environ),
            workdir=self.settings.working_dir,
            tell=self.calls.progress.tell,
        )
        desktop = [computer_tool(self.hands), apps_tool(self.hands, self.desktops)]
        return [*desktop, *file_tools(self.places), *process_tools(commands)]

    def _make_link(self) -> Link | None:
        if self.settings.control_url is None:
            return None
        link = Link(
            control_url=self.settings.control_url,
            token=self.settings.agent_token or "",
            name=self.settings.name,
            version=VERSION,
            registry=self.registry,
            calls=self.calls,
            viewers=self.viewers,
        )
        link.context = self.context
        link.further = self._further_methods()
        return link

    async def start(self) -> None:
        """
        Listen on the local socket and dial the control plane.

        Raises:
            AlreadyRunning: another daemon answers on the socket.
            DataDirUnusable: what must outlive the daemon can't be kept.
        """
        make_private_dir(self.settings.runtime_dir)
        await self._take_socket()
        await self.ledger.open()
        await self.recordings.load()
        app = web.Application(middlewares=[error_middleware], client_max_size=MAX_BODY_BYTES)
        app.on_response_prepare.append(note_begun)
        app[desktop_routes.DESKTOPS] = self.desktops
        app[desktop_routes.HANDS] = self.hands
        app[desktop_routes.CALLS] = self.calls
        app[recording_routes.RECORDINGS] = self.recordings
        app.add_routes(recording_routes.routes)
        app[trace_routes.LOG] = self.action_log
        app.add_routes(trace_routes.routes)
        app.add_routes(desktop_routes.routes)
        app.add_routes(window_routes.routes)
        app.add_routes(app_routes.routes)
        app[context_routes.CONTEXT], app[context_routes.STARTUP] = self.context, self.startup
        app.add_routes(context_routes.routes)
        app[desktop_routes.CONTROL], app[viewer_routes.VIEWERS] = self.control, self.viewers
        health = health_routes.Health(self.health)
        app[health_routes.HEALTH] = health
        app.add_routes(health_routes.routes)
        app[viewer_routes.METRICS] = Metrics(self.viewers, self.desktops, health=self.health)
        app.add_routes(viewer_routes.routes)
        app[mcp_routes.HOST] = self.mcp
        app.add_routes(mcp_routes.routes)
        app[mcp_serve_routes.SERVER] = self.mcp_server
        app.add_routes(mcp_serve_routes.routes)
        self._runner = web.AppRunner(app, shutdown_timeout=2)
        await self._runner.setup()
        await web.UnixSite(self._runner, str(self.socket_path)).start()
        self.socket_path.chmod(0o600)
        await self._start_mcp_http()
        await self._start_stream_port()
        self._start_tasks()
        self._start_link()
        log.info("agentd ready", action="ready", socket=str(self.socket_path))

    def _start_link(self) -> None:
        if self.link is not None:
            self._link_task = asyncio.get_running_loop().create_task(self.link.run(), name="link")

    async def _end_link(self) -> None:
        task, self._link_task = self._link_task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _start_mcp_http(self) -> None:
        port = self.settings.mcp_port
        if port is None:
            return
        self.mcp_http = McpHttp(self.mcp_server, read_token(self.settings.mcp_token_file))
        try:
            await self.mcp_http.start(port)
        except OSError as exc:
            msg = f"can't listen on 127.0.0.1:{port}: {exc.strerror}; set AGENTD_MCP_PORT to another port"
            raise AlreadyRunning(msg) from exc
        log.info("MCP over HTTP", action="mcp_http", url=f"http://127.0.0.1:{self.mcp_http.port}/mcp")

    async def _start_stream_port(self) -> None:
        listen = self.settings.stream_listen
        if listen is None or self.link is None:
            return
        host, _, port = listen.rpartition(":")
        self.stream_port = StreamPort(self.viewers, self.link.fetched)
        bound = await self.stream_port.start(host.strip("[]"), int(port))
        self.link.streams_url = self.settings.stream_url or f"http://{host}:{bound}"
        log.info("streams can be fetched", action="stream_port", url=self.link.streams_url)

    def _on_ready(self) -> None:
        """After the start-up script, which may install MCP servers and write their configuration."""
        self.context.mark_ready()
        self.mcp.start()

    def _start_tasks(self) -> None:
        loop = asyncio.get_running_loop()
        for name, work in (
            (STARTUP_TASK, self.startup.run),
            ("context", self.context.run),
            ("idle desktops", self.desktops.run),
        ):
            task = loop.create_task(work(), name=name)
            task.add_done_callback(_log_failure)
            self._tasks.append(task)

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
        while (task := self._link_task) is not None:
            await asyncio.wait({task})
            if task is self._link_task:
                task.result()
        await asyncio.Event().wait()

    async def reload(self, settings: AgentdSettings) -> Reload:
        """
        Take up what *settings* changed, as far as a running daemon can; read MCP and context files again.

        Calls and desktops that run go on. A control plane that is new to us, or was, needs a restart.
        """
        plan = plan_reload(self.settings, settings, RELOADABLE)
        has_link = self.link is not None and settings.control_url is not None
        if not has_link or self.stream_port is not None:
            plan = plan.postponed(LINK_FIELDS)
        self.settings.adopt({name: getattr(settings, name) for name in plan.taken})
        if LINK_FIELDS.intersection(plan.taken):
            self.link = self._make_link()
            await self._end_link()
            self._start_link()
        if self.startup.readiness.ready:
            await self.mcp.reload()
            self.context.touch()
        return plan

    def health(self) -> dict[str, health_routes.Word]:
        """How each part is, in a word."""
        link: health_routes.Word = "off"
        if self.link is not None:
            link = "ok" if self.link.connected.is_set() else "down"
        names = self.desktops.names()
        has_failed = any(self.desktops.status(name).state == "failed" for name in names)
        is_gone = any(task.done() and task.get_name() != STARTUP_TASK for task in self._tasks)
        return {
            "link": link,
            "workspace": "ok" if self.startup.readiness.ready else "starting",
            "desktops": "failed" if has_failed else "ok",
            "work": "failed" if is_gone else "ok",
        }

    def status(self) -> str:
        """One line for people: whether it is linked, and what runs."""
        if self.link is None:
            linked = "no control plane"
        else:
            linked = "linked" if self.link.connected.is_set() else "not linked"
        names = self.desktops.names()
        running = sum(self.desktops.status(name).state == "running" for name in names)
        return f"{linked}; desktops running: {running}, viewers: {len(self.viewers.figures())}"

    async def stop(self) -> None:
        """Stop everything this daemon started, newest first."""
        await self._end_link()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for port in (self.mcp_http, self.stream_port):
            if port is not None:
                await port.close()
        await self.calls.close()
        await self.mcp.close()
        await self.keeper.close()
        await self.recordings.close()
        await self.viewers.close()
        self.turns.close()
        await self.control.close()
        await self.desktops.close()
        await self.action_log.close()
        await self.ledger.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self.socket_path.unlink(missing_ok=True)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (failure := task.exception()) is not None:
        log.error("a part of agentd failed", action="task_failed", task=task.get_name(), exc_info=failure)
