"""What a running chat needs next, from its history alone. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from chatd.store.rows import is_clients, local_calls
from chatd.wire import Message, ToolCallPart, ToolResultPart

__all__ = ["AwaitClient", "Compact", "Finish", "Generate", "Next", "RunTools", "decide"]


@dataclass(frozen=True, slots=True)
class RunTools:
    """The last assistant message has calls that nothing answered."""

    message_id: int
    calls: tuple[ToolCallPart, ...]


@dataclass(frozen=True, slots=True)
class AwaitClient:
    """All that is left to answer is the client's."""


@dataclass(frozen=True, slots=True)
class Generate:
    """The model is to speak."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The model has spoken and wants nothing."""


@dataclass(frozen=True, slots=True)
class Compact:
    """The history is to be summarised first; *is_final*: the model has spoken and wants nothing."""

    is_final: bool


Next = RunTools | AwaitClient | Generate | Compact | Finish


def decide(messages: Sequence[Message], client_tools: Collection[str] = (), *, is_full: bool = False) -> Next:
    """
    The next thing to do for a chat whose history is *messages*, oldest first.

    Calls of *client_tools*, and those that a person has yet to allow, are the client's to
    answer, after ours were run. A history
    that *is_full* is summarised once every call is answered: never between a call and
    its result.
    """
    following = _decide(messages, client_tools)
    if is_full and isinstance(following, Generate | Finish):
        return Compact(is_final=isinstance(following, Finish))
    return following


def _decide(messages: Sequence[Message], client_tools: Collection[str]) -> Next:
    answered: set[str] = set()
    for message in reversed(messages):
        if message.role != "assistant":
            answered |= {p.tool_call_id for p in message.content if isinstance(p, ToolResultPart)}
            if message.role == "user":
                return Generate()
            continue
        calls = local_calls(message.content)
        open_calls = tuple(call for call in calls if call.tool_call_id not in answered)
        ours = tuple(call for call in open_calls if not is_clients(call, client_tools))
        if ours:
            return RunTools(message.id, ours)
        if open_calls:
            return AwaitClient()
        return Generate() if calls else Finish()
    return Generate()
