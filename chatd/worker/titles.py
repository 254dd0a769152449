"""
Titles by a model: found beside the first turn, or proposed on request.

Whatever goes wrong, the chat keeps the title it has.
"""

import asyncio

import sqlalchemy as sa
import structlog

from chatd.constants import TITLE_S, TITLE_TOKENS
from chatd.errors import ChatdError
from chatd.prompt.titles import TITLE_INSTRUCTION, read_title, title_sample
from chatd.provider.protocol import ModelRequest, PromptMessage
from chatd.store import metadata, queries
from chatd.wire import Chat, TextPart
from chatd.worker.cheap import candidates
from chatd.worker.services import Services
from chatd.worker.side_calls import SideCall, collect_text

__all__ = ["find_titles", "propose_title"]

# Titles looked for at the same time.
AT_ONCE = 4
# Rows of a chat that are looked at.
ROWS = 10_000
log = structlog.get_logger("chatd.titles")


async def find_titles(services: Services) -> None:
    """
    Give each chat of ``services.untitled`` a title, for ever.

    Cancellation: what is under way is given up.
    """
    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(_find_forever(services))


async def _find_forever(services: Services) -> None:
    while True:
        chat = await services.untitled.get()
        try:
            await _find(services, chat)
        except (sa.exc.SQLAlchemyError, ChatdError):
            log.exception("title not found", action="title_failed", chat_id=str(chat.id))


async def _find(services: Services, chat: Chat) -> None:
    title = await propose_title(services, chat)
    if title is not None and title != chat.title:
        # Only in place of the title that we saw: a person may have given another meanwhile.
        await services.store.change(chat.id, metadata.replace_title, chat.title, title)


async def propose_title(services: Services, chat: Chat) -> str | None:
    """
    A title for what was said in *chat* so far; None when no model has one.

    Nothing is written. Takes ``TITLE_S`` at most.
    """
    page = await services.store.read(queries.list_messages, chat.id, limit=ROWS)
    sample = title_sample(page.messages)
    if not sample:
        return None
    try:
        async with asyncio.timeout(TITLE_S):
            for source, model in candidates(services, chat):
                call = SideCall(chat_id=chat.id, purpose="title", source=source)
                title = await _ask(services, call, model, sample)
                if title is not None:
                    return title
    except TimeoutError:
        log.info("no title in time", action="title_late", chat_id=str(chat.id))
    return None


async def _ask(services: Services, call: SideCall, model: str, sample: str) -> str | None:
    request = ModelRequest(
        model=model,
        system=TITLE_INSTRUCTION,
        messages=(PromptMessage(role="user", content=(TextPart(text=sample),)),),
        max_output_tokens=TITLE_TOKENS,
    )
    try:
        answer = await collect_text(services, call, request, timeout_s=TITLE_S)
    except ChatdError as exc:
        log.info("no title from a model", action="title_refused", model=model, reason=str(exc))
        return None
    return read_title(answer)
