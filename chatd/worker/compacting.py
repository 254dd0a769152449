"""
Summarise a chat's history: ask the model, and write the boundary that stands in its place.

Nothing is decided here about when; see ``chatd.loop.decide``.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

import structlog

from chatd.errors import ProviderFault
from chatd.faults import FaultKind, make_fault
from chatd.metrics import ModelLabels
from chatd.prompt.compaction import (
    SUMMARY_INSTRUCTION,
    Pressure,
    Source,
    context_tokens,
    fit_for_summary,
    summary_parts,
)
from chatd.prompt.message import PromptMessage
from chatd.provider.protocol import ModelRequest
from chatd.store import thresholds
from chatd.store.boundaries import SUMMARY_TOOL, summary_boundary
from chatd.store.rows import NewMessage
from chatd.wire import Chat, Message, Part, TextPart, ToolCallPart, ToolResultPart, Usage
from chatd.worker.services import Services
from chatd.worker.side_calls import SideCall, collect_text

__all__ = ["Compaction", "measure_pressure", "summarise"]

# Tokens that a summary may have.
SUMMARY_TOKENS = 8_000
log = structlog.get_logger("chatd.compaction")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """
    One history to be summarised.

    Args:
        request: what the next step would send; its prompt is what the summary is made of.
        is_refused: the vendor found this prompt too long.
        reenters: the model has ended by itself and is asked again behind the summary.
    """

    chat: Chat
    messages: list[Message]
    request: ModelRequest
    pressure: Pressure
    source: Source
    is_refused: bool = False
    reenters: bool = False


async def measure_pressure(services: Services, chat: Chat, usage: Usage | None) -> Pressure:
    """How full the window of the chat's model is, and from where on that is too full."""
    window = services.window(chat)
    tokens, limit_tokens = context_tokens(usage), window or 0
    own = None
    if tokens and limit_tokens:
        own = await services.store.read(thresholds.read_threshold, chat.owner_id, chat.last_model_config_id)
    return Pressure(
        tokens=tokens,
        limit_tokens=limit_tokens,
        threshold=services.settings.threshold(window) if own is None else own,
    )


async def summarise(
    services: Services, compaction: Compaction, publish: Callable[[Part], None]
) -> list[NewMessage]:
    """
    Ask for the summary; progress is published as a tool call, failure as its result.

    Returns:
        The boundary, to be committed.

    Raises:
        ProviderFault: there is no summary.

    Cancellation: nothing is left behind.
    """
    call = _progress(compaction)
    publish(call)
    source = services.catalog.source(compaction.chat.last_model_config_id)
    labels = ModelLabels(source.provider, source.model)
    try:
        summary = await _ask(services, compaction)
    except ProviderFault as fault:
        is_late = fault.kind in {
            FaultKind.TIMEOUT,
            FaultKind.STARTUP_TIMEOUT,
            FaultKind.STREAM_SILENCE_TIMEOUT,
        }
        services.metrics.compacted(labels, "timeout" if is_late else "error")
        log.warning(
            "summary failed",
            action="compaction_failed",
            chat_id=str(compaction.chat.id),
            kind=fault.kind,
            detail=fault.detail,
        )
        publish(_failure(call, fault))
        raise
    services.metrics.compacted(labels, "success")
    told = _told(compaction, summary)
    return list(summary_boundary(summary_parts(summary, compaction.messages), call, told))


async def _ask(services: Services, compaction: Compaction) -> str:
    chat, window = compaction.chat, compaction.pressure.limit_tokens
    source = services.catalog.source(chat.last_model_config_id)
    history = fit_for_summary(compaction.request.messages, window, is_refused=compaction.is_refused)
    instruction = PromptMessage(role="user", content=(TextPart(text=SUMMARY_INSTRUCTION),))
    request = replace(
        compaction.request,
        messages=(*history, instruction),
        may_call=False,
        # Thinking counts as output: much of it would leave no room for the summary.
        effort=None,
        max_output_tokens=SUMMARY_TOKENS,
    )
    limit_s = services.settings.compaction_timeout_s
    call = SideCall(chat_id=chat.id, purpose="summary", source=source)
    summary = await collect_text(services, call, request, timeout_s=limit_s)
    if not summary:
        text = "The model gave no summary of the conversation."
        raise make_fault(FaultKind.GENERIC, source.provider, user_text=text)
    return summary


def _progress(compaction: Compaction) -> ToolCallPart:
    pressure = compaction.pressure
    args = {"source": compaction.source, "threshold_percent": pressure.threshold}
    if compaction.reenters:
        args["reentry"] = True
    return ToolCallPart(tool_call_id=f"summary_{uuid.uuid4().hex}", tool_name=SUMMARY_TOOL, args=args)


def _told(compaction: Compaction, summary: str) -> dict[str, object]:
    pressure = compaction.pressure
    return {
        "summary": summary,
        "source": compaction.source,
        "threshold_percent": pressure.threshold,
        "usage_percent": round(pressure.percent, 1),
        "context_tokens": pressure.tokens,
        "context_limit_tokens": pressure.limit_tokens,
    }


def _failure(call: ToolCallPart, fault: ProviderFault) -> ToolResultPart:
    return ToolResultPart(
        tool_call_id=call.tool_call_id, tool_name=SUMMARY_TOOL, result={"error": str(fault)}, is_error=True
    )
