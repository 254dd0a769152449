"""
The one way to write a chat's execution state.

``ChatTx`` is a chat's row, locked inside the caller's transaction. Its methods are
the transitions of ``chatd.state.MATRIX``. The snapshot version rises once per
transaction, whatever happens in it; history, queue and retry versions follow it
when their rows change.

Invariant: after ``flush`` the row classifies into a state that the matrix allows.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from chatd.errors import LeaseLost, Misuse, NotFound, QueueFull
from chatd.state import ChatState, Transition, check, classify
from chatd.store import schema
from chatd.store.rows import (
    NewMessage,
    dump_parts,
    local_calls,
    message_from_row,
    message_values,
    queued_from_row,
)
from chatd.wire import ChatError, Message, Part, QueuedMessage, RetryPayload, ToolCallPart, ToolResultPart

__all__ = ["MAX_QUEUED", "STOPPED", "ChatTx", "Fence", "SendResult", "cancelled_result"]

# Messages that may wait in one chat; one more is refused.
MAX_QUEUED = 20
# What the model reads in place of a result that a stop cut off.
STOPPED = "The user stopped the turn before this call was answered."


class Fence:
    """What a runner believed when it began; re-checked in the writing transaction."""

    __slots__ = ("history_version", "runner_id", "status")

    def __init__(self, *, runner_id: UUID, history_version: int, status: str) -> None:
        self.runner_id = runner_id
        self.history_version = history_version
        self.status = status


class SendResult:
    """Rows that a send made: *messages* entered the history, *queued* waits."""

    __slots__ = ("messages", "queued")

    def __init__(self, messages: list[Message], queued: QueuedMessage | None) -> None:
        self.messages = messages
        self.queued = queued


def cancelled_result(call: ToolCallPart, reason: str) -> ToolResultPart:
    """The synthetic answer of a call that will get no other."""
    return ToolResultPart(
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        result={"error": reason},
        is_error=True,
    )


class ChatTx:
    """A locked chat; make it with ``lock``, end it with ``flush``."""

    def __init__(self, connection: sa.Connection, row: sa.RowMapping, *, now: datetime, queued: int) -> None:
        self._connection = connection
        self._now = now
        self._queued = queued
        self._values: dict[str, Any] = dict(row)
        self._allowed: frozenset[ChatState] | None = None
        self.chat_id: UUID = row["id"]
        self.snapshot: int = row["snapshot_version"] + 1
        self._values["snapshot_version"] = self.snapshot

    @classmethod
    def lock(cls, connection: sa.Connection, chat_id: UUID, *, now: datetime) -> "ChatTx":
        """
        Read and lock the chat.

        Raises:
            NotFound: there is no such chat.

        Transaction: joined.
        """
        statement = sa.select(schema.chats).where(schema.chats.c.id == chat_id).with_for_update()
        row = connection.execute(statement).mappings().one_or_none()
        if row is None:
            raise NotFound("no such chat")
        count = sa.select(sa.func.count()).where(schema.queued_messages.c.chat_id == chat_id)
        return cls(connection, row, now=now, queued=connection.execute(count).scalar_one())

    @property
    def state(self) -> ChatState:
        """The state as it is now, inside the transaction."""
        return classify(self._values["status"], archived=self._values["archived"], has_queue=self._queued > 0)

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

    # -- transitions ---------------------------------------------------------

    def insert_first(self, message: NewMessage) -> Message:
        """The message a chat is created with."""
        self._allowed = check(Transition.CREATE, ChatState.NONE)
        return self._insert([message])[0]

    def send(self, content: tuple[Part, ...], *, created_by: UUID, interrupt: bool = False) -> SendResult:
        """
        Add a user message: into the history when idle, else to the queue's tail.

        Raises:
            QueueFull: ``MAX_QUEUED`` messages wait already.
        """
        self._begin(Transition.SEND_INTERRUPT if interrupt else Transition.SEND)
        message = NewMessage(role="user", content=content, created_by=created_by)
        idle = self["status"] in {"waiting", "error"}
        if idle and self._queued == 0:
            rows = self._close_calls("The user sent a new message before this call was answered.")
            rows += self._insert([message])
            self._set_running()
            return SendResult(rows, None)
        rows = []
        if idle:
            # The head leaves before the new one comes, so a full queue can't lock the chat in its error.
            rows = self._close_calls("The user sent a new message before this call was answered.")
            rows += self._promote_head()
            self._set_running()
        queued = self._enqueue(message)
        if interrupt and not idle and self["status"] == "running":
            self._values["status"] = "interrupting"
        return SendResult(rows, queued)

    def interrupt(self) -> None:
        """Ask the runner to commit what it has and stop."""
        self._begin(Transition.INTERRUPT)
        self._values["status"] = "interrupting"

    def record_attempt(self) -> int:
        """Count one more try of the model call; returns its number."""
        self._begin(Transition.RECORD_ATTEMPT)
        self._values["generation_attempt"] += 1
        self._set_retry(None)
        attempt: int = self._values["generation_attempt"]
        return attempt

    def record_retry(self, payload: RetryPayload) -> None:
        """Tell watchers that the model call failed and when it is tried again."""
        self._begin(Transition.RECORD_RETRY)
        self._set_retry(payload.model_dump(mode="json"))

    def commit_step(self, messages: list[NewMessage]) -> list[Message]:
        """Append what one step gave."""
        self._begin(Transition.COMMIT_STEP)
        if not messages:
            raise Misuse("a step without messages is not committed")
        return self._insert(messages)

    def finish_turn(self) -> list[Message]:
        """End the turn; a backlog's head starts the next one at once."""
        self._begin(Transition.FINISH_TURN)
        return self._settle("The turn ended before this call was answered.")

    def finish_error(self, error: ChatError) -> None:
        """End the turn with an error that clients see."""
        self._begin(Transition.FINISH_ERROR)
        self._values["status"] = "error"
        self._set_retry(None)
        self._values["last_error"] = error.model_dump(mode="json", exclude_none=True)
        self._disown()

    def finish_interruption(self, partial: list[NewMessage]) -> list[Message]:
        """Commit the partial answer, close every open call, then go idle or on to the backlog."""
        self._begin(Transition.FINISH_INTERRUPTION)
        rows = self._insert(partial)
        return rows + self._settle(STOPPED)

    def acquire(self, *, worker_id: UUID, runner_id: UUID) -> None:
        """Take ownership, blindly: the caller judged that nobody lives there."""
        self._values["worker_id"] = worker_id
        self._values["runner_id"] = runner_id
        self._connection.execute(
            schema.heartbeats.insert().values(
                chat_id=self.chat_id, runner_id=runner_id, heartbeat_at=self._now
            )
        )

    def abandon(self) -> None:
        """Give ownership up."""
        self._disown()

    # -- pieces ----------------------------------------------------------------

    def _begin(self, transition: Transition) -> None:
        self._allowed = check(transition, self.state)

    def _settle(self, reason: str) -> list[Message]:
        rows = self._close_calls(reason)
        if self._queued:
            rows += self._promote_head()
            self._set_running()
        else:
            self._values["status"] = "waiting"
            self._set_retry(None)
            self._disown()
        return rows

    def _set_running(self) -> None:
        self._values["status"] = "running"
        self._values["last_error"] = None
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

    def _insert(self, messages: list[NewMessage]) -> list[Message]:
        if not messages:
            return []
        self._insert_files(messages)
        rows = [self._insert_one(message) for message in messages]
        for message in messages:
            if message.model_config_id is not None:
                self._values["last_model_config_id"] = message.model_config_id
        self._values["history_version"] = self.snapshot
        self._values["generation_attempt"] = 0
        self._set_retry(None)
        return rows

    def _insert_one(self, message: NewMessage) -> Message:
        values = message_values(message, chat_id=self.chat_id, revision=self.snapshot, now=self._now)
        statement = schema.messages.insert().values(values).returning(schema.messages)
        return message_from_row(self._connection.execute(statement).mappings().one())

    def _insert_files(self, messages: list[NewMessage]) -> None:
        values = [
            {
                "id": file.id,
                "owner_id": self["owner_id"],
                "chat_id": self.chat_id,
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

    def _enqueue(self, message: NewMessage) -> QueuedMessage:
        if self._queued >= MAX_QUEUED:
            raise QueueFull(f"{MAX_QUEUED} messages wait in this chat already; let it catch up or stop it")
        statement = (
            schema.queued_messages.insert()
            .values(
                chat_id=self.chat_id,
                created_by=message.created_by,
                content=dump_parts(message.content),
                created_at=self._now,
            )
            .returning(schema.queued_messages)
        )
        row = self._connection.execute(statement).mappings().one()
        self._queued += 1
        self._values["queue_version"] = self.snapshot
        self._values["updated_at"] = self._now
        return queued_from_row(row)

    def _promote_head(self) -> list[Message]:
        table = schema.queued_messages
        statement = sa.select(table).where(table.c.chat_id == self.chat_id).order_by(table.c.id).limit(1)
        row = self._connection.execute(statement).mappings().one()
        deleted = self._connection.execute(table.delete().where(table.c.id == row["id"]))
        if deleted.rowcount != 1:
            raise Misuse("the promoted message was not in the queue")
        self._queued -= 1
        self._values["queue_version"] = self.snapshot
        content = queued_from_row(row).content
        return self._insert([NewMessage(role="user", content=content, created_by=row["created_by"])])

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
            message = message_from_row(row)
            answered |= {p.tool_call_id for p in message.content if isinstance(p, ToolResultPart)}
            if message.role == "assistant":
                return [c for c in local_calls(message.content) if c.tool_call_id not in answered]
        return []

    def _close_calls(self, reason: str) -> list[Message]:
        results = [cancelled_result(call, reason) for call in self.open_calls()]
        return self._insert([NewMessage(role="tool", content=(result,)) for result in results])

    def flush(self) -> sa.RowMapping:
        """
        Write the row and read it back.

        Raises:
            Misuse: the result is no state that the matrix allows: our bug, rolled back.
        """
        columns = {name: value for name, value in self._values.items() if name not in {"id", "created_at"}}
        mine = schema.chats.c.id == self.chat_id
        self._connection.execute(schema.chats.update().where(mine).values(columns))
        row = self._connection.execute(sa.select(schema.chats).where(mine)).mappings().one()
        if self._allowed is not None and self.state not in self._allowed:
            raise Misuse(f"the chat ended in {self.state}, allowed were {sorted(self._allowed)}")
        return row
