"""What a running chat needs next, from its history alone. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from chatd.store.rows import local_calls
from chatd.wire import Message, ToolCallPart, ToolResultPart

__all__ = ["Finish", "Generate", "Next", "RunTools", "decide"]


@dataclass(frozen=True, slots=True)
class RunTools:
    """The last assistant message has calls that nothing answered."""

    message_id: int
    calls: tuple[ToolCallPart, ...]


@dataclass(frozen=True, slots=True)
class Generate:
    """The model is to speak."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The model has spoken and wants nothing."""


Next = RunTools | Generate | Finish


def decide(messages: Sequence[Message]) -> Next:
    """The next thing to do for a chat whose history is *messages*, oldest first."""
    answered: set[str] = set()
    for message in reversed(messages):
        if message.role != "assistant":
            answered |= {p.tool_call_id for p in message.content if isinstance(p, ToolResultPart)}
            if message.role == "user":
                return Generate()
            continue
        calls = local_calls(message.content)
        open_calls = tuple(call for call in calls if call.tool_call_id not in answered)
        if open_calls:
            return RunTools(message.id, open_calls)
        return Generate() if calls else Finish()
    return Generate()
