"""The control plane without HTTP: real store, hub and worker; a scripted model and a scripted workspace."""

import asyncio
import base64
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import sqlalchemy as sa
from cryptography.fernet import Fernet

from agentd.wire.content import TextContent, ToolDefinition, ToolResult
from agentd.wire.files import FILES_READ, FileBytes
from agentd.wire.link import DESKTOP_LEAVE, Empty, ToolCallParams
from agentd.wire.recordings import RECORDINGS_START, RecordingInfo, RecordingPiece, RecordingStopped
from chatd.agents.directory import Directory
from chatd.errors import BadRequest
from chatd.mcp_host import McpHost
from chatd.model_wire import ModelConfig, ReasoningEffort
from chatd.provider.catalog import Catalog, ModelSource
from chatd.provider.protocol import Finished, ModelRequest, PartDone, ProviderEvent, TextDelta
from chatd.push.sender import PushSender
from chatd.sealing import Sealer
from chatd.settings import ChatdSettings
from chatd.store import accounts, catalog_rows, queries, schema
from chatd.store.database import Database
from chatd.store.machine import ChatTx
from chatd.store.store import Store, utc_now
from chatd.stream.buffer import PartBuffer
from chatd.stream.hub import Hub
from chatd.wire import Chat, TextPart, ToolCallPart, Usage
from chatd.worker.services import Services
from chatd.worker.worker import Worker
from tests.contract.store.bench import START, Bench

# Seconds after which a test has failed; nothing waits for it.
LIMIT_S = 45


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


def say(text: str, *, tokens: int | None = None) -> list[Item]:
    """The model answers *text* to a prompt of *tokens*."""
    usage = Usage(input_tokens=tokens)
    return [TextDelta(text), PartDone(TextPart(text=text)), Finished(reason="stop", usage=usage)]


def call(*calls: tuple[str, str], text: str = "", tokens: int | None = None, **args: Any) -> list[Item]:
    """The model calls tools: pairs of id and name, all with *args*."""
    parts = [ToolCallPart(tool_call_id=call_id, tool_name=name, args=args) for call_id, name in calls]
    spoken: list[Item] = [TextDelta(text), PartDone(TextPart(text=text))] if text else []
    usage = Usage(input_tokens=tokens)
    return [*spoken, *(PartDone(part) for part in parts), Finished(reason="tool-calls", usage=usage)]


class ScriptedModel:
    """Answers the n-th call of a chat, named by its first message, with the n-th row of its script."""

    name = "scripted"

    def __init__(self) -> None:
        self.scripts: dict[str, list[list[Item]]] = {}
        self.requests: list[ModelRequest] = []
        # What it answers when it may call nothing: a summary is asked for.
        self.summaries: list[list[Item]] = []
        self.window: int | None = None
        self.efforts: tuple[ReasoningEffort, ...] = ()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Play the next row."""
        self.requests.append(request)
        first = cast("TextPart", request.messages[0].content[0]).text
        # A summary quotes the first message.
        name = next(name for name in self.scripts if name in first)
        script = self.scripts[name] if request.may_call else self.summaries
        for item in script.pop(0):
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
        self.others: dict[str, UUID] = {}

    def source(self, _: UUID) -> ModelSource:
        """The only one."""
        return ModelSource(
            provider="openai",
            model="m",
            display_name="M",
            api_key="k",
            context_window=self.model.window,
            efforts=self.model.efforts,
        )

    def fallback(self, _: UUID) -> UUID | None:
        """None: there is no other."""
        return None

    def resolve(self, name: str | None) -> UUID:
        """The only one, unless a test gave others names."""
        if name not in {None, "m", *self.others}:
            msg = f"unknown model {name!r}; there are: openai:m"
            raise BadRequest(msg)
        return self.others.get(name or "", UUID(int=7))

    def sources(self) -> list[ModelSource]:
        """The only one, which is no vendor's own."""
        return []

    async def provider(self, _: UUID) -> ScriptedModel:
        """The only one."""
        return self.model


Handler = Callable[[ToolCallParams], Awaitable[ToolResult]]


def output(text: str, *, is_error: bool = False) -> ToolResult:
    """A tool's text."""
    return ToolResult(content=(TextContent(text=text),), is_error=is_error)


class ScriptedFilm:
    """Answers the link's methods for recordings; *asked* remembers them, *problem* fails them."""

    def __init__(self, film: bytes = b"film" * 200_000) -> None:
        self.film = film
        self.asked: list[tuple[str, UUID]] = []
        self.problem: Exception | None = None
        self.on_start: Callable[[], None] | None = None

    async def ask(self, _: UUID, method: str, params: Any, answer: type[Any], **__: Any) -> Any:
        """Answer one question."""
        self.asked.append((method, params.id))
        if self.problem is not None:
            raise self.problem
        if method == RECORDINGS_START and self.on_start is not None:
            self.on_start()
        info = RecordingInfo(
            id=params.id, desktop="main", state="ready", started_at=START, size_bytes=len(self.film)
        )
        if answer is RecordingStopped:
            return RecordingStopped(recording=info, thumbnail=base64.b64encode(b"jpeg").decode())
        if answer is RecordingPiece:
            data = self.film[params.offset : params.offset + params.length]
            text = base64.b64encode(data).decode()
            return RecordingPiece(data=text, offset=params.offset, total_bytes=len(self.film))
        return info


class ScriptedWorkspace:
    """Tools and files by name; *calls* remembers what was handed over, in order."""

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}
        self.calls: list[ToolCallParams] = []
        self.boots: list[str] = []
        # What hears how a call goes, by its id.
        self.on_progress: dict[str, Callable[[str], None]] = {}
        self.film = ScriptedFilm()
        self.files: dict[str, bytes] = {}
        # Agents that were told to have left their desktop.
        self.left: list[str] = []
        self.someone_left = asyncio.Event()
        self.is_pushing: bool | None = False

    async def ask(self, agent_id: UUID, method: str, params: Any, *args: Any, **kwargs: Any) -> Any:
        """What is asked besides tools is about files, films and who is done."""
        if method == DESKTOP_LEAVE:
            self.left.append(params.chat_id)
            self.someone_left.set()
            return Empty()
        if method == FILES_READ:
            data = self.files[params.path]
            return FileBytes(path=params.path, data=base64.b64encode(data).decode(), size=len(data))
        return await self.film.ask(agent_id, method, params, *args, **kwargs)

    async def list_tools(self, _: UUID) -> tuple[ToolDefinition, ...]:
        """One definition for each handler; those called ``read_…`` only read."""
        return tuple(
            ToolDefinition(
                name=name,
                input_schema={},
                origin="desktop" if name == "computer" else "builtin",
                reads_only=name.startswith("read_"),
            )
            for name in self.handlers
        )

    async def pushes_context(self, _: UUID) -> bool | None:
        """Nothing is pushed, unless a test says so."""
        return self.is_pushing

    async def call_tool(
        self,
        _: UUID,
        params: ToolCallParams,
        *,
        claim: Callable[[str], Awaitable[str]],
        on_progress: Callable[[str], None],
    ) -> ToolResult:
        """Run one handler."""
        self.on_progress[params.call_id] = on_progress
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

    def __init__(self, folder: Path, database_url: str, **settings: Any) -> None:
        self.hub = Hub()
        self.model, self.workspace = ScriptedModel(), ScriptedWorkspace()
        database = Database(database_url)
        self.hooked = HookedStore(database, publish=self.hub.publish)
        super().__init__(database, store=self.hooked)
        sealer = Sealer([Fernet.generate_key().decode()])
        self.services = Services(
            settings=ChatdSettings(data_dir=folder, **({"auto_titles": False} | settings)),
            store=self.store,
            hub=self.hub,
            buffer=PartBuffer(self.hub.touch),
            catalog=cast("Catalog", OneModel(self.model)),
            directory=cast("Directory", self.workspace),
            mcp=McpHost(self.store, sealer, self.hub),
            push=PushSender(self.store, sealer, allowed=(), contact=""),
            chance=lambda: 0.0,
        )
        self.agent_id = UUID(int=0)
        self._worker: asyncio.Task[None] | None = None

    def set(self, **settings: Any) -> None:
        """Other settings, for the workers started from now on."""
        changed = self.services.settings.model_copy(update=settings)
        values = {name: getattr(self.services, name) for name in Services.__slots__}
        self.services = Services(**(values | {"settings": changed}))

    async def prepare(self) -> None:
        """A user, a model, an agent."""
        await super().prepare()
        self.agent_id = await self.store.write(accounts.ensure_agent, self.user_id, "w", now=START)

    async def add_model(self, name: str) -> UUID:
        """Another name for the scripted model, with an id of its own."""
        config = ModelConfig(id=uuid.uuid4(), provider="openai", model=name, display_name=name)
        await self.store.write(catalog_rows.save_configs, [config], now=START)
        cast("OneModel", self.services.catalog).others[name] = config.id
        return config.id

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
        chat = await self.store.read(queries.get_chat, chat_id, user_id=self.user_id)
        return chat.children
