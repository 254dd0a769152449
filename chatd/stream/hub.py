"""
Hints between tasks of one process: "this chat changed, read it again".

Hints may be merged but never lost: a subscriber that is busy finds its flag set.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal
from uuid import UUID

from chatd.store.store import Notice
from chatd.watch_wire import WatchKind

__all__ = ["Gathering", "Hub", "Subscription", "Topic"]

# What is no chat and may change at any time, for everybody; whoever keeps it in memory reads it again.
Topic = Literal["mcp_servers"]


class Subscription:
    """One listener; ``wait`` returns when something happened since the last ``wait``."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._chats: set[UUID] = set()
        self._touched: set[UUID] = set()
        self._kinds: dict[UUID, set[WatchKind]] = {}

    def notify(self, chat_id: UUID, kinds: frozenset[WatchKind] = frozenset()) -> None:
        """Remember that *chat_id* changed, and what of it."""
        self._chats.add(chat_id)
        if kinds:
            self._kinds.setdefault(chat_id, set()).update(kinds)
        self._event.set()

    def take_kinds(self, chat_id: UUID) -> set[WatchKind]:
        """What changed of *chat_id* since the last time this was asked, as far as it was told."""
        return self._kinds.pop(chat_id, set())

    def poke(self, chat_id: UUID) -> None:
        """Wake the listener although no row changed: a fragment arrived."""
        self._touched.add(chat_id)
        self._event.set()

    def take_touched(self) -> set[UUID]:
        """The chats whose fragments arrived since the last call."""
        touched, self._touched = self._touched, set()
        return touched

    async def wait(self) -> set[UUID]:
        """The chats whose rows changed (none after a mere ``poke``); waits for the first news."""
        await self._event.wait()
        self._event.clear()
        changed, self._chats = self._chats, set()
        return changed


class Hub:
    """Topics by chat and by owner."""

    def __init__(self) -> None:
        self._by_chat: dict[UUID, set[Subscription]] = {}
        self._by_owner: dict[UUID, set[Subscription]] = {}
        self._by_topic: dict[Topic, list[Callable[[], None]]] = {}
        self.on_runnable: Callable[[UUID], None] = lambda _: None
        # Tells the other replicas.
        self.spread: Callable[[Topic], None] = lambda _: None
        # Whether somebody looks for changes whose hints were lost, for all listeners.
        self.is_polled = False
        # Whether what other replicas commit is heard of here; alone there is nothing to hear.
        self.hears_others = True

    def publish(self, notice: Notice) -> None:
        """A transaction was committed."""
        for subscription in self._by_chat.get(notice.chat_id, ()):
            subscription.notify(notice.chat_id)
        for subscription in self._by_owner.get(notice.owner_id, ()):
            subscription.notify(notice.chat_id, notice.kinds)
        if notice.is_runnable:
            self.on_runnable(notice.chat_id)

    def touch(self, chat_id: UUID) -> None:
        """A fragment of *chat_id*'s answer arrived; no row changed."""
        for subscription in self._by_chat.get(chat_id, ()):
            subscription.poke(chat_id)

    def changed(self, chat_id: UUID) -> None:
        """A chat's row may have changed, for all we know."""
        for subscription in self._by_chat.get(chat_id, ()):
            subscription.notify(chat_id)

    def changed_for(self, owner_id: UUID, chat_id: UUID, kinds: frozenset[WatchKind] = frozenset()) -> None:
        """A chat in somebody's list may have changed."""
        for subscription in self._by_owner.get(owner_id, ()):
            subscription.notify(chat_id, kinds)

    @property
    def watched_chats(self) -> list[UUID]:
        """Chats that somebody listens to."""
        return list(self._by_chat)

    @property
    def watched_owners(self) -> list[UUID]:
        """Owners whose lists somebody listens to."""
        return list(self._by_owner)

    @contextmanager
    def gather(self) -> Iterator["Gathering"]:
        """Listen to many chats at once; which ones changes meanwhile."""
        gathering = Gathering(self._by_chat)
        try:
            yield gathering
        finally:
            gathering.clear()

    def hint(self, topic: Topic) -> None:
        """
        What *topic* names was changed, here or by another replica: a hint, which may be lost or doubled.

        Called after the commit; listeners read again at once.
        """
        self.hear(topic)
        self.spread(topic)

    def hear(self, topic: Topic) -> None:
        """As ``hint``, of what another replica said."""
        for listener in self._by_topic.get(topic, ()):
            listener()

    def on_hint(self, topic: Topic, listener: Callable[[], None]) -> None:
        """Have *listener* called at each hint, for as long as the hub lives."""
        self._by_topic.setdefault(topic, []).append(listener)

    @property
    def chat_subscribers(self) -> int:
        """How many listen to single chats."""
        return sum(map(len, self._by_chat.values()))

    @contextmanager
    def watch_chat(self, chat_id: UUID) -> Iterator[Subscription]:
        """Listen to one chat."""
        with _registered(self._by_chat, chat_id) as subscription:
            yield subscription

    @contextmanager
    def watch_owner(self, owner_id: UUID) -> Iterator[Subscription]:
        """Listen to all chats of one owner."""
        with _registered(self._by_owner, owner_id) as subscription:
            yield subscription


class Gathering(Subscription):
    """One listener to many chats; made by ``Hub.gather``."""

    def __init__(self, topics: dict[UUID, set[Subscription]]) -> None:
        super().__init__()
        self._topics = topics
        self._mine: set[UUID] = set()

    def add(self, chat_id: UUID) -> None:
        """Listen to *chat_id* too; it counts as touched."""
        self._mine.add(chat_id)
        self._topics.setdefault(chat_id, set()).add(self)
        self.poke(chat_id)

    def remove(self, chat_id: UUID) -> None:
        """Listen to it no longer."""
        if chat_id not in self._mine:
            return
        self._mine.discard(chat_id)
        self._touched.discard(chat_id)
        _leave(self._topics, chat_id, self)

    def clear(self) -> None:
        """Listen to nothing any more."""
        for chat_id in tuple(self._mine):
            self.remove(chat_id)

    def __len__(self) -> int:
        return len(self._mine)


def _leave(topics: dict[UUID, set[Subscription]], key: UUID, subscription: Subscription) -> None:
    topics[key].discard(subscription)
    if not topics[key]:
        del topics[key]


@contextmanager
def _registered(topics: dict[UUID, set[Subscription]], key: UUID) -> Iterator[Subscription]:
    subscription = Subscription()
    topics.setdefault(key, set()).add(subscription)
    try:
        yield subscription
    finally:
        _leave(topics, key, subscription)
