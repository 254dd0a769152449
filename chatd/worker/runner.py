"""
Drives one chat until its turn ends, as the owner of its lease.

The history decides what comes next, so a runner that dies can be replaced at any
point: an assistant message with open calls means "run them", and so on. Every
write re-checks runner, history and status (the fence) in its own transaction.
"""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

import sqlalchemy as sa
import structlog

from chatd.errors import ChatdError, LeaseLost, NotFound, ProviderFault, TransitionNotAllowed
from chatd.faults import FaultKind, effective_delay_s, make_fault, retry_banner
from chatd.loop.collect import Collector
from chatd.loop.decide import Finish, Generate, RunTools, decide
from chatd.loop.prompts import system_prompt
from chatd.loop.request import build_prompt
from chatd.provider.protocol import ModelRequest
from chatd.store import queries
from chatd.store.machine import STOPPED, ChatTx, Fence, cancelled_result
from chatd.store.rows import NewMessage, chat_from_row
from chatd.stream.buffer import Episode
from chatd.stream.hub import Subscription
from chatd.tools.toolset import CallContext, ToolOutcome
from chatd.wire import Chat, ChatError, Message, ReasoningPart, RetryPayload, ToolCallPart
from chatd.worker.services import Services

__all__ = ["Runner"]

T = TypeVar("T")
log = structlog.get_logger("chatd.runner")


class Runner:
    """One chat, one lease."""

    def __init__(self, services: Services, chat_id: UUID, runner_id: UUID) -> None:
        self._services = services
        self._store = services.store
        self._chat_id = chat_id
        self._runner_id = runner_id
        self._collector = Collector()
        self._calls: tuple[ToolCallPart, ...] = ()
        self._outcomes: dict[str, ToolOutcome] = {}
        # History version that the step under way builds on; what it collected belongs behind that, once.
        self._history = -1
        self._steps = 0

    async def run(self) -> None:
        """
        Work until the chat needs nobody, or belongs to somebody else.

        Cancellation: the lease is left to whoever comes next; the history is whole.
        """
        with self._services.hub.watch_chat(self._chat_id) as subscription:
            try:
                while (row := await self._owned_row()) is not None:
                    if row["status"] == "interrupting":
                        await self._finish_interruption(row)
                    else:
                        await self._guarded_step(row, subscription)
            except (LeaseLost, NotFound, TransitionNotAllowed) as exc:
                log.info("runner leaves", action="runner_left", chat_id=str(self._chat_id), reason=str(exc))
            finally:
                self._services.buffer.close(self._chat_id)

    async def _owned_row(self) -> sa.RowMapping | None:
        row = await self._store.read(queries.read_row, self._chat_id)
        is_mine = row["runner_id"] == self._runner_id and not row["archived"]
        return row if is_mine and row["status"] in {"running", "interrupting"} else None

    async def _guarded_step(self, row: sa.RowMapping, subscription: Subscription) -> None:
        """Run one step, stopping it as soon as the chat is no longer running and ours."""
        step = asyncio.get_running_loop().create_task(self._step(row), name=f"step {self._chat_id}")
        watch = asyncio.get_running_loop().create_task(self._wait_disturbed(subscription))
        try:
            await asyncio.wait({step, watch}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # Both ended, whatever happens to us: nothing of a step may outlive its runner.
            watch.cancel()
            if not step.done():
                step.cancel()
            await asyncio.gather(step, watch, return_exceptions=True)
        if step.cancelled():
            return
        failure = step.exception()
        if isinstance(failure, LeaseLost | NotFound | TransitionNotAllowed):
            # An interrupt that came between two looks: the next look sees it.
            return
        if failure is not None:
            # The same goes for a failure that came together with an interrupt.
            with contextlib.suppress(LeaseLost, TransitionNotAllowed):
                await self._fail(row, failure)

    async def _wait_disturbed(self, subscription: Subscription) -> None:
        while True:
            if not await subscription.wait():
                # A fragment of our own: no row changed.
                continue
            row = await self._owned_row()
            if row is None or row["status"] != "running":
                return

    async def _fail(self, row: sa.RowMapping, failure: BaseException) -> None:
        log.error("step failed", action="step_failed", chat_id=str(self._chat_id), exc_info=failure)
        if isinstance(failure, ChatdError):
            error = ChatError(message=str(failure), kind="generic")
        else:
            error = ChatError(message="Something went wrong inside chatd.", detail=type(failure).__name__)
        await self._write(row, lambda tx: tx.finish_error(error), any_history=True)

    async def _write(
        self, row: sa.RowMapping, apply: Callable[[ChatTx], T], *, any_history: bool = False
    ) -> T:
        def fenced(tx: ChatTx) -> T:
            history = tx["history_version"] if any_history else row["history_version"]
            fence = Fence(runner_id=self._runner_id, history_version=history, status=row["status"])
            tx.require(fence)
            return apply(tx)

        return await self._store.transition(self._chat_id, fenced)

    # -- one step --------------------------------------------------------------

    async def _step(self, row: sa.RowMapping) -> None:
        self._collector, self._calls, self._outcomes = Collector(), (), {}
        self._history = row["history_version"]
        messages = await self._store.read(queries.prompt_messages, self._chat_id)
        match decide(messages):
            case RunTools(message_id, calls):
                await self._run_tools(row, message_id, calls)
            case Generate():
                await self._generate(row, messages)
            case Finish():
                await self._write(row, lambda tx: tx.finish_turn())

    async def _run_tools(self, row: sa.RowMapping, message_id: int, calls: tuple[ToolCallPart, ...]) -> None:
        """Run all calls at once, desktop actions in order; commit the results together, in call order."""
        self._calls = calls
        toolset = await self._services.toolset(chat_from_row(row))

        async def run_one(call: ToolCallPart) -> None:
            context = CallContext(chat_id=self._chat_id, message_id=message_id, call=call)
            self._outcomes[call.tool_call_id] = await toolset.run(context)

        async def run_in_order(computer_calls: list[ToolCallPart]) -> None:
            # There is one pointer and one keyboard: a later action counts on the earlier one.
            for call in computer_calls:
                await run_one(call)

        async with asyncio.TaskGroup() as group:
            group.create_task(run_in_order([call for call in calls if call.tool_name == "computer"]))
            for call in calls:
                if call.tool_name != "computer":
                    group.create_task(run_one(call))
        results = _result_messages(calls, self._outcomes)
        await self._write(row, lambda tx: tx.commit_step(results))

    async def _generate(self, row: sa.RowMapping, messages: list[Message]) -> None:
        if messages and messages[-1].role == "user" and row["generation_attempt"] == 0:
            # A backlog's next turn, by the same runner.
            self._steps = 0
        self._steps += 1
        if self._steps > self._services.settings.max_steps:
            limit = self._services.settings.max_steps
            error = ChatError(message=f"The turn was stopped after {limit} steps.", kind="config")
            await self._write(row, lambda tx: tx.finish_error(error))
            return
        chat = chat_from_row(row)
        request = await self._request(chat, messages)
        attempt = await self._write(row, lambda tx: tx.record_attempt())
        episode = self._services.buffer.open(
            self._chat_id, history_version=row["history_version"], attempt=attempt
        )
        try:
            await self._stream(chat, request, episode)
        except ProviderFault as fault:
            await self._after_fault(row, fault, attempt)
            return
        await self._commit_answer(row, chat)

    async def _request(self, chat: Chat, messages: list[Message]) -> ModelRequest:
        toolset = await self._services.toolset(chat)
        source = self._services.catalog.source(chat.last_model_config_id)
        return ModelRequest(
            model=source.model,
            system=system_prompt(mode=chat.mode, is_child=chat.parent_chat_id is not None),
            messages=await build_prompt(self._store, messages),
            tools=toolset.definitions(),
            computer=toolset.computer,
        )

    async def _stream(self, chat: Chat, request: ModelRequest, episode: Episode) -> None:
        """Collect and publish one model call, under the silence guard."""
        provider = await self._services.catalog.provider(chat.last_model_config_id)
        silence_s = self._services.settings.stream_silence_timeout_s
        loop = asyncio.get_running_loop()
        try:
            async with (
                asyncio.timeout(silence_s) as guard,
                contextlib.aclosing(provider.stream(request)) as events,
            ):
                async for event in events:
                    guard.reschedule(loop.time() + silence_s)
                    fragment = self._collector.add(event)
                    if fragment is not None:
                        self._services.buffer.add(episode, "assistant", fragment)
        except TimeoutError:
            raise make_fault(FaultKind.STREAM_SILENCE_TIMEOUT, provider.name, retryable=True) from None

    async def _after_fault(self, row: sa.RowMapping, fault: ProviderFault, attempt: int) -> None:
        """Wait and let the next step try again, or end the turn with the error."""
        if not fault.retryable or attempt >= self._services.settings.max_attempts:
            error = ChatError(
                message=str(fault),
                detail=fault.detail,
                kind=fault.kind,
                provider=fault.provider or None,
                retryable=fault.retryable,
                status_code=fault.status_code,
            )
            await self._write(row, lambda tx: tx.finish_error(error))
            return
        delay_s = effective_delay_s(attempt - 1, fault.retry_after_s)
        payload = RetryPayload(
            attempt=attempt,
            delay_ms=round(delay_s * 1000),
            error=retry_banner(fault),
            kind=fault.kind,
            provider=fault.provider or None,
            status_code=fault.status_code,
            retrying_at=self._store.now() + timedelta(seconds=delay_s),
        )
        await self._write(row, lambda tx: tx.record_retry(payload))
        await asyncio.sleep(delay_s)

    async def _commit_answer(self, row: sa.RowMapping, chat: Chat) -> None:
        content, finished = self._collector.content(), self._collector.finished
        if all(isinstance(part, ReasoningPart) for part in content):
            is_filtered = finished is not None and finished.reason == "content-filter"
            error = ChatError(
                message="The model's answer was withheld by its content filter."
                if is_filtered
                else "The model gave an empty answer.",
                kind="content_filter" if is_filtered else "generic",
            )
            await self._write(row, lambda tx: tx.finish_error(error))
            return
        message = NewMessage(
            role="assistant",
            content=content,
            model_config_id=chat.last_model_config_id,
            usage=finished.usage if finished else None,
        )

        def commit(tx: ChatTx) -> None:
            tx.commit_step([message])
            if not tx.open_calls():
                tx.finish_turn()

        await self._write(row, commit)

    async def _finish_interruption(self, row: sa.RowMapping) -> None:
        """Keep everything that was received, answer every open call, end the turn."""
        # A step that was committed before the interrupt has left nothing to keep.
        messages = self._received() if row["history_version"] == self._history else []
        await self._write(row, lambda tx: tx.finish_interruption(messages))

    def _received(self) -> list[NewMessage]:
        """What the step under way gave so far; results in call order, whichever came first."""
        partial = self._collector.partial()
        messages = [NewMessage(role="assistant", content=partial)] if partial else []
        outcomes = {
            call.tool_call_id: ToolOutcome(part=cancelled_result(call, STOPPED)) for call in self._calls
        }
        return messages + _result_messages(self._calls, outcomes | self._outcomes)


def _result_messages(calls: tuple[ToolCallPart, ...], outcomes: dict[str, ToolOutcome]) -> list[NewMessage]:
    ordered = [outcomes[call.tool_call_id] for call in calls]
    return [NewMessage(role="tool", content=(outcome.part,), files=outcome.files) for outcome in ordered]
