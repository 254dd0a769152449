"""A store under test: a clock that moves by itself, notices kept, rows readable, any state reachable."""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from chatd.model_wire import ModelConfig
from chatd.state import ChatState, classify
from chatd.store import accounts, catalog_rows, queries, schema
from chatd.store.database import Database
from chatd.store.machine import ChatTx, Fence
from chatd.store.rows import NewMessage
from chatd.store.store import NewChat, Notice, Store
from chatd.wire import (
    Chat,
    ChatError,
    DynamicTool,
    Message,
    RetryPayload,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
WORKER, RUNNER = UUID(int=100), UUID(int=101)
# (status, archived, queued messages) of each state that a row can be in.
ROWS: dict[str, tuple[str, bool, int]] = {
    "W": ("waiting", False, 0),
    "E0": ("error", False, 0),
    "E1": ("error", False, 2),
    "R0": ("running", False, 0),
    "R1": ("running", False, 2),
    "I0": ("interrupting", False, 0),
    "I1": ("interrupting", False, 2),
    "A0": ("requires_action", False, 0),
    "A1": ("requires_action", False, 2),
    "XW": ("waiting", True, 0),
    "XE0": ("error", True, 0),
    "XE1": ("error", True, 2),
    "invalid": ("waiting", False, 2),
}


def text(value: str) -> tuple[TextPart, ...]:
    """Content that is one text."""
    return (TextPart(text=value),)


def answer(value: str = "answer", *calls: str) -> NewMessage:
    """An assistant's message with open calls named *calls*."""
    parts = tuple(ToolCallPart(tool_call_id=name, tool_name="t", args={}) for name in calls)
    return NewMessage(role="assistant", content=(*text(value), *parts))


def result(call_id: str) -> NewMessage:
    """The answer of the call *call_id*."""
    part = ToolResultPart(tool_call_id=call_id, tool_name="t", result={"output": call_id})
    return NewMessage(role="tool", content=(part,))


def retry(attempt: int = 1) -> RetryPayload:
    """A model call that will be tried again."""
    return RetryPayload(attempt=attempt, delay_ms=5, error="x", kind="timeout", retrying_at=START)


# A tool that the chat's client runs.
CLIENT_TOOL = DynamicTool(name="client", description="d")


def ask_client(*calls: str) -> NewMessage:
    """An assistant's message that calls the client's tool."""
    parts = tuple(ToolCallPart(tool_call_id=name, tool_name="client", args={"x": 1}) for name in calls)
    return NewMessage(role="assistant", content=parts)


ERROR = ChatError(message="no", kind="auth")


class Bench:
    """The store and what a test wants to know about it."""

    def __init__(self, database: Database, *, store: Store | None = None) -> None:
        self.database = database
        self.notices: list[Notice] = []
        self.time = START
        self.store = store or Store(database, publish=self.notices.append, clock=self.now)
        self.user_id = UUID(int=0)
        self.config_id = UUID(int=7)

    def now(self) -> datetime:
        """One second later than the last time."""
        self.time += timedelta(seconds=1)
        return self.time

    async def prepare(self) -> None:
        """A user and a model."""
        self.user_id = await self.store.write(accounts.ensure_user, "me", now=START)
        config = ModelConfig(id=self.config_id, provider="openai", model="m", display_name="M")
        await self.store.write(catalog_rows.save_configs, [config], now=START)

    async def create(self, value: str = "hello", **fields: Any) -> Chat:
        """A new chat with one message: R0."""
        new = NewChat(
            owner_id=self.user_id,
            model_config_id=self.config_id,
            content=text(value),
            **({"title": "t"} | fields),
        )
        return await self.store.create_chat(new)

    async def chat_in(self, state: str) -> UUID:
        """A chat whose row was put into *state* by hand, owned by a runner while it is busy."""
        status, archived, queue = ROWS[state]
        chat = await self.create(dynamic_tools=(CLIENT_TOOL,))
        if status == "requires_action":
            await self.commit(chat.id, ask_client("asked"))
        is_busy = status in {"running", "interrupting", "requires_action"}
        values = {
            "status": status,
            "archived": archived,
            "snapshot_version": 10,
            "last_error": {"message": "old"} if status == "error" else None,
            "worker_id": WORKER if is_busy else None,
            "runner_id": RUNNER if is_busy else None,
            "requires_action_deadline_at": START if status == "requires_action" else None,
        }
        await self.execute(schema.chats.update().where(schema.chats.c.id == chat.id).values(values))
        for number in range(queue):
            row = {"chat_id": chat.id, "created_by": self.user_id, "created_at": START, "position": number}
            content = [{"type": "text", "text": f"q{number}"}]
            await self.execute(schema.queued_messages.insert().values(content=content, **row))
        return chat.id

    async def execute(self, statement: sa.Executable) -> None:
        """Run a statement in a transaction of its own."""

        def run(connection: sa.Connection) -> None:
            connection.execute(statement)

        await self.store.write(run)

    async def row(self, chat_id: UUID) -> dict[str, Any]:
        """The chat's row."""
        return dict(await self.store.read(queries.read_row, chat_id))

    async def messages(self, chat_id: UUID) -> list[Message]:
        """The whole history."""
        return await self.store.read(queries.prompt_messages, chat_id)

    async def texts(self, chat_id: UUID) -> list[str]:
        """The history in short: ``role:text`` or ``role:call id``; errors end in ``!``."""
        return [short(message) for message in await self.messages(chat_id)]

    async def queue(self, chat_id: UUID) -> list[str]:
        """Texts of the queue, head first."""
        rows = await self.store.read(queries.list_queued, chat_id)
        return [row.content[0].text for row in rows]  # type: ignore[union-attr]

    async def dump(self, chat_id: UUID) -> tuple[object, ...]:
        """Everything that is stored of a chat."""
        return (await self.row(chat_id), await self.messages(chat_id), await self.queue(chat_id))

    async def state(self, chat_id: UUID) -> ChatState:
        """What the row amounts to."""
        row, queue = await self.row(chat_id), await self.queue(chat_id)
        return classify(row["status"], archived=row["archived"], has_queue=bool(queue))

    async def acquire(self, chat_id: UUID) -> UUID:
        """Own the chat as a new runner."""
        runner_id = uuid.uuid4()
        await self.store.transition(chat_id, lambda tx: tx.acquire(worker_id=WORKER, runner_id=runner_id))
        return runner_id

    async def commit(self, chat_id: UUID, *messages: NewMessage) -> None:
        """Commit a step."""
        await self.store.transition(chat_id, lambda tx: tx.commit_step(list(messages)))

    async def send(self, chat_id: UUID, value: str, *, interrupt: bool = False) -> Any:
        """Send a user's message."""
        return await self.store.transition(
            chat_id, lambda tx: tx.send(text(value), created_by=self.user_id, interrupt=interrupt)
        )


def short(message: Message) -> str:
    """One message as ``role:what``."""
    part = message.content[0]
    match part:
        case TextPart():
            return f"{message.role}:{part.text}"
        case ToolResultPart():
            return f"tool:{part.tool_call_id}{'!' if part.is_error else ''}"
        case ToolCallPart():
            return f"{message.role}:{part.tool_call_id}"
        case _:
            return message.role


def apply(tx: ChatTx, transition: str, user_id: UUID) -> object:
    """Apply the transition called *transition* with plain arguments."""
    connection, queued = tx.connection, schema.queued_messages
    mine = sa.select(sa.func.max(queued.c.id)).where(queued.c.chat_id == tx.chat_id)
    last = connection.execute(mine).scalar_one() or 0
    first = connection.execute(
        sa.select(sa.func.min(schema.messages.c.id)).where(schema.messages.c.chat_id == tx.chat_id)
    ).scalar_one()

    def enter() -> None:
        tx.commit_step([ask_client("asked")])
        tx.enter_requires_action()

    def complete() -> None:
        tx.complete_requires_action([result(call.tool_call_id).content[0] for call in tx.open_calls()])  # type: ignore[misc]

    def steer() -> object:
        connection.execute(queued.update().where(queued.c.id == last).values(steer=True))
        return tx.take_steered()

    moves: dict[str, Callable[[], object]] = {
        "edit": lambda: tx.edit(first, text("edited")),
        "delete_queued": lambda: tx.delete_queued(last),
        "promote_queued": lambda: tx.promote_queued(last),
        "complete_requires_action": complete,
        "request_compaction": tx.request_compaction,
        "clear_context": tx.clear_context,
        "archive": tx.archive,
        "unarchive": tx.unarchive,
        "enter_requires_action": enter,
        "cancel_requires_action": tx.cancel_requires_action,
        "reconcile": tx.reconcile,
        "send": lambda: tx.send(text("new"), created_by=user_id),
        "send_interrupt": lambda: tx.send(text("new"), created_by=user_id, interrupt=True),
        "record_retry": lambda: tx.record_retry(retry()),
        "take_steered": steer,
        "commit_step": lambda: tx.commit_step([answer()]),
        "finish_error": lambda: tx.finish_error(ERROR),
        "finish_interruption": lambda: tx.finish_interruption([answer("partial")]),
        "interrupt": tx.interrupt,
        "record_attempt": tx.record_attempt,
        "finish_turn": tx.finish_turn,
    }
    return moves[transition]()


def fence(row: dict[str, Any], **changes: Any) -> Fence:
    """A fence that fits *row*, but for *changes*."""
    names = ("runner_id", "history_version", "status")
    return Fence(**({name: row[name] for name in names} | changes))
