"""Chats: create, list, read, change, cost."""

import shlex
from functools import partial
from uuid import UUID

from aiohttp import web
from pydantic import BaseModel

from chatd.errors import BadRequest, Forbidden, NotFound, TransitionNotAllowed
from chatd.routes.bodies import ByWorkspace, ChatPatch, CreateChat, ListChats, ProposedTitle, check_labels
from chatd.routes.context import identity, services
from chatd.routes.describe import describe
from chatd.routes.errors import read_body, read_query
from chatd.store import access, accounts, mcp_servers, metadata, queries, spending
from chatd.store.machine import ChatTx
from chatd.store.queries import ChatFilter
from chatd.store.rows import chat_from_row
from chatd.store.store import NewChat, Store, derive_title
from chatd.tools.choosing import ModelChoice, choose_model, preferred_model
from chatd.wire import Chat
from chatd.worker.announce import take_back
from chatd.worker.titles import propose_title

__all__ = ["ONE_CHAT", "answer", "chat_of_caller", "idempotency_key", "own_chat", "readable_chat", "routes"]

routes = web.RouteTableDef()
# Not what is a route of its own: its other methods are "not allowed" there, not chats that are not found.
ONE_CHAT = "/api/experimental/chats/{chat_id:(?!(?:by-workspace|files|models|usage-limits|watch)$)[^/]+}"
# Characters of an Idempotency-Key.
MAX_KEY = 255
# Whatever is changed is done with the owner's keys and workspace.
READ_ONLY = "this chat is shared with you to read; only its owner changes it"
FLAGS = {"true": True, "false": False}


async def readable_chat(request: web.Request) -> Chat:
    """
    The chat named in the path, to be read: the caller's own, or one that was shared with them.

    Raises:
        NotFound: there is none, or it is another user's.
    """
    user_id = identity(request).user_id
    return await services(request).store.read(queries.get_chat, chat_id_of(request), user_id=user_id)


async def chat_of_caller(request: web.Request) -> Chat:
    """
    The caller's own chat named in the path, with its children.

    Raises:
        NotFound: there is none, or it is another user's.
        Forbidden: the caller may only read it.
    """
    chat = await readable_chat(request)
    if chat.owner_id != identity(request).user_id:
        raise Forbidden(READ_ONLY)
    return chat


async def own_chat(request: web.Request) -> Chat:
    """
    The caller's chat named in the path, without its children: all that a change needs to know.

    Raises:
        NotFound: there is none, or it is another user's.
        Forbidden: the caller may only read it.
    """
    chat_id, user_id, store = chat_id_of(request), identity(request).user_id, services(request).store
    row = await store.read(queries.read_row, chat_id)
    if row["owner_id"] != user_id:
        if await store.read(access.may_read, chat_id, user_id):
            raise Forbidden(READ_ONLY)
        raise NotFound("no such chat")
    return chat_from_row(row)


def chat_id_of(request: web.Request) -> UUID:
    """
    The id in the path.

    Raises:
        NotFound: it is none.
    """
    try:
        return UUID(request.match_info["chat_id"])
    except ValueError:
        raise NotFound("no such chat") from None


def answer(value: BaseModel, *, status: int = 200) -> web.Response:
    """One value as JSON; absent fields are left out."""
    return web.json_response(text=value.model_dump_json(exclude_none=True), status=status)


def idempotency_key(request: web.Request) -> str | None:
    """
    The header that names a request across repetitions.

    Raises:
        BadRequest: it is too long.
    """
    key = request.headers.get("Idempotency-Key", "").strip()
    if len(key) > MAX_KEY:
        raise BadRequest(f"Idempotency-Key: at most {MAX_KEY} characters")
    return key or None


@routes.get("/api/experimental/chats")
@describe(
    query=ListChats,
    answer=list[Chat],
    errors={400: "a term or label that makes no sense", 404: "after_id is no chat of yours"},
)
async def list_chats(request: web.Request) -> web.Response:
    """Root chats with their children: pinned ones first, then the most recently used."""
    wish = read_query(request, ListChats)
    owner_id = identity(request).user_id
    wanted = parse_filter(wish)
    chats = await services(request).store.read(queries.list_chats, owner_id=owner_id, wanted=wanted)
    return web.json_response([chat.model_dump(mode="json", exclude_none=True) for chat in chats])


def parse_filter(wish: ListChats) -> ChatFilter:
    """
    The terms of a query.

    Raises:
        BadRequest: a term that we don't know.
    """
    archived: bool | None = False
    unread: bool | None = None
    words: list[str] = []
    is_shared = False
    try:
        terms = shlex.split(wish.q)
    except ValueError as exc:
        raise BadRequest(f"q: {exc}") from exc
    for term in terms:
        name, colon, value = term.partition(":")
        match name, value:
            case _ if not colon:
                words.append(term)
            case "title", _:
                words.append(value)
            case "archived", "true" | "false":
                archived = FLAGS[value]
            case "archived", "any":
                archived = None
            case "unread", "true" | "false":
                unread = FLAGS[value]
            case "source", "created_by_me" | "shared_with_me":
                is_shared = value == "shared_with_me"
            case _:
                raise BadRequest(
                    f"q: unknown term {term[:80]!r}; there are title:, archived:, unread:, source:"
                )
    return ChatFilter(
        archived=archived,
        unread=unread,
        shared_with_me=is_shared,
        title=" ".join(words) or None,
        labels=_parse_labels(wish.label),
        after_id=wish.after_id,
        offset=wish.offset,
        limit=wish.limit,
    )


def _parse_labels(labels: list[str]) -> dict[str, str]:
    pairs = [label.partition(":") for label in labels]
    if any(not colon for _, colon, _ in pairs):
        raise BadRequest("label: write key:value")
    try:
        return check_labels({key: value for key, _, value in pairs})
    except ValueError as exc:
        raise BadRequest(f"label: {exc}") from exc


@routes.post("/api/experimental/chats")
@describe(body=CreateChat, answer=Chat, status=201, errors={409: "the usage limit is reached"})
async def create_chat(request: web.Request) -> web.Response:
    """Start a chat; with an Idempotency-Key a repetition gets the same chat."""
    wish = await read_body(request, CreateChat)
    parts = services(request)
    owner_id, key = identity(request).user_id, idempotency_key(request)
    preferred = await preferred_model(parts.store, parts.catalog, owner_id, "root")
    choice = choose_model(
        parts.catalog,
        preferred or ModelChoice(parts.catalog.default_id),
        model=wish.model_config_id,
        effort=wish.reasoning_effort,
    )
    if "reasoning_effort" in wish.model_fields_set and wish.reasoning_effort is None:
        choice = ModelChoice(choice.model_config_id)
    if wish.mcp_server_ids:
        await parts.store.read(mcp_servers.check_chosen, wish.mcp_server_ids)
    new = NewChat(
        owner_id=owner_id,
        agent_id=await _workspace(parts.store, owner_id, wish.workspace_id),
        model_config_id=choice.model_config_id,
        reasoning_effort=choice.effort,
        title=(wish.title or "").strip() or derive_title(wish.text()),
        content=wish.parts(),
        labels=wish.labels,
        system_prompt=wish.system_prompt,
        dynamic_tools=tuple(wish.unsafe_dynamic_tools),
        plan_mode=wish.plan_mode,
        client_type=wish.client_type,
        mcp_server_ids=None if wish.mcp_server_ids is None else tuple(wish.mcp_server_ids),
        spawn_key=None if key is None else f"request/{owner_id}/{key}",
    )
    return answer(await parts.store.create_chat(new), status=201)


async def _workspace(store: Store, owner_id: UUID, wanted: UUID | None) -> UUID | None:
    """
    The agent of a new chat.

    Raises:
        BadRequest: it is not the owner's.
    """
    if wanted is None:
        return await store.read(accounts.first_agent, owner_id)
    await store.read(accounts.check_agent, owner_id, wanted)
    return wanted


@routes.patch(ONE_CHAT)
@describe(body=ChatPatch, status=204, errors={409: "the chat or one below it is busy"})
async def change_chat(request: web.Request) -> web.Response:
    """Rename, label, pin, give another workspace, archive or take out of the archive."""
    chat = await own_chat(request)
    wish = await read_body(request, ChatPatch)
    store = services(request).store
    will_be_archived = chat.archived if wish.archived is None else wish.archived
    if wish.pin_order and will_be_archived:
        raise BadRequest("an archived chat can't be pinned")
    if wish.archived is not None:
        await _archive(request, chat, archived=wish.archived)
    if "workspace_id" in wish.model_fields_set:
        await _rebind(request, chat, wish.workspace_id)
    if wish.title is not None:
        await store.change(chat.id, metadata.set_title, wish.title)
    if wish.labels is not None:
        await store.change(chat.id, metadata.set_labels, wish.labels, now=store.now())
    if "plan_mode" in wish.model_fields_set:
        await store.change(chat.id, metadata.set_plan_mode, wish.plan_mode)
    if wish.mcp_server_ids is not None:
        await store.change(chat.id, mcp_servers.choose_servers, wish.mcp_server_ids)
    if wish.pin_order is not None:
        await store.change(chat.id, metadata.set_pin, wish.pin_order)
    return web.Response(status=204)


async def _rebind(request: web.Request, chat: Chat, agent_id: UUID | None) -> None:
    """
    Give the chat and all below it another workspace: from the next model call on.

    Raises:
        BadRequest: it is a sub-agent's, archived, or the workspace is not the caller's.
    """
    if chat.parent_chat_id is not None:
        raise BadRequest("workspace_id: a sub-agent has the workspace of the chat that started it")
    if chat.archived:
        raise BadRequest("workspace_id: this chat is archived")
    parts = services(request)
    if agent_id is not None:
        await parts.store.read(accounts.check_agent, chat.owner_id, agent_id)
    await parts.pins.rebind(chat.id, agent_id)


async def _archive(request: web.Request, chat: Chat, *, archived: bool) -> None:
    """The chat and all below it, or none of them."""
    if chat.archived == archived:
        raise BadRequest("this chat is archived already" if archived else "this chat is not archived")
    store = services(request).store
    if not archived and chat.parent_chat_id is not None:
        parent = await store.read(queries.read_row, chat.parent_chat_id)
        if parent["archived"]:
            raise TransitionNotAllowed("its parent is archived; take that one out first")
    await store.transition_family(chat.id, partial(set_archived, archived=archived))
    if archived:
        await take_back(services(request), chat)


def set_archived(tx: ChatTx, *, archived: bool) -> None:
    """One member of a family; one that is there already stays."""
    if tx["archived"] == archived:
        return
    if archived:
        tx.archive()
    else:
        tx.unarchive()


@routes.get("/api/experimental/chats/{chat_id}/cost")
@describe(answer=dict[str, int])
async def get_cost(request: web.Request) -> web.Response:
    """What the chat and all below it cost, in millionths of a dollar."""
    chat = await readable_chat(request)
    return web.json_response(await services(request).store.read(spending.chat_cost, chat.id))


@routes.get("/api/experimental/chats/by-workspace")
@describe(query=ByWorkspace, answer=dict[UUID, Chat])
async def list_by_workspace(request: web.Request) -> web.Response:
    """Of each workspace the caller's chat that was used last."""
    try:
        agent_ids = read_query(request, ByWorkspace).ids()
    except ValueError as exc:
        raise BadRequest(f"workspace_ids: {exc}") from exc
    owner_id = identity(request).user_id
    found = await services(request).store.read(queries.latest_by_agent, agent_ids, owner_id=owner_id)
    body = {
        str(agent_id): chat.model_dump(mode="json", exclude_none=True) for agent_id, chat in found.items()
    }
    return web.json_response(body)


@routes.post("/api/experimental/chats/{chat_id}/title/propose")
@describe(answer=ProposedTitle, errors={409: "the usage limit is reached"})
async def propose(request: web.Request) -> web.Response:
    """A title for what was said so far, by a model; the one it has where no model knows better."""
    chat, parts = await own_chat(request), services(request)
    await parts.store.admit_user(identity(request).user_id)
    title = await propose_title(parts, chat)
    return answer(ProposedTitle(title=title or chat.title))
