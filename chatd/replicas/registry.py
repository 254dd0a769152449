"""
Keeps this process in the table of replicas, and finds out which others are dead.

One is dead when its count of beats stood still for ``replica_timeout_s`` of our own steady clock:
no two machines' clocks are compared, and none may be set wrong.
"""

import asyncio
import random
import secrets
import time
import uuid
from collections.abc import Callable, Iterable
from uuid import UUID

import sqlalchemy as sa
import structlog

from agentd.wire.version import VERSION
from chatd.replicas.membership import Membership
from chatd.store import replicas
from chatd.store.clock import DatabaseClock
from chatd.store.replicas import Replica
from chatd.store.store import Store

__all__ = ["Registry", "Watchlist"]

log = structlog.get_logger("chatd.replicas")


class Watchlist:
    """
    How long each other replica's count of beats stands still, in seconds of our steady clock.

    Args:
        timeout_s: after which one is silent.
    """

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._seen: dict[UUID, tuple[int, float]] = {}

    def look(self, others: Iterable[Replica], *, at: float) -> list[Replica]:
        """Those that are silent; *at* is the steady clock."""
        seen, silent = self._seen, []
        self._seen = {}
        for replica in others:
            beats, since = seen.get(replica.id, (-1, at))
            if replica.beats != beats:
                since = at
            self._seen[replica.id] = (replica.beats, since)
            if at - since >= self._timeout_s:
                silent.append(replica)
        return silent


class Registry:
    """
    One process's place in the table.

    Args:
        interval_s: between two beats.
        timeout_s: of another's silence, until it is taken for dead.
        note: called with each id that we take.
    """

    def __init__(
        self,
        store: Store,
        membership: Membership,
        clock: DatabaseClock,
        *,
        interval_s: float,
        timeout_s: float,
        note: Callable[[UUID], None] = lambda _: None,
    ) -> None:
        self._note = note
        self._store = store
        self._membership = membership
        self._clock = clock
        self._interval_s = interval_s
        self._timeout_s = timeout_s
        self._watchlist = Watchlist(timeout_s)
        self._address = ""
        self._looked_at = time.monotonic()

    async def join(self, *, previous: UUID | None = None) -> None:
        """Take a place; that of *previous*, who is dead for certain, is free."""
        if previous is not None:
            await self._store.write(replicas.mark_gone, previous)
        await self._register()

    async def _register(self) -> None:
        membership = self._membership
        replica_id, credential = uuid.uuid4(), secrets.token_urlsafe(32)
        await self._store.write(replicas.register, replica_id, version=VERSION, credential=credential)
        membership.replica_id, membership.credential = replica_id, credential
        self._note(replica_id)

    async def advertise(self, address: str) -> None:
        """We can be reached: let the others know."""
        self._address = address
        await self.beat()

    async def run(self) -> None:
        """Beat, and look whether the others do, until cancelled."""
        while True:
            await asyncio.sleep(self._interval_s * random.uniform(0.8, 1.0))  # noqa: S311 -- jitter, not a secret
            try:
                await self.beat()
            except sa.exc.SQLAlchemyError as exc:
                log.warning("no beat", action="replica_beat_failed", reason=str(exc)[:200])

    async def beat(self) -> None:
        """One sign of life, and one look at the others."""
        store, membership = self._store, self._membership
        if not await store.write(replicas.beat, membership.replica_id, self._address):
            log.warning("we were taken for dead and start anew", action="replica_returned")
            await self._register()
            await store.write(replicas.beat, membership.replica_id, self._address)
            membership.change()
        await self._set_clock()
        live = await store.read(replicas.list_live)
        others = [replica for replica in live if replica.id != membership.replica_id]
        now = time.monotonic()
        if now - self._looked_at > self._timeout_s:
            # We slept, or the database did: whoever seems silent had no more chance than we.
            self._watchlist = Watchlist(self._timeout_s)
        self._looked_at = now
        for silent in self._watchlist.look(others, at=now):
            if await store.write(replicas.mark_silent, silent):
                log.warning("replica is gone", action="replica_gone", replica_id=str(silent.id))
        addresses = {replica.id: replica.address for replica in others if replica.address}
        if addresses != membership.addresses:
            membership.addresses = addresses
            membership.change()

    async def _set_clock(self) -> None:
        before = time.monotonic()
        now = await self._store.read(replicas.database_now)
        self._clock.set(now, between=(before, time.monotonic()))

    async def leave(self) -> None:
        """Give up the place: what we had is free at once."""
        try:
            await self._store.write(replicas.mark_gone, self._membership.replica_id)
        except sa.exc.SQLAlchemyError as exc:
            log.warning("left without a word", action="replica_leave_failed", reason=str(exc)[:200])
