"""
Child processes that never outlive their session.

Each runs in a process group of its own, gets SIGTERM when this process dies, and is watched
by pidfd, so that its end is known at once and its number can't be mistaken for another's.
"""

import asyncio
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from computer.errors import StartFailed

__all__ = [
    "GRACE_S",
    "LOST_GRACE_S",
    "Child",
    "ProcessWatch",
    "describe_end",
    "end_marked",
    "find_program",
    "read_tail",
]

# Seconds between SIGTERM and SIGKILL. Xvnc needs 25 ms, a browser some hundreds.
GRACE_S = 3.0
# The same for what a lost desktop leaves: nothing can be saved on it any more, and the next one, which
# must be there within two seconds, waits for it.
LOST_GRACE_S = 0.4
# Seconds to wait for a process that was killed: it is gone or stuck in the kernel.
KILL_WAIT_S = 5.0
# Bytes of a log that an error message carries.
TAIL_BYTES = 2_000


class ProcessWatch:
    """
    Knows whether one process lives, ours or not.

    Raises:
        ProcessLookupError: there is no such process.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        # time.monotonic() of the moment in which its end was noticed.
        self.ended_at: float | None = None
        self._fd: int | None = os.pidfd_open(pid)
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._loop.add_reader(self._fd, self._on_end)

    @property
    def is_alive(self) -> bool:
        """Whether it runs at this instant; asks the kernel, not the event loop."""
        if self._fd is None or self._ended.is_set():
            return False
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        return not poll.poll(0)

    @property
    def returncode(self) -> int | None:
        """Exit status, negative for a signal; None while it runs and where it is not ours to know."""
        return None

    async def wait(self) -> None:
        """Wait for its end."""
        await self._ended.wait()

    async def wait_within(self, timeout_s: float) -> bool:
        """Wait for its end; False when it still lives after *timeout_s*."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._ended.wait()
        return self._ended.is_set()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to exactly this process; nothing happens when it has ended."""
        if self._fd is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._fd, number)

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """SIGTERM, then SIGKILL after *grace_s*; returns when it has ended."""
        self.send(signal.SIGTERM)
        if not await self.wait_within(grace_s):
            self.send(signal.SIGKILL)
            await self.wait_within(KILL_WAIT_S)
        self.close()

    def close(self) -> None:
        """Watch no longer; the process is left alone."""
        if self._fd is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = None

    def _on_end(self) -> None:
        self._reap()
        self.close()
        self.ended_at = time.monotonic()
        self._ended.set()

    def _reap(self) -> None:
        """Collect the exit status where it is ours to collect."""


class Child(ProcessWatch):
    """
    A process that we started; leader of its own session and process group.

    Args:
        argv: program and arguments; the program is looked up in the PATH of *environment*.
        environment: all of it, nothing is inherited.
        log: where stdout and stderr go, a path or a descriptor; nowhere when None.
        stdin: descriptor that it reads from; nothing when None.
        dies_with_us: it gets SIGTERM when this process ends.

    Raises:
        StartFailed: the program is missing or can't be executed.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        cwd: str | None = None,
        log: Path | int | None = None,
        stdin: int | None = None,
        dies_with_us: bool = True,
    ) -> None:
        program = shutil.which(argv[0], path=environment.get("PATH"))
        if program is None:
            msg = f"{argv[0]} is not installed"
            raise StartFailed(msg)
        guard = _death_guard(environment) if dies_with_us else []
        self._process = _spawn([*guard, program, *argv[1:]], environment, cwd, log, stdin)
        super().__init__(self._process.pid)

    @property
    def returncode(self) -> int | None:
        """Exit status; None while it runs."""
        return self._process.returncode

    async def stop(self, grace_s: float = GRACE_S) -> None:
        """SIGTERM to the group, SIGKILL after *grace_s*; returns when the leader has ended."""
        self._send_group(signal.SIGTERM)
        if not await self.wait_within(grace_s):
            self._send_group(signal.SIGKILL)
            await self.wait_within(KILL_WAIT_S)
        self.close()

    def _send_group(self, number: signal.Signals) -> None:
        # The leader is reaped only by us: while it is unreaped its number can't be reused.
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def _reap(self) -> None:
        self._process.wait()


def find_program(name: str, package: str, environment: Mapping[str, str]) -> str:
    """
    Find a program that a distribution package brings.

    Raises:
        StartFailed: it is missing; says how to install it.
    """
    found = shutil.which(name, path=environment.get("PATH"))
    if found is None:
        msg = f"missing: install {name} (apt-get install {package})"
        raise StartFailed(msg)
    return found


def read_tail(path: Path, limit: int = TAIL_BYTES) -> str:
    """Read the end of a log, "" when there is none."""
    try:
        with path.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - limit))
            return stream.read().decode("utf-8", "replace").strip()
    except OSError:
        return ""


def describe_end(watch: ProcessWatch) -> str:
    """How a process ended: "by SIGKILL", "with status 1", or "" where that is not known."""
    status = watch.returncode
    if status is None:
        return ""
    if status >= 0:
        return f"with status {status}"
    with suppress(ValueError):
        return f"by {signal.Signals(-status).name}"
    return f"by signal {-status}"


async def end_marked(mark: str, grace_s: float = GRACE_S) -> int:
    """
    End every process of ours whose environment holds *mark* (``NAME=value``).

    Finds what left its process group: whatever a person or a model started in a terminal.
    Returns how many were found.
    """
    watches = []
    for pid in await asyncio.to_thread(_find_marked, mark.encode()):
        with suppress(ProcessLookupError):
            watches.append(ProcessWatch(pid))
    # Numbers may have been reused between the search and the watch: look again under the watch.
    still = set(await asyncio.to_thread(_find_marked, mark.encode())) if watches else set()
    for watch in watches:
        if watch.pid not in still:
            watch.close()
    marked = [watch for watch in watches if watch.pid in still]
    await asyncio.gather(*(watch.stop(grace_s) for watch in marked))
    return len(marked)


def _find_marked(mark: bytes) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                variables = (entry / "environ").read_bytes()
            except OSError:
                continue
            if mark in variables.split(b"\0"):
                found.append(int(entry.name))
    return found


def _death_guard(environment: Mapping[str, str]) -> list[str]:
    # util-linux sets PR_SET_PDEATHSIG and then becomes the program, so the number stays the same.
    # A function run between fork and exec would do too, but may deadlock beside threads.
    setpriv = shutil.which("setpriv", path=environment.get("PATH"))
    return [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []


def _spawn(
    argv: list[str],
    environment: Mapping[str, str],
    cwd: str | None,
    log: Path | int | None,
    stdin: int | None,
) -> "subprocess.Popen[bytes]":
    output: IO[bytes] | int = subprocess.DEVNULL
    if log is not None:
        output = log if isinstance(log, int) else log.open("ab")
    try:
        return subprocess.Popen(  # noqa: S603  argv is built by us or asked for by the session's owner
            argv,
            env=dict(environment),
            cwd=cwd,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as exc:
        msg = f"{argv[0]} can't be started: {exc}"
        raise StartFailed(msg) from exc
    finally:
        # A descriptor is the caller's to close.
        if not isinstance(output, int):
            output.close()
