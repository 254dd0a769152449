"""
Make every tool call answered and every answer asked for.

Vendors refuse a prompt in which a call has no result or a result has no call.
Histories get that way by interruption, compaction and lost runners. Ids are
matched within one assistant message and the tool messages behind it, never
across the whole history: some vendors reuse them.

Invariant: after ``repair_prompt`` each locally executed call is followed, before
any other user or assistant message, by exactly one result, and no other
results remain.
"""

from collections.abc import Iterable, Sequence

from chatd.prompt.message import PromptMessage
from chatd.wire import ToolCallPart, ToolResultPart

__all__ = ["NO_RESULT_TEXT", "repair_prompt"]

NO_RESULT_TEXT = "The tool call was interrupted; no result was received."


def repair_prompt(messages: Sequence[PromptMessage]) -> tuple[PromptMessage, ...]:
    """Return *messages* without orphaned results and with an error result for each unanswered call."""
    return tuple(_answer_calls(_drop_orphans(messages)))


def _drop_orphans(messages: Sequence[PromptMessage]) -> list[PromptMessage]:
    kept: list[PromptMessage] = []
    open_ids: set[str] = set()
    for message in messages:
        if message.role == "tool":
            content = tuple(part for part in message.content if _claims(part, open_ids))
            if content:
                kept.append(PromptMessage(role="tool", content=content))
            continue
        # A user message ends the group: results behind it belong to no call.
        open_ids = {call.tool_call_id for call in _local_calls(message)}
        kept.append(message)
    return kept


def _claims(part: object, open_ids: set[str]) -> bool:
    """Take the call that *part* answers out of *open_ids*; a second answer finds it gone."""
    if not isinstance(part, ToolResultPart) or part.provider_executed or part.tool_call_id not in open_ids:
        return False
    open_ids.remove(part.tool_call_id)
    return True


def _answer_calls(messages: Sequence[PromptMessage]) -> list[PromptMessage]:
    answered: list[PromptMessage] = []
    unanswered: dict[str, ToolCallPart] = {}
    for message in messages:
        if message.role == "tool":
            for part in message.content:
                if isinstance(part, ToolResultPart):
                    unanswered.pop(part.tool_call_id, None)
        else:
            answered.extend(_synthetic(unanswered.values()))
            unanswered = {call.tool_call_id: call for call in _local_calls(message)}
        answered.append(message)
    answered.extend(_synthetic(unanswered.values()))
    return answered


def _synthetic(calls: Iterable[ToolCallPart]) -> list[PromptMessage]:
    results = tuple(
        ToolResultPart(
            tool_call_id=call.tool_call_id,
            tool_name=call.tool_name,
            result={"error": NO_RESULT_TEXT},
            is_error=True,
        )
        for call in calls
    )
    return [PromptMessage(role="tool", content=results)] if results else []


def _local_calls(message: PromptMessage) -> list[ToolCallPart]:
    if message.role != "assistant":
        return []
    return [part for part in message.content if isinstance(part, ToolCallPart) and not part.provider_executed]
