"""
Tells a chat's owner that its turn is over, or what it asks; sub-agents and stops are told by nobody.

What was told of a question is taken back once it is answered, or gone with an edit or the whole chat.
"""

import asyncio
import uuid
from collections.abc import Collection
from uuid import UUID

import sqlalchemy as sa
import structlog

from chatd.errors import ChatdError
from chatd.prompt.message import PromptMessage
from chatd.prompt.notes import NOTE_CHARACTERS, NOTE_INSTRUCTION, note_sample, read_note
from chatd.provider.protocol import ModelRequest
from chatd.push.message import Notification, summary
from chatd.store import queries
from chatd.store.open_questions import is_newest_open
from chatd.store.rows import chat_from_row
from chatd.tools.questions import first_question
from chatd.wire import Chat, ChatError, Part, QuestionAnswerPart, TextPart
from chatd.worker.cheap import candidates
from chatd.worker.services import Answered, Services
from chatd.worker.side_calls import SideCall, collect_text

__all__ = ["announce_answers", "announce_end", "announce_question", "take_back", "take_back_answered"]

# Rows from the end in which the answer is looked for.
ROWS = 3
# Tokens of a sentence, seconds for it, and answers at the same time.
NOTE_TOKENS = 256
NOTE_S = 30.0
AT_ONCE = 4
log = structlog.get_logger("chatd.announce")


async def announce_end(services: Services, owner_id: UUID, chat_id: UUID) -> None:
    """
    Push that the chat, if it is a root at rest, has an answer or an error.

    A long answer is told later, in the words of a model.
    """
    if not await services.push.has_browser(owner_id):
        return
    row = await services.store.read(queries.read_row, chat_id)
    if row["parent_chat_id"] is not None or row["archived"]:
        return
    if row["status"] == "error":
        error = ChatError.model_validate(row["last_error"]) if row["last_error"] else None
        _notify(services, row, error.message if error else "Something went wrong.")
    elif row["status"] == "waiting":
        text, is_question = await _answer(services, row)
        answered = Answered(chat=chat_from_row(row), text=text)
        if is_question or not _takes_it(services, answered):
            _notify(services, row, summary(text))


def announce_question(services: Services, row: sa.RowMapping, question: str | None) -> None:
    """
    Push what the agent of the chat of *row* asks while it goes on; None: nothing.

    Not in the place of what was told of a turn's end: either may be all that a person sees.
    """
    if question is None:
        return
    note = Notification(
        title=row["title"],
        body=f"Question: {question}",
        path=f"#/chats/{row['id']}",
        tag=_question_tag(row["id"]),
    )
    services.push.notify(row["owner_id"], note)


async def take_back_answered(services: Services, chat: Chat, content: Collection[Part]) -> None:
    """
    Clear what was pushed of the question that *content*, which was just sent, answers.

    *chat* is as it was before: in one that makes a plan a question ends the turn, and any message answers
    it. Beside others only the question that was asked last was still shown.
    """
    tags = [_end_tag(chat.id)] if chat.plan_mode is not None else []
    if any(isinstance(part, QuestionAnswerPart) for part in content):
        tags.append(_question_tag(chat.id))
    if not tags or chat.parent_chat_id is not None or not await services.push.has_browser(chat.owner_id):
        return
    if _question_tag(chat.id) in tags and await services.store.read(is_newest_open, chat.id):
        tags.remove(_question_tag(chat.id))
    _clear(services, chat, tags)


async def take_back(services: Services, chat: Chat) -> None:
    """Clear all that was pushed of *chat*: it was put away, or went back to before it was told."""
    if chat.parent_chat_id is None and await services.push.has_browser(chat.owner_id):
        _clear(services, chat, [_end_tag(chat.id), _question_tag(chat.id)])


def _clear(services: Services, chat: Chat, tags: list[str]) -> None:
    for tag in tags:
        services.push.notify(chat.owner_id, Notification(tag=tag, is_clear=True))


def _end_tag(chat_id: UUID) -> str:
    return chat_id.hex


def _question_tag(chat_id: UUID) -> str:
    return uuid.uuid5(chat_id, "question").hex


async def announce_answers(services: Services) -> None:
    """
    Tell of each answer of ``services.unannounced`` in a sentence, for ever.

    Cancellation: what is under way is not told.
    """
    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(_announce_forever(services))


async def _announce_forever(services: Services) -> None:
    while True:
        answered = await services.unannounced.get()
        try:
            note = await _note(services, answered)
            # Its name may be another by now.
            row = await services.store.read(queries.read_row, answered.chat.id)
        except (sa.exc.SQLAlchemyError, ChatdError):
            log.exception("answer not told", action="announce_failed", chat_id=str(answered.chat.id))
        else:
            _notify(services, row, note or summary(answered.text))


def _takes_it(services: Services, answered: Answered) -> bool:
    """Whether a model is to tell of an answer: not where its beginning says it all, or nobody is there."""
    is_short = len(answered.text) <= NOTE_CHARACTERS
    if is_short or not services.settings.push_summaries or not candidates(services, answered.chat):
        return False
    try:
        services.unannounced.put_nowait(answered)
    except asyncio.QueueFull:
        return False
    return True


async def _note(services: Services, answered: Answered) -> str | None:
    """What one of the models makes of the answer; None when none does in time."""
    chat = answered.chat
    said = PromptMessage(role="user", content=(TextPart(text=note_sample(answered.text)),))
    try:
        async with asyncio.timeout(NOTE_S):
            for source, model in candidates(services, chat):
                request = ModelRequest(
                    model=model, system=NOTE_INSTRUCTION, messages=(said,), max_output_tokens=NOTE_TOKENS
                )
                call = SideCall(chat_id=chat.id, purpose="notification", source=source)
                try:
                    note = read_note(await collect_text(services, call, request, timeout_s=NOTE_S))
                except ChatdError as exc:
                    log.info("no sentence from a model", action="note_refused", model=model, reason=str(exc))
                    continue
                if note is not None:
                    return note
    except TimeoutError:
        log.info("no sentence in time", action="note_late", chat_id=str(chat.id))
    return None


def _notify(services: Services, row: sa.RowMapping, body: str) -> None:
    note = Notification(title=row["title"], body=body, path=f"#/chats/{row['id']}", tag=_end_tag(row["id"]))
    services.push.notify(row["owner_id"], note)


async def _answer(services: Services, row: sa.RowMapping) -> tuple[str, bool]:
    """The chat's last words, and whether they are a question."""
    page = await services.store.read(queries.list_messages, row["id"], before_id=2**62, limit=ROWS)
    for message in page.messages:
        # A turn that ends with a question ends with its result.
        asked = [question for part in message.content if (question := first_question(part)) is not None]
        if asked:
            return f"Question: {asked[-1]}", True
        if message.role == "assistant" and message.visibility != "user":
            return "\n".join(part.text for part in message.content if isinstance(part, TextPart)), False
    return "", False
