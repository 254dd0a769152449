"""
One desktop session: started when first needed, kept up, and taken down with all that was started in it.

Owns what can be asked of a desktop. Its lives and deaths are the supervisor's.
"""

import asyncio
import os
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from computer.display.x11 import WindowDesk, X11Display, paint_wallpaper, resize_screen
from computer.driver import ComputerDriver
from computer.errors import (
    CaptureTimeout,
    ComputerError,
    DisplayLost,
    InvalidAction,
    StartFailed,
    Unavailable,
    WallpaperUnreadable,
)
from computer.geometry import Size
from computer.rfb.viewer import MAX_CLIPBOARD_BYTES
from computer.session.apps import Apps
from computer.session.backend import Backend, RunningDesktop
from computer.session.browser import clear_profile_locks, with_profile
from computer.session.guard import Guard
from computer.session.launch import OutputTail
from computer.session.portabledesktop import PortableBackend, find_portabledesktop
from computer.session.process import LOST_GRACE_S, Child, end_marked
from computer.session.settings import SessionSettings
from computer.session.sockets import lock_of, socket_of
from computer.session.supervisor import Live, Supervisor
from computer.session.windows import Launch, use_windows, wait_first_window
from computer.session.xvnc import XvncBackend
from computer.shielding import finish
from computer.wire import (
    AppInfo,
    ComputerCall,
    ComputerResult,
    DesktopStatus,
    LaunchReport,
    ScreenshotData,
    WindowInfo,
    WindowReport,
)

__all__ = ["DesktopSession"]

# Seconds in which a launched program should show its first window; a browser takes one or two.
LAUNCH_S = 10.0
# Variable by which everything that runs in a session is found again.
MARK = "COMPUTER_SESSION"
# Variables of somebody else's desktop.
FOREIGN = (
    "DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "SESSION_MANAGER", "DESKTOP_STARTUP_ID", "XDG_SESSION_ID",
)  # fmt: skip
# Codes of a result whose desktop was lost in the middle of the call.
LOST_CODES = frozenset({DisplayLost.code, CaptureTimeout.code})
LOST_MIDWAY = (
    "the desktop was lost in the middle of this call: what was done before may have happened or not, and "
    "nothing was done after. Look at the screenshot before you go on"
)


class DesktopSession:
    """
    A desktop that is there when it is needed.

    Args:
        settings: what it should be.
        on_change: called with the new status after each change of state; must not block.
        backend: makes the desktop; chosen by the settings when None.
        base_environment: variables that programs in the session start from; those of this
            process when None.
    """

    def __init__(
        self,
        settings: SessionSettings,
        *,
        on_change: Callable[[DesktopStatus], None] | None = None,
        backend: Backend | None = None,
        base_environment: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = settings
        self._on_change = on_change
        base = os.environ if base_environment is None else base_environment
        self._base = {name: value for name, value in base.items() if name not in FOREIGN}
        self._mark = secrets.token_hex(16)
        self._backend = backend or _choose_backend(settings, self._base)
        self._apps = Apps()
        self._size = self._first_size()
        # Of a text on the clipboard that a viewer asked for and that was too long.
        self._withheld_bytes = 0
        self._guard: Guard | None = None
        self._supervisor = Supervisor(
            settings.name, bring_up=self._bring_up, tear_down=self._tear_down, on_change=self._tell_change
        )

    @property
    def _live(self) -> Live | None:
        return self._supervisor.live

    def _first_size(self) -> Size:
        return Size(width=self._settings.width, height=self._settings.height)

    async def ensure_running(self) -> None:
        """
        Start the desktop unless it runs; callers at the same time share one start.

        Raises:
            StartFailed: it did not come up.

        Cancellation:
            the start goes on: others may be waiting for it.
        """
        await self._supervisor.ensure()

    async def perform(self, call: ComputerCall) -> ComputerResult:
        """
        Perform a call, starting the desktop first when needed.

        When the desktop turns out to be gone before anything was done, the call is performed
        once more on a new one. When it is lost in the middle, the result says so and shows the new
        one. The first result after a restart names it.

        Raises:
            StartFailed: the desktop did not come up.
            DisplayLost, CaptureTimeout: the new desktop was lost as well.
        """
        live = await self._supervisor.ensure()
        try:
            result = await live.driver.perform(call)
        except Unavailable:
            # A dying server hangs up before the kernel reports its end.
            live.give_up()
            live = await self._supervisor.ensure()
            result = await live.driver.perform(call)
        if result.error_code in LOST_CODES:
            result = await self._show_new_desktop(live, call, result)
        notices = self._supervisor.take_notices()
        return result.model_copy(update={"warnings": (*notices, *result.warnings)}) if notices else result

    async def screenshot(self, model_size: tuple[int, int] | None = None) -> ScreenshotData:
        """Picture of the screen, starting the desktop first when needed; see ``ComputerDriver``."""
        return await (await self._supervisor.ensure()).driver.screenshot(model_size)

    async def release_input(self) -> None:
        """Release every key and button that is held; nothing happens while stopped."""
        if self._live is not None and self._live.is_usable:
            with suppress(DisplayLost):
                await self._live.driver.release_all()

    async def adopt_clipboard(self) -> None:
        """
        Make a long text on the clipboard readable for viewers, up to what they may send themselves.

        A longer one stays where it is, and the status tells how long it is.
        """
        if (live := self._live) is not None and live.is_usable:
            with suppress(ComputerError):
                self._withheld_bytes = await live.driver.adopt_clipboard(MAX_CLIPBOARD_BYTES)

    async def open(self, argv: Sequence[str], *, cwd: str | None = None) -> int:
        """
        Launch a program in the session; it ends with the session at the latest.

        Raises:
            InvalidAction: no program, one that is not installed, or too many running.
            StartFailed: the desktop did not come up.
        """
        _check_program(argv)
        await self._supervisor.ensure()
        return self._start_app(argv, cwd, None).pid

    async def launch(
        self, argv: Sequence[str], *, timeout_s: float = LAUNCH_S, cwd: str | None = None
    ) -> LaunchReport:
        """
        Launch a program in the session and wait for its first window.

        A program that shows none in time goes on; the report says so.

        Raises:
            InvalidAction: no program, one that is not installed, or too many running.
            LaunchFailed: it ended with an error before it showed a window.
            StartFailed, DisplayLost, CaptureTimeout: there is no desktop.

        Cancellation:
            the program goes on, once it was started.
        """
        _check_program(argv)
        desktop = await self._get_desktop()
        known = {window.id for window in await use_windows(desktop, WindowDesk.top_levels)}
        tail = OutputTail()
        app = self._start_app(argv, cwd, tail)
        launch = Launch(program=argv[0], app=app, tail=tail, known=known)
        return await wait_first_window(desktop, launch, timeout_s)

    def apps(self) -> tuple[AppInfo, ...]:
        """Programs that were opened here and run, oldest first."""
        return self._apps.list()

    async def stop_app(self, pid: int) -> None:
        """End a program that was opened here, with its process group; raises InvalidAction."""
        await self._apps.stop(pid)

    async def windows(self) -> tuple[WindowInfo, ...]:
        """All windows that the window manager lists; none where no manager runs."""
        return await use_windows(await self._get_desktop(), WindowDesk.windows)

    async def active_window(self) -> WindowInfo | None:
        """The window that has the focus, or None."""
        return await use_windows(await self._get_desktop(), WindowDesk.active)

    async def focus_window(self, number: int) -> WindowReport:
        """Raise a window and give it the focus; raises WindowNotFound or NotConfirmed."""
        return await use_windows(await self._get_desktop(), lambda desk: desk.focus(number))

    async def move_window(self, number: int, x: int, y: int) -> WindowReport:
        """Move a window to native pixels; see ``WindowDesk.move``."""
        return await use_windows(await self._get_desktop(), lambda desk: desk.move(number, x, y))

    async def resize_window(self, number: int, width: int, height: int) -> WindowReport:
        """Give a window a size in pixels; see ``WindowDesk.resize``."""
        return await use_windows(await self._get_desktop(), lambda desk: desk.resize(number, width, height))

    async def close_window(self, number: int, *, force: bool = False) -> None:
        """Close a window and see that it has gone; see ``WindowDesk.close_window``."""
        await use_windows(await self._get_desktop(), lambda desk: desk.close_window(number, force=force))

    async def resize_screen(self, width: int, height: int) -> None:
        """
        Give the screen another size while programs run, starting the desktop first when needed.

        It keeps that size until the session is stopped. Who acts by an older picture is refused once.

        Raises:
            InvalidAction: the server can't have that size.
            NotConfirmed: it did not change in time.
            StartFailed, DisplayLost: there is no desktop.
        """
        desktop = await self._get_desktop()
        size = Size(width=width, height=height)
        await asyncio.to_thread(resize_screen, desktop.display, desktop.cookie, size)
        self._size = size
        await self._hang_wallpaper(desktop)

    async def connect_rfb(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """
        Connect a viewer, starting the desktop first when needed; the caller closes it.

        Raises:
            StartFailed, DisplayLost: there is no desktop to look at.
        """
        return await (await self._get_desktop()).connect_rfb()

    async def x_server(self) -> tuple[str, bytes | None]:
        """
        Display name and cookie of the X server, starting the desktop first when needed.

        Raises:
            StartFailed, DisplayLost: there is no desktop.
        """
        desktop = await self._get_desktop()
        return desktop.display, desktop.cookie

    def status(self) -> DesktopStatus:
        """Describe the session as it is now."""
        live = self._live
        members = live.desktop.members if live is not None else {}
        pids = {role: watch.pid for role, watch in members.items()}
        pids |= {f"app.{app.pid}": app.pid for app in self._apps.list()}
        return DesktopStatus(
            name=self._settings.name,
            state=self._supervisor.state,
            display=live.desktop.display if live is not None else None,
            backend=self._backend.name,
            geometry=f"{self._size.width}x{self._size.height}",
            pids=pids,
            error=self._supervisor.error,
            restarts=self._supervisor.restart_count,
            warnings=live.desktop.warnings if live is not None else (),
            clipboard_withheld_bytes=self._withheld_bytes if live is not None else 0,
        )

    def environment(self) -> dict[str, str]:
        """All variables of a program in this session; without DISPLAY while it is stopped."""
        variables = {**self._base, MARK: self._mark, "XDG_SESSION_TYPE": "x11"}
        if "UTF-8" not in variables.get("LANG", "").upper().replace("UTF8", "UTF-8"):
            variables["LANG"] = "C.UTF-8"
        if self._live is not None:
            variables |= self._live.desktop.environment
        return variables

    async def stop(self) -> None:
        """Stop everything that runs in the session; harmless when repeated."""
        await finish(self._stop())

    async def _stop(self) -> None:
        await self._supervisor.stop()
        self._size = self._first_size()
        await asyncio.to_thread(_clear_private, self._settings.runtime_dir)

    def _start_app(self, argv: Sequence[str], cwd: str | None, tail: OutputTail | None) -> Child:
        profile = self._settings.runtime_dir / "browser-profile"
        command = with_profile(argv, profile, is_root=os.geteuid() == 0)
        return self._apps.start(command, self.environment(), cwd=cwd, tail=tail)

    async def _get_desktop(self) -> RunningDesktop:
        return (await self._supervisor.ensure()).desktop

    async def _show_new_desktop(
        self, live: Live, call: ComputerCall, result: ComputerResult
    ) -> ComputerResult:
        """What a call answers that lost its desktop: that, and the next desktop's screen."""
        live.give_up()
        screenshot = result.screenshot
        with suppress(ComputerError):
            screenshot = await (await self._supervisor.ensure()).driver.screenshot(call.model_size)
        return result.model_copy(
            update={"error": f"{LOST_MIDWAY} ({result.error})", "screenshot": screenshot}
        )

    async def _bring_up(self) -> Live:
        self._withheld_bytes = 0
        directory = self._settings.runtime_dir
        await asyncio.to_thread(_make_private, directory)
        await asyncio.to_thread(clear_profile_locks, directory / "browser-profile")
        self._guard = Guard(f"{MARK}={self._mark}", directory, self._base)
        try:
            return await self._start_desktop(self._guard)
        except BaseException:
            await finish(self._end_rest())
            raise

    async def _start_desktop(self, guard: Guard) -> Live:
        desktop = await self._backend.start(self.environment())
        number = int(desktop.display.removeprefix(":"))
        guard.tell(lock_of(number), socket_of(number))
        driver = ComputerDriver(
            lambda: X11Display(desktop.display, desktop.cookie),
            settle=self._settings.settle,
            encoding=self._settings.encoding,
        )
        try:
            if self._size != self._first_size():
                await asyncio.to_thread(resize_screen, desktop.display, desktop.cookie, self._size)
            await self._hang_wallpaper(desktop)
            await driver.open()
        except BaseException as exc:
            driver.abort()
            await finish(desktop.stop())
            await finish(driver.close())
            if isinstance(exc, ComputerError):
                msg = f"the desktop came up but shows nothing: {exc}"
                raise StartFailed(msg) from exc
            raise
        return Live(desktop=desktop, driver=driver)

    async def _hang_wallpaper(self, desktop: RunningDesktop) -> None:
        """Paint the background; a picture that can't be read is told, and costs no desktop."""
        path = self._settings.wallpaper
        if path is None:
            return
        try:
            await asyncio.to_thread(paint_wallpaper, desktop.display, desktop.cookie, path)
        except WallpaperUnreadable as exc:
            self._supervisor.note(str(exc))

    async def _tear_down(self, live: Live | None) -> str:
        """End all of the session; returns what was open in it, as a sentence."""
        names = self._apps.lost()
        if live is not None and not live.is_usable:
            await self._end_lost(live)
        else:
            if live is not None:
                await live.driver.close()
            await self._apps.stop_all()
            if live is not None:
                await live.desktop.stop()
        await self._end_rest()
        return f"What was open is gone: {', '.join(names)}." if names else "What was open is gone."

    async def _end_lost(self, live: Live) -> None:
        """End what a lost desktop leaves, all at once: nobody needs the others any more to end well."""
        await live.driver.close()
        await asyncio.gather(
            self._apps.stop_all(LOST_GRACE_S),
            live.desktop.stop(LOST_GRACE_S),
            end_marked(f"{MARK}={self._mark}", LOST_GRACE_S),
        )

    async def _end_rest(self) -> None:
        await end_marked(f"{MARK}={self._mark}")
        if self._guard is not None:
            await self._guard.stop()
            self._guard = None

    def _tell_change(self) -> None:
        if self._on_change is not None:
            self._on_change(self.status())


def _choose_backend(settings: SessionSettings, environment: Mapping[str, str]) -> Backend:
    is_portable = settings.backend == "portabledesktop"
    if settings.backend == "auto":
        is_portable = find_portabledesktop(settings, environment) is not None
    return PortableBackend(settings) if is_portable else XvncBackend(settings)


def _check_program(argv: Sequence[str]) -> None:
    if not argv:
        msg = "open needs a program"
        raise InvalidAction(msg)


def _make_private(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)
    except OSError as exc:
        msg = f"the runtime directory {directory} can't be used: {exc}"
        raise StartFailed(msg) from exc


def _clear_private(directory: Path) -> None:
    """Take cookie, sockets and configuration away; logs stay for whoever asks what happened."""
    for path in directory.glob("*"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.suffix != ".log":
            path.unlink(missing_ok=True)
