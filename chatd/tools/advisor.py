"""Ask a second model for advice: what it is told, and how often. Pure."""

import json
from collections.abc import Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

from chatd.provider.protocol import FunctionTool
from chatd.store.rows import dump_parts
from chatd.wire import Message, ToolResultPart

__all__ = ["ADVISOR", "CONTRACT", "MAX_QUESTION", "Advise", "advice_taken", "recent_messages"]

# Characters of a question; the rest is cut off.
MAX_QUESTION = 2_000
# What of the conversation the advisor sees: messages, and bytes of their JSON.
MAX_MESSAGES, MAX_BYTES = 20, 12_000
CONTRACT = """\
You are now an advisor to the agent of this conversation. You see its instructions and the end of its work,
and can call nothing. Answer its question: what to do next and why, what is risky, what is missing. Be brief
and concrete; say so where you would have to guess."""


class Advise(BaseModel):
    """Ask for advice."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


ADVISOR = FunctionTool(
    name="advisor",
    description=(
        "Ask an experienced colleague, who sees the end of this conversation, before a decision that is hard "
        "to undo or when you are stuck. Must be the only call."
    ),
    input_schema=Advise.model_json_schema(),
)


def recent_messages(messages: Sequence[Message], *, before_id: int) -> list[Message]:
    """The newest of *messages* before *before_id* that fit, without gaps and without results of no call."""
    chosen: list[Message] = []
    size = 0
    for message in reversed(messages):
        if message.id >= before_id or message.role == "system":
            continue
        size += len(json.dumps(dump_parts(message.content)).encode())
        if size > MAX_BYTES or len(chosen) == MAX_MESSAGES:
            break
        chosen.append(message)
    while chosen and chosen[-1].role == "tool":
        chosen.pop()
    return chosen[::-1]


def advice_taken(messages: Sequence[Message]) -> int:
    """How often advice was got since the person spoke last; what failed does not count."""
    taken = 0
    for message in reversed(messages):
        if message.role == "user":
            break
        taken += sum(_is_advice(part) for part in message.content if isinstance(part, ToolResultPart))
    return taken


def _is_advice(part: ToolResultPart) -> bool:
    value = part.result
    return part.tool_name == ADVISOR.name and isinstance(value, dict) and value.get("type") == "advice"
