"""
Chats, durably: create, transition, read.

Notices are published after the commit, never before; they are hints and hold ids
and versions only.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Concatenate, ParamSpec, TypeVar
from uuid import UUID

import sqlalchemy as sa

from chatd.constants import TITLE_CHARACTERS, TITLE_WORDS
from chatd.errors import TransitionNotAllowed
from chatd.model_wire import ReasoningEffort
from chatd.store import deployment, pins, queries, schema
from chatd.store.database import Database
from chatd.store.inserts import insert_new
from chatd.store.machine import ChatTx
from chatd.store.rows import NewMessage, chat_from_row
from chatd.store.shared import SharedReads
from chatd.store.spending import SpendPolicy
from chatd.watch_wire import WatchKind
from chatd.wire import Chat, ChatMode, ClientType, DynamicTool, Part, PlanMode

__all__ = ["NewChat", "Notice", "Store", "derive_title", "utc_now"]

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A chat changed; read it again."""

    chat_id: UUID
    owner_id: UUID
    snapshot_version: int
    is_runnable: bool
    is_child: bool = False
    claimed_by: UUID | None = None
    kinds: frozenset[WatchKind] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewChat:
    """A chat to be created, with its first user message."""

    owner_id: UUID
    model_config_id: UUID
    content: tuple[Part, ...]
    title: str
    reasoning_effort: ReasoningEffort | None = None
    agent_id: UUID | None = None
    mode: ChatMode | None = None
    plan_mode: PlanMode | None = None
    client_type: ClientType = "api"
    parent: Chat | None = None
    spawn_key: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    dynamic_tools: tuple[DynamicTool, ...] = ()
    mcp_server_ids: tuple[UUID, ...] | None = None
    system_prompt: str = ""


def derive_title(text: str) -> str:
    """The first words of a message; an ellipsis tells that more follow."""
    words = text.split()
    title = " ".join(words[:TITLE_WORDS])
    has_more = len(words) > TITLE_WORDS
    if len(title) + has_more > TITLE_CHARACTERS:
        return title[: TITLE_CHARACTERS - 1] + "…"
    return title + "…" if has_more else title or "New Chat"


def utc_now() -> datetime:
    """Now, aware."""
    return datetime.now(UTC)


class Store:
    """
    The only writer of chats.

    *claim*, set by this process's worker, may own a chat in the very transaction that makes
    it runnable; *claimed* then hears of it once that is committed.
    """

    claim: Callable[[ChatTx], UUID | None] | None = None
    claimed: Callable[[UUID, UUID, bool], None] = staticmethod(lambda _chat_id, _runner_id, _is_child: None)

    def __init__(
        self,
        database: Database,
        *,
        publish: Callable[[Notice], None],
        clock: Callable[[], datetime] = utc_now,
        spending: SpendPolicy = SpendPolicy(),  # noqa: B008 -- a value
    ) -> None:
        self._database = database
        self._publish = publish
        self._clock = clock
        self._spending = spending
        self._shared = SharedReads(self.read)

    def now(self) -> datetime:
        """The store's clock."""
        return self._clock()

    async def read(
        self, run: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a query of ``chatd.store.queries`` on a consistent snapshot."""
        return await self._database.read(run, *args, **kwargs)

    async def read_shared(
        self, run: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """
        As ``read``, once for all who ask the same at the same moment; see ``SharedReads``.

        The arguments are hashable, and nobody changes what comes back.
        """
        return await self._shared.read(run, *args, **kwargs)

    async def write(
        self, run: Callable[Concatenate[sa.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a write that touches no chat's execution state (accounts, heartbeats, ledger)."""
        return await self._database.write(run, *args, **kwargs)

    async def write_published(
        self,
        run: Callable[Concatenate[sa.Connection, P], tuple[T, Sequence[sa.RowMapping]]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """
        Run a write that touches no chat's execution state; it returns its result and the chats to publish.

        Cancellation: the transaction ends first; a committed change is published.
        """
        rows: Sequence[sa.RowMapping] = ()

        def work(connection: sa.Connection) -> T:
            nonlocal rows
            result, rows = run(connection, *args, **kwargs)
            return result

        try:
            return await self._database.write(work)
        finally:
            for row in rows:
                self._publish(_notice(row))

    async def transition(self, chat_id: UUID, apply: Callable[[ChatTx], T]) -> T:
        """
        Apply transitions to one chat in one transaction, then publish.

        Raises:
            NotFound, Refused: nothing was written.

        Cancellation: the transaction ends first; a committed change is published.
        """
        notice, result = None, None

        def run(connection: sa.Connection) -> None:
            nonlocal notice, result
            tx = ChatTx.lock(connection, chat_id, now=self._clock())
            result = apply(tx)
            notice, _ = self._finish(tx)

        try:
            await self._database.write(run)
        finally:
            if notice is not None:
                self._tell(notice)
        return result  # type: ignore[return-value]  # set whenever write() returned

    async def transition_some(
        self, find: Callable[[sa.Connection], Sequence[UUID]], apply: Callable[[ChatTx], T]
    ) -> list[tuple[UUID, T]]:
        """
        Apply transitions to the chats that *find* locks, all in one transaction, then publish.

        Those that *apply* refuses by ``TransitionNotAllowed`` are left as they are.

        Cancellation: the transaction ends first; committed changes are published.
        """
        notices: list[Notice] = []
        results: list[tuple[UUID, T]] = []

        def run(connection: sa.Connection) -> None:
            for chat_id in find(connection):
                tx = ChatTx.lock(connection, chat_id, now=self._clock())
                try:
                    results.append((chat_id, apply(tx)))
                except TransitionNotAllowed:
                    continue
                notices.append(_notice(tx.flush()))

        try:
            await self._database.write(run)
        finally:
            for notice in notices:
                self._publish(notice)
        return results

    def _finish(self, tx: ChatTx) -> tuple[Notice, sa.RowMapping]:
        """Write the row, owned if the worker wants it; what to tell after the commit, and the row."""
        runner_id = None
        if self.claim is not None and tx["worker_id"] is None:
            runner_id = self.claim(tx)
        row = tx.flush()
        return replace(_notice(row, tx.before), claimed_by=runner_id), row

    def _tell(self, notice: Notice) -> None:
        """After the commit: start the runner, wake who watches."""
        if notice.claimed_by is not None:
            self.claimed(notice.chat_id, notice.claimed_by, notice.is_child)
        self._publish(notice)

    async def transition_family(self, root_id: UUID, apply: Callable[[ChatTx], None]) -> None:
        """
        Apply transitions to a chat and all its descendants in one transaction, then publish.

        The root is locked first, the others by id, so that two of these never wait for each other.

        Raises:
            NotFound, Refused: nothing was written to any of them.
        """
        notices: list[Notice] = []

        def run(connection: sa.Connection) -> None:
            now = self._clock()
            members = [ChatTx.lock(connection, root_id, now=now)]
            below = queries.descendants(connection, root_id)
            members += [ChatTx.lock(connection, chat_id, now=now) for chat_id in below]
            for member in members:
                apply(member)
            notices.extend(_notice(member.flush(), member.before) for member in members if member.is_changed)

        try:
            await self._database.write(run)
        finally:
            for notice in notices:
                self._publish(notice)

    async def change(
        self,
        chat_id: UUID,
        run: Callable[Concatenate[sa.Connection, UUID, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """
        Run *run(connection, chat_id, …)* and tell the watchers of the list.

        For what is no execution state: title, labels, pin.
        """
        notice = None

        def work(connection: sa.Connection) -> T:
            nonlocal notice
            before = dict(queries.read_row(connection, chat_id))
            result = run(connection, chat_id, *args, **kwargs)
            after = queries.read_row(connection, chat_id)
            # Who comes to read what was read already changes nothing, and wakes nobody.
            notice = None if dict(after) == before else _notice(after, before)
            return result

        try:
            return await self._database.write(work)
        finally:
            if notice is not None:
                self._publish(notice)

    def admit(self, tx: ChatTx) -> None:
        """
        Check, inside a transaction that asks for an answer, that its owner may.

        Raises:
            UsageLimitReached: the owner's spending limit is used up.
        """
        self._spending.check(tx.connection, tx["owner_id"], now=tx.now)

    async def admit_user(self, user_id: UUID) -> None:
        """
        Check that a user may ask a model, outside of any chat's transaction.

        Raises:
            UsageLimitReached: the user's spending limit is used up.
        """
        await self._database.read(self._spending.check, user_id, now=self._clock())

    @property
    def spending(self) -> SpendPolicy:
        """The installation's limits."""
        return self._spending

    async def create_chat(self, new: NewChat) -> Chat:
        """
        Create a running chat with its first message.

        A *spawn_key* that exists already gives the chat it made: nothing is created.

        Raises:
            TransitionNotAllowed: the parent is archived, or was stopped behind the call's back.
            UsageLimitReached: the owner's spending limit is used up.
            BadRequest: the message names a file that can't be used.
        """
        notice, row = None, None
        warnings: list[str] = []

        def run(connection: sa.Connection) -> None:
            nonlocal notice, row
            row, tx = _create(connection, new, now=self._clock(), admit=self.admit)
            if tx is None:
                # It was told of when it was made.
                return
            notice, flushed = self._finish(tx)
            warnings.extend(tx.warnings)
            row = pins.pin_new_chat(connection, flushed, parent_id=new.parent.id if new.parent else None)

        try:
            await self._database.write(run)
        finally:
            if notice is not None:
                self._tell(notice)
        chat = chat_from_row(row)  # type: ignore[arg-type]  # set whenever write() returned
        return chat.model_copy(update={"warnings": tuple(warnings)}) if warnings else chat

    async def release_all(self) -> int:
        """Take every lease away; for the sole owner of a database, at its start."""
        return await self._database.write(_release_all)


def _notice(row: sa.RowMapping, before: Mapping[str, Any] | None = None) -> Notice:
    """What to tell of a row; *before* is what it was, if that is known."""
    return Notice(
        kinds=frozenset(_kinds(row, before)),
        chat_id=row["id"],
        owner_id=row["owner_id"],
        snapshot_version=row["snapshot_version"],
        is_child=row["parent_chat_id"] is not None,
        is_runnable=row["status"] in {"running", "interrupting"} and row["worker_id"] is None,
    )


def _kinds(row: sa.RowMapping, before: Mapping[str, Any] | None) -> Iterator[WatchKind]:
    """What changed of a chat, in the words of those who watch their chats."""
    if before is None:
        if row["context_dirty_since"] is not None:
            yield "context_dirty"
        return
    # Version 0 is a row that is being made.
    if before["snapshot_version"] == 0 or (before["archived"] and not row["archived"]):
        yield "created"
    if row["archived"] and not before["archived"]:
        yield "deleted"
    if row["status"] != before["status"]:
        yield "status_change"
        if row["status"] == "requires_action":
            yield "action_required"
    if row["title"] != before["title"]:
        yield "title_change"


def _create(
    connection: sa.Connection,
    new: NewChat,
    *,
    now: datetime,
    admit: Callable[[ChatTx], None],
) -> tuple[sa.RowMapping | None, ChatTx | None]:
    """The chat that *new* made earlier, by its spawn key, or a new one that is not written whole yet."""
    table = schema.chats
    if new.agent_id is not None:
        # Before any chat: pins.py has the order of locks.
        pins.lock_agent(connection, new.agent_id)
    if new.parent is not None:
        _hold_parent(connection, new.parent.id, by_call=new.spawn_key is not None)
    chat_id = uuid.uuid4()
    if not insert_new(connection, table, _chat_values(new, chat_id, now)):
        known = sa.select(table).where(table.c.spawn_key == new.spawn_key)
        return connection.execute(known).mappings().one(), None
    tx = ChatTx.lock(connection, chat_id, now=now)
    admit(tx)
    first = NewMessage(
        role="user",
        content=new.content,
        created_by=new.owner_id,
        model_config_id=new.model_config_id,
        reasoning_effort=new.reasoning_effort,
    )
    tx.insert_first(first, instructions=_instructions(connection, new))
    return None, tx


def _instructions(connection: sa.Connection, new: NewChat) -> str:
    """What the chat's model is told for good; a desktop agent has its own instructions alone."""
    if new.mode == "computer_use":
        return ""
    return "\n\n".join([*deployment.standing_prompts(connection, new.owner_id), new.system_prompt]).strip()


def _hold_parent(connection: sa.Connection, parent_id: UUID, *, by_call: bool) -> None:
    """
    Keep the parent from being archived or stopped until we are done.

    Whoever stops it looks for its children afterwards: what a call of its turn starts came first, and is
    stopped with it, or is not started any more.
    """
    table = schema.chats
    held = sa.select(table.c.archived, table.c.status).where(table.c.id == parent_id)
    archived, status = connection.execute(held.with_for_update(read=True)).one()
    if archived:
        raise TransitionNotAllowed("an archived chat starts no other")
    if by_call and status != "running":
        raise TransitionNotAllowed("a chat that was stopped starts no other")


def _chat_values(new: NewChat, chat_id: UUID, now: datetime) -> dict[str, Any]:
    return {
        "id": chat_id,
        "owner_id": new.owner_id,
        "agent_id": new.agent_id,
        "parent_chat_id": new.parent.id if new.parent else None,
        "root_chat_id": new.parent.root_chat_id if new.parent else None,
        "last_model_config_id": new.model_config_id,
        "last_reasoning_effort": new.reasoning_effort,
        "spawn_key": new.spawn_key,
        "title": new.title,
        "mode": new.mode,
        "plan_mode": new.plan_mode,
        "client_type": new.client_type,
        "status": "running",
        "archived": False,
        "labels": new.labels,
        "dynamic_tools": [tool.model_dump(mode="json") for tool in new.dynamic_tools] or None,
        "mcp_server_ids": None if new.mcp_server_ids is None else [str(one) for one in new.mcp_server_ids],
        "snapshot_version": 0,
        "history_version": 0,
        "queue_version": 0,
        "retry_state_version": 0,
        "generation_attempt": 0,
        "created_at": now,
        "updated_at": now,
    }


def _release_all(connection: sa.Connection) -> int:
    connection.execute(schema.heartbeats.delete())
    table = schema.chats
    owned = table.c.runner_id.is_not(None)
    released = connection.execute(table.update().where(owned).values(worker_id=None, runner_id=None))
    return released.rowcount
