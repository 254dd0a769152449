"""
One desktop session: started when first needed, watched, restarted after a crash, stopped.

Invariant: whatever was started in a session is gone when ``stop`` returns.
"""

import asyncio
import os
import secrets
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from computer.display.x11 import WindowDesk, X11Display
from computer.driver import ComputerDriver
from computer.errors import ComputerError, DisplayLost, InvalidAction, StartFailed, Unavailable
from computer.session.backend import Backend, RunningDesktop
from computer.session.launch import OutputTail
from computer.session.portabledesktop import PortableBackend, find_portabledesktop
from computer.session.process import Child, end_marked
from computer.session.settings import SessionSettings
from computer.session.windows import Launch, use_windows, wait_first_window
from computer.session.xvnc import XvncBackend
from computer.shielding import finish
from computer.wire import (
    ComputerCall,
    ComputerResult,
    DesktopState,
    DesktopStatus,
    LaunchReport,
    ScreenshotData,
    WindowInfo,
    WindowReport,
)

__all__ = ["MAX_APPS", "DesktopSession"]

# Applications launched by `open` that run at the same time.
MAX_APPS = 200
# Seconds in which a launched program should show its first window; a browser takes one or two.
LAUNCH_S = 10.0
# Seconds that the server's death may be reported after that of the window manager it took along.
BLAME_S = 0.1
# Variable by which everything that runs in a session is found again.
MARK = "COMPUTER_SESSION"
# Variables of somebody else's desktop.
FOREIGN = (
    "DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "SESSION_MANAGER", "DESKTOP_STARTUP_ID", "XDG_SESSION_ID",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Live:
    """A running desktop and its driver."""

    desktop: RunningDesktop
    driver: ComputerDriver

    @property
    def is_healthy(self) -> bool:
        return not self.driver.is_broken and all(watch.is_alive for watch in self.desktop.members.values())


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
        self._state: DesktopState = "stopped"
        self._error: str | None = None
        self._live: _Live | None = None
        self._apps: dict[int, Child] = {}
        self._tails: list[OutputTail] = []
        self._lifecycle = asyncio.Lock()
        self._starting: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None

    async def ensure_running(self) -> None:
        """
        Start the desktop unless it runs; callers at the same time share one start.

        Raises:
            StartFailed: it did not come up.

        Cancellation:
            the start goes on: others may be waiting for it.
        """
        if self._live is not None and self._live.is_healthy:
            return
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._start(), name=f"desktop {self._settings.name} start")
            self._starting.add_done_callback(_retrieve)
        starting = self._starting
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if starting.cancelled() and task is not None and not task.cancelling():
                msg = "the desktop was stopped while it started"
                raise DisplayLost(msg) from None
            raise

    async def perform(self, call: ComputerCall) -> ComputerResult:
        """
        Perform a call, starting the desktop first when needed.

        When the desktop turns out to be gone before anything was done, the call is performed
        once more on a new one.

        Raises:
            StartFailed: the desktop did not come up.
            DisplayLost, CaptureTimeout: the new desktop was lost as well.
        """
        driver = await self._get_driver()
        try:
            return await driver.perform(call)
        except Unavailable:
            # A dying server hangs up before the kernel reports its end.
            driver.abort()
            return await (await self._get_driver()).perform(call)

    async def screenshot(self, model_size: tuple[int, int] | None = None) -> ScreenshotData:
        """Picture of the screen, starting the desktop first when needed; see ``ComputerDriver``."""
        return await (await self._get_driver()).screenshot(model_size)

    async def release_input(self) -> None:
        """Release every key and button that is held; nothing happens while stopped."""
        if self._live is not None and self._live.is_healthy:
            with suppress(DisplayLost):
                await self._live.driver.release_all()

    async def open(self, argv: Sequence[str], *, cwd: str | None = None) -> int:
        """
        Launch a program in the session; it ends with the session at the latest.

        Raises:
            InvalidAction: no program, one that is not installed, or too many running.
            StartFailed: the desktop did not come up.
        """
        _check_program(argv)
        await self._get_desktop()
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
        try:
            app = self._start_app(argv, cwd, tail.writer)
        except BaseException:
            tail.close()
            raise
        tail.started()
        self._tails = [*(kept for kept in self._tails if kept.is_open), tail]
        launch = Launch(program=argv[0], app=app, tail=tail, known=known)
        return await wait_first_window(desktop, launch, timeout_s)

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

    async def connect_rfb(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """
        Connect a viewer, starting the desktop first when needed; the caller closes it.

        Raises:
            StartFailed, DisplayLost: there is no desktop to look at.
        """
        return await (await self._get_desktop()).connect_rfb()

    def status(self) -> DesktopStatus:
        """Describe the session as it is now."""
        live = self._live
        members = live.desktop.members if live is not None else {}
        pids = {role: watch.pid for role, watch in members.items()}
        pids |= {f"app.{pid}": pid for pid, app in self._apps.items() if app.is_alive}
        return DesktopStatus(
            name=self._settings.name,
            state=self._state,
            display=live.desktop.display if live is not None else None,
            backend=self._backend.name,
            geometry=self._settings.geometry,
            pids=pids,
            error=self._error,
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

    def _start_app(self, argv: Sequence[str], cwd: str | None, output: int | None) -> Child:
        self._apps = {pid: app for pid, app in self._apps.items() if app.is_alive}
        if len(self._apps) >= MAX_APPS:
            msg = f"{MAX_APPS} programs run in this session already"
            raise InvalidAction(msg)
        try:
            app = Child(argv, environment=self.environment(), cwd=cwd, log=output)
        except StartFailed as exc:
            raise InvalidAction(str(exc)) from exc
        self._apps[app.pid] = app
        return app

    async def _get_desktop(self) -> RunningDesktop:
        await self._get_driver()
        if self._live is None:
            msg = "the desktop was stopped"
            raise DisplayLost(msg)
        return self._live.desktop

    async def _get_driver(self) -> ComputerDriver:
        await self.ensure_running()
        if self._live is None:
            msg = "the desktop was stopped"
            raise DisplayLost(msg)
        return self._live.driver

    async def _start(self) -> None:
        async with self._lifecycle:
            if self._live is not None and self._live.is_healthy:
                return
            await finish(self._tear_down())
            self._set_state("starting")
            try:
                self._live = await self._bring_up()
            except ComputerError as exc:
                await self._tear_down()
                self._set_state("failed", str(exc))
                raise
            except BaseException:
                await finish(self._tear_down())
                self._set_state("stopped")
                raise
            self._watching = asyncio.create_task(
                self._watch(self._live), name=f"desktop {self._settings.name} watch"
            )
            self._watching.add_done_callback(_retrieve)
            self._set_state("running")

    async def _bring_up(self) -> _Live:
        await asyncio.to_thread(_make_private, self._settings.runtime_dir)
        desktop = await self._backend.start(self.environment())
        driver = ComputerDriver(lambda: X11Display(desktop.display, desktop.cookie))
        try:
            await driver.open()
        except BaseException as exc:
            driver.abort()
            await finish(desktop.stop())
            await finish(driver.close())
            if isinstance(exc, ComputerError):
                msg = f"the desktop came up but shows nothing: {exc}"
                raise StartFailed(msg) from exc
            raise
        return _Live(desktop=desktop, driver=driver)

    async def _watch(self, live: _Live) -> None:
        """Wait for the first member to end, then take the rest down."""
        waits = [asyncio.ensure_future(watch.wait()) for watch in live.desktop.members.values()]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            # A dying server closes its sockets before its death is reported: its clients seem to go first.
            await asyncio.wait(waits[:1], timeout=BLAME_S)
        finally:
            for wait in waits:
                wait.cancel()
        live.driver.abort()
        # The server is listed first: what dies of its death is not the cause.
        role = next(role for role, watch in live.desktop.members.items() if not watch.is_alive)
        async with self._lifecycle:
            if self._live is live:
                await finish(self._tear_down())
                self._set_state("failed", f"{role} ended unexpectedly")

    async def _stop(self) -> None:
        for task in (self._starting, self._watching):
            if task is not None:
                task.cancel()
                await asyncio.wait({task})
        async with self._lifecycle:
            await self._tear_down()
            if self._state != "stopped":
                await asyncio.to_thread(_clear_private, self._settings.runtime_dir)
                self._set_state("stopped")

    async def _tear_down(self) -> None:
        live = self._live
        if live is not None:
            if not live.is_healthy:
                live.driver.abort()
            await live.driver.close()
        apps, self._apps = self._apps, {}
        await asyncio.gather(*(app.stop() for app in apps.values()))
        tails, self._tails = self._tails, []
        for tail in tails:
            tail.close()
        if live is not None:
            await live.desktop.stop()
            self._live = None
        await end_marked(f"{MARK}={self._mark}")

    def _set_state(self, state: DesktopState, error: str | None = None) -> None:
        self._state, self._error = state, error
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


def _retrieve(task: "asyncio.Task[None]") -> None:
    # Waiters got the outcome already; without any, it is in the status.
    if not task.cancelled():
        task.exception()
