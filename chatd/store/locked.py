"""
A chat's row, locked inside the caller's transaction, and what transitions are made of.

The snapshot version rises once per transaction, whatever happens in it; history,
queue and retry versions follow it when their rows change.

Invariant: after ``flush`` the row classifies into a state that the matrix allows.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Self
from uuid import UUID

import sqlalchemy as sa
import structlog

from chatd.constants import MAX_QUEUED
from chatd.errors import LeaseLost, Misuse, NoModel, NotFound, QueueFull
from chatd.state import KEEPS_COMPACTION_MARKER, ChatState, Transition, check, classify
from chatd.store import schema
from chatd.store.rows import (
    CONTENT_VERSION,
    NewMessage,
    dump_parts,
    is_clients,
    local_calls,
    message_from_row,
    message_values,
    queued_from_row,
)
from chatd.wire import Message, Part, QueuedMessage, ToolCallPart, ToolResultPart, TurnChanges

__all__ = ["Fence", "LockedChat", "cancelled_result"]

log = structlog.get_logger("chatd.store")

# Columns of a chat that are called otherwise than what a message changes.
_COLUMNS = {"reasoning_effort": "last_reasoning_effort"}


class Fence:
    """What a runner believed when it began; re-checked in the writing transaction."""

    __slots__ = ("history_version", "runner_id", "status")

    def __init__(self, *, runner_id: UUID, history_version: int, status: str) -> None:
        self.runner_id = runner_id
        self.history_version = history_version
        self.status = status


def cancelled_result(call: ToolCallPart, reason: str) -> ToolResultPart:
    """The synthetic answer of a call that will get no other."""
    return ToolResultPart(
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        result={"error": reason},
        is_error=True,
    )


def _readable(row: sa.RowMapping) -> Message | None:
    """A message; None for a tool's that can't be read: it answers nothing, and must not lock the chat."""
    try:
        return message_from_row(row)
    except (ValueError, Misuse):
        if row["role"] != "tool":
            raise
        log.warning("tool row can't be read", action="row_unreadable", message_id=row["id"])
        return None


class LockedChat:
    """Make it with ``lock``, end it with ``flush``."""

    def __init__(self, connection: sa.Connection, row: sa.RowMapping, *, now: datetime, queued: int) -> None:
        self._connection = connection
        self._now = now
        self._queued = queued
        self._values: dict[str, Any] = dict(row)
        self._allowed: frozenset[ChatState] | None = None
        self._before = dict(row)
        # What was done otherwise than asked, for whoever asked.
        self.warnings: list[str] = []
        self.chat_id: UUID = row["id"]
        self.snapshot: int = row["snapshot_version"] + 1
        self._values["snapshot_version"] = self.snapshot

    @classmethod
    def lock(cls, connection: sa.Connection, chat_id: UUID, *, now: datetime) -> Self:
        """
        Read and lock the chat.

        Raises:
            NotFound: there is no such chat.

        Transaction: joined.
        """
        statement = sa.select(schema.chats).where(schema.chats.c.id == chat_id)
        # Not against inserts of rows that refer to it (`key_share`): those come with their own locks.
        statement = statement.with_for_update(key_share=True)
        row = connection.execute(statement).mappings().one_or_none()
        if row is None:
            raise NotFound("no such chat")
        count = sa.select(sa.func.count()).where(schema.queued_messages.c.chat_id == chat_id)
        return cls(connection, row, now=now, queued=connection.execute(count).scalar_one())

    @property
    def state(self) -> ChatState:
        """The state as it is now, inside the transaction."""
        return classify(self._values["status"], archived=self._values["archived"], has_queue=self._queued > 0)

    @property
    def is_changed(self) -> bool:
        """Whether ``flush`` would write anything but the next snapshot version."""
        return {**self._values, "snapshot_version": None} != {**self._before, "snapshot_version": None}

    @property
    def before(self) -> Mapping[str, Any]:
        """The row as it was when it was locked."""
        return self._before

    @property
    def now(self) -> datetime:
        """The transaction's time."""
        return self._now

    @property
    def connection(self) -> sa.Connection:
        """The transaction, for what is to be committed together with a transition."""
        return self._connection

    def __getitem__(self, column: str) -> Any:  # noqa: ANN401 -- a column's value
        return self._values[column]

    def require(self, fence: Fence) -> None:
        """
        Check that the world is as the runner believes.

        Raises:
            LeaseLost: another runner owns the chat, or its history or status moved on.
        """
        believed = (fence.runner_id, fence.history_version, fence.status)
        actual = (self["runner_id"], self["history_version"], self["status"])
        if believed != actual:
            raise LeaseLost(f"expected {believed}, found {actual}")

    def flush(self) -> sa.RowMapping:
        """
        Write the row and read it back.

        Raises:
            Misuse: the result is no state that the matrix allows: our bug, rolled back.
        """
        changed = {
            name: value
            for name, value in self._values.items()
            if name not in {"id", "created_at"} and value != self._before[name]
        }
        mine = schema.chats.c.id == self.chat_id
        update = schema.chats.update().where(mine).values(changed).returning(*schema.chats.c)
        row = self._connection.execute(update).mappings().one()
        if self._allowed is not None and self.state not in self._allowed:
            raise Misuse(f"the chat ended in {self.state}, allowed were {sorted(self._allowed)}")
        return row

    # -- the row ---------------------------------------------------------------

    def _change(self, changes: TurnChanges) -> None:
        """What the message whose turn begins changes of its chat."""
        for name, value in changes.to_values().items():
            self._values[_COLUMNS.get(name, name)] = value

    def _begin(self, transition: Transition) -> None:
        self._allowed = check(transition, self.state)
        if transition not in KEEPS_COMPACTION_MARKER:
            self._values["compaction_requested_at"] = None

    def _set_running(self) -> None:
        self._values["status"] = "running"
        self._values["last_error"] = None
        self._values["requires_action_deadline_at"] = None
        self._values["updated_at"] = self._now

    def _set_retry(self, payload: dict[str, Any] | None) -> None:
        if payload == self._values["retry_state"]:
            return
        self._values["retry_state"] = payload
        self._values["retry_state_version"] = self.snapshot

    def _disown(self) -> None:
        self._values["worker_id"] = None
        self._values["runner_id"] = None
        self._values["updated_at"] = self._now
        mine = schema.heartbeats.c.chat_id == self.chat_id
        self._connection.execute(schema.heartbeats.delete().where(mine))

    # -- the history -------------------------------------------------------------

    def _touch_history(self) -> None:
        self._values["history_version"] = self.snapshot
        self._values["generation_attempt"] = 0
        self._set_retry(None)

    def _insert(self, messages: Sequence[NewMessage]) -> list[Message]:
        if not messages:
            return []
        self._insert_files(messages)
        rows = [self._insert_one(message) for message in messages]
        for message in messages:
            # What a person chose; an answer may be a fallback's.
            if message.model_config_id is not None and message.role == "user":
                self._values["last_model_config_id"] = message.model_config_id
            if message.reasoning_effort is not None:
                self._values["last_reasoning_effort"] = message.reasoning_effort
        self._touch_history()
        return rows

    def _insert_one(self, message: NewMessage) -> Message:
        values = message_values(message, chat_id=self.chat_id, revision=self.snapshot, now=self._now)
        statement = schema.messages.insert().values(values).returning(schema.messages)
        return message_from_row(self._connection.execute(statement).mappings().one())

    def _insert_files(self, messages: Sequence[NewMessage]) -> None:
        values = [
            {
                "id": file.id,
                "owner_id": self["owner_id"],
                "chat_id": self.chat_id,
                "origin": "tool",
                "name": file.name,
                "media_type": file.media_type,
                "bytes": file.data,
                "created_at": self._now,
            }
            for message in messages
            for file in message.files
        ]
        if values:
            self._connection.execute(schema.files.insert(), values)

    def open_calls(self) -> list[ToolCallPart]:
        """Local calls of the last assistant message that nothing answered yet, in order."""
        table = schema.messages
        statement = (
            sa.select(table)
            .where(table.c.chat_id == self.chat_id, table.c.deleted.is_(False))
            .order_by(table.c.id.desc())
        )
        answered: set[str] = set()
        for row in self._connection.execute(statement).mappings():
            message = _readable(row)
            if message is None:
                continue
            answered |= {p.tool_call_id for p in message.content if isinstance(p, ToolResultPart)}
            if message.role == "assistant":
                return [c for c in local_calls(message.content) if c.tool_call_id not in answered]
        return []

    def open_dynamic_calls(self) -> list[ToolCallPart]:
        """Those of them that the chat's client is to answer."""
        names = {tool["name"] for tool in self["dynamic_tools"] or ()}
        return [call for call in self.open_calls() if is_clients(call, names)]

    def _allow_calls(self, call_ids: Collection[str]) -> None:
        """Note in the last assistant message that a person allowed these calls."""
        if not call_ids:
            return
        table = schema.messages
        mine = (table.c.chat_id == self.chat_id) & table.c.deleted.is_(False) & (table.c.role == "assistant")
        newest = sa.select(table).where(mine).order_by(table.c.id.desc()).limit(1)
        message = message_from_row(self._connection.execute(newest).mappings().one())
        parts = [
            part.model_copy(update={"approved": True})
            if isinstance(part, ToolCallPart) and part.tool_call_id in call_ids
            else part
            for part in message.content
        ]
        self._rewrite({message.id: parts})

    def _content_of(self, message_id: int) -> Any:  # noqa: ANN401 -- stored JSON
        table = schema.messages
        mine = (table.c.chat_id == self.chat_id) & (table.c.id == message_id)
        return self._connection.execute(sa.select(table.c.content).where(mine)).scalar_one()

    def _rewrite(self, changes: Mapping[int, Iterable[Part]]) -> None:
        """Give messages, by id, other content."""
        table = schema.messages
        for message_id, parts in changes.items():
            changed = {
                "content": dump_parts(parts),
                "content_version": CONTENT_VERSION,
                "revision": self.snapshot,
            }
            mine = (table.c.chat_id == self.chat_id) & (table.c.id == message_id)
            self._connection.execute(table.update().where(mine).values(changed))
        self._touch_history()

    def _close_calls(self, reason: str) -> list[Message]:
        results = [cancelled_result(call, reason) for call in self.open_calls()]
        return self._insert([NewMessage(role="tool", content=(result,)) for result in results])

    def _delete_from(self, message_id: int) -> list[int]:
        """Soft-delete a message and everything after it; their ids, those that people saw."""
        table = schema.messages
        gone = (table.c.chat_id == self.chat_id) & (table.c.id >= message_id) & table.c.deleted.is_(False)
        statement = (
            table.update()
            .where(gone)
            .values(deleted=True, revision=self.snapshot)
            .returning(table.c.id, table.c.visibility)
        )
        rows = self._connection.execute(statement).all()
        self._touch_history()
        return sorted(row.id for row in rows if row.visibility != "model")

    # -- the queue ---------------------------------------------------------------

    def _touch_queue(self, change: int) -> None:
        self._queued += change
        self._values["queue_version"] = self.snapshot

    def _enqueue(self, message: NewMessage, changes: TurnChanges, *, steer: bool = False) -> QueuedMessage:
        if self._queued >= MAX_QUEUED:
            raise QueueFull(f"{MAX_QUEUED} messages wait in this chat already; let it catch up or stop it")
        table = schema.queued_messages
        last = sa.select(sa.func.coalesce(sa.func.max(table.c.position), 0) + 1)
        values = {
            "chat_id": self.chat_id,
            "created_by": message.created_by,
            "model_config_id": message.model_config_id,
            "content": dump_parts(message.content),
            "changes": changes.to_values(),
            "steer": steer,
            "position": last.where(table.c.chat_id == self.chat_id).scalar_subquery(),
            "created_at": self._now,
        }
        row = self._connection.execute(table.insert().values(values).returning(table)).mappings().one()
        self._touch_queue(1)
        self._values["updated_at"] = self._now
        return queued_from_row(row)

    def _queued_row(self, queued_id: int | None = None) -> sa.RowMapping:
        """A waiting message by its id, or the head."""
        table = schema.queued_messages
        statement = sa.select(table).where(table.c.chat_id == self.chat_id)
        if queued_id is not None:
            statement = statement.where(table.c.id == queued_id)
        statement = statement.order_by(table.c.position, table.c.id).limit(1)
        row = self._connection.execute(statement).mappings().one_or_none()
        if row is None:
            raise NotFound("no such queued message")
        return row

    def _steered_rows(self) -> Sequence[sa.RowMapping]:
        """Waiting messages that the turn under way is to take in, in order."""
        table = schema.queued_messages
        steered = sa.select(table).where(table.c.chat_id == self.chat_id, table.c.steer.is_(True))
        return self._connection.execute(steered.order_by(table.c.position, table.c.id)).mappings().all()

    def _remove_queued(self, queued_id: int) -> None:
        table = schema.queued_messages
        deleted = self._connection.execute(table.delete().where(table.c.id == queued_id))
        if deleted.rowcount != 1:
            raise Misuse("the message was not in the queue")
        self._touch_queue(-1)

    def _promote(self, row: sa.RowMapping) -> list[Message]:
        self._remove_queued(row["id"])
        queued = queued_from_row(row)
        message = NewMessage(
            role="user",
            content=queued.content,
            created_by=row["created_by"],
            model_config_id=self._usable_model(queued.model_config_id),
            reasoning_effort=queued.changes.reasoning_effort,
        )
        self._change(queued.changes)
        return self._insert([message])

    def _usable_model(self, wanted: UUID | None) -> UUID | None:
        """The model that a queued message asked for, or the default if that one is gone."""
        if wanted is None:
            return None
        table = schema.model_configs
        statement = (
            sa.select(table.c.id)
            .where(table.c.enabled.is_(True), sa.or_(table.c.id == wanted, table.c.is_default.is_(True)))
            .order_by(sa.case((table.c.id == wanted, 0), else_=1))
        )
        found: UUID | None = self._connection.execute(statement).scalars().first()
        if found is None:
            raise NoModel("the queued message's model is gone and there is no default; set one up")
        return found
