"""
Chats, durably: create, transition, read.

Notices are published after the commit, never before; they are hints and hold ids
and versions only.
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

import sqlalchemy as sa

from chatd.store import schema
from chatd.store.database import Database
from chatd.store.machine import ChatTx
from chatd.store.rows import NewMessage, chat_from_row
from chatd.wire import Chat, ChatMode, Part

__all__ = ["NewChat", "Notice", "Store", "derive_title"]

# Words and characters of a title made from the first message.
TITLE_WORDS = 6
TITLE_CHARACTERS = 80

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A chat changed; read it again."""

    chat_id: UUID
    owner_id: UUID
    snapshot_version: int
    is_runnable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NewChat:
    """A chat to be created, with its first user message."""

    owner_id: UUID
    model_config_id: UUID
    content: tuple[Part, ...]
    title: str
    agent_id: UUID | None = None
    mode: ChatMode | None = None
    parent: Chat | None = None
    spawn_key: str | None = None


def derive_title(text: str) -> str:
    """The first words of a message; an ellipsis tells that more follow."""
    words = text.split()
    title = " ".join(words[:TITLE_WORDS])
    has_more = len(words) > TITLE_WORDS
    if len(title) + has_more > TITLE_CHARACTERS:
        return title[: TITLE_CHARACTERS - 1] + "…"
    return title + "…" if has_more else title or "New Chat"


def utc_now() -> datetime:
    """Now, aware."""
    return datetime.now(UTC)


class Store:
    """The only writer of chats."""

    def __init__(
        self,
        database: Database,
        *,
        publish: Callable[[Notice], None],
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        self._database = database
        self._publish = publish
        self._clock = clock

    def now(self) -> datetime:
        """The store's clock."""
        return self._clock()

    async def read(
        self, run: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a query of ``chatd.store.queries`` on a consistent snapshot."""
        return await self._database.read(run, *args, **kwargs)

    async def write(
        self, run: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a write that touches no chat's execution state (accounts, heartbeats, ledger)."""
        return await self._database.write(run, *args, **kwargs)

    async def transition(self, chat_id: UUID, apply: Callable[[ChatTx], T]) -> T:
        """
        Apply transitions to one chat in one transaction, then publish.

        Raises:
            NotFound, Refused: nothing was written.

        Cancellation: the transaction ends first; a committed change is published.
        """
        notice, result = None, None

        def run(connection: sa.Connection) -> None:
            nonlocal notice, result
            tx = ChatTx.lock(connection, chat_id, now=self._clock())
            result = apply(tx)
            notice = _notice(tx.flush())

        try:
            await self._database.write(run)
        finally:
            if notice is not None:
                self._publish(notice)
        return result  # type: ignore[return-value]  # set whenever write() returned

    async def create_chat(self, new: NewChat) -> Chat:
        """
        Create a running chat with its first message.

        A *spawn_key* that exists already gives the chat it made: nothing is created.
        """
        row = await self._database.write(_create, new, now=self._clock())
        self._publish(_notice(row))
        return chat_from_row(row)

    async def release_all(self) -> int:
        """Take every lease away; for the sole owner of a database, at its start."""
        return await self._database.write(_release_all)


def _notice(row: sa.RowMapping) -> Notice:
    return Notice(
        chat_id=row["id"],
        owner_id=row["owner_id"],
        snapshot_version=row["snapshot_version"],
        is_runnable=row["status"] in {"running", "interrupting"} and row["worker_id"] is None,
    )


def _create(connection: sa.Connection, new: NewChat, *, now: datetime) -> sa.RowMapping:
    table = schema.chats
    if new.spawn_key is not None:
        known = sa.select(table).where(table.c.spawn_key == new.spawn_key)
        row = connection.execute(known).mappings().one_or_none()
        if row is not None:
            return row
    chat_id = uuid.uuid4()
    connection.execute(table.insert().values(_chat_values(new, chat_id, now)))
    tx = ChatTx.lock(connection, chat_id, now=now)
    tx.insert_first(NewMessage(role="user", content=new.content, created_by=new.owner_id))
    return tx.flush()


def _chat_values(new: NewChat, chat_id: UUID, now: datetime) -> dict[str, Any]:
    return {
        "id": chat_id,
        "owner_id": new.owner_id,
        "agent_id": new.agent_id,
        "parent_chat_id": new.parent.id if new.parent else None,
        "root_chat_id": new.parent.root_chat_id if new.parent else None,
        "last_model_config_id": new.model_config_id,
        "spawn_key": new.spawn_key,
        "title": new.title,
        "mode": new.mode,
        "status": "running",
        "archived": False,
        "snapshot_version": 0,
        "history_version": 0,
        "queue_version": 0,
        "retry_state_version": 0,
        "generation_attempt": 0,
        "created_at": now,
        "updated_at": now,
    }


def _release_all(connection: sa.Connection) -> int:
    connection.execute(schema.heartbeats.delete())
    table = schema.chats
    owned = table.c.runner_id.is_not(None)
    released = connection.execute(table.update().where(owned).values(worker_id=None, runner_id=None))
    return released.rowcount
