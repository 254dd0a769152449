"""
The workspace's MCP servers: which files configure them, when they are read again, what they offer.

A file is looked at once a second; a change counts when it has lasted for one more look, so that a
half-written file is not read.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import structlog

from agentd.desktops import OUR_PREFIXES, workspace_environment
from agentd.settings import AgentdSettings
from agentd.tools.mcp import mcp_tools
from agentd.tools.registry import Registry
from agentd.wire.mcp import McpServers
from agentd.wire.version import VERSION
from mcp_bridge.bridge import Bridge
from mcp_bridge.config import ConfigFile, EntryProblem, merge, parse_config
from mcp_bridge.errors import BridgeError
from mcp_bridge.hosting.connection import Place

__all__ = ["CONFIG_NAME", "McpHost", "config_environment"]

CONFIG_NAME = ".mcp.json"
SOURCE = "mcp"
RUNTIME_VARIABLE = "AGENTD_RUNTIME_DIR"
# Seconds between looks at the files; three of them cost some 20 µs.
LOOK_S = 1.0
# Model vendors' keys: agentd's environment may hold chatd's, and a file of the workspace must not reach them.
MODEL_KEYS = ("ANTHROPIC_", "OPENAI_", "GEMINI_", "GOOGLE_API_KEY")

Looks = tuple[tuple[int, int, int] | None, ...]

log = structlog.get_logger("agentd.mcp")


def config_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What ``${VAR}`` in a configuration file may mean: everything but our settings and the models' keys."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith((*OUR_PREFIXES, *MODEL_KEYS))
    }


class McpHost:
    """The bridge of one daemon, kept as its files say."""

    def __init__(
        self,
        settings: AgentdSettings,
        registry: Registry,
        environment: Mapping[str, str],
        *,
        tell: Callable[[str, str], None] = lambda _call_id, _text: None,
    ) -> None:
        self._tell = tell
        self._files = settings.mcp_config_files or (settings.working_dir / CONFIG_NAME,)
        self._variables = config_environment(environment)
        self._registry = registry
        place = Place(
            # A server may be started by a command of ours, which must find this daemon.
            environment=workspace_environment(environment) | {RUNTIME_VARIABLE: str(settings.runtime_dir)},
            cwd=str(settings.working_dir if settings.working_dir.is_dir() else Path.home()),
            mark=f"agentd:{settings.runtime_dir}",
            client_name="agentd",
            client_version=VERSION,
        )
        self.bridge = Bridge(place, self._offer)
        self._task: asyncio.Task[None] | None = None
        # The SDK tells what servers say in its own log, secrets and all; the bridge tells it in its own.
        for name in ("mcp", "client", "httpx2", "httpcore2"):
            logging.getLogger(name).addHandler(logging.NullHandler())
            logging.getLogger(name).propagate = False

    async def tell(self, _: object) -> McpServers:
        """The servers and their tools, for the control plane."""
        tools: dict[str, list[str]] = {}
        for tool in self.bridge.tools():
            tools.setdefault(tool.server, []).append(tool.tool)
        return McpServers.model_validate({"servers": self.bridge.statuses(), "tools": tools})

    def start(self) -> None:
        """Begin to host; returns at once."""
        self._task = asyncio.get_running_loop().create_task(self._keep(), name="mcp files")

    async def close(self) -> None:
        """End every server."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        await self.bridge.close()

    async def reload(self) -> None:
        """Read the files now, whether they changed or not."""
        await self.bridge.apply(await asyncio.to_thread(self._read))

    async def _keep(self) -> None:
        if killed := await self.bridge.sweep():
            log.info("ended MCP servers of an earlier life", action="mcp_swept", processes=killed)
        tried: Looks | None = None
        before: Looks | None = None
        while True:
            # Looked at before it is read: a change in between is seen the next time.
            now = await asyncio.to_thread(self._look)
            if now != tried and (tried is None or now == before):
                tried = now
                await self._try()
            before = now
            await asyncio.sleep(LOOK_S)

    async def _try(self) -> None:
        try:
            await self.reload()
        except BridgeError as exc:
            log.warning("MCP servers could not be changed", action="mcp_reload_failed", reason=str(exc))
        states = {status.name: status.state for status in self.bridge.statuses()}
        if states:
            log.info("MCP servers", action="mcp_servers", states=states)

    def _look(self) -> Looks:
        return tuple(_stat(path) for path in self._files)

    def _read(self) -> ConfigFile:
        return merge(_read_file(path, self._variables) for path in self._files)

    def _offer(self) -> None:
        self._registry.offer(SOURCE, mcp_tools(self.bridge, self._tell))


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        info = path.stat()
    except OSError:
        return None
    return info.st_mtime_ns, info.st_size, info.st_ino


def _read_file(path: Path, variables: Mapping[str, str]) -> ConfigFile:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ConfigFile()
    except (OSError, UnicodeDecodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "it is not UTF-8"
        return ConfigFile(
            problems=(EntryProblem(source=str(path), name="", reason=f"can't be read: {reason}"),)
        )
    return parse_config(text, source=str(path), environment=variables)
