"""
Windows of a session, from asyncio.

Owns the thread that each request runs in and its time limit. A request opens an X connection
of its own, uses it in one worker thread and closes it there: nothing is shared with the display
that types and clicks, and a stopped server costs one request, not the session.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

from computer.display.x11 import WindowDesk
from computer.errors import CaptureTimeout, LaunchFailed
from computer.session.backend import RunningDesktop
from computer.session.launch import OutputTail, choose_window, family_of, read_processes
from computer.session.process import Child
from computer.shielding import finish
from computer.wire import LaunchReport, WindowInfo

__all__ = ["ANSWER_LIMIT_S", "Launch", "use_windows", "wait_first_window"]

R = TypeVar("R")

# Seconds for one request, of which the desk itself waits one or two for an effect.
ANSWER_LIMIT_S = 10.0
# Seconds between two looks for a first window, and after which a program that has ended well is
# taken for one that shows none: what it handed over to has had time to answer.
LOOK_S = 0.02
HANDED_OVER_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """A program that was started: the windows that were there before, and what it says."""

    program: str
    app: Child
    tail: OutputTail
    known: Collection[int]


async def use_windows(
    desktop: RunningDesktop, job: Callable[[WindowDesk], R], *, limit_s: float = ANSWER_LIMIT_S
) -> R:
    """
    Run *job* on a connection of its own, in a thread of its own.

    Raises:
        DisplayLost: the server is gone.
        CaptureTimeout: it did not answer within *limit_s*.

    Cancellation:
        the request ends first; it takes a second or two at most.
    """
    opened: list[WindowDesk] = []

    def work() -> R:
        desk = WindowDesk(desktop.display, desktop.cookie)
        opened.append(desk)
        try:
            return job(desk)
        finally:
            desk.close()

    return await finish(_within(asyncio.ensure_future(asyncio.to_thread(work)), opened, limit_s))


async def wait_first_window(desktop: RunningDesktop, launch: Launch, timeout_s: float) -> LaunchReport:
    """
    Wait for the first window of a program.

    Raises:
        LaunchFailed: it ended with an error before it showed one; carries the end of its output.
        DisplayLost, CaptureTimeout: the server is gone, or silent.

    Cancellation:
        the program goes on.
    """
    given_up = threading.Event()

    def look(desk: WindowDesk) -> WindowInfo | None:
        return _look(desk, launch, timeout_s, given_up)

    waiting = asyncio.ensure_future(use_windows(desktop, look, limit_s=timeout_s + ANSWER_LIMIT_S))
    try:
        window = await asyncio.shield(waiting)
    finally:
        given_up.set()
        await finish(_ended(waiting))
    status = launch.app.returncode
    if window is None and status:
        msg = f"{launch.program} ended with status {status} before it showed a window"
        raise LaunchFailed(msg, log_tail=launch.tail.text())
    warning = None
    if window is None:
        how = "runs, but" if status is None else "ended without an error and"
        warning = f"{launch.program} {how} showed no window within {timeout_s:g} s"
    return LaunchReport(pid=launch.app.pid, window=window, warning=warning)


def _look(desk: WindowDesk, launch: Launch, timeout_s: float, given_up: threading.Event) -> WindowInfo | None:
    deadline = time.monotonic() + timeout_s
    has_ended = False
    while True:
        # Read before the windows: one that came before the end is still found.
        status = launch.app.returncode
        windows = desk.top_levels()
        if any(window.id not in launch.known for window in windows):
            family = family_of(launch.app.pid, read_processes())
            found = choose_window(windows, known=launch.known, family=family, has_handed_over=status == 0)
            if found is not None:
                return found
        if status is not None and not has_ended:
            has_ended = True
            deadline = min(deadline, time.monotonic() + (0 if status else HANDED_OVER_S))
        if time.monotonic() >= deadline or given_up.wait(LOOK_S):
            return None


async def _within(job: "asyncio.Future[R]", opened: list[WindowDesk], limit_s: float) -> R:
    done, _ = await asyncio.wait({job}, timeout=limit_s)
    if not done:
        for desk in opened:
            desk.abort()
        job.add_done_callback(_swallow)
        msg = f"the X server did not answer within {limit_s:g} s"
        raise CaptureTimeout(msg)
    return job.result()


async def _ended(job: "asyncio.Future[R]") -> None:
    await asyncio.wait({job})


def _swallow(job: "asyncio.Future[R]") -> None:
    if not job.cancelled():
        job.exception()
