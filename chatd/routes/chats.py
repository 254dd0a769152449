"""Chats: create, list, read, send, interrupt."""

from typing import Literal
from uuid import UUID

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field, field_validator

from chatd.errors import BadRequest, NotFound
from chatd.routes.context import identity, services
from chatd.routes.errors import read_body
from chatd.store import accounts, queries
from chatd.store.machine import ChatTx
from chatd.store.store import NewChat, derive_title
from chatd.stream.sync import public_message
from chatd.wire import Chat, InputPart, TextPart

__all__ = ["chat_of_caller", "routes"]

routes = web.RouteTableDef()
# Messages on one page.
PAGE_DEFAULT, PAGE_MAX = 50, 200
# Parts of one message.
MAX_PARTS = 100


class _Content(BaseModel):
    model_config = ConfigDict(extra="forbid")

    content: list[InputPart] = Field(min_length=1, max_length=MAX_PARTS)

    @field_validator("content")
    @classmethod
    def _not_blank(cls, parts: list[InputPart]) -> list[InputPart]:
        for index, part in enumerate(parts):
            if not part.text.strip():
                msg = f"part {index} is blank"
                raise ValueError(msg)
        return parts

    def parts(self) -> tuple[TextPart, ...]:
        return tuple(TextPart(text=part.text.strip()) for part in self.content)


class CreateChat(_Content):
    """A new chat and its first message."""

    model_config_id: str | None = Field(
        default=None, description="A model's id, provider:model or name; the default if absent."
    )
    title: str | None = Field(default=None, max_length=200)


class SendMessage(_Content):
    """A message for a chat; when it is busy, wait for the turn or stop it."""

    busy_behavior: Literal["queue", "interrupt"] = "queue"


async def chat_of_caller(request: web.Request) -> Chat:
    """
    The chat named in the path.

    Raises:
        NotFound: there is none, or it is another user's.
    """
    try:
        chat_id = UUID(request.match_info["chat_id"])
    except ValueError:
        raise NotFound("no such chat") from None
    owner_id = identity(request).user_id
    return await services(request).store.read(queries.get_chat, chat_id, owner_id=owner_id)


def chat_response(chat: Chat, *, status: int = 200) -> web.Response:
    """One chat as JSON."""
    return web.json_response(text=chat.model_dump_json(exclude_none=True), status=status)


@routes.get("/api/experimental/chats")
async def list_chats(request: web.Request) -> web.Response:
    """Root chats, the most recently used first."""
    chats = await services(request).store.read(queries.list_chats, owner_id=identity(request).user_id)
    return web.json_response([chat.model_dump(mode="json", exclude_none=True) for chat in chats])


@routes.post("/api/experimental/chats")
async def create_chat(request: web.Request) -> web.Response:
    """Start a chat."""
    wish = await read_body(request, CreateChat)
    parts = services(request)
    owner_id = identity(request).user_id
    new = NewChat(
        owner_id=owner_id,
        agent_id=await parts.store.read(accounts.first_agent, owner_id),
        model_config_id=parts.catalog.resolve(wish.model_config_id),
        title=(wish.title or "").strip() or derive_title(wish.content[0].text),
        content=wish.parts(),
    )
    return chat_response(await parts.store.create_chat(new), status=201)


@routes.get("/api/experimental/chats/{chat_id}")
async def get_chat(request: web.Request) -> web.Response:
    """One chat with its children."""
    return chat_response(await chat_of_caller(request))


@routes.get("/api/experimental/chats/{chat_id}/messages")
async def list_messages(request: web.Request) -> web.Response:
    """Messages by ascending id, after *after_id*."""
    chat = await chat_of_caller(request)
    store = services(request).store
    after_id = _number(request, "after_id", default=0, low=0, high=2**62)
    limit = _number(request, "limit", default=PAGE_DEFAULT, low=1, high=PAGE_MAX)
    page = await store.read(queries.list_messages, chat.id, after_id=after_id, limit=limit)
    queued = [] if after_id else await store.read(queries.list_queued, chat.id)
    messages = [public_message(message) for message in page.messages]
    return web.json_response(
        {
            "messages": [message.model_dump(mode="json", exclude_none=True) for message in messages],
            "queued_messages": [row.model_dump(mode="json", exclude_none=True) for row in queued],
            "has_more": page.has_more,
        }
    )


@routes.post("/api/experimental/chats/{chat_id}/messages")
async def send_message(request: web.Request) -> web.Response:
    """Send a message: into the history when idle, else to the queue."""
    wish = await read_body(request, SendMessage)
    chat = await chat_of_caller(request)
    if chat.archived:
        raise BadRequest("this chat is archived")

    def send(tx: ChatTx) -> tuple[list[dict[str, object]], dict[str, object] | None]:
        result = tx.send(
            wish.parts(),
            created_by=identity(request).user_id,
            interrupt=wish.busy_behavior == "interrupt",
        )
        messages = [public_message(m).model_dump(mode="json", exclude_none=True) for m in result.messages]
        queued = result.queued.model_dump(mode="json", exclude_none=True) if result.queued else None
        return messages, queued

    messages, queued = await services(request).store.transition(chat.id, send)
    return web.json_response(
        {
            "message": messages[-1] if messages else None,
            "messages": messages,
            "queued_message": queued,
            "queued": queued is not None,
        }
    )


@routes.post("/api/experimental/chats/{chat_id}/interrupt")
async def interrupt(request: web.Request) -> web.Response:
    """Stop the turn; what was received is kept. Children at work are stopped too."""
    chat = await chat_of_caller(request)
    store = services(request).store
    await store.transition(chat.id, lambda tx: tx.interrupt())
    for child in chat.children:
        if child.status == "running":
            await store.transition(child.id, _interrupt_if_running)
    return chat_response(await chat_of_caller(request))


def _interrupt_if_running(tx: ChatTx) -> None:
    if tx["status"] == "running":
        tx.interrupt()


def _number(request: web.Request, name: str, *, default: int, low: int, high: int) -> int:
    text = request.query.get(name)
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        raise BadRequest(f"{name}: {text!r} is not a number") from None
    if not low <= value <= high:
        raise BadRequest(f"{name}: must be between {low} and {high}")
    return value
