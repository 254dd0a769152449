"""What a chat's model is told of in its next request."""

import sqlalchemy as sa

from chatd.provider.protocol import FunctionTool, WebSearch
from chatd.store.rows import chat_from_row
from chatd.tools.offering import Offer, offer
from chatd.tools.policy import Origin, is_offered, kind_of
from chatd.tools.toolset import Toolset
from chatd.wire import Chat
from chatd.worker.advising import chat_toolset
from chatd.worker.services import Services

__all__ = ["offered_tools", "web_search_of"]


async def offered_tools(services: Services, row: sa.RowMapping) -> tuple[Toolset, Offer]:
    """
    Everything that the chat of *row* may call, and what of it goes into a request.

    Raises:
        AgentUnavailable: as ``Services.toolset``.
    """
    chat = chat_from_row(row)
    toolset = await chat_toolset(services, chat)
    kind = kind_of(chat)
    client = [
        FunctionTool(**tool)
        for tool in row["dynamic_tools"] or ()
        if is_offered(tool["name"], Origin.CLIENT, kind)
    ]
    return toolset, offer(toolset, client, has_search=web_search_of(services, chat) is not None)


def web_search_of(services: Services, chat: Chat) -> WebSearch | None:
    """How the chat's vendor may search the web; not while a plan is made."""
    source = services.catalog.source(chat.last_model_config_id)
    return source.web_search if chat.plan_mode is None else None
