"""
A server's process and everything it starts.

It leads a session and a process group of its own, gets SIGTERM when this process dies, and carries
a mark in its environment that its descendants inherit: whatever left the group is found by it, when
the server is closed and, after this process was killed, when the next one starts.
"""

import asyncio
import os
import shutil
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from mcp_bridge.errors import StartFailed
from mcp_bridge.lines import LineSplitter, Overlong

__all__ = ["MARK", "ServerProcess", "end_marked"]

# Variable that marks a server's processes.
MARK = "MCP_BRIDGE_SERVER"
# Seconds after its stdin closed, and after SIGTERM; servers that behave need some 50 ms.
STDIN_GRACE_S = 1.0
TERM_GRACE_S = 1.0
# Seconds to see a killed process gone: it is, or stuck in the kernel.
KILL_WAIT_S = 2.0
# Seconds between looks at a process that is not our child.
POLL_S = 0.02
# Seconds between a process's end and the end of what it wrote, where a descendant holds its stdout open.
DRAIN_S = 0.1
# Bytes of one message. A frame of the link has as many.
MAX_LINE_BYTES = 16 * 1024 * 1024
# Bytes of lines that wait for their reader, after which the process must wait.
HIGH_WATER_BYTES = 4 * 1024 * 1024


class Lines(asyncio.Protocol):
    """Receives a pipe as lines, each bounded; stops reading while too much waits."""

    def __init__(self, limit: int) -> None:
        self._splitter = LineSplitter(limit)
        self._lines: deque[bytes | Overlong] = deque()
        self._waiting = 0
        self._is_over = False
        self._news = asyncio.Event()
        self._transport: asyncio.ReadTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what pauses."""
        self._transport = cast("asyncio.ReadTransport", transport)

    def data_received(self, data: bytes) -> None:
        """Split; wake the reader."""
        self._take(self._splitter.feed(data))
        if self._waiting > HIGH_WATER_BYTES and self._transport is not None:
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 -- the signature is asyncio's
        """End of the pipe."""
        self._take(self._splitter.flush())
        self._is_over = True
        self._news.set()

    def _take(self, lines: Iterable[bytes | Overlong]) -> None:
        for line in lines:
            self._lines.append(line)
            self._waiting += len(line) if isinstance(line, bytes) else 0
            self._news.set()

    async def next(self) -> bytes | Overlong | None:
        """The next line; None after the last one."""
        while not self._lines:
            if self._is_over:
                return None
            self._news.clear()
            await self._news.wait()
        line = self._lines.popleft()
        self._waiting -= len(line) if isinstance(line, bytes) else 0
        if self._waiting <= HIGH_WATER_BYTES and self._transport is not None and not self._is_over:
            self._transport.resume_reading()
        return line

    def close(self) -> None:
        """Read no more."""
        if self._transport is not None:
            self._transport.close()


class _Errors(asyncio.Protocol):
    """Hands a pipe's lines to a function as they come."""

    def __init__(self, limit: int, take: Callable[[str], None]) -> None:
        self._splitter = LineSplitter(limit)
        self._take = take

    def data_received(self, data: bytes) -> None:
        self._hand(self._splitter.feed(data))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._hand(self._splitter.flush())

    def _hand(self, lines: Iterable[bytes | Overlong]) -> None:
        for line in lines:
            self._take((line if isinstance(line, bytes) else line.head).decode("utf-8", "replace"))


class _Input(asyncio.streams.FlowControlMixin):
    """Flow control of the process's stdin."""


class ServerProcess:
    """
    A running server: write to ``stdin``, read ``stdout``, its stderr goes to *on_stderr*.

    ``ended`` is set once the process itself is gone.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", mark: str) -> None:
        self._process = process
        self._mark = mark
        self._loop = asyncio.get_running_loop()
        self._pidfd = os.pidfd_open(process.pid)
        self._transports: list[asyncio.BaseTransport] = []
        self.ended = asyncio.Event()
        self.stdout = Lines(MAX_LINE_BYTES)
        self.stdin: asyncio.StreamWriter
        self._loop.add_reader(self._pidfd, self._on_end)

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str],
        cwd: str | None,
        mark: str,
        on_stderr: Callable[[str], None],
    ) -> "ServerProcess":
        """
        Start *argv*; the program is looked up in the PATH of *environment*.

        Raises:
            StartFailed: it is missing or can't be executed.

        Cancellation: nothing is left behind.
        """
        marked = {**environment, MARK: mark}
        self = cls(_spawn(argv, marked, cwd), mark)
        try:
            await self._connect(on_stderr)
        except BaseException:
            await asyncio.shield(asyncio.ensure_future(self.stop()))
            raise
        return self

    async def _connect(self, on_stderr: Callable[[str], None]) -> None:
        process, loop = self._process, self._loop
        reader, _ = await loop.connect_read_pipe(lambda: self.stdout, cast("IO[bytes]", process.stdout))
        self._transports.append(reader)
        errors, _ = await loop.connect_read_pipe(
            lambda: _Errors(65_536, on_stderr), cast("IO[bytes]", process.stderr)
        )
        self._transports.append(errors)
        writer, protocol = await loop.connect_write_pipe(_Input, cast("IO[bytes]", process.stdin))
        self._transports.append(writer)
        self.stdin = asyncio.StreamWriter(writer, protocol, None, loop)

    @property
    def pid(self) -> int:
        """The leader's process id."""
        return self._process.pid

    def describe_end(self) -> str:
        """How it ended, for people."""
        code = self._process.returncode
        if code is None:
            # Without reaping it: its number must not become another's while its group may live.
            info = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if info is None:
                return "it closed its output"
            code = info.si_status if info.si_code == os.CLD_EXITED else -info.si_status
        return f"it ended with signal {-code}" if code < 0 else f"it ended with exit code {code}"

    def _on_end(self) -> None:
        self._loop.remove_reader(self._pidfd)
        self.ended.set()
        # A descendant may hold stdout open for ever; what the server itself wrote is there by then.
        self._loop.call_later(DRAIN_S, self.stdout.close)

    async def stop(self) -> None:
        """
        Close its stdin, then end it and all it started; returns when nothing of it lives.

        Cancellation: must not be cancelled; callers shield it.
        """
        if hasattr(self, "stdin"):
            self.stdin.close()
        elif self._process.stdin is not None:
            self._process.stdin.close()
        await _wait(self.ended, STDIN_GRACE_S)
        await _end_all(self._members)
        await _wait(self.ended, KILL_WAIT_S)
        self._close()

    def _members(self) -> set[int]:
        """Living processes of the group, and those that carry the mark."""
        return {
            pid
            for pid, group, is_alive in _processes()
            if is_alive and (group == self._process.pid or _carries(pid, self._mark))
        }

    def _close(self) -> None:
        for transport in self._transports:
            transport.close()
        self._transports.clear()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None and not hasattr(self, "stdin"):
                pipe.close()
        # Reaped only here: until now its number could not become another's.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(0)
        with suppress(ValueError):
            self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)


async def _wait(event: asyncio.Event, timeout_s: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()


def _spawn(argv: Sequence[str], environment: Mapping[str, str], cwd: str | None) -> "subprocess.Popen[bytes]":
    program = shutil.which(argv[0], path=environment.get("PATH"))
    if program is None:
        msg = f"{argv[0]} is not installed (or not in the PATH of agentd)"
        raise StartFailed(msg)
    # util-linux sets PR_SET_PDEATHSIG and then becomes the program, so the number stays the same.
    setpriv = shutil.which("setpriv", path=environment.get("PATH"))
    guard = [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []
    try:
        return subprocess.Popen(  # noqa: S603 -- running configured commands is the purpose
            [*guard, program, *argv[1:]],
            env=dict(environment),
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else str(exc)
        msg = f"{argv[0]} can't be started: {reason}"
        raise StartFailed(msg) from exc


async def end_marked(mark_prefix: str) -> int:
    """
    Kill processes whose mark begins with *mark_prefix*: left over from a bridge that was killed.

    Returns how many were found.
    """

    def marked() -> set[int]:
        living = (pid for pid, _, is_alive in _processes() if is_alive)
        return {pid for pid in living if _carries(pid, mark_prefix, is_prefix=True)}

    found = await asyncio.to_thread(marked)
    await _end_all(marked)
    return len(found)


async def _end_all(find: Callable[[], set[int]]) -> None:
    """SIGTERM, then SIGKILL, to whatever *find* finds, until it finds nothing."""
    for number, patience_s in ((signal.SIGTERM, TERM_GRACE_S), (signal.SIGKILL, KILL_WAIT_S)):
        deadline = asyncio.get_running_loop().time() + patience_s
        told: set[int] = set()
        while True:
            members = await asyncio.to_thread(find)
            for pid in members - told:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
            told |= members
            if not members:
                return
            if asyncio.get_running_loop().time() >= deadline:
                break
            await asyncio.sleep(POLL_S)


def _processes() -> Iterable[tuple[int, int, bool]]:
    """Process id, process group and whether it lives (is no zombie), of all processes but this one."""
    for entry in Path("/proc").glob("[0-9]*"):
        if entry.name == str(os.getpid()):
            continue
        with suppress(OSError, ValueError, IndexError):
            # The name in brackets may hold anything, blanks and brackets too.
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            yield int(entry.name), int(fields[2]), fields[0] not in "ZX"


def _carries(pid: int, mark: str, *, is_prefix: bool = False) -> bool:
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    wanted = f"{MARK}={mark}".encode()
    return any(item.startswith(wanted) if is_prefix else item == wanted for item in variables)
