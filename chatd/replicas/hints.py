"""
Hints between replicas, over PostgreSQL's LISTEN and NOTIFY: which chats and links changed.

Lossy by design. A hint that gets lost costs time, nothing else: after every gap, and now and then,
``Poller`` compares versions. They are sent after the commit from a connection of their own, many at
once, so that a transaction neither waits for NOTIFY's lock nor fails by its limit of 8,000 bytes.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, get_args
from uuid import UUID

import psycopg
import structlog

from chatd.constants import HINT_PROBE_S, HINT_SILENCE_S
from chatd.replicas.membership import Membership
from chatd.store.store import Notice
from chatd.stream.hub import Hub, Topic
from chatd.watch_wire import WatchKind

__all__ = ["CHANNEL", "MAX_PAYLOAD_BYTES", "Hint", "Hints", "pack_hints", "read_hints"]

# Its last part is the version of what is said there: old and new code run side by side.
CHANNEL = "chatd_hints_1"
# PostgreSQL refuses 8,000 bytes and more.
MAX_PAYLOAD_BYTES = 7_900
# Hints that wait to be sent; when more come, the others are told to look at everything.
MAX_WAITING = 4_096
# Seconds that hints are gathered.
GATHER_S = 0.005
# Seconds before a lost connection is made again.
RECONNECT_S = 0.5

KINDS: frozenset[WatchKind] = frozenset(get_args(WatchKind))
TOPICS: tuple[Topic, ...] = get_args(Topic)

log = structlog.get_logger("chatd.hints")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """
    A chat changed (*is_runnable*: and wants a worker), or, without an owner, a workspace's link did.

    *kinds*: what of the chat, for those who watch its owner's list.
    """

    id: UUID
    owner_id: UUID | None = None
    is_runnable: bool = False
    kinds: frozenset[WatchKind] = frozenset()


def pack_hints(sender: UUID, hints: list[Hint], *, limit: int = MAX_PAYLOAD_BYTES) -> Iterator[str]:
    """Payloads of at most *limit* bytes that say all *hints*; none says only that *sender* lives."""
    head = f'{{"from":"{sender}","hints":['
    items: list[str] = []
    size = len(head) + 2
    for hint in hints:
        item = json.dumps(
            [
                hint.id.hex,
                hint.owner_id.hex if hint.owner_id else None,
                int(hint.is_runnable),
                sorted(hint.kinds),
            ],
            separators=(",", ":"),
        )
        if items and size + len(item) + 1 > limit:
            yield head + ",".join(items) + "]}"
            items, size = [], len(head) + 2
        items.append(item)
        size += len(item) + 1
    yield head + ",".join(items) + "]}"


def read_hints(payload: str) -> tuple[UUID | None, list[Hint] | None]:
    """Who sent *payload*, and what it says; None: look at everything (also for what makes no sense)."""
    try:
        said = json.loads(payload)
        sender, items = UUID(said["from"]), said["hints"]
        if items is None:
            return sender, None
        return sender, [
            Hint(
                id=UUID(one),
                owner_id=UUID(owner) if owner else None,
                is_runnable=bool(wants),
                kinds=KINDS & frozenset(map(str, kinds)),
            )
            for one, owner, wants, kinds in items
        ]
    except (ValueError, TypeError, KeyError, AttributeError):
        return None, None


class Hints:
    """
    One process's end.

    Args:
        connect: options of psycopg's ``connect``.
        hub: whose listeners hear of others' changes.
        look: a gap came to its end: everything may have changed.
    """

    def __init__(
        self, connect: dict[str, Any], membership: Membership, hub: Hub, *, look: Callable[[], None]
    ) -> None:
        self._connect = connect
        self._membership = membership
        self._hub = hub
        self._look = look
        self._waiting: dict[UUID, Hint] = {}
        self._is_overfull = False
        self._wake = asyncio.Event()
        # Called with the id of a workspace whose link changed elsewhere; None: of any.
        self.on_link: Callable[[UUID | None], None] = lambda _: None
        # Set while notifications arrive.
        self.listening = asyncio.Event()
        self._hub.hears_others = False

    def tell(self, notice: Notice) -> None:
        """A transaction of ours was committed."""
        known = self._waiting.get(notice.chat_id)
        self._add(
            Hint(
                id=notice.chat_id,
                owner_id=notice.owner_id,
                is_runnable=notice.is_runnable or (known is not None and known.is_runnable),
                kinds=notice.kinds | (known.kinds if known is not None else frozenset()),
            )
        )

    def tell_topic(self, _: Topic) -> None:
        """What is no chat changed: rare enough for everybody to look at everything."""
        self._is_overfull = True
        self._wake.set()

    def tell_link(self, agent_id: UUID) -> None:
        """A workspace linked to us, or left."""
        self._add(Hint(id=agent_id))

    def _add(self, hint: Hint) -> None:
        if len(self._waiting) >= MAX_WAITING and hint.id not in self._waiting:
            self._is_overfull = True
        else:
            self._waiting[hint.id] = hint
        self._wake.set()

    async def run(self) -> None:
        """Send and listen until cancelled, over as many connections as it takes."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._for_ever(self._send))
            group.create_task(self._for_ever(self._listen))

    async def _for_ever(self, work: Callable[[psycopg.AsyncConnection[Any]], Any]) -> None:
        while True:
            try:
                connection = await psycopg.AsyncConnection.connect(**self._connect, autocommit=True)
                try:
                    await work(connection)
                finally:
                    # Whatever state it is in: nothing of it is awaited.
                    connection.pgconn.finish()
            except (psycopg.Error, OSError, TimeoutError) as exc:
                log.warning("hints interrupted", action="hints_interrupted", reason=str(exc)[:200])
            await asyncio.sleep(RECONNECT_S)

    async def _send(self, connection: psycopg.AsyncConnection[Any]) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(HINT_PROBE_S):
                    await self._wake.wait()
            await asyncio.sleep(GATHER_S)
            self._wake.clear()
            sender = self._membership.replica_id
            hints, self._waiting = list(self._waiting.values()), {}
            payloads = list(pack_hints(sender, hints))
            if self._is_overfull:
                self._is_overfull = False
                payloads = [json.dumps({"from": str(sender), "hints": None})]
            # What is lost with a connection is found by looking.
            async with connection.pipeline():
                for payload in payloads:
                    await connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))

    async def _listen(self, connection: psycopg.AsyncConnection[Any]) -> None:
        await connection.execute(f"LISTEN {CHANNEL}".encode())
        self._note_listening(is_open=True)
        try:
            self._look_everywhere()
            await self._hear_forever(connection)
        finally:
            self._note_listening(is_open=False)

    def _note_listening(self, *, is_open: bool) -> None:
        self._hub.hears_others = is_open
        if is_open:
            self.listening.set()
        else:
            self.listening.clear()

    async def _hear_forever(self, connection: psycopg.AsyncConnection[Any]) -> None:
        while True:
            is_silent = True
            async for note in connection.notifies(timeout=HINT_SILENCE_S, stop_after=1):
                is_silent = False
                self._hear(note.payload)
            if is_silent:
                msg = f"nothing arrived for {HINT_SILENCE_S:g} s, not even our own signs"
                raise TimeoutError(msg)

    def _look_everywhere(self) -> None:
        self._look()
        for topic in TOPICS:
            self._hub.hear(topic)
        self.on_link(None)

    def _hear(self, payload: str) -> None:
        sender, hints = read_hints(payload)
        if sender == self._membership.replica_id:
            return
        if hints is None:
            self._look_everywhere()
            return
        for hint in hints:
            if hint.owner_id is None:
                self.on_link(hint.id)
                continue
            self._hub.changed(hint.id)
            self._hub.changed_for(hint.owner_id, hint.id, hint.kinds)
            if hint.is_runnable:
                self._hub.on_runnable(hint.id)
