"""
The rows that separate what a model still sees from what it does not.

Always three, compressed: a hidden user row that the model reads in place of all
before it, and a call with its result that people see.
"""

import uuid
from typing import Any, NamedTuple
from uuid import UUID

import sqlalchemy as sa

from chatd.store import schema
from chatd.store.rows import NewMessage, message_from_row
from chatd.wire import Part, TextPart, ToolCallPart, ToolResultPart

__all__ = [
    "CLEARED_TOOL",
    "SUMMARY_TOOL",
    "TurnProgress",
    "cleared_boundary",
    "summary_boundary",
    "turn_progress",
]

CLEARED_TOOL = "chat_cleared"
SUMMARY_TOOL = "chat_summarized"
CLEARED = "The user cleared the conversation: nothing that was said before is known to you."


def cleared_boundary() -> list[NewMessage]:
    """The boundary of a cleared context."""
    call_id = f"clear_{uuid.uuid4().hex}"
    call = ToolCallPart(tool_call_id=call_id, tool_name=CLEARED_TOOL, args={"source": "manual"})
    result = ToolResultPart(tool_call_id=call_id, tool_name=CLEARED_TOOL, result={"output": "cleared"})
    return _boundary((TextPart(text=CLEARED),), call, result)


def summary_boundary(content: tuple[Part, ...], call: ToolCallPart, told: dict[str, Any]) -> list[NewMessage]:
    """
    The boundary of a summarised history.

    Args:
        content: what the model reads from now on.
        call: how people saw the summary announced.
        told: what people learn of it.
    """
    result = ToolResultPart(tool_call_id=call.tool_call_id, tool_name=call.tool_name, result=told)
    return _boundary(content, call, result)


def _boundary(content: tuple[Part, ...], call: ToolCallPart, result: ToolResultPart) -> list[NewMessage]:
    return [
        NewMessage(role="user", content=content, visibility="model", compressed=True),
        NewMessage(role="assistant", content=(call,), visibility="user", compressed=True),
        NewMessage(role="tool", content=(result,), compressed=True),
    ]


class TurnProgress(NamedTuple):
    """What the turn under way has used up, over all its runners."""

    steps: int
    # Summaries after which the model was asked again although it had ended by itself.
    reentries: int


def turn_progress(connection: sa.Connection, chat_id: UUID) -> TurnProgress:
    """Count the answers and re-entries since the newest message of a user."""
    table = schema.messages
    mine = (table.c.chat_id == chat_id) & table.c.deleted.is_(False)
    asked = sa.select(sa.func.coalesce(sa.func.max(table.c.id), 0)).where(
        mine, table.c.role == "user", table.c.compressed.is_(False)
    )
    since = mine & (table.c.role == "assistant") & (table.c.id > asked.scalar_subquery())
    # Notices are nobody's answer.
    steps = sa.select(sa.func.count()).where(
        since, table.c.compressed.is_(False), table.c.visibility != "user"
    )
    summaries = connection.execute(sa.select(table).where(since, table.c.compressed.is_(True))).mappings()
    calls = [part for row in summaries for part in message_from_row(row).content]
    reentries = sum(isinstance(p, ToolCallPart) and bool((p.args or {}).get("reentry")) for p in calls)
    return TurnProgress(steps=connection.execute(steps).scalar_one(), reentries=reentries)
