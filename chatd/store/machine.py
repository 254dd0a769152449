"""
The one way to write a chat's execution state: the transitions of ``chatd.state.MATRIX``.

``ChatTx`` is a locked chat with a method for each of them, used inside
``Store.transition``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

import sqlalchemy as sa

from chatd.constants import MAX_QUEUED, REQUIRES_ACTION_S
from chatd.errors import BadRequest, Misuse, NotFound, ResultsMismatch, TransitionNotAllowed
from chatd.state import ChatState, Transition, check
from chatd.store import schema
from chatd.store.boundaries import cleared_boundary
from chatd.store.locked import Fence, LockedChat, cancelled_result
from chatd.store.rows import NewMessage, notice_message
from chatd.store.uploads import link_files
from chatd.wire import (
    ChatError,
    Message,
    Part,
    QueuedMessage,
    RetryPayload,
    TextPart,
    ToolResultPart,
    TurnChanges,
)

__all__ = ["MAX_QUEUED", "STOPPED", "ChatTx", "EditResult", "Fence", "SendResult", "cancelled_result"]

# What the model reads in place of a result that never came, by what ended the wait.
STOPPED = "The user stopped the turn before this call was answered."
SENT = "The user sent a new message before this call was answered."
EDITED = "The user changed the conversation before this call was answered."
ENDED = "The turn ended before this call was answered."
REFUSED = "The user did not allow this call; it was not run."
LATE = "The client did not answer this call in time."
RECONCILED = "The chat was repaired before this call was answered."
# A message that changes nothing of its chat.
UNCHANGED = TurnChanges()


@dataclass(frozen=True, slots=True)
class SendResult:
    """Rows that a send made: *messages* entered the history, *queued* waits."""

    messages: list[Message]
    queued: QueuedMessage | None


@dataclass(frozen=True, slots=True)
class EditResult:
    """Rows that an edit made, and the ids of those that it took out of sight."""

    messages: list[Message]
    deleted_ids: list[int]


class ChatTx(LockedChat):
    """A locked chat and its moves."""

    # -- people ------------------------------------------------------------------

    def insert_first(self, message: NewMessage, *, instructions: str = "") -> Message:
        """The message a chat is created with, behind what its model is told first."""
        self._allowed = check(Transition.CREATE, ChatState.NONE)
        content = link_files(self, message.content)
        rows = [replace(message, content=content)]
        if instructions:
            told = (TextPart(text=instructions),)
            rows.insert(0, NewMessage(role="system", content=told, visibility="model"))
        return self._insert(rows)[-1]

    def send(
        self,
        content: tuple[Part, ...],
        *,
        created_by: UUID,
        interrupt: bool = False,
        steer: bool = False,
        model_config_id: UUID | None = None,
        changes: TurnChanges = UNCHANGED,
    ) -> SendResult:
        """
        Add a user message: into the history when idle, else to the queue's tail.

        With *steer* the turn under way takes it in before its next model call; if there is
        none any more, it waits like others. Its model, and what else it changes of the chat,
        hold from when it enters the history.

        Raises:
            QueueFull: ``MAX_QUEUED`` messages wait already.
        """
        self._begin(Transition.SEND_INTERRUPT if interrupt else Transition.SEND)
        message = NewMessage(
            role="user",
            content=link_files(self, content),
            created_by=created_by,
            model_config_id=model_config_id,
            reasoning_effort=changes.reasoning_effort,
        )
        if self["status"] not in {"waiting", "error"}:
            return self._send_busy(message, changes, interrupt=interrupt, steer=steer)
        self._values["compaction_requested_at"] = None
        rows = self._close_calls(SENT)
        queued = None
        if self._queued:
            # The head leaves before the new one comes, so a full queue can't lock the chat in its error.
            rows += self._promote(self._queued_row())
            queued = self._enqueue(message, changes, steer=steer)
        else:
            self._change(changes)
            rows += self._insert([message])
        self._set_running()
        return SendResult(rows, queued)

    def _send_busy(
        self, message: NewMessage, changes: TurnChanges, *, interrupt: bool, steer: bool
    ) -> SendResult:
        queued = self._enqueue(message, changes, steer=steer)
        rows: list[Message] = []
        if interrupt and self["status"] == "running":
            self._values["status"] = "interrupting"
        elif interrupt and self["status"] == "requires_action":
            rows = self._resume(SENT)
        return SendResult(rows, queued)

    def edit(
        self,
        message_id: int,
        content: tuple[Part, ...],
        *,
        model_config_id: UUID | None = None,
        changes: TurnChanges = UNCHANGED,
    ) -> EditResult:
        """
        Say a user's message anew: it and everything after it are deleted (softly), the queue too.

        Model and effort stay those of the message, unless others are given.

        Raises:
            NotFound: the chat has no such message (any more).
            BadRequest: it is not a user's.
        """
        self._begin(Transition.EDIT)
        target = self._message_row(message_id)
        if target["role"] != "user" or target["compressed"]:
            raise BadRequest("only a user's message can be edited")
        deleted_ids = self._delete_from(message_id)
        rows = self._close_calls(EDITED)
        message = NewMessage(
            role="user",
            content=link_files(self, content),
            created_by=target["created_by"],
            visibility=target["visibility"],
            model_config_id=model_config_id or target["model_config_id"],
            reasoning_effort=changes.reasoning_effort
            if "reasoning_effort" in changes.model_fields_set
            else target["reasoning_effort"],
        )
        self._change(changes)
        rows += self._insert([message])
        self._drop_queue()
        self._disown()
        self._set_running()
        return EditResult(rows, deleted_ids)

    def _message_row(self, message_id: int) -> sa.RowMapping:
        table = schema.messages
        mine = (table.c.chat_id == self.chat_id) & (table.c.id == message_id) & table.c.deleted.is_(False)
        row = self._connection.execute(sa.select(table).where(mine)).mappings().one_or_none()
        if row is None or row["visibility"] == "model":
            raise NotFound("no such message in this chat")
        return row

    def _drop_queue(self) -> None:
        if self._queued:
            mine = schema.queued_messages.c.chat_id == self.chat_id
            self._connection.execute(schema.queued_messages.delete().where(mine))
            self._touch_queue(-self._queued)

    def delete_queued(self, queued_id: int) -> None:
        """
        Take a waiting message back.

        Raises:
            NotFound: it does not wait (any more).
        """
        self._begin(Transition.DELETE_QUEUED)
        self._remove_queued(self._queued_row(queued_id)["id"])

    def promote_queued(self, queued_id: int) -> list[Message]:
        """
        Let a waiting message be next: behind the interrupted answer of a busy chat, else at once.

        Raises:
            NotFound: it does not wait (any more).
        """
        self._begin(Transition.PROMOTE_QUEUED)
        row = self._queued_row(queued_id)
        if self["status"] in {"running", "interrupting"}:
            head = self._queued_row()["position"]
            table = schema.queued_messages
            if row["position"] != head:
                first = table.update().where(table.c.id == queued_id).values(position=head - 1)
                self._connection.execute(first)
                self._touch_queue(0)
            self._values["status"] = "interrupting"
            return []
        rows = self._close_calls(SENT)
        rows += self._promote(row)
        self._set_running()
        return rows

    def interrupt(self) -> list[Message]:
        """Ask the runner to commit what it has and stop; a wait for the client's results ends at once."""
        self._begin(Transition.INTERRUPT)
        if self["status"] == "requires_action":
            return self._resume(STOPPED)
        self._values["status"] = "interrupting"
        return []

    def complete_requires_action(self, results: Sequence[ToolResultPart]) -> list[Message]:
        """
        Take the client's answers to its calls; the turn goes on.

        Raises:
            ResultsMismatch: not exactly one result for each pending call.
        """
        self._begin(Transition.COMPLETE_REQUIRES_ACTION)
        calls = {call.tool_call_id: call for call in self.open_dynamic_calls()}
        given = [result.tool_call_id for result in results]
        if sorted(given) != sorted(calls):
            raise ResultsMismatch(
                f"results are wanted for exactly {sorted(calls)}, given were {sorted(given)}"
            )
        by_id = {result.tool_call_id: result for result in results}
        allowed = [
            call_id
            for call_id, call in calls.items()
            if call.waits_for_approval and by_id[call_id].result == {"approved": True}
        ]
        self._allow_calls(allowed)
        named = [
            cancelled_result(call, REFUSED)
            if call.waits_for_approval
            else by_id[call_id].model_copy(update={"tool_name": call.tool_name})
            for call_id, call in calls.items()
            if call_id not in allowed
        ]
        rows = self._insert([NewMessage(role="tool", content=(result,)) for result in named])
        self._set_running()
        return rows

    def request_compaction(self) -> None:
        """Ask for a summary of the history before anything else is done."""
        self._begin(Transition.REQUEST_COMPACTION)
        self._values["compaction_requested_at"] = self._now
        self._touch_history()
        self._disown()
        self._set_running()

    def clear_context(self) -> list[Message]:
        """Let the model begin anew; people keep seeing what was."""
        self._begin(Transition.CLEAR_CONTEXT)
        rows = self._close_calls(ENDED)
        rows += self._insert(cleared_boundary())
        self._values["status"] = "waiting"
        self._values["last_error"] = None
        self._values["updated_at"] = self._now
        return rows

    def archive(self) -> None:
        """Put the chat away; its pin is lost."""
        self._begin(Transition.ARCHIVE)
        self._values["archived"] = True
        self._values["pin_order"] = 0
        self._values["updated_at"] = self._now

    def unarchive(self) -> None:
        """Take the chat out again."""
        self._begin(Transition.UNARCHIVE)
        self._values["archived"] = False
        self._values["updated_at"] = self._now

    def reconcile(self) -> list[Message]:
        """Lead a chat in no known state to an error that explains itself."""
        found = f"status {self['status']!r}, archived {self['archived']}, {self._queued} queued"
        self._begin(Transition.RECONCILE)
        rows = self._close_calls(RECONCILED)
        self._values["archived"] = False
        error = ChatError(message="This chat was in no valid state and was repaired.", detail=found)
        self._fail(error)
        return rows

    # -- workers -----------------------------------------------------------------

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

    def has_steered(self) -> bool:
        """Whether messages wait for the next model call."""
        return bool(self._queued) and bool(self._steered_rows())

    def take_steered(self) -> list[Message]:
        """Put the messages that wait for the next model call into the history, in order; the turn goes on."""
        self._begin(Transition.TAKE_STEERED)
        return [message for row in self._steered_rows() for message in self._promote(row)]

    def commit_step(self, messages: Sequence[NewMessage]) -> list[Message]:
        """Append what one step gave."""
        self._begin(Transition.COMMIT_STEP)
        if not messages:
            raise Misuse("a step without messages is not committed")
        return self._insert(messages)

    def set_aside(self, changes: Mapping[int, tuple[Part, ...]], note: str) -> list[Message]:
        """
        Put other content in place of what a vendor refuses, and tell people so.

        What was there stays in the note, where nobody sees it.
        """
        self._begin(Transition.COMMIT_STEP)
        kept = {str(message_id): self._content_of(message_id) for message_id in changes}
        self._rewrite(changes)
        return self._insert([notice_message(note, metadata={"set_aside": kept})])

    def enter_requires_action(self) -> None:
        """Wait for the client's results; nobody needs to own the chat meanwhile."""
        self._begin(Transition.ENTER_REQUIRES_ACTION)
        if not self.open_dynamic_calls():
            raise Misuse("no call waits for the client")
        self._values["status"] = "requires_action"
        self._values["requires_action_deadline_at"] = self._now + timedelta(seconds=REQUIRES_ACTION_S)
        self._set_retry(None)
        self._disown()

    def cancel_requires_action(self) -> list[Message]:
        """The client's time is over: its calls get errors, and the turn goes on."""
        self._begin(Transition.CANCEL_REQUIRES_ACTION)
        if not self.open_dynamic_calls():
            raise TransitionNotAllowed("no call waits for the client")
        return self._resume(LATE)

    def finish_turn(self) -> list[Message]:
        """End the turn; a backlog's head starts the next one at once."""
        self._begin(Transition.FINISH_TURN)
        return self._settle(ENDED)

    def finish_error(self, error: ChatError) -> None:
        """End the turn with an error that clients see."""
        self._begin(Transition.FINISH_ERROR)
        self._fail(error)

    def finish_interruption(self, partial: Sequence[NewMessage]) -> list[Message]:
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

    # -- pieces ------------------------------------------------------------------

    def _resume(self, reason: str) -> list[Message]:
        """From waiting for the client back to running, its calls answered by an error."""
        rows = self._close_calls(reason)
        self._set_running()
        return rows

    def _settle(self, reason: str) -> list[Message]:
        rows = self._close_calls(reason)
        if self._queued:
            rows += self._promote(self._queued_row())
            self._set_running()
        else:
            self._values["status"] = "waiting"
            self._set_retry(None)
            self._disown()
        return rows

    def _fail(self, error: ChatError) -> None:
        self._values["status"] = "error"
        self._values["requires_action_deadline_at"] = None
        self._set_retry(None)
        self._values["last_error"] = error.model_dump(mode="json", exclude_none=True)
        self._disown()
