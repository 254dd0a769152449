"""Planning of one watcher's events, and what a client makes of them."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from chatd.store.queries import Snapshot
from chatd.store.rows import public_message
from chatd.stream.buffer import Episode, PartBuffer
from chatd.stream.sync import MAX_BATCH, Cursor, plan_fragments, plan_sync
from chatd.wire import Message, QueuedMessage, StreamEvent, TextPart

CHAT = UUID(int=1)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
RETRY = {"attempt": 1, "delay_ms": 5, "error": "x", "kind": "timeout", "retrying_at": NOW.isoformat()}
FRESH: dict[str, Any] = {
    "id": CHAT,
    "owner_id": CHAT,
    "title": "t",
    "status": "running",
    "mode": None,
    "parent_chat_id": None,
    "root_chat_id": None,
    "last_model_config_id": CHAT,
    "last_reasoning_effort": None,
    "agent_id": None,
    "last_error": None,
    "archived": False,
    "context_aggregate_hash": None,
    "context_error": None,
    "context_dirty_since": None,
    "pin_order": 0,
    "labels": {},
    "mcp_server_ids": None,
    "plan_mode": None,
    "client_type": "api",
    "worker_id": None,
    "created_at": NOW,
    "updated_at": NOW,
    "retry_state": None,
    "snapshot_version": 1,
    "history_version": 1,
    "queue_version": 0,
    "retry_state_version": 0,
    "generation_attempt": 0,
}


def message(number: int, **metadata: str) -> Message:
    """A visible message."""
    part = TextPart(text=f"m{number}", provider_metadata=metadata or None)
    return Message(id=number, chat_id=CHAT, role="user", content=(part,), created_at=NOW)


def queued(number: int) -> QueuedMessage:
    """A waiting message."""
    return QueuedMessage(id=number, chat_id=CHAT, content=(TextPart(text=f"q{number}"),), created_at=NOW)


def snapshot(*messages: Message, queue: tuple[QueuedMessage, ...] = (), **columns: Any) -> Snapshot:
    """What the database says."""
    row = cast("sa.RowMapping", FRESH | columns)
    return Snapshot(row=row, messages=list(messages), queued=list(queue))


def kinds(events: list[StreamEvent]) -> list[str]:
    """The events' types."""
    return [event.type for event in events]


@pytest.mark.past_bug(9)
def test_a_sync_emits_in_a_fixed_order() -> None:
    """Spec 5.3: messages, queue, status, error, retry, preview reset."""
    state = snapshot(
        message(1),
        message(2),
        queue=(queued(1),),
        status="error",
        last_error={"message": "no"},
        retry_state=RETRY,
        retry_state_version=1,
        generation_attempt=1,
    )
    events = plan_sync(Cursor(), state)

    assert kinds(events) == [
        "message",
        "message",
        "queue_update",
        "status",
        "error",
        "retry",
        "preview_reset",
    ]


@pytest.mark.parametrize("version", [1, 0])
@pytest.mark.past_bug(10)
def test_a_snapshot_that_is_not_newer_does_nothing(version: int) -> None:
    """Spec 5.3: stale and repeated hints only cost a read."""
    cursor = Cursor()
    plan_sync(cursor, snapshot(message(1)))
    before = Cursor(**{name: getattr(cursor, name) for name in Cursor.__slots__})
    events = plan_sync(cursor, snapshot(message(2), snapshot_version=version, status="waiting"))

    assert events == []
    assert cursor == before


def test_messages_up_to_after_id_are_not_sent_again() -> None:
    """Spec 5.6: a client resumes behind the newest message it has."""
    cursor = Cursor(after_id=2)
    events = plan_sync(cursor, snapshot(message(1), message(2), message(3)))

    assert [event.message.id for event in events if event.type == "message"] == [3]
    assert cursor.history == 1


def step(cursor: Cursor, version: int, **columns: Any) -> list[str]:
    """Sync to a next version; the types of its events."""
    return kinds(plan_sync(cursor, snapshot(snapshot_version=version, **columns)))


def test_only_what_changed_is_told() -> None:
    """Spec 5.3: queue, status, error, retry and reset each follow their own version."""
    cursor = Cursor()
    retry = {"retry_state": RETRY, "retry_state_version": 4, "generation_attempt": 1}
    error = {"status": "error", "last_error": {"message": "no"}, "history_version": 7}

    assert step(cursor, 1) == ["queue_update", "status", "preview_reset"]
    assert step(cursor, 2) == []
    assert step(cursor, 3, generation_attempt=1) == ["preview_reset"]
    assert step(cursor, 4, **retry) == ["retry"]
    assert step(cursor, 5, generation_attempt=2, retry_state_version=5) == ["preview_reset"]
    assert step(cursor, 6, generation_attempt=2, retry_state_version=5, queue_version=6) == ["queue_update"]
    assert step(cursor, 7, queue_version=6, **error) == ["status", "error", "preview_reset"]
    assert step(cursor, 8, queue_version=6, **error) == []
    assert step(cursor, 9, queue_version=6, history_version=9) == ["status", "preview_reset"]


@pytest.mark.past_bug(15)
def test_messages_leave_without_internals() -> None:
    """Spec 4.3: the bug was that REST stripped and the live stream did not."""
    (event, *_) = plan_sync(Cursor(), snapshot(message(1, signature="s")))
    episode = Episode(chat_id=CHAT, history_version=1, attempt=0)
    PartBuffer(lambda _: None).add(episode, "assistant", message(1, signature="s").content[0])
    fragments = plan_fragments(Cursor(history=1), episode)

    assert event.type == "message"
    assert event.message == message(1) == public_message(message(1, signature="s"))
    assert "signature" not in fragments[0].model_dump_json()


@pytest.mark.parametrize(("history", "attempt"), [(2, 1), (1, 2), (0, 0)])
@pytest.mark.past_bug(7)
def test_fragments_of_another_episode_are_not_shown(history: int, attempt: int) -> None:
    """Spec 5.3: a part is accepted only when history and attempt match."""
    episode = Episode(chat_id=CHAT, history_version=history, attempt=attempt)
    PartBuffer(lambda _: None).add(episode, "assistant", TextPart(text="x"))

    assert plan_fragments(Cursor(history=1, attempt=1), episode) == []
    assert plan_fragments(Cursor(history=1, attempt=1), None) == []


@pytest.mark.past_bug(8)
def test_fragments_come_once_in_order_and_in_bounded_batches() -> None:
    """Spec 5.3: seq = last + 1; at most 256 events a frame."""
    episode = Episode(chat_id=CHAT, history_version=1, attempt=1)
    buffer, cursor = PartBuffer(lambda _: None), Cursor(history=1, attempt=1)
    for _ in range(MAX_BATCH + 5):
        buffer.add(episode, "assistant", TextPart(text="x"))
    first, second, third = (plan_fragments(cursor, episode) for _ in range(3))

    numbers = [event.seq for event in first + second if event.type == "message_part"]
    assert numbers == list(range(1, MAX_BATCH + 6))
    assert (len(first), third) == (MAX_BATCH, [])


@dataclass
class Client:
    """What a page keeps of a stream; ``clear`` is what it does when it reconnects."""

    messages: dict[int, str] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    queue: tuple[str, ...] = ()
    status: str = ""
    preview: list[str] = field(default_factory=list)

    def take(self, event: StreamEvent) -> None:
        """Reduce one event."""
        match event.type:
            case "message":
                assert event.message.id not in self.messages
                self.messages[event.message.id] = event.message.content[0].text  # type: ignore[union-attr]
                self.order.append(event.message.id)
            case "message_part":
                assert event.seq == len(self.preview) + 1
                self.preview.append(event.part.text)  # type: ignore[union-attr]
            case "preview_reset":
                self.preview = []
            case "queue_update":
                self.queue = tuple(row.content[0].text for row in event.queued_messages)  # type: ignore[union-attr]
            case "status":
                self.status = event.status


@dataclass
class Server:
    """A chat that only counts."""

    version: int = 1
    history: int = 1
    queue_version: int = 0
    attempt: int = 0
    status: str = "running"
    revisions: dict[int, int] = field(default_factory=lambda: {1: 1})
    queue: list[str] = field(default_factory=list)
    buffer: PartBuffer = field(default_factory=lambda: PartBuffer(lambda _: None))
    episode: Episode | None = None

    def act(self, action: str) -> None:
        """Commit one transaction, or stream one fragment."""
        if action == "fragment":
            if self.episode is not None:
                text = TextPart(text=f"{self.history}/{self.attempt}/{len(self.episode.fragments)}")
                self.buffer.add(self.episode, "assistant", text)
            return
        if action == "forget":
            self.buffer.close(CHAT)
            self.episode = None
            return
        self.version += 1
        if action == "message":
            self.history, self.attempt = self.version, 0
            self.revisions[len(self.revisions) + 1] = self.version
        elif action == "attempt":
            self.attempt += 1
            self.episode = self.buffer.open(CHAT, history_version=self.history, attempt=self.attempt)
        elif action == "queue":
            self.queue_version = self.version
            self.queue = [*self.queue[-2:], f"q{self.version}"]
        else:
            self.status = "waiting" if self.status == "running" else "running"

    def read(self, since: int) -> Snapshot:
        """What ``snapshot_since`` would give."""
        messages = [message(number) for number, revision in self.revisions.items() if revision > since]
        rows = tuple(
            QueuedMessage(id=number, chat_id=CHAT, content=(TextPart(text=text),), created_at=NOW)
            for number, text in enumerate(self.queue)
        )
        return snapshot(
            *messages,
            queue=rows,
            snapshot_version=self.version,
            history_version=self.history,
            queue_version=self.queue_version,
            generation_attempt=self.attempt,
            status=self.status,
        )


ACTIONS = ("message", "attempt", "queue", "status", "fragment", "forget")
WATCHER = ("sync", "stale sync", "fragments", "reconnect")


@given(st.lists(st.sampled_from(ACTIONS + WATCHER), max_size=60))
def test_any_interleaving_ends_with_exactly_the_durable_messages(script: list[str]) -> None:
    """Spec 5: lost, repeated and late hints only add latency; nothing is doubled, nothing is lost."""
    server, client, cursor = Server(), Client(), Cursor()
    stale = server.read(0)
    for action in [*script, "sync", "fragments"]:
        events: list[StreamEvent] = []
        if action in ACTIONS:
            if action == "message":
                stale = server.read(cursor.history)
            server.act(action)
        elif action == "sync":
            events = plan_sync(cursor, server.read(cursor.history))
        elif action == "stale sync" and stale.row["snapshot_version"] <= cursor.snapshot:
            events = plan_sync(cursor, stale)
            assert events == []
        elif action == "fragments":
            events = plan_fragments(cursor, server.buffer.get(CHAT))
        elif action == "reconnect":
            cursor = Cursor(after_id=max(client.messages, default=0))
            client.preview = []
        for event in events:
            client.take(event)

    assert client.order == sorted(server.revisions)
    assert client.messages == {number: f"m{number}" for number in server.revisions}
    assert (client.status, client.queue) == (server.status, tuple(server.queue))
    current = server.buffer.get(CHAT)
    is_current = current is not None and current.history_version == server.history
    if is_current and current is not None and current.attempt == server.attempt:
        assert client.preview == [fragment.part.text for fragment in current.fragments]  # type: ignore[union-attr]
