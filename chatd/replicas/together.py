"""What a process needs to work beside others on one PostgreSQL, put together and run."""

import asyncio
from typing import Any

import sqlalchemy as sa
import structlog

from chatd.agents.directory import AgentConnection, Directory
from chatd.outbound import Outbound
from chatd.replicas.hints import Hints
from chatd.replicas.links import RemoteAgents
from chatd.replicas.membership import Membership
from chatd.replicas.parts import PartRelay
from chatd.replicas.poller import Poller
from chatd.replicas.registry import Registry
from chatd.replicas.streams import stream_prefix
from chatd.store.store import Store
from chatd.stream.buffer import PartBuffer
from chatd.stream.hub import Hub

__all__ = ["Together"]

# Seconds between two comparisons of the links that are up with those that are recorded.
RECONCILE_S = 15.0

log = structlog.get_logger("chatd.replicas")


class Together:
    """
    One process among many.

    Args:
        buffer: where fragments of this process's chats are, and copies of others'.
        connect: options of psycopg's ``connect``, for hints.
        registry: our place among the others.
    """

    def __init__(
        self,
        store: Store,
        hub: Hub,
        buffer: PartBuffer,
        *,
        connect: dict[str, Any],
        membership: Membership,
        registry: Registry,
    ) -> None:
        self.membership = membership
        self.registry = registry
        self.agents = RemoteAgents(store, membership)
        self.poller = Poller(store, hub)
        self.hints = Hints(connect, membership, hub, look=self.poller.look)
        # Brings others' fragments into *buffer*.
        hub.spread = self.hints.tell_topic
        self.parts = PartRelay(membership, buffer)
        self._directory: Directory
        self._links_changed = asyncio.Event()
        self._news: list[tuple[AgentConnection, bool]] = []

    def make_directory(self, *, fetches_streams: Outbound | None) -> Directory:
        """The directory of agents here and elsewhere."""
        self._directory = Directory(
            fetches_streams=fetches_streams,
            elsewhere=self.agents,
            stream_prefix=lambda: stream_prefix(self.membership),
        )
        self._directory.on_connect = lambda connection: self._note(connection, is_up=True)
        self._directory.on_disconnect = lambda connection: self._note(connection, is_up=False)
        self.hints.on_link = lambda _: self._directory.wake()
        self.membership.on_change.append(self._links_changed.set)
        return self._directory

    def _note(self, connection: AgentConnection, *, is_up: bool) -> None:
        if is_up:
            self.agents.note(connection)
        self._news.append((connection, is_up))
        self._links_changed.set()

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.registry.run())
            group.create_task(self.hints.run())
            group.create_task(self.poller.run())
            group.create_task(self._keep_links())

    async def _keep_links(self) -> None:
        """Have the table say which agents are linked here, also after it could not be reached."""
        must_reconcile = True
        while True:
            try:
                if must_reconcile:
                    await self.agents.reconcile(self._directory.connections)
                    must_reconcile = False
                while self._news:
                    await self._record(*self._news[0])
                    del self._news[0]
            except sa.exc.IntegrityError as exc:
                # An agent that was deleted, or we were taken for dead and are about to learn it.
                log.info("link not recorded", action="link_refused", reason=str(exc)[:200])
                self._news.clear()
                must_reconcile = True
            except sa.exc.SQLAlchemyError as exc:
                log.warning("link not recorded", action="link_failed", reason=str(exc)[:200])
                self._news.clear()
                must_reconcile = True
            try:
                async with asyncio.timeout(1.0 if must_reconcile else RECONCILE_S):
                    await self._links_changed.wait()
            except TimeoutError:
                must_reconcile = True
            else:
                # With news comes what is to be done; a change of the others is followed by a comparison.
                must_reconcile = must_reconcile or not self._news
            self._links_changed.clear()

    async def _record(self, connection: AgentConnection, is_up: bool) -> None:
        await (self.agents.record if is_up else self.agents.forget)(connection)
        self.hints.tell_link(connection.agent_id)

    async def close(self) -> None:
        """Hang up at the others."""
        await self.parts.close()
        await self.agents.close()
