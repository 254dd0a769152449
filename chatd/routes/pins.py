"""A chat's context: what it is pinned to, what changed since, and taking that."""

import sqlalchemy as sa
from aiohttp import web

from chatd.context.diff import diff_resources, resource_metadata
from chatd.context_wire import ContextDiff
from chatd.routes.chats import ONE_CHAT, answer, chat_of_caller, readable_chat
from chatd.routes.context import services
from chatd.routes.describe import describe
from chatd.store import pins, uploads
from chatd.wire import Chat

__all__ = ["routes", "with_resources"]

routes = web.RouteTableDef()


async def with_resources(request: web.Request, chat: Chat) -> Chat:
    """The chat with its files and its pinned resources, without their bytes and texts."""
    files = await services(request).store.read(uploads.list_files, chat.id)
    chat = chat.model_copy(update={"files": tuple(files)})
    if chat.context is None:
        return chat
    pinned = await services(request).store.read(pins.pinned_resources, chat.id)
    resources = tuple(resource_metadata(resource) for resource in pinned)
    return chat.model_copy(update={"context": chat.context.model_copy(update={"resources": resources})})


@routes.get(ONE_CHAT)
@describe(answer=Chat)
async def get_chat(request: web.Request) -> web.Response:
    """One chat with its children, its files and its context."""
    return answer(await with_resources(request, await readable_chat(request)))


@routes.put("/api/experimental/chats/{chat_id}/context")
@describe(answer=Chat)
async def refresh(request: web.Request) -> web.Response:
    """Pin the chat to what its workspace has now; the next model call uses it."""
    chat = await chat_of_caller(request)
    await services(request).pins.refresh(chat.id)
    return answer(await with_resources(request, await chat_of_caller(request)))


@routes.get("/api/experimental/chats/{chat_id}/context/diff")
@describe(answer=ContextDiff)
async def diff(request: web.Request) -> web.Response:
    """What a refresh would add, remove and change."""
    chat = await readable_chat(request)
    difference = await services(request).store.read(_read_diff, chat)
    return web.json_response(text=difference.model_dump_json(exclude_none=True))


def _read_diff(connection: sa.Connection, chat: Chat) -> ContextDiff:
    pinned = pins.pinned_resources(connection, chat.id)
    return diff_resources(pinned, pins.agent_resources(connection, chat.agent_id) or [])
