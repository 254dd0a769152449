"""Why a chat does not go on."""

from aiohttp import web

from chatd.routes.chats import answer, readable_chat
from chatd.routes.context import services
from chatd.routes.describe import describe
from chatd.state.why import Why, explain
from chatd.store import facts

__all__ = ["routes"]

routes = web.RouteTableDef()


@routes.get("/api/experimental/chats/{chat_id}/why")
@describe(answer=Why)
async def why(request: web.Request) -> web.Response:
    """What the chat waits for, since when, until when, whose lease it is, and who can help."""
    chat = await readable_chat(request)
    parts = services(request)
    found = explain(
        await parts.store.read(facts.read_facts, chat.id), now=parts.store.now(), lease=parts.settings.lease
    )
    if chat.agent_id is not None:
        is_connected = bool(await parts.directory.are_connected([chat.agent_id]))
        found = found.model_copy(update={"workspace_connected": is_connected})
    return answer(found)
