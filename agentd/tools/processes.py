"""Tools that run commands in the workspace."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

from pydantic import Field

from agentd.errors import AgentError, CommandRefused
from agentd.processes.client import KeeperClient
from agentd.processes.command import (
    DEFAULT_WAIT_S,
    MAX_WAIT_S,
    parse_command,
    parse_duration,
    process_environment,
)
from agentd.processes.messages import (
    LIST,
    MAX_OUTPUT_WAIT_S,
    OUTPUT,
    SIGNAL,
    START,
    ListParams,
    OutputParams,
    ProcessList,
    ProcessReport,
    SignalName,
    SignalParams,
    Started,
    StartParams,
)
from agentd.tools.advice import advise
from agentd.tools.answers import Arguments, data_tool
from agentd.tools.registry import Tool
from agentd.wire.link import MAX_PROGRESS_CHARACTERS, ToolCallParams
from computer.shielding import finish

__all__ = ["Commands", "process_tools"]

# Seconds that a signalled process gets to end before the answer says that it still runs.
SIGNAL_WAIT_S = 2.0

# What a command that prints to a terminal is told of it besides.
TERMINAL = {"TERM": "xterm"}
# Seconds between looks at what a command has printed so far.
TELL_S = 1.0

Duration = Annotated[str | float, Field(description='Seconds, or a text such as "90s", "5m", "1h30m".')]


class Execute(Arguments):
    """Arguments of ``execute``."""

    command: Annotated[str, Field(description="For sh -c. A single & at the end runs it in the background.")]
    model_intent: Annotated[str | None, Field(description="What it is for, in a few words for people.")] = (
        None
    )
    timeout: Annotated[
        Duration, Field(description="How long to wait for its end; 10 seconds unless said, 4 hours at most.")
    ] = DEFAULT_WAIT_S
    workdir: Annotated[str | None, Field(description="Absolute directory to run in; home unless said.")] = (
        None
    )
    run_in_background: Annotated[bool, Field(description="Answer at once with the process's id.")] = False
    pty: Annotated[
        bool,
        Field(description="Print to a terminal (80 by 24), for programs that want one; nothing is typed."),
    ] = False


class ProcessOutput(Arguments):
    """Arguments of ``process_output``."""

    process_id: str
    wait_timeout: Annotated[
        Duration, Field(description="How long to wait for its end; 10 seconds unless said, 0 not at all.")
    ] = DEFAULT_WAIT_S


class ProcessSignal(Arguments):
    """Arguments of ``process_signal``."""

    process_id: str
    signal: Annotated[SignalName, Field(description="terminate asks it to end, kill ends it.")]


class NoArguments(Arguments):
    """Nothing."""


class Commands:
    """Runs commands through the keeper, each for the chat that asked."""

    def __init__(
        self,
        keeper: KeeperClient,
        *,
        environment: Callable[[], Mapping[str, str]],
        workdir: Path | None,
        tell: Callable[[str, str], None] = lambda _call_id, _text: None,
    ) -> None:
        self._keeper = keeper
        self._tell = tell
        self._environment = environment
        self._workdir = workdir

    async def execute(self, given: Execute, call: ToolCallParams) -> dict[str, Any]:
        """Start a command and wait for its end, as long as it was given."""
        invocation = parse_command(given.command, background=given.run_in_background)
        wait_s = min(parse_duration(given.timeout), MAX_WAIT_S)
        if wait_s == 0 and not invocation.background:
            raise CommandRefused("timeout: give more than 0, or run_in_background")
        params = StartParams(
            key=call.call_id,
            chat_id=call.chat_id,
            command=invocation.command,
            workdir=self._directory(given.workdir),
            environment=process_environment(
                self._environment(), chat_id=call.chat_id, extra=TERMINAL if given.pty else {}
            ),
            pty=given.pty,
        )
        process_id = await self._start(params)
        if invocation.background:
            return {
                "success": True,
                "background_process_id": process_id,
                "note": "It runs in the background; process_output shows what it prints.",
            }
        try:
            report = await self._watched(process_id, call, wait_s)
        except asyncio.CancelledError:
            # Whoever cancels wants it stopped; a lost link does not cancel, and finds it again.
            await finish(self._stop(process_id, call.chat_id))
            raise
        return _executed(report, given, wait_s)

    async def _watched(self, process_id: str, call: ToolCallParams, wait_s: float) -> ProcessReport:
        """The report after its end or the wait; meanwhile people are told what it prints."""
        telling = asyncio.create_task(self._tell_output(process_id, call), name="output so far")
        try:
            return await self._report(process_id, call.chat_id, wait_s)
        finally:
            telling.cancel()

    async def _tell_output(self, process_id: str, call: ToolCallParams) -> None:
        """Tell the end of what the process has printed, as it grows."""
        printed = 0
        with suppress(AgentError):
            while True:
                await asyncio.sleep(TELL_S)
                report = await self._report(process_id, call.chat_id, 0)
                if report.original_bytes != printed:
                    printed = report.original_bytes
                    self._tell(call.call_id, report.output[-MAX_PROGRESS_CHARACTERS:])

    async def _start(self, params: StartParams) -> str:
        """The process's id; cancelled before it is known, the process is ended all the same."""
        starting = asyncio.ensure_future(self._keeper.call(START, params, Started))
        try:
            return (await asyncio.shield(starting)).process_id
        except asyncio.CancelledError:
            with suppress(AgentError):
                await finish(self._undo(starting, params.chat_id))
            raise

    async def _undo(self, starting: asyncio.Future[Started], chat_id: str | None) -> None:
        await self._stop((await starting).process_id, chat_id)

    async def output(self, given: ProcessOutput, call: ToolCallParams) -> dict[str, Any]:
        """What a process printed so far, after its end or the wait."""
        wait_s = min(parse_duration(given.wait_timeout, what="wait_timeout"), MAX_OUTPUT_WAIT_S)
        report = await self._watched(given.process_id, call, wait_s)
        return _described(report, note="It still runs." if report.running else None)

    async def list(self, _: NoArguments, call: ToolCallParams) -> dict[str, Any]:
        """This chat's processes."""
        found = await self._keeper.call(LIST, ListParams(chat_id=call.chat_id), ProcessList)
        return {
            "processes": [
                {
                    "process_id": report.process_id,
                    "command": report.command,
                    "workdir": report.workdir,
                    "running": report.running,
                    "exit_code": report.exit_code,
                    "started_at": report.started_at.isoformat(),
                    "wall_duration_ms": report.wall_ms,
                }
                for report in found.processes
            ]
        }

    async def signal(self, given: ProcessSignal, call: ToolCallParams) -> dict[str, Any]:
        """Signal a process group and see what became of it."""
        params = SignalParams(process_id=given.process_id, chat_id=call.chat_id, signal=given.signal)
        await self._keeper.call(SIGNAL, params, ProcessReport)
        report = await self._report(given.process_id, call.chat_id, SIGNAL_WAIT_S)
        return _described(report, note="It got the signal and still runs." if report.running else None)

    async def _report(self, process_id: str, chat_id: str | None, wait_s: float) -> ProcessReport:
        deadline = monotonic() + wait_s
        while True:
            left = min(max(0.0, deadline - monotonic()), MAX_OUTPUT_WAIT_S)
            params = OutputParams(process_id=process_id, chat_id=chat_id, wait_s=left)
            report = await self._keeper.call(OUTPUT, params, ProcessReport, left)
            if not report.running or monotonic() >= deadline:
                return report

    async def _stop(self, process_id: str, chat_id: str | None) -> None:
        for name in ("terminate", "kill"):
            try:
                params = SignalParams(process_id=process_id, chat_id=chat_id, signal=name)
                await self._keeper.call(SIGNAL, params, ProcessReport)
            except CommandRefused:
                return
            if not (await self._report(process_id, chat_id, SIGNAL_WAIT_S)).running:
                return

    def _directory(self, wanted: str | None) -> str:
        if wanted is None:
            configured = (
                self._workdir if self._workdir is not None and self._workdir.is_dir() else Path.home()
            )
            return str(configured)
        path = Path(wanted).expanduser() if wanted.startswith("~") else Path(wanted)
        if not path.is_absolute() or not path.is_dir():
            msg = f"workdir: {wanted!r} is no absolute path of a directory"
            raise CommandRefused(msg)
        return str(path)


def process_tools(commands: Commands) -> list[Tool]:
    """The tools, bound to the keeper."""
    longest = MAX_WAIT_S + 60
    return [
        data_tool("execute", EXECUTE, Execute, commands.execute, timeout_s=longest, runs_once=True),
        data_tool("process_output", OUTPUT_TEXT, ProcessOutput, commands.output),
        data_tool("process_list", LIST_TEXT, NoArguments, commands.list, reads_only=True),
        data_tool("process_signal", SIGNAL_TEXT, ProcessSignal, commands.signal),
    ]


EXECUTE = (
    "Run a shell command in the workspace. Nothing can be typed into it. A command that does not end in time "
    "keeps running, and the answer has its process id. Output is cut in the middle when it is long."
)
OUTPUT_TEXT = "Show what a process of this chat printed, waiting for its end at most wait_timeout."
LIST_TEXT = "List this chat's processes, running ones first; ended ones are forgotten after 5 minutes."
SIGNAL_TEXT = "Ask a process of this chat, with all it started, to end (terminate), or end it (kill)."


def _executed(report: ProcessReport, given: Execute, wait_s: float) -> dict[str, Any]:
    if not report.running:
        note = advise(given.command, report.exit_code)
        return {"success": report.exit_code == 0, **_described(report, note=note)}
    note = f"It did not end within {wait_s:g} s and keeps running; process_output shows what it prints."
    described = _described(report, note=note)
    return {"success": False, **described, "exit_code": -1, "background_process_id": report.process_id}


def _described(report: ProcessReport, *, note: str | None) -> dict[str, Any]:
    fields = {
        "output": report.output,
        "exit_code": report.exit_code,
        "running": report.running,
        "wall_duration_ms": report.wall_ms,
        "truncated": _truncation(report),
        "note": note,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _truncation(report: ProcessReport) -> dict[str, Any] | None:
    if report.omitted_bytes == 0:
        return None
    return {
        "original_bytes": report.original_bytes,
        "retained_bytes": report.original_bytes - report.omitted_bytes,
        "omitted_bytes": report.omitted_bytes,
        "strategy": "head_tail",
    }
