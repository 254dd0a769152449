"""
One watcher's view of one chat: ordered events, durable first, fragments after.

Pure planning of what a fresh snapshot means for a watcher; ``chat_events`` is the
thin loop around it. Every sync emits in a fixed order: messages (behind a reset of
the history if any was deleted), queue, status, error, action required, retry, preview
reset. Fragments follow only within their own episode, in seq order, and a reset always
precedes the first of another.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from chatd.constants import COALESCE_S, MAX_BATCH, POLL_S
from chatd.store import queries
from chatd.store.queries import Snapshot
from chatd.store.rows import chat_from_row, public_message, public_queued
from chatd.store.store import Store
from chatd.stream.buffer import Episode, PartBuffer
from chatd.stream.hub import Hub
from chatd.wire import (
    ActionRequiredEvent,
    ErrorEvent,
    HistoryResetEvent,
    MessageEvent,
    PendingCall,
    PreviewResetEvent,
    QueueUpdateEvent,
    RetryEvent,
    RetryPayload,
    StatusEvent,
    StreamEvent,
    ToolCallPart,
    ToolProgressEvent,
)

__all__ = [
    "MAX_BATCH",
    "Cursor",
    "OnlyHere",
    "PartSource",
    "chat_events",
    "pending_call",
    "plan_fragments",
    "plan_sync",
]


@dataclass(slots=True, kw_only=True)
class Cursor:
    """What one watcher has been told."""

    after_id: int = 0
    snapshot: int = -1
    history: int = 0
    queue: int = -1
    retry: int = 0
    status: str | None = None
    error_history: int | None = None
    action_history: int | None = None
    attempt: int = 0
    seq: int = 0
    progress: int = 0


def plan_sync(cursor: Cursor, snapshot: Snapshot) -> list[StreamEvent]:
    """The events that bring the watcher from *cursor* to *snapshot*; moves the cursor."""
    row = snapshot.row
    if row["snapshot_version"] <= cursor.snapshot:
        return []
    chat_id: UUID = row["id"]
    events: list[StreamEvent] = []
    if snapshot.is_reset:
        events.append(HistoryResetEvent(chat_id=chat_id))
        cursor.after_id = 0
    events += [
        MessageEvent(chat_id=chat_id, message=public_message(message))
        for message in snapshot.messages
        if message.id > cursor.after_id
    ]
    if row["queue_version"] > cursor.queue:
        events.append(
            QueueUpdateEvent(chat_id=chat_id, queued_messages=tuple(map(public_queued, snapshot.queued)))
        )
    if row["status"] != cursor.status:
        events.append(StatusEvent(chat_id=chat_id, status=row["status"]))
    events += _turn_news(cursor, snapshot)
    attempt_changed = row["generation_attempt"] not in {cursor.attempt, 0}
    if row["history_version"] > cursor.history or attempt_changed:
        events.append(PreviewResetEvent(chat_id=chat_id))
        cursor.seq = 0
    cursor.snapshot = row["snapshot_version"]
    cursor.history = row["history_version"]
    cursor.queue = row["queue_version"]
    cursor.retry = row["retry_state_version"]
    cursor.status = row["status"]
    cursor.attempt = row["generation_attempt"]
    return events


def _turn_news(cursor: Cursor, snapshot: Snapshot) -> Iterator[StreamEvent]:
    """Why the turn does not go on, each once for a history version, and the newest retry."""
    row = snapshot.row
    chat_id: UUID = row["id"]
    error = chat_from_row(row).last_error
    if row["status"] == "error" and error and cursor.error_history != row["history_version"]:
        yield ErrorEvent(chat_id=chat_id, error=error)
        cursor.error_history = row["history_version"]
    if row["status"] == "requires_action" and cursor.action_history != row["history_version"]:
        calls = tuple(pending_call(call) for call in snapshot.pending)
        yield ActionRequiredEvent(chat_id=chat_id, tool_calls=calls)
        cursor.action_history = row["history_version"]
    if row["retry_state_version"] > cursor.retry and row["retry_state"] is not None:
        yield RetryEvent(chat_id=chat_id, retry=RetryPayload.model_validate(row["retry_state"]))


def pending_call(call: ToolCallPart) -> PendingCall:
    """A call as the client that answers it is told of it."""
    return PendingCall(
        tool_call_id=call.tool_call_id,
        tool_name=call.tool_name,
        args=json.dumps(call.args or {}),
        needs_approval=call.needs_approval if call.waits_for_approval else None,
    )


def plan_fragments(cursor: Cursor, episode: Episode | None) -> list[StreamEvent]:
    """Fragments that the watcher has not seen, if they belong to the step it knows; moves the cursor."""
    if episode is None:
        return []
    if (episode.history_version, episode.attempt) != (cursor.history, cursor.attempt):
        return []
    fresh = episode.fragments[cursor.seq : cursor.seq + MAX_BATCH]
    cursor.seq += len(fresh)
    return list(fresh)


def plan_progress(cursor: Cursor, words: Sequence[ToolProgressEvent]) -> list[StreamEvent]:
    """What calls tell of themselves and the watcher has not heard; moves the cursor."""
    if words:
        cursor.progress = words[-1].seq
    return list(words)


class PartSource(Protocol):
    """Brings the fragments of chats that another process drives into this one's buffer."""

    def watching(self, chat_id: UUID, /) -> AbstractContextManager[None]:
        """Somebody watches the chat."""

    def aim(self, chat_id: UUID, worker_id: UUID | None, snapshot_version: int, /) -> None:
        """As of that version the chat is driven by *worker_id*."""


class OnlyHere:
    """There is no other process."""

    def watching(self, _: UUID, /) -> AbstractContextManager[None]:
        """Nothing to do."""
        return nullcontext()

    def aim(self, _: UUID, __: UUID | None, ___: int, /) -> None:
        """Nothing to do."""


async def chat_events(
    store: Store,
    hub: Hub,
    buffer: PartBuffer,
    chat_id: UUID,
    *,
    after_id: int = 0,
    elsewhere: PartSource = OnlyHere(),  # noqa: B008 -- a value
) -> AsyncGenerator[list[StreamEvent], None]:
    """
    Batches of events for one watcher, for ever. An empty batch means "still here".

    Cancellation: the subscription is dropped.
    """
    cursor = Cursor(after_id=after_id)
    loop = asyncio.get_running_loop()
    with hub.watch_chat(chat_id) as subscription, elsewhere.watching(chat_id):
        is_stale, gathered_until = True, 0.0
        while True:
            events: list[StreamEvent] = []
            if is_stale:
                snapshot = await store.read_shared(
                    queries.snapshot_since, chat_id, cursor.history, after_id=after_id
                )
                events = plan_sync(cursor, snapshot)
                elsewhere.aim(chat_id, snapshot.row["worker_id"], snapshot.row["snapshot_version"])
            fragments = plan_fragments(cursor, buffer.get(chat_id))
            events += fragments
            events += plan_progress(cursor, buffer.progress(chat_id, after=cursor.progress))
            for start in range(0, len(events), MAX_BATCH):
                yield events[start : start + MAX_BATCH]
            if len(fragments) == MAX_BATCH:
                is_stale = False
                continue
            if fragments:
                gathered_until = loop.time() + COALESCE_S
            try:
                async with asyncio.timeout(POLL_S):
                    is_stale = bool(await subscription.wait())
            except TimeoutError:
                is_stale = not hub.is_polled
                yield []
            else:
                # The first fragment goes out at once, those that follow it together; rows never wait.
                if not is_stale and (pause := gathered_until - loop.time()) > 0:
                    await asyncio.sleep(pause)
