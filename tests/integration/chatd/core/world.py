"""The control plane without HTTP: real store, hub and worker; a scripted model and a scripted workspace."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import sqlalchemy as sa

from agentd.wire.content import TextContent, ToolDefinition, ToolResult
from agentd.wire.link import ToolCallParams
from chatd.agents.directory import Directory
from chatd.provider.catalog import Catalog, ModelSource
from chatd.provider.protocol import Finished, ModelRequest, PartDone, ProviderEvent, TextDelta
from chatd.settings import ChatdSettings
from chatd.store import accounts, queries, schema
from chatd.store.database import Database, sqlite_url
from chatd.store.machine import ChatTx
from chatd.store.store import Store, utc_now
from chatd.stream.buffer import PartBuffer
from chatd.stream.hub import Hub
from chatd.wire import Chat, TextPart, ToolCallPart
from chatd.worker.services import Services
from chatd.worker.worker import Worker
from tests.contract.store.bench import START, Bench

# Seconds after which a test has failed; nothing waits for it.
LIMIT_S = 20


@dataclass
class Gate:
    """A place where something waits until the test lets it go on."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)

    async def pass_through(self) -> None:
        """Tell that we are here, then wait."""
        self.reached.set()
        await self.opened.wait()

    async def wait_reached(self) -> None:
        """Wait until somebody waits here."""
        async with asyncio.timeout(LIMIT_S):
            await self.reached.wait()


Item = ProviderEvent | Gate | Exception


def say(text: str) -> list[Item]:
    """The model answers *text*."""
    return [TextDelta(text), PartDone(TextPart(text=text)), Finished(reason="stop")]


def call(*calls: tuple[str, str], text: str = "", **args: Any) -> list[Item]:
    """The model calls tools: pairs of id and name, all with *args*."""
    parts = [ToolCallPart(tool_call_id=call_id, tool_name=name, args=args) for call_id, name in calls]
    spoken: list[Item] = [TextDelta(text), PartDone(TextPart(text=text))] if text else []
    return [*spoken, *(PartDone(part) for part in parts), Finished(reason="tool-calls")]


class ScriptedModel:
    """Answers the n-th call of a chat, named by its first message, with the n-th row of its script."""

    name = "scripted"

    def __init__(self) -> None:
        self.scripts: dict[str, list[list[Item]]] = {}
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Play the next row."""
        self.requests.append(request)
        first = cast("TextPart", request.messages[0].content[0]).text
        for item in self.scripts[first].pop(0):
            if isinstance(item, Gate):
                await item.pass_through()
            elif isinstance(item, Exception):
                raise item
            else:
                yield item

    async def close(self) -> None:
        """Nothing is open."""


class OneModel:
    """A catalog with the scripted model."""

    def __init__(self, model: ScriptedModel) -> None:
        self.model = model

    def source(self, _: UUID) -> ModelSource:
        """The only one."""
        return ModelSource(provider="openai", model="m", display_name="M", api_key="k")

    async def provider(self, _: UUID) -> ScriptedModel:
        """The only one."""
        return self.model


Handler = Callable[[ToolCallParams], Awaitable[ToolResult]]


def output(text: str, *, is_error: bool = False) -> ToolResult:
    """A tool's text."""
    return ToolResult(content=(TextContent(text=text),), is_error=is_error)


class ScriptedWorkspace:
    """Tools by name; *calls* remembers what was handed over, in order."""

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}
        self.calls: list[ToolCallParams] = []
        self.boots: list[str] = []

    async def list_tools(self, _: UUID) -> tuple[ToolDefinition, ...]:
        """One definition for each handler."""
        return tuple(
            ToolDefinition(name=name, input_schema={}, origin="desktop" if name == "computer" else "builtin")
            for name in self.handlers
        )

    async def call_tool(
        self, _: UUID, params: ToolCallParams, *, claim: Callable[[str], Awaitable[str]]
    ) -> ToolResult:
        """Run one handler."""
        self.boots.append(await claim("boot"))
        self.calls.append(params)
        return await self.handlers[params.name](params)


class HookedStore(Store):
    """A store that lets a test act right after a commit, before the committer goes on."""

    def __init__(self, database: Database, *, publish: Callable[..., None]) -> None:
        super().__init__(database, publish=publish, clock=utc_now)
        self.after: Callable[[UUID], Awaitable[None]] | None = None

    async def transition(self, chat_id: UUID, apply: Callable[[ChatTx], Any]) -> Any:
        """Commit, then the hook."""
        result = await super().transition(chat_id, apply)
        if self.after is not None:
            await self.after(chat_id)
        return result


class World(Bench):
    """Everything that a turn needs."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.hub = Hub()
        self.model, self.workspace = ScriptedModel(), ScriptedWorkspace()
        database = Database(sqlite_url(folder / "chatd.sqlite3"))
        self.hooked = HookedStore(database, publish=self.hub.publish)
        super().__init__(database, store=self.hooked)
        self.services = Services(
            settings=ChatdSettings(data_dir=folder, **settings),
            store=self.store,
            hub=self.hub,
            buffer=PartBuffer(self.hub.touch),
            catalog=cast("Catalog", OneModel(self.model)),
            directory=cast("Directory", self.workspace),
        )
        self.agent_id = UUID(int=0)
        self._worker: asyncio.Task[None] | None = None

    def set(self, **settings: Any) -> None:
        """Other settings, for the workers started from now on."""
        changed = self.services.settings.model_copy(update=settings)
        values = {name: getattr(self.services, name) for name in Services.__slots__}
        self.services = Services(**(values | {"settings": changed}))

    async def prepare(self) -> None:
        """Migrate; a user, a model, an agent."""
        await self.database.migrate()
        await super().prepare()
        self.agent_id = await self.store.write(accounts.ensure_agent, self.user_id, "w", now=START)

    def start(self) -> None:
        """Start a worker."""
        self._worker = asyncio.get_running_loop().create_task(Worker(self.services).run())

    async def stop(self) -> None:
        """Stop the worker, as a shutdown does."""
        if self._worker is not None:
            self._worker.cancel()
            (ended,) = await asyncio.gather(self._worker, return_exceptions=True)
            assert isinstance(ended, asyncio.CancelledError), ended

    async def restart(self, **settings: Any) -> None:
        """Stop, then what the next process does."""
        await self.stop()
        self.set(**settings)
        await self.store.release_all()
        self.start()

    async def close(self) -> None:
        """Stop everything."""
        await self.stop()
        await self.database.close()

    async def chat(self, script: list[list[Item]], *, value: str = "hello", **fields: Any) -> Chat:
        """A new chat whose model answers by *script*."""
        self.model.scripts[value] = script
        return await self.create(value, **fields)

    async def until(self, chat_id: UUID, is_so: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until the chat's row is so."""
        with self.hub.watch_chat(chat_id) as subscription:
            async with asyncio.timeout(LIMIT_S):
                while not is_so(row := await self.row(chat_id)):
                    await subscription.wait()
        return row

    async def until_rest(self, chat_id: UUID, status: str = "waiting") -> dict[str, Any]:
        """Wait until the chat needs nobody; it must be *status*."""
        row = await self.until(chat_id, lambda row: row["status"] in {"waiting", "error"})
        assert row["status"] == status, row["last_error"]
        return row

    async def interrupt(self, chat_id: UUID) -> None:
        """A user's stop."""
        await self.store.transition(chat_id, lambda tx: tx.interrupt())

    async def revisions(self, chat_id: UUID) -> list[int]:
        """The revision of each message."""

        def read(connection: sa.Connection) -> list[int]:
            table = schema.messages
            mine = sa.select(table.c.revision).where(table.c.chat_id == chat_id).order_by(table.c.id)
            return list(connection.execute(mine).scalars())

        return await self.store.read(read)

    async def children(self, chat_id: UUID) -> tuple[Chat, ...]:
        """The chat's children."""
        chat = await self.store.read(queries.get_chat, chat_id, owner_id=self.user_id)
        return chat.children
