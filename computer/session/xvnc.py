"""
Our own desktop: Xvnc and openbox from the distribution.

Viewers come by a Unix socket (0600) and X clients by another with a cookie; no TCP port and
no abstract socket is open. The display number is taken by the X server's own lock file, which
it makes atomically, so two sessions never share one.
"""

import asyncio
import os
import shlex
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from computer.display.x11 import paint_root
from computer.errors import ComputerError, DisplayLost, StartFailed
from computer.session.backend import MAX_CUT_TEXT, SERVER
from computer.session.browser import BROWSERS, with_profile
from computer.session.cookie import create_cookie, write_authority
from computer.session.diagnosis import diagnose, is_taken
from computer.session.exposure import check_closed
from computer.session.openbox import BACKGROUND, render_browser, render_menu, render_rc, render_terminal
from computer.session.process import GRACE_S, Child, ProcessWatch, describe_end, find_program, read_tail
from computer.session.settings import SessionSettings
from computer.session.sockets import connect_unix, free_displays, make_socket_directory, remove_leftovers
from computer.shielding import finish

__all__ = ["XvncBackend", "XvncDesktop"]

# Servers started before giving up, each because another took the number in the same moment.
MAX_ATTEMPTS = 10
# Seconds: for the greeting of Xvnc (80 ms usually, 500 on a cold disk), and between two looks.
START_LIMIT_S = 15.0
POLL_S = 0.01
MANAGER_LIMIT_S = 10.0
# Seconds that a server may take to say why it ends.
LAST_WORDS_S = 0.5
MANAGER = "openbox"
NO_MANAGER = (
    "no window manager: openbox is not installed (apt-get install openbox), so windows have no frames "
    "and can't be moved, minimized or switched"
)


class XvncBackend:
    """Starts Xvnc, then openbox."""

    name = "xvnc"

    def __init__(self, settings: SessionSettings) -> None:
        self._settings = settings

    async def start(self, environment: Mapping[str, str]) -> "XvncDesktop":
        """
        Start both and wait until each answers.

        Raises:
            StartFailed: a program is missing, or ends or stays silent; carries its log.
        """
        find_program("Xvnc", "tigervnc-standalone-server", environment)
        find_program("xterm", "xterm", environment)
        desktop = XvncDesktop(self._settings, environment)
        try:
            await self._start_server(desktop, environment)
            await asyncio.to_thread(paint_root, desktop.display, desktop.cookie, BACKGROUND)
            check_closed(desktop.members[SERVER].pid, desktop.number, allow_loopback=False)
            if desktop.has_manager:
                await desktop.start_manager()
        except ComputerError as exc:
            raise await self._explain(desktop, exc) from exc
        except asyncio.CancelledError:
            await finish(desktop.stop())
            raise
        return desktop

    async def _explain(self, desktop: "XvncDesktop", exc: ComputerError) -> StartFailed:
        """Take down what came up half, and say why it did not come up whole."""
        server = desktop.members.get(SERVER)
        if server is not None:
            # A server that lost its keyboard hangs up before it says why.
            await server.wait_within(0 if isinstance(exc, StartFailed) else LAST_WORDS_S)
        await finish(desktop.stop())
        tail = desktop.log_tail(SERVER)
        reason = diagnose(tail)
        if reason is not None:
            return StartFailed(f"Xvnc can't run: {reason}", log_tail=tail)
        if isinstance(exc, StartFailed):
            return exc
        return StartFailed(f"Xvnc came up but does not answer: {exc}", log_tail=tail)

    async def _start_server(self, desktop: "XvncDesktop", environment: Mapping[str, str]) -> None:
        make_socket_directory()
        rotate(desktop.log("xvnc"))
        numbers = free_displays()
        for _ in range(MAX_ATTEMPTS):
            number = next(numbers, None)
            if number is None:
                break
            desktop.take_number(number)
            server = Child(self._argv(desktop), environment=environment, log=desktop.log("xvnc"))
            desktop.members[SERVER] = server
            if await self._wait_greeting(server):
                return
            await server.stop()
            del desktop.members[SERVER]
            tail = read_tail(desktop.log("xvnc"))
            if not is_taken(tail):
                msg = f"Xvnc ended at once {describe_end(server)}"
                raise StartFailed(msg, log_tail=tail)
        msg = "no free display number"
        raise StartFailed(msg, log_tail=read_tail(desktop.log("xvnc")))

    def _argv(self, desktop: "XvncDesktop") -> list[str]:
        settings = self._settings
        # fmt: off
        return [
            "Xvnc", desktop.display,
            "-geometry", settings.geometry, "-depth", "24", "-dpi", str(settings.dpi),
            "-rfbport", "-1", "-rfbunixpath", str(settings.rfb_socket), "-rfbunixmode", "0600",
            "-SecurityTypes", "None", "-auth", str(desktop.authority),
            "-nolisten", "tcp", "-nolisten", "local", "-noreset",
            # A viewer must neither throw others out nor resize the desktop under the model's feet.
            "-AlwaysShared", "-AcceptSetDesktopSize=0",
            # Xvnc counts handshakes that a relay has not finished, and then refuses everybody.
            "-BlacklistThreshold=1000000", f"-MaxCutText={MAX_CUT_TEXT}",
            "-desktop", settings.name, "-s", "0", "-dpms",
        ]
        # fmt: on

    async def _wait_greeting(self, server: ProcessWatch) -> bool:
        """Wait for RFB's first bytes; False when the server ended instead."""
        try:
            async with asyncio.timeout(START_LIMIT_S):
                while server.is_alive:
                    if await read_greeting(self._settings.rfb_socket):
                        return True
                    await server.wait_within(POLL_S)
        except TimeoutError as exc:
            tail = read_tail(self._settings.runtime_dir / "xvnc.log")
            msg = f"Xvnc did not greet within {START_LIMIT_S:g} s"
            raise StartFailed(msg, log_tail=tail) from exc
        return False


class XvncDesktop:
    """
    A running Xvnc with openbox.

    Args:
        environment: what openbox and the programs that it starts get beside DISPLAY and XAUTHORITY.
    """

    mendable = frozenset({MANAGER})

    def __init__(self, settings: SessionSettings, environment: Mapping[str, str]) -> None:
        self._settings = settings
        self._base = environment
        self.number = -1
        self.cookie = create_cookie()
        self.authority = settings.runtime_dir / "Xauthority"
        self.members: dict[str, ProcessWatch] = {}
        self.has_manager = shutil.which("openbox", path=environment.get("PATH")) is not None

    @property
    def warnings(self) -> tuple[str, ...]:
        """That there is no window manager, where there is none."""
        return () if self.has_manager else (NO_MANAGER,)

    @property
    def display(self) -> str:
        """X display."""
        return f":{self.number}"

    @property
    def environment(self) -> Mapping[str, str]:
        """DISPLAY and XAUTHORITY."""
        return {"DISPLAY": self.display, "XAUTHORITY": str(self.authority)}

    def log(self, member: str) -> Path:
        """Log file of a member."""
        return self._settings.runtime_dir / f"{member}.log"

    def take_number(self, number: int) -> None:
        """Aim at a display number and write the authority file for it."""
        self.number = number
        write_authority(self.authority, number, self.cookie)

    def log_tail(self, role: str) -> str:
        """End of a member's log."""
        return read_tail(self.log(role))

    async def mend(self, role: str) -> None:
        """Start the window manager again: it takes the windows that are there into its care."""
        if role != MANAGER:
            msg = f"{role} can't be started again alone"
            raise StartFailed(msg)
        await self.start_manager()

    async def start_manager(self) -> None:
        """
        Start openbox and wait until it listens to keys.

        Raises:
            StartFailed: it ended, or is not ready in time; carries its log.
        """
        rc = write_openbox_files(self._settings.runtime_dir, self._base)
        log = self.log(MANAGER)
        rotate(log)
        ready = self._settings.runtime_dir / "openbox.ready"
        await asyncio.to_thread(ready.unlink, missing_ok=True)
        # Openbox announces itself on the root window before it listens to any key; its start-up
        # command runs after that.
        startup = shlex.join(["touch", str(ready)])
        argv = ["openbox", "--sm-disable", "--config-file", str(rc), "--startup", startup]
        manager = Child(argv, environment={**self._base, **self.environment}, log=log)
        self.members[MANAGER] = manager
        if not await self._wait_ready(manager, ready):
            msg = "openbox did not come up"
            raise StartFailed(msg, log_tail=read_tail(log))

    async def _wait_ready(self, manager: ProcessWatch, ready: Path) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(MANAGER_LIMIT_S):
                while manager.is_alive:
                    if await asyncio.to_thread(ready.exists):
                        return True
                    await manager.wait_within(POLL_S)
        return False

    async def connect_rfb(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect by the Unix socket."""
        try:
            return await connect_unix(self._settings.rfb_socket)
        except OSError as exc:
            msg = f"Xvnc takes no viewer: {exc}"
            raise DisplayLost(msg) from exc

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """Stop both, by force after *grace_s*; remove what they leave when they were killed."""
        server = self.members.get(SERVER)
        # Together: a manager that is busy with a changed keyboard hears of its end through the server.
        await asyncio.gather(*(member.stop(grace_s) for member in self.members.values()))
        self.members.clear()
        if server is not None:
            remove_leftovers(self.number, server.pid)
        self._settings.rfb_socket.unlink(missing_ok=True)
        self.authority.unlink(missing_ok=True)


async def read_greeting(path: Path) -> bool:
    """Whether an RFB server greets on this socket."""
    try:
        reader, writer = await connect_unix(path)
    except OSError:
        return False
    try:
        return (await reader.readexactly(12)).startswith(b"RFB 003.")
    except (OSError, asyncio.IncompleteReadError):
        return False
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def write_openbox_files(directory: Path, environment: Mapping[str, str]) -> Path:
    """Write configuration, menu and scripts; returns the path of the configuration."""
    path = environment.get("PATH")
    # Scripts are run by sh, not by themselves: runtime directories are often mounted noexec.
    terminal = directory / "terminal.sh"
    terminal.write_text(render_terminal(has_bash=shutil.which("bash", path=path) is not None))
    open_terminal = shlex.join(["sh", str(terminal)])
    program = next((found for name in BROWSERS if (found := shutil.which(name, path=path))), None)
    open_browser = None
    if program is not None:
        browser = directory / "browser.sh"
        profile = directory / "browser-profile"
        argv = with_profile([program], profile, is_root=os.geteuid() == 0)
        browser.write_text(render_browser(argv))
        open_browser = shlex.join(["sh", str(browser)])
    menu = directory / "menu.xml"
    menu.write_text(render_menu(terminal=open_terminal, browser=open_browser))
    rc = directory / "rc.xml"
    rc.write_text(render_rc(terminal=open_terminal, menu=str(menu)))
    return rc


def rotate(log: Path) -> None:
    """Keep the log of the last run beside the new one: it tells why that run ended."""
    with suppress(FileNotFoundError):
        log.rename(log.with_suffix(".log.old"))
