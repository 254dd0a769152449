"""
Make every tool call answered, every answer asked for, and every id one that vendors take.

Vendors refuse a prompt in which a call has no result, a result has no call, or two
calls share an id. Histories get that way by interruption, lost runners, and vendors
that count their ids anew in each answer. Ids are therefore matched within one
assistant message and the tool messages behind it, never across the whole history.

Invariant: after ``repair_prompt`` each locally executed call is followed, before any
other user or assistant message, by exactly one result; no other results remain; ids
are unique; ids and names are within the alphabet and length that every vendor accepts.
"""

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

from chatd.prompt.convert import safe_tool_id
from chatd.prompt.message import PromptMessage
from chatd.wire import Part, ToolCallPart, ToolResultPart

__all__ = ["MAX_ID", "MAX_NAME", "NO_RESULT_TEXT", "repair_prompt", "safe_tool_name"]

NO_RESULT_TEXT = "The tool call was interrupted; no result was received."
# Characters of an id and of a name that every vendor takes.
MAX_ID = 64
MAX_NAME = 64
_UNSAFE_NAME = re.compile(r"[^A-Za-z0-9_-]")


def repair_prompt(messages: Sequence[PromptMessage]) -> tuple[PromptMessage, ...]:
    """
    Return *messages* so that every vendor takes their calls and results.

    A call without a result gets an error. A result without a call gets a call without
    arguments before it, if anybody knows its name; else it goes, as does a second
    answer, and what a vendor ran itself but in the wrong place.
    """
    return tuple(_answer_calls(_Pairing().run(messages)))


def safe_tool_name(name: str) -> str:
    """Return *name* in the alphabet that every vendor accepts: models invent others."""
    return _UNSAFE_NAME.sub("_", name)[:MAX_NAME] or "tool"


class _Pairing:
    """One walk over a history, oldest first."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        # Of the assistant message that the results at hand belong to: open calls' new ids by their old ones.
        self._open: dict[str, deque[str]] = {}
        self._answered: set[str] = set()

    def run(self, messages: Sequence[PromptMessage]) -> list[PromptMessage]:
        kept: list[PromptMessage] = []
        for message in messages:
            if message.role == "tool":
                kept.extend(self._tool(message))
                continue
            # A user's message ends the group: results behind it belong to no call.
            self._open, self._answered = {}, set()
            content = tuple(self._renamed_call(part) for part in message.content)
            kept.append(message if content == message.content else replace(message, content=content))
        return kept

    def _renamed_call(self, part: Part) -> Part:
        if not isinstance(part, ToolCallPart):
            return part
        if part.provider_executed:
            self._used.add(part.tool_call_id)
            return part
        fresh = self._fresh(part.tool_call_id)
        self._open.setdefault(part.tool_call_id, deque()).append(fresh)
        return _named(part, fresh)

    def _fresh(self, tool_call_id: str) -> str:
        """A legal id that no other call has; the same one wherever possible."""
        base = safe_tool_id(tool_call_id)[:MAX_ID]
        fresh, number = base, 1
        while fresh in self._used:
            number += 1
            suffix = f"_{number}"
            fresh = base[: MAX_ID - len(suffix)] + suffix
        self._used.add(fresh)
        return fresh

    def _tool(self, message: PromptMessage) -> list[PromptMessage]:
        """A tool message: what answers a call, and behind it orphans with calls made for them."""
        results = [p for p in message.content if isinstance(p, ToolResultPart) and not p.provider_executed]
        matched: list[Part] = []
        orphans: dict[str, ToolResultPart] = {}
        for part in results:
            waiting = self._open.get(part.tool_call_id)
            if waiting:
                matched.append(_named(part, waiting.popleft()))
                self._answered.add(part.tool_call_id)
            elif part.tool_call_id not in self._answered and part.tool_name:
                orphans.setdefault(part.tool_call_id, part)
        kept = []
        if matched:
            content = tuple(matched)
            kept = [message if content == message.content else replace(message, content=content)]
        return [*kept, *self._adopt(orphans.values())] if orphans else kept

    def _adopt(self, orphans: Iterable[ToolResultPart]) -> list[PromptMessage]:
        self._open, self._answered = {}, {part.tool_call_id for part in orphans}
        results = [_named(part, self._fresh(part.tool_call_id)) for part in orphans]
        calls = [
            ToolCallPart(tool_call_id=part.tool_call_id, tool_name=part.tool_name, args={})
            for part in results
        ]
        return [
            PromptMessage(role="assistant", content=tuple(calls)),
            PromptMessage(role="tool", content=tuple(results)),
        ]


def _named(part: ToolCallPart | ToolResultPart, tool_call_id: str) -> ToolCallPart | ToolResultPart:
    name = safe_tool_name(part.tool_name)
    if (tool_call_id, name) == (part.tool_call_id, part.tool_name):
        return part
    return part.model_copy(update={"tool_call_id": tool_call_id, "tool_name": name})


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
