"""
Hints between tasks of one process: "this chat changed, read it again".

Hints may be merged but never lost: a subscriber that is busy finds its flag set.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

from chatd.store.store import Notice

__all__ = ["Hub", "Subscription"]


class Subscription:
    """One listener; ``wait`` returns when something happened since the last ``wait``."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self._chats: set[UUID] = set()

    def notify(self, chat_id: UUID) -> None:
        """Remember that *chat_id* changed."""
        self._chats.add(chat_id)
        self._event.set()

    def poke(self) -> None:
        """Wake the listener although no row changed: a fragment arrived."""
        self._event.set()

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
        self.on_runnable: Callable[[], None] = lambda: None

    def publish(self, notice: Notice) -> None:
        """A transaction was committed."""
        for subscription in self._by_chat.get(notice.chat_id, ()):
            subscription.notify(notice.chat_id)
        for subscription in self._by_owner.get(notice.owner_id, ()):
            subscription.notify(notice.chat_id)
        if notice.is_runnable:
            self.on_runnable()

    def touch(self, chat_id: UUID) -> None:
        """A fragment of *chat_id*'s answer arrived; no row changed."""
        for subscription in self._by_chat.get(chat_id, ()):
            subscription.poke()

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


@contextmanager
def _registered(topics: dict[UUID, set[Subscription]], key: UUID) -> Iterator[Subscription]:
    subscription = Subscription()
    topics.setdefault(key, set()).add(subscription)
    try:
        yield subscription
    finally:
        topics[key].discard(subscription)
        if not topics[key]:
            del topics[key]
