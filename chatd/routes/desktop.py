"""
Desktops: the RFB stream of a chat's or an agent's, how it is, and control of it.

Every refusal, and the dial to the workspace, comes before the upgrade, so that the
browser gets a status and not a socket that opens and closes.
"""

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Literal
from uuid import UUID

from aiohttp import WSCloseCode, web
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentd.wire.control import ControlParams, ViewerGrant
from chatd.audit import AuditAction
from chatd.errors import AgentUnavailable, BadRequest, NotFound
from chatd.routes.auditing import record
from chatd.routes.auth import identify
from chatd.routes.chats import chat_of_caller
from chatd.routes.context import identity, services
from chatd.routes.errors import read_body
from chatd.routes.viewing import carry, require_upgrade
from chatd.store import accounts
from chatd.store.lineage import agent_at_desktop
from computer.wire import DesktopStatus

__all__ = ["Place", "open_stream", "routes"]

# A screen of one person: a page makes up its own.
Seat = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]

routes = web.RouteTableDef()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """
    A workspace, and the chat whose desktop there is meant; None is its main one.

    *agent_chat_id* is the chat whose model works there, where each agent has a desktop of its own.
    """

    agent_id: UUID
    chat_id: UUID | None = None
    agent_chat_id: UUID | None = None


class _ControlWish(BaseModel):
    """Take control with the page called *seat*, or give it back."""

    model_config = ConfigDict(extra="forbid")

    wish: Literal["take", "give_back"]
    seat: Seat


class _Watching(BaseModel):
    """
    How somebody wants to watch, in the query.

    *seat* names the screen, so that it can be given control; without one nobody can do that.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    seat: Seat | None = None
    view_only: bool = False
    take_control: bool = False


async def _place_of_chat(request: web.Request) -> Place:
    """The chat's desktop; sub-agents work at that of the chat they help, or at one of their own."""
    chat = await chat_of_caller(request)
    if chat.agent_id is None:
        raise BadRequest("this chat has no workspace")
    shown = await services(request).store.read(agent_at_desktop, chat.id)
    return Place(agent_id=chat.agent_id, chat_id=chat.root_chat_id, agent_chat_id=shown)


async def _place_of_agent(request: web.Request) -> Place:
    """The main desktop of the caller's workspace of that name."""
    name = request.match_info["agent"]
    agent_id = await services(request).store.read(accounts.find_agent, identity(request).user_id, name)
    if agent_id is None:
        raise NotFound(f"you have no workspace called {name!r}")
    return Place(agent_id=agent_id)


def _seat(request: web.Request, seat: str) -> str:
    """Nobody can speak for another person's screen."""
    return f"{identity(request).user_id}/{seat}"


def _grant(request: web.Request) -> ViewerGrant:
    try:
        wish = _Watching.model_validate(dict(request.query))
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        raise BadRequest(f"{first['loc'][0]}: {first['msg']}") from exc
    may: Literal["view", "control", "take"] = "take" if wish.take_control else "control"
    return ViewerGrant(
        seat=_seat(request, wish.seat or secrets.token_urlsafe(16)),
        name=identity(request).user_name,
        may="view" if wish.view_only else may,
    )


@routes.get("/api/experimental/chats/{chat_id}/desktop/status")
async def status(request: web.Request) -> web.Response:
    """How the desktop is; it is not started by asking."""
    place = await _place_of_chat(request)
    return web.json_response(text=(await _status(request, place)).model_dump_json())


async def _status(request: web.Request, place: Place) -> DesktopStatus:
    return await services(request).directory.desktop_status(
        place.agent_id, place.chat_id, agent_chat_id=place.agent_chat_id
    )


@routes.post("/api/experimental/chats/{chat_id}/desktop/control")
async def control(request: web.Request) -> web.Response:
    """Take control of the desktop, or give it back; 409 when the lease says no."""
    wish = await read_body(request, _ControlWish)
    place = await _place_of_chat(request)
    params = ControlParams(
        wish=wish.wish,
        seat=_seat(request, wish.seat),
        name=identity(request).user_name,
        chat_id=str(place.chat_id),
        agent_chat_id=str(place.agent_chat_id),
    )
    state = await services(request).directory.set_control(place.agent_id, params)
    action = AuditAction.CONTROL_TAKEN if wish.wish == "take" else AuditAction.CONTROL_GIVEN_BACK
    await record(request, action, target=str(place.chat_id))
    return web.json_response(text=state.model_dump_json())


@routes.get("/api/experimental/chats/{chat_id}/desktop")
async def desktop(request: web.Request) -> web.StreamResponse:
    """Watch the chat's desktop, and touch it while in control."""
    return await _watch(request, await _place_of_chat(request))


@routes.get("/api/experimental/agents/{agent}/desktop")
async def agent_desktop(request: web.Request) -> web.StreamResponse:
    """Watch a workspace's main desktop, and touch it while in control."""
    return await _watch(request, await _place_of_agent(request))


async def _watch(request: web.Request, place: Place) -> web.StreamResponse:
    require_upgrade(request)
    find = _place_of_agent if place.chat_id is None else _place_of_chat

    async def still_may() -> None:
        await identify(request)
        now = await find(request)
        # Another agent is at work: maybe at the same desktop, which only the workspace knows.
        if now != place and (
            now.agent_id != place.agent_id
            or (await _status(request, now)).name != (await _status(request, place)).name
        ):
            raise NotFound("the chat works elsewhere now")

    await services(request).directory.get(place.agent_id)
    grant = _grant(request)

    async def opened() -> None:
        if grant.may == "take":
            target = str(place.chat_id or request.match_info.get("agent"))
            await record(request, AuditAction.CONTROL_TAKEN, target=target, by="opening the desktop")

    return await open_stream(request, place, grant, still_may, opened)


async def open_stream(
    request: web.Request,
    place: Place,
    grant: ViewerGrant,
    still_may: Callable[[], Awaitable[None]],
    opened: Callable[[], Awaitable[None]] | None = None,
) -> web.StreamResponse:
    """
    Have the workspace dial a stream, then upgrade and carry it; 500 when it does not come.

    *opened* is called once it has come; nothing is carried where that fails.
    """
    try:
        upstream = await services(request).directory.open_stream(
            place.agent_id, place.chat_id, agent_chat_id=place.agent_chat_id, viewer=grant
        )
    except AgentUnavailable as exc:
        body = {"message": f"the desktop's stream could not be opened: {exc}", "code": exc.code}
        return web.json_response(body, status=500)
    if opened is not None:
        try:
            await opened()
        except BaseException:
            upstream.end(WSCloseCode.INTERNAL_ERROR, "it could not be noted")
            raise
    return await carry(request, upstream, still_may)
