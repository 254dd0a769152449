"""
Share links: made and revoked by a chat's owner, opened by anybody who has one.

What is behind a link only shows: its viewers may never touch the desktop, nor see its clipboard.
Every opening is logged.
"""

import secrets
from datetime import timedelta
from uuid import UUID

import structlog
from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from agentd.wire.control import ViewerGrant
from chatd.audit import AuditAction, AuditEntry
from chatd.errors import BadRequest, NotFound
from chatd.place_wire import DesktopShare
from chatd.routes.auditing import entry_of, write_audited
from chatd.routes.chats import chat_of_caller
from chatd.routes.context import identity, services
from chatd.routes.desktop import Place, open_stream
from chatd.routes.errors import read_body
from chatd.routes.guarding import remote_of
from chatd.routes.misc import NO_PAGE, PAGE_DIR
from chatd.routes.viewing import require_upgrade
from chatd.store import shares
from chatd.store.lineage import agent_at_desktop
from chatd.store.shares import SharedDesktop

__all__ = ["routes"]

# Seconds that a link may live.
MIN_LIFETIME_S, MAX_LIFETIME_S = 60, 30 * 24 * 3600
# A link must not be kept by whoever carries it.
HEADERS = {"Cache-Control": "no-store", "X-Robots-Tag": "noindex"}

routes = web.RouteTableDef()
log = structlog.get_logger("chatd.shares")


class _NewShare(BaseModel):
    """A link and how long it lives, in seconds."""

    model_config = ConfigDict(extra="forbid")

    expires_in_s: int = Field(default=3600, ge=MIN_LIFETIME_S, le=MAX_LIFETIME_S)


@routes.post("/api/experimental/chats/{chat_id}/desktop/shares")
async def create(request: web.Request) -> web.Response:
    """A new link to the chat's desktop; its *url* is relative to this server's root, and told only now."""
    wish = await read_body(request, _NewShare)
    chat = await chat_of_caller(request)
    if chat.agent_id is None:
        raise BadRequest("this chat has no workspace")
    store = services(request).store

    def entry(done: tuple[DesktopShare, str]) -> AuditEntry:
        until, share_id = done[0].expires_at.isoformat(), str(done[0].id)
        return entry_of(request, AuditAction.SHARE_MADE, target=share_id, chat=str(chat.id), until=until)

    share, token = await write_audited(
        request,
        entry,
        shares.create_share,
        chat.id,
        identity(request).user_id,
        lifetime=timedelta(seconds=wish.expires_in_s),
        sealer=services(request).sealer,
        now=store.now(),
    )
    log.info("desktop shared", action="share_create", share_id=str(share.id), chat_id=str(chat.id))
    answer = share.model_copy(update={"url": f"share/{token}"})
    return web.json_response(text=answer.model_dump_json(), status=201)


@routes.get("/api/experimental/chats/{chat_id}/desktop/shares")
async def list_all(request: web.Request) -> web.Response:
    """The chat's links that can be opened."""
    chat = await chat_of_caller(request)
    store = services(request).store
    rows = await store.read(shares.list_shares, chat.id, now=store.now())
    return web.json_response([row.model_dump(mode="json", exclude={"url"}) for row in rows])


@routes.delete("/api/experimental/chats/{chat_id}/desktop/shares/{share_id}")
async def revoke(request: web.Request) -> web.Response:
    """End a link; its viewers are sent away within seconds."""
    chat = await chat_of_caller(request)
    try:
        share_id = UUID(request.match_info["share_id"])
    except ValueError:
        raise NotFound("this chat has no such link") from None
    store = services(request).store
    entry = entry_of(request, AuditAction.SHARE_REVOKED, target=str(share_id), chat=str(chat.id))
    await write_audited(request, entry, shares.revoke_share, chat.id, share_id, now=store.now())
    log.info("share revoked", action="share_revoke", share_id=str(share_id), chat_id=str(chat.id))
    return web.json_response(None)


async def _open(request: web.Request) -> SharedDesktop:
    store, sealer = services(request).store, services(request).sealer
    return await store.read(shares.open_share, request.match_info["token"], sealer=sealer, now=store.now())


@routes.get("/share/{token}")
async def page(_: web.Request) -> web.StreamResponse:
    """The page with the live desktop and nothing else; it is the same for every link, also an ended one."""
    if not (PAGE_DIR / "share.html").is_file():
        return web.Response(text=NO_PAGE, status=503)
    return web.FileResponse(PAGE_DIR / "share.html", headers=HEADERS)


@routes.get("/share/{token}/status")
async def status(request: web.Request) -> web.Response:
    """How the desktop is, without its processes or who uses it."""
    shared = await _open(request)
    place = await _place(request, shared)
    answer = await services(request).directory.desktop_status(
        place.agent_id, place.chat_id, agent_chat_id=place.agent_chat_id
    )
    body = answer.model_dump(mode="json", include={"name", "state", "geometry", "viewers", "backend"})
    return web.json_response(body, headers=HEADERS)


@routes.get("/share/{token}/desktop")
async def desktop(request: web.Request) -> web.StreamResponse:
    """Watch the desktop."""
    require_upgrade(request)
    shared = await _open(request)
    store = services(request).store

    async def still_may() -> None:
        await _open(request)

    await services(request).directory.get(shared.agent_id)
    browser = request.headers.get("User-Agent", "")[:200]
    entry = entry_of(request, AuditAction.SHARE_OPENED, target=str(shared.share_id), browser=browser)
    await write_audited(request, entry, shares.note_view, shared.share_id, now=store.now())
    log.info(
        "share opened",
        action="share_open",
        share_id=str(shared.share_id),
        remote=remote_of(request),
        user_agent=browser,
    )
    grant = ViewerGrant(
        seat=f"share:{shared.share_id}/{secrets.token_urlsafe(8)}",
        name="a guest",
        may="view",
        sees_clipboard=False,
    )
    return await open_stream(request, await _place(request, shared), grant, still_may)


async def _place(request: web.Request, shared: SharedDesktop) -> Place:
    """The desktop of the chat that is shared, or of its agent that works."""
    shown = await services(request).store.read(agent_at_desktop, shared.root_chat_id)
    return Place(agent_id=shared.agent_id, chat_id=shared.root_chat_id, agent_chat_id=shown)
