"""
The keeper's processes: started once for a key, read, signalled, listed, ended together.

Invariant: a key starts at most one process, in this life of the keeper and in all others.
"""

import asyncio
import os
import signal
import termios
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import monotonic

from agentd.errors import CommandRefused, NotFound, OutcomeUnknown
from agentd.processes.ledger import Ledger
from agentd.processes.messages import (
    ListParams,
    OutputParams,
    ProcessList,
    ProcessReport,
    SignalParams,
    Started,
    StartParams,
)
from agentd.processes.output import Output
from computer.errors import ComputerError
from computer.session.process import Child, end_marked
from computer.shielding import finish

__all__ = ["MARK", "ProcessTable"]

# Processes that may run at once.
MAX_RUNNING = 64
# Ended processes that are kept, and for how many seconds.
MAX_ENDED = 200
KEEP_ENDED_S = 300.0
# How many a list shows.
MAX_LISTED = 10
# Seconds for what a process printed to arrive after its end; a child that left it may hold the pipe for ever.
PIPE_GRACE_S = 5.0
# Seconds between SIGTERM and SIGKILL when all are ended.
CLOSE_GRACE_S = 3.0
# Variable that marks what a keeper started, whichever process group it moved to.
MARK = "AGENTD_KEEPER"

_SIGNALS: Mapping[str, signal.Signals] = {"terminate": signal.SIGTERM, "kill": signal.SIGKILL}
# Rows and columns of a command's terminal.
TERMINAL_SIZE = (24, 80)


class _Pipe(asyncio.Protocol):
    """Feeds a pipe's bytes to an output."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        self._output.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 -- asyncio's signature
        """Every writer is gone."""
        self.ended.set()


@dataclass(slots=True, kw_only=True)
class _Process:
    id: str
    params: StartParams
    child: Child
    output: Output
    pipe: _Pipe
    transport: asyncio.ReadTransport
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    started: float = field(default_factory=monotonic)
    ended: float | None = None
    done: asyncio.Event = field(default_factory=asyncio.Event)
    follower: asyncio.Task[None] | None = None

    async def follow(self) -> None:
        """Wait for the end, then for what is still in the pipe."""
        await self.child.wait()
        ended = monotonic()
        try:
            async with asyncio.timeout(PIPE_GRACE_S):
                await self.pipe.ended.wait()
        except TimeoutError:
            pass
        self.ended = ended
        self.done.set()

    def report(self, *, with_output: bool) -> ProcessReport:
        # The state is read before the output: one that reads as ended has all its output.
        ended = self.ended
        code = self.child.returncode if ended is not None else None
        printed = self.output.printed() if with_output else None
        return ProcessReport(
            process_id=self.id,
            command=self.params.command,
            workdir=self.params.workdir,
            running=ended is None,
            exit_code=128 - code if code is not None and code < 0 else code,
            started_at=self.started_at,
            wall_ms=round(((ended or monotonic()) - self.started) * 1000),
            output=printed.text if printed else "",
            original_bytes=printed.original_bytes if printed else 0,
            omitted_bytes=printed.omitted_bytes if printed else 0,
        )


class ProcessTable:
    """All processes of one keeper."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._mark = uuid.uuid4().hex
        self._by_id: dict[str, _Process] = {}
        self._by_key: dict[str, _Process] = {}
        self._starting = asyncio.Lock()
        self._closed = False

    @property
    def running(self) -> int:
        """How many run."""
        return sum(process.ended is None for process in self._by_id.values())

    async def start(self, params: StartParams) -> Started:
        """
        Start a process, or find the one that this key has.

        Raises:
            OutcomeUnknown: an earlier keeper had the key; nothing is run.
            CommandRefused: it can't be started, too many run, or the key had another command.

        Cancellation: what is recorded is started all the same, and found by a repeat.
        """
        async with self._starting:
            known = self._by_key.get(params.key)
            if known is not None:
                return _again(known, params)
            if params.key in self._ledger:
                raise OutcomeUnknown(
                    "whatever held this command's process ended; whether the command ran is unknown, "
                    "and it was not run again. Look at what it should have changed before you go on."
                )
            self._reap()
            if self._closed or self.running >= MAX_RUNNING:
                msg = f"{self.running} processes run already, the most there may be; end some first"
                raise CommandRefused(msg)
            # A daemon that dies meanwhile must find what has begun for it.
            process = await finish(self._begin(params))
        return Started(process_id=process.id, is_new=True)

    async def _begin(self, params: StartParams) -> _Process:
        process_id = uuid.uuid4().hex
        await asyncio.to_thread(self._ledger.record, params.key, process_id, params.chat_id)
        process = await self._spawn(process_id, params)
        self._by_id[process.id] = self._by_key[params.key] = process
        return process

    async def output(self, params: OutputParams) -> ProcessReport:
        """
        Report on one process, after its end or ``wait_s``.

        Raises:
            OutcomeUnknown: an earlier keeper had it.
            NotFound: this chat has no such process.
        """
        process = self._get(params.process_id, params.chat_id)
        if params.wait_s > 0:
            try:
                async with asyncio.timeout(params.wait_s):
                    await process.done.wait()
            except TimeoutError:
                pass
        return process.report(with_output=True)

    def list(self, params: ListParams) -> ProcessList:
        """Report on the chat's processes, running ones first, newest first, at most ten."""
        self._reap()
        own = [
            p.report(with_output=False) for p in self._by_id.values() if p.params.chat_id == params.chat_id
        ]
        own.sort(key=lambda report: (not report.running, -report.started_at.timestamp()))
        return ProcessList(processes=tuple(own[:MAX_LISTED]))

    def signal(self, params: SignalParams) -> ProcessReport:
        """
        Signal a process group; the report tells whether its leader still runs at this moment.

        Raises:
            OutcomeUnknown: an earlier keeper had it.
            NotFound: this chat has no such process.
            CommandRefused: it has ended.
        """
        process = self._get(params.process_id, params.chat_id)
        if not process.child.is_alive:
            msg = f"process {process.id} has ended already"
            raise CommandRefused(msg)
        os.killpg(process.child.pid, _SIGNALS[params.signal])
        return process.report(with_output=False)

    async def close(self) -> None:
        """End every process and whatever they started."""
        self._closed = True
        living = [process for process in self._by_id.values() if process.child.is_alive]
        await asyncio.gather(*(process.child.stop(CLOSE_GRACE_S) for process in living))
        await end_marked(f"{MARK}={self._mark}", CLOSE_GRACE_S)
        followers = [process.follower for process in self._by_id.values() if process.follower is not None]
        if followers:
            # Whoever waits for an end gets it: no writer is left, so the pipes end too.
            await asyncio.wait(followers, timeout=PIPE_GRACE_S)
        for process in list(self._by_id.values()):
            self._drop(process)

    def _get(self, process_id: str, chat_id: str | None) -> _Process:
        process = self._by_id.get(process_id)
        if process is None and self._ledger.was_earlier(process_id, chat_id):
            msg = (
                f"whatever held process {process_id} ended when the daemon restarted; its outcome is "
                "unknown. Look at what it should have changed before you go on."
            )
            raise OutcomeUnknown(msg)
        if process is None or process.params.chat_id != chat_id:
            msg = f"there is no process {process_id} in this chat; it may have ended more than 5 minutes ago"
            raise NotFound(msg)
        return process

    async def _spawn(self, process_id: str, params: StartParams) -> _Process:
        output = Output()
        reading, writing = _open_terminal() if params.pty else os.pipe()
        try:
            transport, pipe = await asyncio.get_running_loop().connect_read_pipe(
                lambda: _Pipe(output), os.fdopen(reading, "rb", buffering=0)
            )
            try:
                child = Child(
                    ["sh", "-c", params.command],
                    environment={**params.environment, MARK: self._mark},
                    cwd=params.workdir,
                    log=writing,
                )
            except ComputerError as exc:
                transport.close()
                raise CommandRefused(str(exc)) from exc
        finally:
            os.close(writing)
        process = _Process(
            id=process_id, params=params, child=child, output=output, pipe=pipe, transport=transport
        )
        process.follower = asyncio.get_running_loop().create_task(process.follow())
        return process

    def _reap(self) -> None:
        ended = sorted(
            (process for process in self._by_id.values() if process.ended is not None),
            key=lambda process: process.ended or 0.0,
        )
        too_many = max(0, len(ended) - MAX_ENDED)
        for position, process in enumerate(ended):
            if position < too_many or monotonic() - (process.ended or 0.0) > KEEP_ENDED_S:
                self._drop(process)

    def _drop(self, process: _Process) -> None:
        process.transport.close()
        if process.follower is not None:
            process.follower.cancel()
        self._by_id.pop(process.id, None)
        self._by_key.pop(process.params.key, None)


def _open_terminal() -> tuple[int, int]:
    """A pseudo-terminal's two ends: what is printed to the second comes out of the first as it is."""
    reading, writing = os.openpty()
    attributes = termios.tcgetattr(writing)
    # No carriage returns of its own.
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(writing, termios.TCSANOW, attributes)
    termios.tcsetwinsize(writing, TERMINAL_SIZE)
    return reading, writing


def _again(process: _Process, params: StartParams) -> Started:
    if process.params.command != params.command:
        raise CommandRefused("this call was made before with another command; it runs once, with the first")
    return Started(process_id=process.id, is_new=False)
