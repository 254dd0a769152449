"""
The net below the hints: compares versions of what is watched here, all at once.

Every ``POLL_S``, and at once after a gap in the hints.
"""

import asyncio
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

import sqlalchemy as sa
import structlog

from chatd.constants import POLL_S
from chatd.store import queries
from chatd.store.store import Store
from chatd.stream.hub import Hub

__all__ = ["Poller"]

# Ids in one statement.
BATCH = 1_000
# Seconds that a chat of the list may have been committed after the time that it carries.
OVERLAP_S = 30.0
# Lists are looked at after gaps, and at each so many looks: what is missing there is seen later anyway.
LISTS_EVERY = 6
# In place of the version of a chat that was deleted.
GONE = -1

log = structlog.get_logger("chatd.poller")


class Poller:
    """One per process, for all who watch."""

    def __init__(self, store: Store, hub: Hub, *, interval_s: float = POLL_S) -> None:
        self._store = store
        self._hub = hub
        self._interval_s = interval_s
        self._known: dict[UUID, int] = {}
        self._since = store.now()
        self._now = asyncio.Event()

    def look(self) -> None:
        """Look at once."""
        self._now.set()

    async def run(self) -> None:
        """Look until cancelled."""
        self._hub.is_polled = True
        rounds = 0
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._interval_s):
                        await self._now.wait()
                rounds = 0 if self._now.is_set() else rounds + 1
                self._now.clear()
                try:
                    await self.look_once()
                    if rounds % LISTS_EVERY == 0:
                        await self._look_at_lists()
                except sa.exc.SQLAlchemyError as exc:
                    log.warning("look failed", action="poll_failed", reason=str(exc)[:200])
        finally:
            self._hub.is_polled = False

    async def look_once(self) -> None:
        """Tell the listeners of every chat that is not as it was at the last look, or that is new."""
        watched = self._hub.watched_chats
        found: dict[UUID, int] = {}
        for start in range(0, len(watched), BATCH):
            found |= await self._store.read(queries.snapshot_versions, watched[start : start + BATCH])
        known, self._known = self._known, found
        self._known |= {chat_id: GONE for chat_id in watched if chat_id not in found}
        for chat_id, version in self._known.items():
            if known.get(chat_id) != version:
                self._hub.changed(chat_id)

    async def _look_at_lists(self) -> None:
        owners = self._hub.watched_owners
        since, self._since = self._since, self._store.now()
        for start in range(0, len(owners), BATCH):
            recent = await self._store.read(
                queries.recently_used,
                owners[start : start + BATCH],
                since=since - timedelta(seconds=OVERLAP_S),
            )
            for owner_id, chat_id in recent:
                self._hub.changed_for(owner_id, chat_id)
