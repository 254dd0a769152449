"""Looks for chats that want a runner, gives each one, and shows signs of life."""

import asyncio
import random
import uuid
from datetime import datetime
from functools import partial
from uuid import UUID

import sqlalchemy as sa
import structlog

from chatd.errors import ChatdError, NotFound, TransitionNotAllowed
from chatd.store import queries, schema
from chatd.store.leases import is_owned
from chatd.store.machine import ChatTx
from chatd.store.outages import is_outage
from chatd.worker.runner import Runner
from chatd.worker.services import Services

__all__ = ["Worker"]

# Seconds, growing, before a runner goes on whose database was away.
OUTAGE_PAUSE_S = (0.1, 5.0)

log = structlog.get_logger("chatd.worker")


class Worker:
    """One per process."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._wake = asyncio.Event()
        # Chats that a commit of this process made runnable; taken without a look at the others.
        self._offered: dict[UUID, None] = {}
        self._must_look = True
        self._runners: dict[UUID, tuple[UUID, asyncio.Task[None]]] = {}
        # Chats with a runner here, by whether they are somebody's sub-agent.
        self._pools: dict[bool, set[UUID]] = {False: set(), True: set()}

    def offer(self, chat_id: UUID) -> None:
        """A chat became runnable: take it now."""
        self._offered[chat_id] = None
        self._wake.set()

    def _look_again(self) -> None:
        self._must_look = True
        self._wake.set()

    async def run(self) -> None:
        """
        Work until cancelled.

        Cancellation: runners are stopped; their chats stay runnable for the next worker.
        """
        store = self._services.store
        self._services.hub.on_runnable = self.offer
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._beat())
                store.claim, store.claimed = self._claim, partial(self._start, group)
                await self._acquire_forever(group)
        finally:
            store.claim = None
            for _, task in self._runners.values():
                task.cancel()

    async def _acquire_forever(self, group: asyncio.TaskGroup) -> None:
        while True:
            self._wake.clear()
            try:
                while self._offered:
                    chat_id = next(iter(self._offered))
                    del self._offered[chat_id]
                    if chat_id not in self._runners:
                        await self._acquire(group, chat_id)
                if self._must_look:
                    self._must_look = False
                    await self._look(group)
            except (sa.exc.SQLAlchemyError, ChatdError):
                log.exception("looking for work failed", action="acquire_failed")
            try:
                async with asyncio.timeout(self._services.settings.acquire_interval_s):
                    await self._wake.wait()
            except TimeoutError:
                self._must_look = True

    async def _look(self, group: asyncio.TaskGroup) -> None:
        """Take what is there, the most urgent first; what other workers are taking is left to them."""
        settings, store = self._services.settings, self._services.store
        wanted = queries.Wanted(
            now=store.now(),
            lease=settings.lease,
            limit=settings.acquire_batch,
            roots=self._has_room(is_child=False),
            children=self._has_room(is_child=True),
        )
        if not await store.read(queries.wanting_chats, wanted):
            return
        taken = await store.transition_some(partial(queries.lock_wanting, wanted=wanted), self._take_free)
        for chat_id, (runner_id, is_child) in taken:
            self._start(group, chat_id, runner_id, is_child)
        # A full batch tells of more.
        if len(taken) == settings.acquire_batch:
            self._look_again()

    def _take_free(self, tx: ChatTx) -> tuple[UUID, bool]:
        """
        Own one of the chats that were found; the new runner, and whether it is a sub-agent's.

        Raises:
            TransitionNotAllowed: one of ours that only shows no sign of life yet, or as ``_take``.
        """
        if tx.chat_id in self._runners:
            raise TransitionNotAllowed("it has a runner here")
        runner_id = uuid.uuid4()
        return runner_id, self._take(tx, runner_id=runner_id, now=tx.now)

    def _has_room(self, *, is_child: bool) -> bool:
        settings = self._services.settings
        limit = settings.max_running_agents if is_child else settings.max_running_chats
        return len(self._pools[is_child]) < limit

    async def _acquire(self, group: asyncio.TaskGroup, chat_id: UUID) -> None:
        runner_id, store = uuid.uuid4(), self._services.store
        take = partial(self._take, runner_id=runner_id, now=store.now())
        try:
            is_child = await store.transition(chat_id, take)
        except (TransitionNotAllowed, NotFound):
            # Nothing to do any more, or no room: the end of another looks again.
            return
        self._start(group, chat_id, runner_id, is_child)

    def _start(self, group: asyncio.TaskGroup, chat_id: UUID, runner_id: UUID, is_child: bool, /) -> None:
        """Drive a chat that was just made ours; only now does it take room, so a rollback takes none."""
        self._pools[is_child].add(chat_id)
        task = group.create_task(self._drive(chat_id, runner_id), name=f"runner {chat_id}")
        self._runners[chat_id] = (runner_id, task)

    def _claim(self, tx: ChatTx) -> UUID | None:
        """Own a chat in the transaction that made it runnable; runs on the store's writing threads."""
        if tx.chat_id in self._runners:
            # The one that is leaving looks again at its end.
            return None
        runner_id = uuid.uuid4()
        try:
            self._take(tx, runner_id=runner_id, now=tx.now)
        except TransitionNotAllowed:
            return None
        return runner_id

    def _take(self, tx: ChatTx, *, runner_id: UUID, now: datetime) -> bool:
        """
        Own the chat; whether it is a sub-agent's.

        Raises:
            TransitionNotAllowed: judged under the lock, it wants no runner, or there is no room.
        """
        is_late = tx["status"] == "requires_action" and tx["requires_action_deadline_at"] <= now
        if tx["archived"] or not (is_late or tx["status"] in {"running", "interrupting"}):
            raise TransitionNotAllowed("it wants no runner any more")
        lease = self._services.settings.lease
        if tx["worker_id"] is not None and is_owned(tx.connection, tx.chat_id, now=now, lease=lease):
            raise TransitionNotAllowed("another runs it")
        is_child = tx["parent_chat_id"] is not None
        # A stop always finds room.
        if tx["status"] != "interrupting" and not self._has_room(is_child=is_child):
            raise TransitionNotAllowed("as many chats run as may")
        tx.acquire(worker_id=self._services.membership.replica_id, runner_id=runner_id)
        return is_child

    async def _drive(self, chat_id: UUID, runner_id: UUID) -> None:
        try:
            await self._drive_on(chat_id, runner_id)
        except Exception:
            # The lease runs out and another runner tries; the process must go on.
            log.exception("runner failed", action="runner_failed", chat_id=str(chat_id))
        finally:
            self._runners.pop(chat_id, None)
            for pool in self._pools.values():
                pool.discard(chat_id)
            self._look_again()

    async def _drive_on(self, chat_id: UUID, runner_id: UUID) -> None:
        """Drive the chat, from its rows anew after each time that the database was away."""
        pause, longest = OUTAGE_PAUSE_S
        while True:
            try:
                await Runner(self._services, chat_id, runner_id).run()
            except sa.exc.SQLAlchemyError as exc:
                if not is_outage(exc):
                    raise
                log.warning(
                    "database away", action="runner_waits", chat_id=str(chat_id), reason=str(exc)[:200]
                )
                await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 -- jitter, not a secret
                pause = min(2 * pause, longest)
            else:
                return

    async def _beat(self) -> None:
        """One statement for all runners: they live."""
        store = self._services.store
        while True:
            await asyncio.sleep(self._services.settings.heartbeat_interval_s)
            rows = [(chat_id, runner_id) for chat_id, (runner_id, _) in self._runners.items()]
            try:
                if rows:
                    await store.write(_record_beats, rows, now=store.now())
            except sa.exc.SQLAlchemyError:
                # The lease outlives several beats; the turns under way need not end.
                log.exception("heartbeat failed", action="heartbeat_failed")


def _record_beats(connection: sa.Connection, rows: list[tuple[UUID, UUID]], *, now: datetime) -> None:
    table = schema.heartbeats
    for chat_id, runner_id in rows:
        mine = (table.c.chat_id == chat_id) & (table.c.runner_id == runner_id)
        connection.execute(table.update().where(mine).values(heartbeat_at=now))
