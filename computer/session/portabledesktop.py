"""
A desktop made by the ``portabledesktop`` command.

Its defaults leave VNC open on every interface; ours close that. Its output is read from
stdout alone, since warnings go to stderr. Its processes are not our children: they are
watched by pidfd, and what survives ``down`` is ended by us.
"""

import asyncio
import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from computer.errors import DisplayLost, StartFailed
from computer.session.process import ProcessWatch
from computer.session.settings import SessionSettings
from computer.session.sockets import remove_leftovers
from computer.shielding import finish

__all__ = ["PortableBackend", "PortableDesktop", "UpReport", "find_portabledesktop"]

# Seconds: `up` may unpack a runtime first; `down` waits 5 s for each of two processes itself.
UP_LIMIT_S = 60.0
DOWN_LIMIT_S = 20.0
# Bytes of the command's output that are looked at.
OUTPUT_LIMIT = 64 * 1024
# Later arguments win over the command's own: loopback only, no abstract socket, viewers share.
XVNC_ARGUMENTS = (
    "-localhost=yes", "-interface=127.0.0.1", "-nolisten", "local", "-AlwaysShared",
    "-BlacklistThreshold=1000000",
)  # fmt: skip


class UpReport(BaseModel):
    """What ``up --json`` prints; fields that we don't need are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    display: Annotated[int, Field(ge=0, le=65_535)]
    vnc_port: Annotated[int, Field(ge=1, le=65_535, alias="vncPort")]
    xvnc_pid: Annotated[int, Field(ge=2, alias="xvncPid")]
    openbox_pid: Annotated[int | None, Field(alias="openboxPid")] = None


def find_portabledesktop(settings: SessionSettings, environment: Mapping[str, str]) -> str | None:
    """Path of the command that the settings name, or that PATH holds."""
    return shutil.which(settings.portabledesktop or "portabledesktop", path=environment.get("PATH"))


class PortableBackend:
    """Runs ``up``."""

    name = "portabledesktop"

    def __init__(self, settings: SessionSettings) -> None:
        self._settings = settings

    async def start(self, environment: Mapping[str, str]) -> "PortableDesktop":
        """
        Bring a desktop up with a state file private to this session.

        Raises:
            StartFailed: the command is missing, fails, or prints something else.
        """
        command = find_portabledesktop(self._settings, environment)
        if command is None:
            msg = "missing: install portabledesktop, or use the xvnc back-end"
            raise StartFailed(msg)
        desktop = PortableDesktop(self._settings, command, environment)
        try:
            output = await desktop.run("up", *self._arguments(), limit_s=UP_LIMIT_S)
            desktop.adopt(_parse(output))
        except (StartFailed, asyncio.CancelledError):
            # `up` may have failed after its server was up already.
            await finish(desktop.stop())
            raise
        return desktop

    def _arguments(self) -> list[str]:
        settings = self._settings
        arguments = ["--json", "--session-dir", str(settings.runtime_dir / "portable")]
        arguments += ["--geometry", settings.geometry, "--dpi", str(settings.dpi)]
        return arguments + [f"--xvnc-arg={argument}" for argument in XVNC_ARGUMENTS]


class PortableDesktop:
    """A running portabledesktop session."""

    cookie = None

    def __init__(self, settings: SessionSettings, command: str, environment: Mapping[str, str]) -> None:
        self._settings = settings
        self._command = command
        self._environment = environment
        self._report: UpReport | None = None
        self.members: dict[str, ProcessWatch] = {}

    @property
    def display(self) -> str:
        """X display."""
        return f":{self._report.display}" if self._report else ""

    @property
    def environment(self) -> Mapping[str, str]:
        """DISPLAY; the server takes every local client."""
        return {"DISPLAY": self.display}

    @property
    def _state_file(self) -> Path:
        return self._settings.runtime_dir / "portabledesktop.json"

    def adopt(self, report: UpReport) -> None:
        """
        Watch the processes that ``up`` left.

        Raises:
            StartFailed: one of them is gone already.
        """
        self._report = report
        pids = {"xvnc": report.xvnc_pid, "openbox": report.openbox_pid}
        for role, pid in pids.items():
            if pid is not None:
                try:
                    self.members[role] = ProcessWatch(pid)
                except ProcessLookupError as exc:
                    msg = f"{role} of portabledesktop ended at once"
                    raise StartFailed(msg) from exc

    async def connect_rfb(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect by the loopback port."""
        if self._report is None:
            msg = "portabledesktop is not up"
            raise DisplayLost(msg)
        try:
            return await asyncio.open_connection("127.0.0.1", self._report.vnc_port)
        except OSError as exc:
            msg = f"portabledesktop takes no viewer: {exc}"
            raise DisplayLost(msg) from exc

    async def run(self, verb: str, *arguments: str, limit_s: float) -> bytes:
        """
        Run one of the command's verbs; returns its stdout.

        Raises:
            StartFailed: it fails, or takes longer than *limit_s*.
        """
        argv = [self._command, verb, "--state-file", str(self._state_file), *arguments]
        try:
            process = await asyncio.create_subprocess_exec(
                *argv, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, env=dict(self._environment)
            )
        except OSError as exc:
            msg = f"{self._command} can't be started: {exc}"
            raise StartFailed(msg) from exc
        try:
            async with asyncio.timeout(limit_s):
                output, complaint = await process.communicate()
        except TimeoutError as exc:
            msg = f"portabledesktop {verb} took longer than {limit_s:g} s"
            raise StartFailed(msg) from exc
        finally:
            if process.returncode is None:
                process.kill()
                await finish(_collect(process))
        if process.returncode != 0:
            tail = complaint[-2_000:].decode("utf-8", "replace").strip()
            msg = f"portabledesktop {verb} failed with status {process.returncode}"
            raise StartFailed(msg, log_tail=tail)
        return output[:OUTPUT_LIMIT]

    async def stop(self) -> None:
        """Run ``down``, then end whatever outlived it."""
        if await asyncio.to_thread(self._state_file.exists):
            with suppress(StartFailed):
                await self.run("down", limit_s=DOWN_LIMIT_S)
        for role in ("openbox", "xvnc"):
            member = self.members.get(role)
            if member is not None:
                await member.stop()
        self.members.clear()
        if self._report is not None:
            remove_leftovers(self._report.display, self._report.xvnc_pid)
        await asyncio.to_thread(self._state_file.unlink, missing_ok=True)


def _parse(output: bytes) -> UpReport:
    # `up` prints one object; a foreground one prints it as the first line.
    try:
        value, _ = json.JSONDecoder().raw_decode(output.decode().lstrip())
        return UpReport.model_validate(value)
    except (ValueError, ValidationError) as exc:
        text = output[:500].decode("utf-8", "replace").strip()
        msg = "portabledesktop up printed no session that we understand"
        raise StartFailed(msg, log_tail=text) from exc


async def _collect(process: asyncio.subprocess.Process) -> None:
    await process.communicate()
