"""
Our loop against a Chat Completions server: store, runner, buffer and all, or the stream alone.

Usage: ours.py whole|stream BASE_URL PROMPT. Prints CPU seconds of the run, imports left out.
"""

# ruff: noqa: T201 -- a program that prints; a peer is there in its own environment only
import asyncio
import logging
import resource
import sys
import tempfile
from pathlib import Path
from typing import Any
from uuid import UUID

import structlog

from chatd.agents.directory import Directory
from chatd.loop.collect import Collector
from chatd.provider.catalog import Catalog, ModelSource
from chatd.provider.protocol import FunctionTool, ModelRequest, PromptMessage
from chatd.settings import ChatdSettings
from chatd.store import accounts, catalog_rows, queries
from chatd.store.database import Database, sqlite_url
from chatd.store.store import NewChat, Store, utc_now
from chatd.stream.buffer import PartBuffer
from chatd.stream.hub import Hub
from chatd.tools.toolset import CallContext, LocalTool, ToolOutcome, Toolset
from chatd.wire import Chat, TextPart, ToolResultPart
from chatd.worker.services import Services
from chatd.worker.worker import Worker

LOOK = FunctionTool(
    name="look",
    description="Look at a place.",
    input_schema={
        "type": "object",
        "properties": {"place": {"type": "integer"}},
        "required": ["place"],
    },
)


def cpu_s() -> float:
    """CPU seconds of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def look(context: CallContext) -> ToolOutcome:
    """The tool."""
    call = context.call
    value = {"output": f"seen {(call.args or {}).get('place')}"}
    return ToolOutcome(
        part=ToolResultPart(tool_call_id=call.tool_call_id, tool_name=call.tool_name, result=value)
    )


class OneTool(Services):
    """Services whose chats have one tool, which costs nothing."""

    async def _tools(self, chat: Chat) -> Toolset:
        return Toolset(tools={"look": LocalTool(definition=LOOK, run=look)})


def source(base_url: str) -> ModelSource:
    """The model."""
    return ModelSource(
        provider="openai-compat",
        model="rehearsal",
        display_name="R",
        api_key="k",
        base_url=base_url,
        rehearsal=True,
    )


async def whole(base_url: str, prompt: str) -> float:
    """A durable chat, as in production."""
    with tempfile.TemporaryDirectory() as folder:
        settings = ChatdSettings(data_dir=Path(folder), max_steps=100_000)
        database, hub = Database(sqlite_url(settings.database_path)), Hub()
        await database.take()
        await database.migrate()
        store = Store(database, publish=hub.publish)
        catalog = Catalog([source(base_url)])
        await store.write(catalog_rows.save_configs, catalog.configs(), now=store.now())
        await catalog.provider(catalog.default_id)
        services = OneTool(
            settings=settings,
            store=store,
            hub=hub,
            buffer=PartBuffer(hub.touch),
            catalog=catalog,
            directory=Directory(),
        )
        owner = await store.write(accounts.ensure_user, "me", now=store.now())
        working = asyncio.create_task(Worker(services).run())
        began = cpu_s()
        new = NewChat(
            owner_id=owner,
            model_config_id=catalog.default_id,
            content=(TextPart(text=prompt),),
            title="t",
        )
        chat = await store.create_chat(new)
        await until_rest(store, hub, chat.id)
        used = cpu_s() - began
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await catalog.close()
        await database.close()
        return used


async def until_rest(store: Store, hub: Hub, chat_id: UUID) -> None:
    """Wait for the turn's end."""
    with hub.watch_chat(chat_id) as subscription:
        while True:
            row = await store.read(queries.read_row, chat_id)
            if row["status"] in {"waiting", "error"}:
                assert row["status"] == "waiting", row["last_error"]
                return
            while not await subscription.wait():
                pass


async def stream(base_url: str, prompt: str) -> float:
    """One model call: provider, collector, buffer."""
    catalog = Catalog([source(base_url)])
    provider = await catalog.provider(catalog.default_id)
    message = PromptMessage(role="user", content=(TextPart(text=prompt),))
    request = ModelRequest(model="rehearsal", system="", messages=(message,), tools=(LOOK,))
    buffer = PartBuffer(lambda _: None)
    episode = buffer.open(UUID(int=1), history_version=1, attempt=1)
    collector = Collector(utc_now)
    began = cpu_s()
    async for event in provider.stream(request):
        fragment = collector.add(event)
        if fragment is not None:
            buffer.add(episode, "assistant", fragment)
    used = cpu_s() - began
    await catalog.close()
    return used


WAYS: dict[str, Any] = {"whole": whole, "stream": stream}

if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    way, url, text = sys.argv[1:]
    print(asyncio.run(WAYS[way](url, text)))
