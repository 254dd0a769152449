"""Pins as the rest of chatd uses them: one transaction each, published after the commit."""

from collections.abc import Callable, Sequence
from uuid import UUID

import sqlalchemy as sa

from chatd.store import pins, queries
from chatd.store.store import Store
from context_push.wire.push import ContextPush, PushAnswer

__all__ = ["Pins"]

# Times that a pin is begun anew because the chat got another agent meanwhile.
MAX_TRIES = 5


class Pins:
    """Context in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def take_push(self, agent_id: UUID, push: ContextPush) -> PushAnswer:
        """Take a push that was checked; chats that it pinned or made dirty are published."""

        def run(connection: sa.Connection) -> tuple[PushAnswer, Sequence[sa.RowMapping]]:
            taken = pins.take_push(connection, agent_id, push, now=self._store.now())
            return PushAnswer(accepted=taken.problem is None, reason=taken.problem), taken.chats

        return await self._store.write_published(run)

    async def refresh(self, chat_id: UUID) -> None:
        """
        Pin the chat to what its agent has now.

        Raises:
            NotFound: there is no such chat.
            PinLost: its agent changed all the time.
        """
        await self._tried(pins.refresh, chat_id)

    async def pin_unpinned(self, chat_id: UUID) -> sa.RowMapping:
        """Pin the chat if it has no pin and its agent a snapshot; its row as it is then."""
        return await self._tried(pins.pin_unpinned, chat_id)

    async def rebind(self, chat_id: UUID, agent_id: UUID | None) -> None:
        """
        Give the chat and all below it another agent, or none, and pin them anew.

        Raises:
            NotFound: there is no such chat.
        """

        def run(connection: sa.Connection) -> tuple[None, Sequence[sa.RowMapping]]:
            family = [chat_id, *queries.descendants(connection, chat_id)]
            now = self._store.now()
            return None, [pins.rebind(connection, member, agent_id, now=now) for member in family]

        await self._store.write_published(run)

    async def record_failure(self, chat_id: UUID, reason: str) -> None:
        """Remember why the chat goes without a pin."""
        await self._store.write(pins.record_failure, chat_id, reason)

    async def _tried(
        self, change: Callable[[sa.Connection, UUID], tuple[sa.RowMapping, bool]], chat_id: UUID
    ) -> sa.RowMapping:
        def run(connection: sa.Connection) -> tuple[sa.RowMapping, Sequence[sa.RowMapping]]:
            row, is_changed = change(connection, chat_id)
            return row, [row] if is_changed else []

        for attempt in range(MAX_TRIES):
            try:
                return await self._store.write_published(run)
            except pins.PinLost:
                if attempt == MAX_TRIES - 1:
                    raise
        raise AssertionError
