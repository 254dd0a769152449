"""Looks for chats that want a runner, gives each one, and shows signs of life."""

import asyncio
import contextlib
import uuid
from datetime import datetime
from functools import partial
from uuid import UUID

import sqlalchemy as sa
import structlog

from chatd.errors import ChatdError
from chatd.store import queries, schema
from chatd.store.machine import ChatTx
from chatd.worker.runner import Runner
from chatd.worker.services import Services

__all__ = ["Worker"]

log = structlog.get_logger("chatd.worker")


class Worker:
    """One per process."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._worker_id = uuid.uuid4()
        self._wake = asyncio.Event()
        self._runners: dict[UUID, tuple[UUID, asyncio.Task[None]]] = {}

    def wake(self) -> None:
        """A chat became runnable: look now."""
        self._wake.set()

    async def run(self) -> None:
        """
        Work until cancelled.

        Cancellation: runners are stopped; their chats stay runnable for the next worker.
        """
        self._services.hub.on_runnable = self.wake
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._beat())
                await self._acquire_forever(group)
        finally:
            for _, task in self._runners.values():
                task.cancel()

    async def _acquire_forever(self, group: asyncio.TaskGroup) -> None:
        while True:
            self._wake.clear()
            try:
                await self._acquire(group)
            except (sa.exc.SQLAlchemyError, ChatdError):
                log.exception("looking for work failed", action="acquire_failed")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._services.settings.acquire_interval_s):
                    await self._wake.wait()

    async def _acquire(self, group: asyncio.TaskGroup) -> None:
        settings, store = self._services.settings, self._services.store
        candidates = await store.read(
            queries.runnable_chats, now=store.now(), lease=settings.lease, limit=settings.acquire_batch
        )
        fresh = [chat_id for chat_id in candidates if chat_id not in self._runners]
        for chat_id in fresh:
            runner_id = uuid.uuid4()
            if await store.transition(chat_id, partial(self._take, runner_id=runner_id)):
                task = group.create_task(self._drive(chat_id, runner_id), name=f"runner {chat_id}")
                self._runners[chat_id] = (runner_id, task)
        # A full batch tells of more; one that holds only what we run (late heartbeats) tells nothing.
        if fresh and len(candidates) == settings.acquire_batch:
            self._wake.set()

    def _take(self, tx: ChatTx, *, runner_id: UUID) -> bool:
        # Judged again under the lock: the turn may have ended since the look.
        if tx["status"] not in {"running", "interrupting"} or tx["archived"]:
            return False
        tx.acquire(worker_id=self._worker_id, runner_id=runner_id)
        return True

    async def _drive(self, chat_id: UUID, runner_id: UUID) -> None:
        try:
            await Runner(self._services, chat_id, runner_id).run()
        except Exception:
            # The lease runs out and another runner tries; the process must go on.
            log.exception("runner failed", action="runner_failed", chat_id=str(chat_id))
        finally:
            self._runners.pop(chat_id, None)
            self._wake.set()

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
