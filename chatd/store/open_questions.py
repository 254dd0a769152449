"""
Questions that an agent asked while it went on, and that nobody answered yet.

The history is all there is of them: a question is the result of its call, an answer is a part of a message
that names it, in the history or waiting. What is deleted takes both away.
"""

from collections.abc import Collection
from uuid import UUID

import sqlalchemy as sa
from pydantic import ValidationError

from chatd.errors import BadRequest
from chatd.question_wire import OpenQuestion
from chatd.store import schema
from chatd.store.queries import list_queued
from chatd.store.rows import message_from_row
from chatd.wire import Message, Part, QuestionAnswerPart, ToolResultPart

__all__ = ["is_newest_open", "open_questions", "require_open"]


def open_questions(
    connection: sa.Connection, chat_id: UUID, *, before_id: int | None = None
) -> list[OpenQuestion]:
    """Those of the chat, oldest first; with *before_id* as it was before that message."""
    found, answered = _read(connection, chat_id, before_id)
    return [question for key, question in found.items() if key not in answered]


def is_newest_open(connection: sa.Connection, chat_id: UUID) -> bool:
    """Whether the question that was asked last, which is the one that people were told of, is open."""
    found, answered = _read(connection, chat_id, None)
    return bool(found) and next(reversed(found)) not in answered


def _read(
    connection: sa.Connection, chat_id: UUID, before_id: int | None
) -> tuple[dict[UUID, OpenQuestion], set[UUID]]:
    """What was asked, oldest first, and the ids of what was answered."""
    table = schema.messages
    statement = (
        sa.select(table)
        .where(
            table.c.chat_id == chat_id,
            table.c.deleted.is_(False),
            table.c.visibility != "model",
            table.c.role.in_(("tool", "user")),
        )
        .order_by(table.c.id)
    )
    if before_id is not None:
        statement = statement.where(table.c.id < before_id)
    found: dict[UUID, OpenQuestion] = {}
    answered: set[UUID] = set()
    for message in map(message_from_row, connection.execute(statement).mappings()):
        answered |= _answered(message.content)
        asked = [question for part in message.content if (question := _asked(message, part))]
        found |= {question.question_id: question for question in asked}
    for queued in list_queued(connection, chat_id) if before_id is None else ():
        answered |= _answered(queued.content)
    return found, answered


def require_open(
    connection: sa.Connection, chat_id: UUID, content: Collection[Part], *, before_id: int | None = None
) -> None:
    """
    Check that what *content* answers is open, or was before the message *before_id*.

    Raises:
        BadRequest: the chat has no such question, or it was answered, or *content* answers one twice.

    Transaction: joined, so that of two answers one is refused.
    """
    answers = [part.question_id for part in content if isinstance(part, QuestionAnswerPart)]
    if not answers:
        return
    known = {question.question_id for question in open_questions(connection, chat_id, before_id=before_id)}
    if len(set(answers)) < len(answers) or not known.issuperset(answers):
        raise BadRequest("this question is not open in this chat; send the answer as text")


def _asked(message: Message, part: Part) -> OpenQuestion | None:
    if not isinstance(part, ToolResultPart) or part.tool_name != "ask_user_question" or part.is_error:
        return None
    if not isinstance(part.result, dict):
        return None
    try:
        where = {"message_id": message.id, "asked_at": message.created_at}
        return OpenQuestion.model_validate(part.result | where)
    except ValidationError:
        # One that ended its turn, which has no id, or a client's own tool of that name.
        return None


def _answered(content: Collection[Part]) -> set[UUID]:
    return {part.question_id for part in content if isinstance(part, QuestionAnswerPart)}
