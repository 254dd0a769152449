"""
Everything on one machine: chatd and the daemon in one process.

chatd runs on SQLite and the two are linked over a real WebSocket on loopback. This
is the only module of agentd that knows chatd.
"""

import asyncio
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from tomllib import TOMLDecodeError
from typing import Any

from pydantic import ValidationError

from agentd.app import Daemon, make_private_dir
from agentd.cli.exits import CliError, Exit
from agentd.cli.run import bad_setting
from agentd.errors import AgentError
from agentd.settings import AgentdSettings
from chatd.app import ControlPlane
from chatd.errors import ChatdError
from chatd.settings import ChatdSettings

__all__ = ["RUN_FILE", "RunInfo", "Stack", "make_settings", "read_run_file"]

# Inside the runtime directory, mode 0600: how the other commands find a running `agentd up`.
RUN_FILE = "up.json"
# Seconds until the daemon must have linked itself to the chatd beside it.
LINK_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """What a running `agentd up` tells: *url* logs a browser in once, *token* is an API token."""

    url: str
    api: str
    token: str
    pid: int
    data_dir: str


def make_settings(
    *, data: Path | None, port: int | None, default_data: Path
) -> tuple[ChatdSettings, AgentdSettings]:
    """
    Both daemons' settings from arguments and environment.

    Raises:
        CliError: a setting makes no sense; the text names it.
    """
    given: dict[str, Any] = {} if port is None else {"port": port}
    if data is not None:
        given["data_dir"] = data.expanduser().absolute()
    elif "CHATD_DATA_DIR" not in os.environ:
        given["data_dir"] = default_data
    try:
        chatd = ChatdSettings(**given)
        # One place for all that is kept, unless somebody says otherwise.
        if "AGENTD_DATA_DIR" in os.environ:
            return chatd, AgentdSettings()
        return chatd, AgentdSettings(data_dir=chatd.data_dir / "workspace")
    except (ValidationError, TOMLDecodeError, OSError) as exc:
        raise bad_setting(exc) from exc


def read_run_file(runtime_dir: Path) -> RunInfo | None:
    """The running `agentd up`, if there is one that lives."""
    try:
        info = RunInfo(**json.loads((runtime_dir / RUN_FILE).read_text()))
        os.kill(info.pid, 0)
    except (OSError, ValueError, TypeError):
        return None
    return info


class Stack:
    """chatd and agentd, started and stopped together."""

    def __init__(self, chatd: ChatdSettings, agentd: AgentdSettings) -> None:
        self._chatd_settings = chatd
        self._agentd_settings = agentd
        self.control_plane = ControlPlane(chatd)
        self.daemon: Daemon | None = None
        self.info: RunInfo | None = None

    @property
    def is_rehearsal(self) -> bool:
        """Whether only the rehearsal model answers."""
        configs = self.control_plane.services.catalog.configs()
        return all(config.rehearsal for config in configs)

    async def start(self) -> RunInfo:
        """
        Start both and link them.

        Raises:
            CliError: with what to do; nothing is left behind.
        """
        try:
            return await self._start()
        except (ChatdError, AgentError, OSError) as exc:
            await self.stop()
            code = getattr(exc, "code", "os_error")
            raise CliError(Exit.CANNOT_START, str(exc), code=code) from exc
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> RunInfo:
        make_private_dir(self._agentd_settings.runtime_dir)
        await self.control_plane.start()
        tokens = await self.control_plane.issue_local_tokens(self._agentd_settings.name)
        settings = self._agentd_settings.model_copy(
            update={"control_url": self.control_plane.url, "agent_token": tokens.agent}
        )
        self.daemon = Daemon(settings)
        await self.daemon.start()
        await self._wait_linked(self.daemon)
        self.info = RunInfo(
            url=f"{self.control_plane.url}/login?token={tokens.login}",
            api=f"{self.control_plane.url}/api/experimental",
            token=tokens.api,
            pid=os.getpid(),
            data_dir=str(self._chatd_settings.data_dir),
        )
        _write_private(self._agentd_settings.runtime_dir / RUN_FILE, json.dumps(asdict(self.info)))
        return self.info

    async def _wait_linked(self, daemon: Daemon) -> None:
        if daemon.link is None:
            return
        try:
            async with asyncio.timeout(LINK_TIMEOUT_S):
                await daemon.link.connected.wait()
        except TimeoutError:
            msg = f"the daemon did not link itself to {self.control_plane.url} within {LINK_TIMEOUT_S:g} s"
            raise CliError(Exit.CANNOT_START, msg, code="link_timeout") from None

    async def stop(self) -> None:
        """Stop chats first, then the desktop; no process, socket or lock is left."""
        if self.info is not None:
            (self._agentd_settings.runtime_dir / RUN_FILE).unlink(missing_ok=True)
            self.info = None
        await self.control_plane.stop()
        if self.daemon is not None:
            await self.daemon.stop()
            self.daemon = None


def _write_private(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
