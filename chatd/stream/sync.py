"""
One watcher's view of one chat: ordered events, durable first, fragments after.

Pure planning of what a fresh snapshot means for a watcher; ``chat_events`` is the
thin loop around it. Every sync emits in a fixed order: messages, queue, status,
error, retry, preview reset. Fragments follow only within their own episode, in seq
order, and a reset always precedes the first of another.
"""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from uuid import UUID

from chatd.store import queries
from chatd.store.queries import Snapshot
from chatd.store.rows import chat_from_row, without_internals
from chatd.store.store import Store
from chatd.stream.buffer import Episode, PartBuffer
from chatd.stream.hub import Hub
from chatd.wire import (
    ErrorEvent,
    Message,
    MessageEvent,
    MessagePartEvent,
    PreviewResetEvent,
    QueueUpdateEvent,
    RetryEvent,
    RetryPayload,
    StatusEvent,
    StreamEvent,
)

__all__ = ["MAX_BATCH", "Cursor", "chat_events", "plan_fragments", "plan_sync", "public_message"]

# Events in one batch; a slow client gets the rest in the next.
MAX_BATCH = 256
# Seconds to gather fragments before they are sent: fewer, larger frames, not noticeable to people.
COALESCE_S = 0.015
# Seconds after which the versions are read again although no hint came.
POLL_S = 10.0


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
    attempt: int = 0
    seq: int = 0


def public_message(message: Message) -> Message:
    """A message as clients see it."""
    parts = tuple(without_internals(part) for part in message.content)
    return message.model_copy(update={"content": parts})


def plan_sync(cursor: Cursor, snapshot: Snapshot) -> list[StreamEvent]:
    """The events that bring the watcher from *cursor* to *snapshot*; moves the cursor."""
    row = snapshot.row
    if row["snapshot_version"] <= cursor.snapshot:
        return []
    chat_id: UUID = row["id"]
    events: list[StreamEvent] = [
        MessageEvent(chat_id=chat_id, message=public_message(message))
        for message in snapshot.messages
        if message.id > cursor.after_id
    ]
    if row["queue_version"] > cursor.queue:
        events.append(QueueUpdateEvent(chat_id=chat_id, queued_messages=tuple(snapshot.queued)))
    if row["status"] != cursor.status:
        events.append(StatusEvent(chat_id=chat_id, status=row["status"]))
    error = chat_from_row(row).last_error
    if row["status"] == "error" and error and cursor.error_history != row["history_version"]:
        events.append(ErrorEvent(chat_id=chat_id, error=error))
        cursor.error_history = row["history_version"]
    if row["retry_state_version"] > cursor.retry and row["retry_state"] is not None:
        retry = RetryPayload.model_validate(row["retry_state"])
        events.append(RetryEvent(chat_id=chat_id, retry=retry))
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


def plan_fragments(cursor: Cursor, episode: Episode | None) -> list[StreamEvent]:
    """Fragments that the watcher has not seen, if they belong to the step it knows; moves the cursor."""
    if episode is None:
        return []
    if (episode.history_version, episode.attempt) != (cursor.history, cursor.attempt):
        return []
    fresh = episode.fragments[cursor.seq : cursor.seq + MAX_BATCH]
    cursor.seq += len(fresh)
    return [
        MessagePartEvent(
            chat_id=episode.chat_id,
            role=fragment.role,
            part=without_internals(fragment.part),
            history_version=episode.history_version,
            generation_attempt=episode.attempt,
            seq=fragment.seq,
        )
        for fragment in fresh
    ]


async def chat_events(
    store: Store, hub: Hub, buffer: PartBuffer, chat_id: UUID, *, after_id: int = 0
) -> AsyncGenerator[list[StreamEvent], None]:
    """
    Batches of events for one watcher, for ever. An empty batch means "still here".

    Cancellation: the subscription is dropped.
    """
    cursor = Cursor(after_id=after_id)
    with hub.watch_chat(chat_id) as subscription:
        is_stale = True
        while True:
            events: list[StreamEvent] = []
            if is_stale:
                snapshot = await store.read(queries.snapshot_since, chat_id, cursor.history)
                events = plan_sync(cursor, snapshot)
            fragments = plan_fragments(cursor, buffer.get(chat_id))
            events += fragments
            for start in range(0, len(events), MAX_BATCH):
                yield events[start : start + MAX_BATCH]
            if len(fragments) == MAX_BATCH:
                is_stale = False
                continue
            try:
                async with asyncio.timeout(POLL_S):
                    is_stale = bool(await subscription.wait())
            except TimeoutError:
                is_stale = True
                yield []
            else:
                await asyncio.sleep(COALESCE_S)
