"""
A desktop made by the ``portabledesktop`` command.

Its defaults leave VNC open on every interface and X open to every user. Later options of ours
close the first and give X a cookie; access control, which it switches off, is switched on again
through X; and what came of it is looked up and tried before the desktop is used.

It is told the display number and the port: by itself it takes the first number without a socket, below 10
as well, whatever holds its lock or listens without a file. Its ``info`` is not asked: it repeats the state
file without a look whether that is true, so the file is read and the processes are watched instead.

Its output is read from stdout alone, since warnings go to stderr. Its processes are not our
children: they are watched by pidfd, and what survives ``down`` is ended by us. Everything that it
is given is an option with its value behind ``=``, so nothing that begins with a dash is mistaken.
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

from computer.display.x11 import enforce_cookie
from computer.errors import ComputerError, DisplayLost, StartFailed
from computer.session.backend import MAX_CUT_TEXT, SERVER
from computer.session.cookie import create_cookie, write_authority
from computer.session.diagnosis import is_taken
from computer.session.exposure import check_closed
from computer.session.process import GRACE_S, Child, ProcessWatch, read_tail
from computer.session.settings import SessionSettings
from computer.session.sockets import free_displays, free_port, make_socket_directory, remove_leftovers
from computer.shielding import finish

__all__ = ["PortableBackend", "PortableDesktop", "UpReport", "find_portabledesktop"]

# Seconds: `up` may unpack a runtime first; `down` waits 5 s for each of two processes itself.
UP_LIMIT_S = 60.0
DOWN_LIMIT_S = 20.0
# Ups before giving up, each because another took the number or the port in the same moment.
MAX_ATTEMPTS = 3
# Seconds in which a window manager that can't work has ended.
MEND_S = 0.3
# Bytes of the command's output that are looked at.
OUTPUT_LIMIT = 64 * 1024
# Later arguments win over the command's own: loopback only, no abstract socket, viewers share and
# can't resize, no blanking; and no reset when its last client leaves, which would open it again.
# The command splits each at commas.
XVNC_ARGUMENTS = (
    "-localhost=yes", "-interface=127.0.0.1", "-nolisten", "local", "-noreset", "-AlwaysShared",
    "-AcceptSetDesktopSize=0", "-BlacklistThreshold=1000000", f"-MaxCutText={MAX_CUT_TEXT}", "-s", "0",
    "-dpms",
)  # fmt: skip
MANAGER = "openbox"


class UpReport(BaseModel):
    """What ``up --json`` prints; fields that we don't need are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    display: Annotated[int, Field(ge=0, le=65_535)]
    vnc_port: Annotated[int, Field(ge=1, le=65_535, alias="vncPort")]
    xvnc_pid: Annotated[int, Field(ge=2, alias="xvncPid")]
    openbox_pid: Annotated[int | None, Field(alias="openboxPid")] = None
    runtime_dir: Annotated[str, Field(alias="runtimeDir")] = ""


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
        make_socket_directory()
        numbers = free_displays()
        for attempt in range(1, MAX_ATTEMPTS + 1):
            number = next(numbers, None)
            if number is None:
                break
            desktop = PortableDesktop(self._settings, command, environment)
            try:
                return await self._start(desktop, number)
            except StartFailed:
                if attempt == MAX_ATTEMPTS or not is_taken(desktop.log_tail(SERVER)):
                    raise
        msg = "no free display number"
        raise StartFailed(msg)

    async def _start(self, desktop: "PortableDesktop", number: int) -> "PortableDesktop":
        try:
            # A second `up` would forget the first session, and leave its processes behind.
            await desktop.bring_down()
            desktop.prepare(number)
            output = await desktop.run("up", *self._arguments(desktop, number), limit_s=UP_LIMIT_S)
            report = _parse(output)
            desktop.adopt(report)
            desktop.write_authority(report.display)
            await asyncio.to_thread(enforce_cookie, desktop.display, desktop.cookie)
            check_closed(report.xvnc_pid, report.display, allow_loopback=True)
        except (ComputerError, asyncio.CancelledError) as exc:
            # `up` may have failed after its server was up already.
            await finish(desktop.stop())
            if isinstance(exc, ComputerError) and not isinstance(exc, StartFailed):
                msg = f"portabledesktop came up but does not answer: {exc}"
                raise StartFailed(msg, log_tail=desktop.log_tail(SERVER)) from exc
            raise
        return desktop

    def _arguments(self, desktop: "PortableDesktop", number: int) -> list[str]:
        settings = self._settings
        if "," in str(settings.runtime_dir):
            msg = f"{settings.runtime_dir} holds a comma, which portabledesktop can't take; choose another"
            raise StartFailed(msg)
        arguments = ["--json", f"--session-dir={desktop.directory}", "--desktop-size-mode=fixed"]
        arguments += [f"--geometry={settings.geometry}", f"--dpi={settings.dpi}"]
        arguments += [f"--display={number}", f"--port={free_port()}"]
        server = ("-auth", str(desktop.authority), *XVNC_ARGUMENTS)
        return arguments + [f"--xvnc-arg={argument}" for argument in server]


class PortableDesktop:
    """A running portabledesktop session."""

    mendable = frozenset({MANAGER})
    warnings: tuple[str, ...] = ()

    def __init__(self, settings: SessionSettings, command: str, environment: Mapping[str, str]) -> None:
        self._settings = settings
        self._command = command
        self._environment = environment
        self._report: UpReport | None = None
        self.cookie = create_cookie()
        self.authority = settings.runtime_dir / "Xauthority"
        self.directory = settings.runtime_dir / "portable"
        self.members: dict[str, ProcessWatch] = {}

    @property
    def display(self) -> str:
        """X display."""
        return f":{self._report.display}" if self._report else ""

    @property
    def environment(self) -> Mapping[str, str]:
        """DISPLAY and XAUTHORITY."""
        return {"DISPLAY": self.display, "XAUTHORITY": str(self.authority)}

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
        pids = {SERVER: report.xvnc_pid, MANAGER: report.openbox_pid}
        for role, pid in pids.items():
            if pid is not None:
                try:
                    self.members[role] = ProcessWatch(pid)
                except ProcessLookupError as exc:
                    msg = f"{role} of portabledesktop ended at once"
                    raise StartFailed(msg) from exc

    def prepare(self, number: int) -> None:
        """Get ready for a server on display *number*; what an earlier one said is no sign of it."""
        self.write_authority(number)
        (self.directory / f"{SERVER}.log").unlink(missing_ok=True)

    def write_authority(self, number: int) -> None:
        """Write the authority file for display *number*; the server reads it when it starts."""
        write_authority(self.authority, number, self.cookie)

    def log_tail(self, role: str) -> str:
        """End of a member's log, in the session's directory."""
        return read_tail(self.directory / f"{role}.log")

    async def mend(self, role: str) -> None:
        """Start the window manager again, as the command has no word for that."""
        if role != MANAGER or self._report is None:
            msg = f"{role} can't be started again alone"
            raise StartFailed(msg)
        bundled = Path(self._report.runtime_dir) / "bin" / "openbox"
        program = str(bundled) if await asyncio.to_thread(bundled.exists) else "openbox"
        variables = {**self._environment, **self.environment}
        manager = Child([program], environment=variables, log=self.directory / "openbox.log")
        self.members[MANAGER] = manager
        if await manager.wait_within(MEND_S):
            msg = "openbox ended at once"
            raise StartFailed(msg, log_tail=self.log_tail(MANAGER))

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
        argv = [self._command, verb, f"--state-file={self._state_file}", *arguments]
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

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """Run ``down``, then end whatever outlived it, by force after *grace_s*."""
        await self.bring_down()
        for role in (MANAGER, SERVER):
            member = self.members.get(role)
            if member is not None:
                await member.stop(grace_s)
        self.members.clear()
        if self._report is not None:
            remove_leftovers(self._report.display, self._report.xvnc_pid)
        await asyncio.to_thread(self._forget)

    async def bring_down(self) -> None:
        """Run ``down`` where a state file tells of a session whose processes are what it says."""
        if await asyncio.to_thread(self._is_in_state):
            with suppress(StartFailed):
                await self.run("down", limit_s=DOWN_LIMIT_S)

    def _is_in_state(self) -> bool:
        """
        Whether the state file tells of our server; forgotten where it does not.

        ``down`` signals the stored numbers, which may be another's by now: only a server that was
        given our cookie file is ours.
        """
        try:
            report = UpReport.model_validate_json(self._state_file.read_bytes())
            words = Path(f"/proc/{report.xvnc_pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValidationError):
            words = []
        if str(self.authority).encode() in words:
            return True
        self._state_file.unlink(missing_ok=True)
        return False

    def _forget(self) -> None:
        for path in (self._state_file, self.authority):
            path.unlink(missing_ok=True)


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
