"""What the tools for sub-agents share: finding one, and telling of it."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from chatd.store.lineage import read_descendant
from chatd.store.rows import chat_from_row
from chatd.store.store import Store
from chatd.tools.toolset import ToolOutcome
from chatd.wire import Chat, Message, Part, TextPart, ToolCallPart, ToolResultPart

__all__ = [
    "NO_AGENT",
    "Arguments",
    "ToChat",
    "find_agent",
    "is_busy",
    "progress_of",
    "result_of",
    "summary_of",
]

# Characters of an agent's newest line.
LINE_CHARACTERS = 200
NO_AGENT = "this chat_id is no agent that you started; list_agents lists those"


class Arguments(BaseModel):
    """A call's arguments; unknown ones are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class ToChat(Arguments):
    """Arguments that name an agent."""

    chat_id: UUID


async def find_agent(store: Store, parent: Chat, chat_id: UUID) -> Chat:
    """
    An agent that *parent* started.

    Raises:
        NotFound: it is none.
    """
    return chat_from_row(await store.read(read_descendant, chat_id, of=parent.id))


def is_busy(status: str) -> bool:
    """Whether an agent of that status has yet to come to rest."""
    return status in {"running", "interrupting", "requires_action"}


def summary_of(chat: Chat) -> dict[str, Any]:
    """What every result says of an agent."""
    return {
        "chat_id": str(chat.id),
        "title": chat.title,
        "type": chat.mode or "general",
        "status": chat.status,
    }


def progress_of(chat: Chat, newest: Sequence[Message]) -> str:
    """What people are told of an agent that is waited for: how it is, and its newest line."""
    parts = [part for message in newest for part in reversed(message.content)]
    line = next(filter(None, map(_line_of, parts)), "")
    status = chat.status.replace("_", " ")
    return f"{status}: {line}" if line else status


def _line_of(part: Part) -> str:
    match part:
        case TextPart():
            lines = [line.strip() for line in part.text.splitlines() if line.strip()]
            return lines[-1][:LINE_CHARACTERS] if lines else ""
        case ToolCallPart():
            return f"calls {part.tool_name}"[:LINE_CHARACTERS]
        case ToolResultPart():
            return f"{part.tool_name} {'failed' if part.is_error else 'answered'}"[:LINE_CHARACTERS]
        case _:
            return ""


def result_of(call: ToolCallPart, value: dict[str, Any]) -> ToolOutcome:
    """A result of fields."""
    part = ToolResultPart(tool_call_id=call.tool_call_id, tool_name=call.tool_name, result=value)
    return ToolOutcome(part=part)
