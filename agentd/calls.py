"""
Tool calls by id: at most one run each, whoever asks how often.

Owns the table of runs. A repeat attaches to the run in progress or gets the
stored answer. A call that is thought to run in another boot of the daemon is
answered with ``OutcomeUnknown`` and never run.

Invariant: a call id starts at most one run per boot.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable

from agentd.errors import CallCancelled, OutcomeUnknown, ShuttingDown
from agentd.wire.content import ToolResult
from agentd.wire.link import ToolCallParams

__all__ = ["CallTable"]

# Finished answers kept for a repeat; a screenshot is about 200 kB, so this is about 50 MB at worst.
MAX_STORED_ANSWERS = 256

UNKNOWN_OUTCOME = (
    "The workspace daemon restarted while this ran, so its outcome is unknown. "
    "It was not run again. Look at the screen before you go on."
)


class CallTable:
    """Runs of this boot."""

    def __init__(self, boot_id: str) -> None:
        self.boot_id = boot_id
        self._runs: OrderedDict[str, asyncio.Task[ToolResult]] = OrderedDict()
        self._closed = False

    async def run(self, call: ToolCallParams, start: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
        """
        The answer of *call*, running it if it never ran.

        Raises:
            OutcomeUnknown: it was given to another boot.
            CallCancelled: ``cancel`` stopped it.
            ShuttingDown: the table is closed.
            TimeoutError: not done within ``call.timeout_s``; the run was stopped.

        Cancellation: the run goes on; a repeat attaches to it.
        """
        task = self._run_of(call, start)
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
        self, call: ToolCallParams, start: Callable[[], Awaitable[ToolResult]]
    ) -> asyncio.Task[ToolResult]:
        if self._closed:
            raise ShuttingDown("the daemon is shutting down")
        if call.boot_id is not None and call.boot_id != self.boot_id:
            raise OutcomeUnknown(UNKNOWN_OUTCOME)
        task = self._runs.get(call.call_id)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._bounded(call, start))
            task.add_done_callback(_retrieve)
            self._runs[call.call_id] = task
            self._evict()
        return task

    async def _bounded(self, call: ToolCallParams, start: Callable[[], Awaitable[ToolResult]]) -> ToolResult:
        async with asyncio.timeout(call.timeout_s):
            return await start()

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


def _is_cancelling() -> bool:
    current = asyncio.current_task()
    return current is not None and current.cancelling() > 0


def _retrieve(task: asyncio.Task[ToolResult]) -> None:
    """Mark the run's exception as seen: nobody may be waiting when it fails."""
    if not task.cancelled():
        task.exception()
