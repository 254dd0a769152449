"""
Tool calls by id: at most one run each, whoever asks how often, over restarts too.

Owns the table of this boot's runs. A repeat attaches to the run in progress or gets the
stored answer. What earlier boots did is in the ledger: a call that one of them answered is
answered the same way, one that it began is answered with ``OutcomeUnknown`` and never run.

Invariant: a call id starts at most one run, but for tools that know a call id again by themselves, and those
that only read.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from enum import Enum

import structlog

from agentd.errors import CallCancelled, LedgerFailed, OutcomeUnknown, ShuttingDown
from agentd.ledger import Answered, Ledger, MemoryLedger, Unknown
from agentd.progress import Progress
from agentd.wire.content import TextContent, ToolResult
from agentd.wire.link import ToolCallParams

__all__ = ["CallTable", "Knows"]

# Finished answers kept for a repeat; a screenshot is about 200 kB, so this is about 50 MB at worst.
MAX_STORED_ANSWERS = 256

log = structlog.get_logger("agentd.calls")

UNKNOWN_OUTCOME = (
    "The workspace daemon restarted while this ran, so its outcome is unknown. "
    "It was not run again. Look at the screen before you go on."
)


class Knows(Enum):
    """
    Who knows, beyond the life of this daemon, whether a call was begun.

    ``LEDGER``: it is written down before anything is done. ``TOOL``: the tool knows the id again by itself.
    ``NOBODY``: nobody need to, since the call changes nothing: it is made again.
    """

    LEDGER = "ledger"
    TOOL = "tool"
    NOBODY = "nobody"


class CallTable:
    """
    Runs of this boot; *progress* is what they tell of themselves.

    Args:
        boot_id: of this start of the daemon.
        ledger: remembers calls beyond it; one that does not when absent.
    """

    def __init__(self, boot_id: str, ledger: Ledger | None = None) -> None:
        self.boot_id = boot_id
        self.progress = Progress()
        self._ledger: Ledger = ledger or MemoryLedger(boot_id)
        self._runs: OrderedDict[str, asyncio.Task[ToolResult]] = OrderedDict()
        self._closed = False

    async def run(
        self,
        call: ToolCallParams,
        start: Callable[[], Awaitable[ToolResult]],
        *,
        knows: Knows = Knows.LEDGER,
    ) -> ToolResult:
        """
        The answer of *call*, running it by *start* if it never ran; *knows* says who can tell.

        Raises:
            OutcomeUnknown: it was begun before, and nobody knows how it ended.
            CallCancelled: ``cancel`` stopped it.
            LedgerFailed: it could not be written down, so it was not run.
            ShuttingDown: the table is closed.
            TimeoutError: not done within ``call.timeout_s``; the run was stopped.

        Cancellation: the run goes on; a repeat attaches to it.
        """
        task = self._run_of(call, start, knows)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled() and not _is_cancelling():
                raise CallCancelled("the call was cancelled") from None
            raise

    async def cancel(self, call_id: str) -> None:
        """Stop the run of *call_id*, if there is one, and wait until it has ended."""
        task = self._runs.get(call_id)
        if task is not None and task.cancel():
            await asyncio.wait({task})

    def _run_of(
        self, call: ToolCallParams, start: Callable[[], Awaitable[ToolResult]], knows: Knows
    ) -> asyncio.Task[ToolResult]:
        if self._closed:
            raise ShuttingDown("the daemon is shutting down")
        task = self._runs.get(call.call_id)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._once(call, start, knows))
            task.add_done_callback(_retrieve)
            self._runs[call.call_id] = task
            self._evict()
        return task

    async def _once(
        self, call: ToolCallParams, start: Callable[[], Awaitable[ToolResult]], knows: Knows
    ) -> ToolResult:
        if knows is Knows.NOBODY:
            async with asyncio.timeout(call.timeout_s):
                return await start()
        known = await self._known(call, knows)
        if known is not None:
            return known
        try:
            async with asyncio.timeout(call.timeout_s):
                result = await start()
        except BaseException as exc:
            await self._keep(call.call_id, _failure(exc))
            raise
        await self._keep(call.call_id, result)
        return result

    async def _known(self, call: ToolCallParams, knows: Knows) -> ToolResult | None:
        """What an earlier boot answered; None: it may run, which the ledger knows then if it must."""
        if knows is Knows.TOOL:
            return await self._ledger.answered(call.call_id)
        known = await self._ledger.begin(call.call_id, call.boot_id)
        if isinstance(known, Unknown):
            raise OutcomeUnknown(UNKNOWN_OUTCOME)
        return known.result if isinstance(known, Answered) else None

    async def _keep(self, call_id: str, result: ToolResult) -> None:
        try:
            await self._ledger.answer(call_id, result)
        except LedgerFailed as exc:
            # It has run all the same: whoever waits gets the answer, a repeat after a restart does not.
            log.warning("answer not kept", action="answer_lost", call_id=call_id, reason=str(exc))

    def _evict(self) -> None:
        finished = [call_id for call_id, task in self._runs.items() if task.done()]
        for call_id in finished[: max(0, len(self._runs) - MAX_STORED_ANSWERS)]:
            del self._runs[call_id]

    async def close(self) -> None:
        """Cancel what runs and wait for it."""
        self._closed = True
        running = [task for task in self._runs.values() if not task.done()]
        for task in running:
            task.cancel()
        await asyncio.gather(*self._runs.values(), return_exceptions=True)
        self._runs.clear()


def _failure(exc: BaseException) -> ToolResult:
    """What a repeat after a restart is told of a run that gave no result."""
    is_stopped = isinstance(exc, asyncio.CancelledError | TimeoutError)
    text = "the call was stopped before it ended" if is_stopped else f"{type(exc).__name__}: {exc}"
    return ToolResult(content=(TextContent(text=text),), is_error=True)


def _is_cancelling() -> bool:
    current = asyncio.current_task()
    return current is not None and current.cancelling() > 0


def _retrieve(task: asyncio.Task[ToolResult]) -> None:
    """Mark the run's exception as seen: nobody may be waiting when it fails."""
    if not task.cancelled():
        task.exception()
