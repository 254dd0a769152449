"""
Start, watch and stop the recorder's process, from asyncio.

Owns the rule when a recording has begun (its first fragment is on disk) and how it ends. What
happens to a film afterwards is the caller's.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pydantic import BaseModel, ValidationError

from computer.errors import StartFailed
from computer.recording.orders import FinishOrder, RecordOrder, Report
from computer.session.process import Child
from computer.shielding import finish

__all__ = ["Recorder", "run_finish"]

# Seconds until a recorder must film: a loaded machine needs several to load the video library.
START_LIMIT_S = 30.0
# Seconds between SIGTERM and SIGKILL: the last fragment and the thumbnail take some milliseconds.
STOP_GRACE_S = 10.0
# Seconds for finishing one film: copying 100 MB takes one or two.
FINISH_LIMIT_S = 300.0
# Characters of what a recorder says besides its reports; the end is kept.
TAIL_CHARACTERS = 2_000
# Variables of this process that Python needs to find what we are made of.
PYTHON_VARIABLES = ("PATH", "PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "LANG", "LD_LIBRARY_PATH")


@dataclass(slots=True, kw_only=True)
class _Speaker:
    """A recorder's process and what it says, line by line."""

    child: Child
    lines: asyncio.StreamReader
    transport: asyncio.ReadTransport
    tail: str = field(default="")

    async def next_report(self) -> Report | None:
        """Its next report; None when it has ended."""
        while line := await self.lines.readline():
            try:
                return Report.model_validate_json(line)
            except ValidationError:
                self.tail = (self.tail + line.decode("utf-8", "replace"))[-TAIL_CHARACTERS:]
        return None

    async def end(self) -> None:
        """Stop it, unless it has ended, and read no more."""
        await self.child.stop(STOP_GRACE_S)
        self.transport.close()


async def _spawn(verb: str, order: BaseModel) -> _Speaker:
    reader, writer = os.pipe2(os.O_CLOEXEC)
    argv = [sys.executable, "-m", "computer.recording", verb, order.model_dump_json()]
    try:
        child = Child(argv, environment=_environment(), log=writer)
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    lines = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), os.fdopen(reader, "rb", buffering=0)
    )
    return _Speaker(child=child, lines=lines, transport=transport)


class Recorder:
    """
    One recording in progress; made by ``start``.

    Attributes:
        started: its first report, with the size of the film.
    """

    def __init__(self, speaker: _Speaker, started: Report) -> None:
        self._speaker = speaker
        self.started = started
        self._ending = asyncio.ensure_future(self._wait_end())

    @classmethod
    async def start(cls, order: RecordOrder) -> "Recorder":
        """
        Start filming; returns once the first fragment is on disk.

        Raises:
            StartFailed: nothing is filmed; says why.

        Cancellation:
            the recorder is stopped.
        """
        speaker = await _spawn("record", order)
        started = None
        try:
            async with asyncio.timeout(START_LIMIT_S):
                started = await speaker.next_report()
        except TimeoutError:
            speaker.tail += f"it filmed nothing within {START_LIMIT_S:g} s"
        finally:
            if started is None:
                await finish(speaker.end())
        if started is None:
            msg = f"the recorder did not start: {speaker.tail.strip() or 'it ended at once'}"
            raise StartFailed(msg)
        return cls(speaker, started)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._speaker.child.pid

    async def wait(self) -> Report | None:
        """Wait for its end; returns its last report, None when it was killed."""
        return await asyncio.shield(self._ending)

    async def stop(self) -> Report | None:
        """
        End the film well, within ``STOP_GRACE_S``; harmless when repeated.

        Cancellation:
            it is stopped all the same.
        """
        return await finish(self._stop())

    async def _stop(self) -> Report | None:
        await self._speaker.child.stop(STOP_GRACE_S)
        return await self._ending

    async def _wait_end(self) -> Report | None:
        stopped = None
        while (report := await self._speaker.next_report()) is not None:
            stopped = report
        await self._speaker.child.wait()
        self._speaker.transport.close()
        return stopped


async def run_finish(order: FinishOrder) -> Report:
    """
    Finish a film in a process of its own.

    Raises:
        StartFailed: it could not be done; the film is as it was.

    Cancellation:
        the process is stopped; the film is as it was.
    """
    async with _speaking(await _spawn("finish", order)) as speaker:
        async with asyncio.timeout(FINISH_LIMIT_S):
            report = await speaker.next_report()
    if report is None:
        msg = f"the film could not be finished: {speaker.tail.strip() or 'its process ended'}"
        raise StartFailed(msg)
    return report


@asynccontextmanager
async def _speaking(speaker: _Speaker) -> AsyncIterator[_Speaker]:
    try:
        yield speaker
    finally:
        await finish(speaker.end())


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in PYTHON_VARIABLES if name in os.environ}
