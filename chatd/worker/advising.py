"""The advisor: one call of a second model, within a turn's budget; what it costs is the chat's."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from chatd.errors import ChatdError
from chatd.loop.request import build_prompt
from chatd.prompt.assemble import insert_system
from chatd.provider.protocol import ModelRequest
from chatd.store import queries
from chatd.tools.advisor import ADVISOR, CONTRACT, MAX_QUESTION, Advise, advice_taken, recent_messages
from chatd.tools.arguments import describe
from chatd.tools.offering import by_name, offer
from chatd.tools.policy import Origin, is_offered, kind_of
from chatd.tools.toolset import CallContext, LocalTool, ToolOutcome, Toolset, error_outcome
from chatd.wire import Chat, Message, TextPart, ToolResultPart
from chatd.worker.context import system_of
from chatd.worker.services import Services
from chatd.worker.side_calls import SideCall, collect_text

__all__ = ["chat_toolset"]

# Seconds for one piece of advice.
ADVICE_S = 180.0
# Seconds between two looks at what it says.
TELL_S = 1.0


async def chat_toolset(services: Services, chat: Chat) -> Toolset:
    """
    Everything that *chat* may call, the advisor among it where there is one.

    Raises:
        AgentUnavailable: as ``Services.toolset``.
    """
    toolset = await services.toolset(chat)
    settings = services.settings
    is_wanted = settings.advisor_model is not None and settings.advisor_max_uses >= 0
    if not is_wanted or not is_offered(ADVISOR.name, Origin.OURS, kind_of(chat)):
        return toolset
    advisor = _Advisor(services, toolset)
    tool = LocalTool(definition=ADVISOR, run=advisor.run, is_exclusive=True)
    return replace(toolset, tools=by_name([tool, *toolset.tools.values()]))


class _Advisor:
    def __init__(self, services: Services, toolset: Toolset) -> None:
        self._services = services
        self._toolset = toolset

    async def run(self, context: CallContext) -> ToolOutcome:
        try:
            wish = Advise.model_validate(context.call.args or {})
        except ValidationError as exc:
            return error_outcome(context.call, describe(exc))
        settings = self._services.settings
        messages = await self._services.store.read(queries.prompt_messages, context.chat_id)
        left = (settings.advisor_max_uses or settings.max_steps) - advice_taken(messages)
        if left <= 0:
            return _outcome(context, "limit_reached", remaining_uses=0)
        try:
            return await self._ask(context, messages, wish.question[:MAX_QUESTION], left)
        except ChatdError as exc:
            return _outcome(context, "error", error=str(exc), remaining_uses=left)

    async def _ask(
        self, context: CallContext, messages: list[Message], question: str, left: int
    ) -> ToolOutcome:
        services = self._services
        source = services.catalog.source(services.catalog.resolve(services.settings.advisor_model))
        row = await services.store.read(queries.read_row, context.chat_id)
        last = messages[-1].model_copy(update={"role": "user", "content": (TextPart(text=question),)})
        request = ModelRequest(
            model=source.model,
            system=insert_system(await system_of(services, row, messages), CONTRACT),
            messages=await build_prompt(
                services.store,
                [*recent_messages(messages, before_id=context.message_id), last],
                provider=source.provider,
                cache=services.files,
            ),
            # Only so that the calls in the history make sense.
            tools=offer(self._toolset).functions,
            may_call=False,
            max_output_tokens=services.settings.advisor_output_tokens,
        )
        call = SideCall(chat_id=context.chat_id, purpose="advice", source=source)
        context.report(f"Asking {source.display_name}")
        hear = _paced(context.report)
        advice = await collect_text(services, call, request, timeout_s=ADVICE_S, hear=hear)
        if not advice:
            return _outcome(context, "error", error="the advisor said nothing", remaining_uses=left)
        model = f"{source.provider}:{source.model}"
        return _outcome(context, "advice", advice=advice, advisor_model=model, remaining_uses=left - 1)


def _paced(report: Callable[[str], None]) -> Callable[[str], None]:
    """*report*, at most once in ``TELL_S``."""
    clock = asyncio.get_running_loop().time
    due = clock()

    def hear(text: str) -> None:
        nonlocal due
        if clock() >= due:
            due = clock() + TELL_S
            report(text)

    return hear


def _outcome(context: CallContext, kind: str, **fields: Any) -> ToolOutcome:  # noqa: ANN401 -- JSON
    call = context.call
    part = ToolResultPart(
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        result={"type": kind, **fields},
        is_error=kind == "error",
    )
    return ToolOutcome(part=part)
