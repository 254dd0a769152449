"""
Drives one chat until its turn ends, as the owner of its lease.

The history decides what comes next, so a runner that dies can be replaced at any
point: an assistant message with open calls means "run them", and so on. Every
write re-checks runner, history and status (the fence) in its own transaction.
"""

import asyncio
import contextlib
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeVar
from uuid import UUID

import sqlalchemy as sa
import structlog

from chatd.constants import MAX_REENTRIES, RUNNER_SYNC_S
from chatd.errors import (
    AgentUnavailable,
    ChatdError,
    LeaseLost,
    ModelGone,
    NotFound,
    ProviderFault,
    TransitionNotAllowed,
)
from chatd.faults import (
    FaultKind,
    effective_delay_s,
    is_overflow_fault,
    overflow_fault,
    retry_banner,
    spread_delay_s,
)
from chatd.loop.answer import judge_answer
from chatd.loop.collect import Collector
from chatd.loop.decide import AwaitClient, Compact, Finish, Generate, RunTools, decide
from chatd.loop.request import build_prompt, prompt_bytes
from chatd.loop.silence import listen
from chatd.metrics import ModelLabels
from chatd.prompt.compaction import Pressure, newest_usage
from chatd.prompt.titles import is_first_message
from chatd.provider.prices import cost_micros
from chatd.provider.protocol import ModelRequest
from chatd.state import RUNNABLE_STATUSES
from chatd.store import queries
from chatd.store.boundaries import turn_progress
from chatd.store.machine import STOPPED, ChatTx, Fence, cancelled_result
from chatd.store.outages import is_outage
from chatd.store.rows import NewMessage, chat_from_row, notice_message, open_calls
from chatd.store.store import derive_title
from chatd.stream.buffer import Episode
from chatd.stream.hub import Subscription
from chatd.tools.offering import MAX_TOOLS
from chatd.tools.questions import last_question
from chatd.tools.toolset import CallContext, ToolOutcome, Toolset
from chatd.wire import Chat, ChatError, Message, RetryPayload, Role, TextPart, ToolCallPart, ToolResultPart
from chatd.worker.advising import chat_toolset
from chatd.worker.announce import announce_end, announce_question
from chatd.worker.compacting import Compaction, measure_pressure, summarise
from chatd.worker.context import system_of, wait_pinned
from chatd.worker.leaving import leave_desktop
from chatd.worker.offered import offered_tools, web_search_of
from chatd.worker.rescue import Failed, Rescue
from chatd.worker.retrying import error_of, retry_payload
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
        self._collector = Collector(self._store.now)
        self._calls: tuple[ToolCallPart, ...] = ()
        self._outcomes: dict[str, ToolOutcome] = {}
        # History version that the step under way builds on; what it collected belongs behind that, once.
        self._history = -1
        # History version whose summary failed (the turn goes on without), and one that the vendor found too
        # long, with its fault (it does not).
        self._unsummarised = -1
        self._overflow: tuple[int, ProviderFault] | None = None
        self._known: list[Message] = []
        self._rescue = Rescue(services)
        # Whether the last answer was cut off in a call's arguments.
        self._was_cut = False
        # Tools that found no room in the last request.
        self._left_out: tuple[str, ...] = ()

    async def run(self) -> None:
        """
        Work until the chat needs nobody, or belongs to somebody else.

        Cancellation: the lease is left to whoever comes next; the history is whole.
        """
        with self._services.metrics.chat(), self._services.hub.watch_chat(self._chat_id) as subscription:
            try:
                was_stopped, last = True, None
                while (row := await self._owned_row()) is not None:
                    was_stopped, last = row["status"] == "interrupting", row
                    if was_stopped:
                        await self._finish_interruption(row)
                    elif row["status"] == "requires_action":
                        # Taken because the client's time is over.
                        await self._write(row, lambda tx: tx.cancel_requires_action())
                    else:
                        await self._guarded_step(row, subscription)
                if last is not None:
                    await leave_desktop(self._services, last)
                    if not was_stopped:
                        await announce_end(self._services, last["owner_id"], self._chat_id)
            except (LeaseLost, NotFound, TransitionNotAllowed) as exc:
                log.info("runner leaves", action="runner_left", chat_id=str(self._chat_id), reason=str(exc))
            finally:
                self._services.buffer.close(self._chat_id)

    async def _owned_row(self) -> sa.RowMapping | None:
        row = await self._store.read(queries.read_row, self._chat_id)
        is_mine = row["runner_id"] == self._runner_id and not row["archived"]
        return self._rescue.divert(row) if is_mine and row["status"] in RUNNABLE_STATUSES else None

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
        if failure is not None and is_outage(failure):
            # Nobody knows what was committed; the rows do.
            raise failure
        if failure is not None:
            # The same goes for a failure that came together with an interrupt.
            with contextlib.suppress(LeaseLost, TransitionNotAllowed):
                await self._fail(row, failure)

    async def _wait_disturbed(self, subscription: Subscription) -> None:
        """Until the step under way is of no use: stopped, or the chat is not ours (an edit takes it away)."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RUNNER_SYNC_S):
                    while not await subscription.wait():
                        # A fragment of our own: no row changed.
                        continue
            row = await self._owned_row()
            if row is None or row["status"] != "running":
                return

    async def _fail(self, row: sa.RowMapping, failure: BaseException) -> None:
        if isinstance(failure, ModelGone):
            await self._write(row, await self._rescue.replace_model(row), any_history=True)
            return
        log.error("step failed", action="step_failed", chat_id=str(self._chat_id), exc_info=failure)
        if isinstance(failure, ChatdError):
            error = ChatError(message=str(failure), kind=FaultKind.GENERIC)
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
        self._collector, self._calls, self._outcomes = Collector(self._store.now), (), {}
        self._history = row["history_version"]
        messages = await self._read_history()
        pressure = await measure_pressure(self._services, chat_from_row(row), newest_usage(messages))
        if row["compaction_requested_at"] is not None:
            await self._compact(row, messages, pressure, is_final=True)
            return
        client_names = [tool["name"] for tool in row["dynamic_tools"] or ()]
        match decide(messages, client_names, is_full=self._is_full(row, pressure)):
            case RunTools(message_id, calls):
                await self._run_tools(row, message_id, calls, asked=tuple(open_calls(messages)))
            case AwaitClient():
                await self._write(row, lambda tx: tx.enter_requires_action())
            case Generate():
                await self._generate(row, messages)
            case Compact(is_final):
                await self._compact(row, messages, pressure, is_final=is_final)
            case Finish():
                await self._write(row, lambda tx: tx.finish_turn())

    async def _read_history(self) -> list[Message]:
        """
        What the model sees. While the chat is ours rows are only added, so only those are read.

        An edit takes the chat away from us; behind a new boundary all is read again.
        """
        known = self._known
        last_id = known[-1].id if known else 0
        fresh = await self._store.read(queries.prompt_messages, self._chat_id, after_id=last_id)
        if known and any(message.visibility == "model" for message in fresh):
            fresh, known = await self._store.read(queries.prompt_messages, self._chat_id), []
        self._known = [*known, *fresh]
        return self._known

    async def _run_tools(
        self,
        row: sa.RowMapping,
        message_id: int,
        calls: tuple[ToolCallPart, ...],
        *,
        asked: tuple[ToolCallPart, ...],
    ) -> None:
        """Run all calls at once, desktop actions in order; commit the results together, in call order."""
        self._calls = calls
        try:
            toolset = await chat_toolset(self._services, chat_from_row(row))
        except AgentUnavailable as exc:
            # The model is told, as when a call finds no workspace; nothing stays without an answer.
            results = [NewMessage(role="tool", content=(cancelled_result(call, str(exc)),)) for call in calls]
            await self._write(row, lambda tx: tx.commit_step(results))
            return
        # The client's calls count too where one wants to be alone.
        refused = toolset.refuse_company(asked)
        if refused:
            calls = self._calls = asked
            self._outcomes |= refused
        else:
            await self._run_all(toolset, message_id, calls)
        results = _result_messages(calls, self._outcomes)
        parts = [self._outcomes[call.tool_call_id].part for call in calls]
        is_over = not refused and toolset.stops_after(parts)

        def commit(tx: ChatTx) -> None:
            tx.commit_step(results)
            if is_over and not tx.open_calls():
                tx.finish_turn()

        await self._write(row, commit)
        announce_question(self._services, row, last_question(toolset, parts))

    async def _run_all(self, toolset: Toolset, message_id: int, calls: tuple[ToolCallPart, ...]) -> None:
        async def run_one(call: ToolCallPart) -> None:
            report = partial(self._services.buffer.report, self._chat_id, call.tool_call_id)
            context = CallContext(chat_id=self._chat_id, message_id=message_id, call=call, report=report)
            outcome = await toolset.run(context)
            part = outcome.part.model_copy(update={"created_at": self._store.now()})
            self._outcomes[call.tool_call_id] = replace(outcome, part=part)

        async def run_in_order(computer_calls: list[ToolCallPart]) -> None:
            # There is one pointer and one keyboard: a later action counts on the earlier one.
            for call in computer_calls:
                await run_one(call)

        async with asyncio.TaskGroup() as group:
            group.create_task(run_in_order([call for call in calls if call.tool_name == "computer"]))
            for call in calls:
                if call.tool_name != "computer":
                    group.create_task(run_one(call))

    async def _generate(self, row: sa.RowMapping, messages: list[Message]) -> None:
        progress = await self._store.read(turn_progress, self._chat_id)
        limit = self._services.settings.max_steps
        if progress.steps >= limit:
            error = ChatError(message=f"The turn was stopped after {limit} steps.", kind=FaultKind.CONFIG)
            await self._write(row, lambda tx: tx.finish_error(error))
            return
        await self._wait_retry(row)
        chat = chat_from_row(row)
        request = await self._request(row, messages)
        source = self._services.catalog.source(chat.last_model_config_id)
        labels = ModelLabels(source.provider, source.model)
        attempt = await self._write(row, _begin_attempt)
        if attempt is None:
            # The history is longer now: the next look asks with it.
            return
        if row["generation_attempt"] == 0:
            self._services.metrics.step_begun(
                labels, messages=len(request.messages), size_bytes=prompt_bytes(request.messages)
            )
            self._ask_title(chat, messages)
        episode = self._services.buffer.open(
            self._chat_id, history_version=row["history_version"], attempt=attempt
        )
        try:
            with self._services.metrics.streaming():
                await self._stream(chat, request, episode, labels)
        except ProviderFault as fault:
            failed = Failed(chat=chat, messages=messages, request=request, fault=fault, attempt=attempt)
            way_on = await self._rescue.find(failed)
            if way_on is None:
                await self._after_fault(row, fault, attempt, labels)
            else:
                await self._write(row, way_on)
                self._known = []
            return
        await self._commit_answer(row, chat)

    def _ask_title(self, chat: Chat, messages: list[Message]) -> None:
        """Have a title looked for beside a root chat's first turn, while it has the one made of its words."""
        if not self._services.settings.auto_titles or chat.parent_chat_id is not None:
            return
        if not is_first_message(messages) or chat.title != derive_title(text_of(messages[-1])):
            return
        with contextlib.suppress(asyncio.QueueFull):
            self._services.untitled.put_nowait(chat)

    async def _request(self, row: sa.RowMapping, messages: list[Message]) -> ModelRequest:
        chat = chat_from_row(row)
        await wait_pinned(self._services, row)
        toolset, offered = await offered_tools(self._services, row)
        source = self._services.catalog.source(chat.last_model_config_id)
        self._tell_left_out(offered.left_out, ModelLabels(source.provider, source.model))
        return ModelRequest(
            model=source.model,
            system=await system_of(self._services, row, messages),
            messages=await build_prompt(
                self._store, messages, provider=source.provider, cache=self._services.files
            ),
            tools=offered.functions,
            computer=toolset.computer,
            web_search=web_search_of(self._services, chat),
            effort=source.effort(chat.last_reasoning_effort),
        )

    def _tell_left_out(self, names: tuple[str, ...], labels: ModelLabels) -> None:
        """Say that tools found no room in the request; once, not at every step of a turn."""
        if names and names != self._left_out:
            self._services.metrics.left_out(labels, len(names))
            log.warning(
                "tools left out",
                action="tools_left_out",
                chat_id=str(self._chat_id),
                count=len(names),
                limit=MAX_TOOLS,
                first=names[0],
            )
        self._left_out = names

    async def _stream(self, chat: Chat, request: ModelRequest, episode: Episode, labels: ModelLabels) -> None:
        """Collect and publish one model call."""
        provider = await self._services.catalog.provider(chat.last_model_config_id)
        loop = asyncio.get_running_loop()
        began, has_begun = loop.time(), False
        stream = listen(provider, request, self._services.patience)
        async with contextlib.aclosing(stream) as events:
            async for event in events:
                if not has_begun:
                    has_begun = True
                    self._services.metrics.first_part(labels, loop.time() - began)
                fragment = self._collector.add(event)
                if fragment is not None:
                    role: Role = "tool" if isinstance(fragment, ToolResultPart) else "assistant"
                    self._services.buffer.add(episode, role, fragment)
                # A fast vendor's answer is here at once: watchers and other chats have a turn too.
                await asyncio.sleep(0)
        finished = self._collector.finished
        if finished is not None and finished.reason == "context-exceeded" and self._overflow is None:
            # Once: what a summarised history leaves no room for is kept as far as it came.
            raise overflow_fault(labels.provider)

    async def _after_fault(
        self, row: sa.RowMapping, fault: ProviderFault, attempt: int, labels: ModelLabels
    ) -> None:
        """Wait and let the next step try again, or end the turn with the error."""
        if is_overflow_fault(fault) and self._overflow is None:
            # The next look summarises; a prompt that is too long even then ends the turn.
            self._overflow = (row["history_version"], fault)
            return
        if not fault.retryable or attempt >= self._services.settings.max_attempts:
            await self._write(row, lambda tx: tx.finish_error(error_of(fault)))
            return
        self._services.metrics.retried(labels, fault.kind)
        # One number for the event, the log and the wait.
        wait_s = effective_delay_s(attempt - 1, fault.retry_after_s)
        delay_ms = math.ceil(spread_delay_s(wait_s, self._services.chance()) * 1000)
        log.info(
            "retry",
            action="retry",
            chat_id=str(self._chat_id),
            attempt=attempt,
            delay_ms=delay_ms,
            kind=fault.kind,
            provider=fault.provider,
            status_code=fault.status_code,
        )
        payload = retry_payload(
            fault, attempt=attempt, delay_ms=delay_ms, banner=retry_banner(fault), now=self._store.now()
        )
        await self._write(row, lambda tx: tx.record_retry(payload))
        await asyncio.sleep(delay_ms / 1000)

    async def _wait_retry(self, row: sa.RowMapping) -> None:
        """Wait out what is left of a retry's delay: another runner may have died in the middle of it."""
        if row["retry_state"] is not None:
            retry = RetryPayload.model_validate(row["retry_state"])
            left_s = (retry.retrying_at - self._store.now()).total_seconds()
            await asyncio.sleep(min(max(left_s, 0), retry.delay_ms / 1000))

    async def _commit_answer(self, row: sa.RowMapping, chat: Chat) -> None:
        finished = self._collector.finished
        answer = judge_answer(self._collector.content(), finished, was_cut=self._was_cut)
        error, self._was_cut = answer.error, answer.is_cut
        if error is not None and not answer.content:
            await self._write(row, lambda tx: tx.finish_error(error))
            return
        self._overflow = None
        if finished is not None and finished.context_limit:
            self._services.windows[chat.last_model_config_id] = finished.context_limit
        usage = finished.usage if finished else None
        window = self._services.window(chat)
        if usage is not None and window is not None:
            usage = usage.model_copy(update={"context_limit": window})
        source = self._services.catalog.source(chat.last_model_config_id)
        message = NewMessage(
            role="assistant",
            content=answer.content,
            model_config_id=chat.last_model_config_id,
            usage=usage,
            cost_micros=cost_micros(source, usage),
        )
        notices = [notice_message(answer.notice)] if answer.notice is not None else []
        pressure = await measure_pressure(self._services, chat, usage)

        def commit(tx: ChatTx) -> None:
            tx.commit_step([message, *notices])
            if error is not None:
                tx.finish_error(error)
            elif not tx.open_calls() and not pressure.is_high:
                tx.finish_turn()

        await self._write(row, commit)

    # -- summaries -------------------------------------------------------------

    def _is_full(self, row: sa.RowMapping, pressure: Pressure) -> bool:
        history = row["history_version"]
        if self._overflow is not None and self._overflow[0] == history:
            return True
        return pressure.is_high and self._unsummarised != history

    async def _compact(
        self, row: sa.RowMapping, messages: list[Message], pressure: Pressure, *, is_final: bool
    ) -> None:
        """Put a summary in place of the history; *is_final*: the model has ended by itself."""
        is_manual = row["compaction_requested_at"] is not None
        refused = self._overflow[1] if self._overflow is not None else None
        progress = await self._store.read(turn_progress, self._chat_id)
        may_reenter = (
            progress.reentries < MAX_REENTRIES and progress.steps < self._services.settings.max_steps
        )
        compaction = Compaction(
            chat=chat_from_row(row),
            messages=messages,
            request=await self._request(row, messages),
            pressure=pressure,
            source="manual" if is_manual else "automatic",
            is_refused=refused is not None,
            reenters=is_final and may_reenter and not is_manual,
        )
        episode = self._services.buffer.open(
            self._chat_id,
            history_version=row["history_version"],
            # None yet, unless a try of the model call was refused: fragments are told apart by it.
            attempt=await self._write(row, lambda tx: tx.record_attempt()) if refused else 0,
        )
        try:
            boundary = await summarise(
                self._services, compaction, lambda part: self._services.buffer.add(episode, "assistant", part)
            )
        except ProviderFault as fault:
            self._unsummarised = row["history_version"]
            if is_manual or refused is not None:
                error = error_of(refused or fault)
                await self._write(row, lambda tx: tx.finish_error(error))
            return

        def commit(tx: ChatTx) -> None:
            tx.commit_step(boundary)
            if is_final and not compaction.reenters:
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


def _begin_attempt(tx: ChatTx) -> int | None:
    """Count one more try of the model call; None: what waits for the next call was taken in instead."""
    if tx.has_steered():
        tx.take_steered()
        return None
    return tx.record_attempt()


def text_of(message: Message) -> str:
    """The message's words, as the first title is made of them."""
    return "\n".join(part.text for part in message.content if isinstance(part, TextPart))


def _result_messages(calls: tuple[ToolCallPart, ...], outcomes: dict[str, ToolOutcome]) -> list[NewMessage]:
    ordered = [outcomes[call.tool_call_id] for call in calls]
    return [NewMessage(role="tool", content=(one.part,), files=one.files) for one in ordered]
