"""
What workspaces pushed, and each chat's copy of it: the pin.

Invariant: a chat's pinned resources are those of its pinned hash. Hash and copy are
set together, here and nowhere else, and a copy never changes. Chats pinned to one
snapshot share its copy; one that nobody has any more goes with the next push.

Every writer locks the agent's row first, then chats: so what it copies is one
snapshot, and a push that comes meanwhile finds what it did. That is stronger than
repeatable reads that are tried again, which would miss that a chat became dirty
when a refresh and a push cross.
"""

import contextlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
import structlog

from chatd.errors import NotFound
from chatd.store import schema
from chatd.store.inserts import upsert_all
from context_push.wire.push import ContextPush
from context_push.wire.resources import Resource

__all__ = [
    "Pin",
    "PinLost",
    "agent_resources",
    "is_pinned",
    "lock_agent",
    "pin_new_chat",
    "pin_unpinned",
    "pinned_resources",
    "read_pin",
    "rebind",
    "record_failure",
    "refresh",
    "take_push",
]

_COLUMNS = tuple(c.name for c in schema.agent_context.columns if c.name != "agent_id")
# What makes a pin in a chat's row.
_PIN = (
    "context_aggregate_hash",
    "context_pin_id",
    "context_error",
    "context_dirty_since",
    "context_environment",
)
# Chats of one statement.
BATCH = 5000

log = structlog.get_logger("chatd.pins")


class PinLost(Exception):
    """The chat got another agent while its pin was written; nothing was written, try again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A chat's own copy of a snapshot; nothing in it when it has none."""

    resources: Sequence[Resource] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a push did: *chats* are the rows that it changed; *problem* says why it was not taken."""

    chats: Sequence[sa.RowMapping] = ()
    problem: str | None = None


def is_pinned(row: sa.RowMapping) -> bool:
    """Whether a ``chats`` row has a pin; a cleared one may come back as empty bytes."""
    return bool(row["context_aggregate_hash"])


# -- a workspace's push --------------------------------------------------------------


def take_push(connection: sa.Connection, agent_id: UUID, push: ContextPush, *, now: datetime) -> Taken:
    """
    Store a push that was checked, pin the agent's chats that have no pin, mark the others.

    Transaction: joined; the rows come from inside it, to be published after it.
    """
    lock_agent(connection, agent_id)
    table = schema.context_snapshots
    stored = sa.select(table.c.version).where(table.c.agent_id == agent_id)
    version = connection.execute(stored).scalar_one_or_none()
    if version is not None and not push.initial and push.version <= version:
        return Taken(problem=f"version {push.version} is not newer than {version}")
    aggregate_hash = bytes.fromhex(push.aggregate_hash)
    snapshot = {
        "agent_id": agent_id,
        "version": push.version,
        "aggregate_hash": aggregate_hash,
        "error": push.snapshot_error,
        "environment": {"os": push.os, "directory": push.directory},
        "received_at": now,
        "pin_id": None,
    }
    upsert_all(connection, table, [snapshot], key=("agent_id",))
    _replace_resources(connection, agent_id, push.resources, now=now)
    _drop_unused(connection, agent_id)
    changed = [
        *_hydrate(connection, agent_id),
        *_mark_dirty(connection, agent_id, aggregate_hash, now=now),
    ]
    chats = schema.chats
    return Taken(
        chats=[
            row
            for batch in _batches(changed)
            for row in connection.execute(sa.select(chats).where(chats.c.id.in_(batch))).mappings()
        ]
    )


def _replace_resources(
    connection: sa.Connection, agent_id: UUID, resources: Sequence[Resource], *, now: datetime
) -> None:
    table = schema.agent_context
    mine = table.c.agent_id == agent_id
    kept = [resource.source for resource in resources]
    connection.execute(table.delete().where(mine, table.c.source.not_in(kept)))
    values = [{"agent_id": agent_id, **_values(resource, now)} for resource in resources]
    upsert_all(connection, table, values, key=("agent_id", "source"), keep=("created_at",))


def _hydrate(connection: sa.Connection, agent_id: UUID) -> list[UUID]:
    """Pin every live chat of the agent that has no pin; their ids."""
    chats = schema.chats
    unpinned = (
        (chats.c.agent_id == agent_id)
        & chats.c.archived.is_(False)
        & sa.or_(chats.c.context_aggregate_hash.is_(None), chats.c.context_aggregate_hash == b"")
    )
    # Locked, so that none is archived between its resources and its hash.
    ids = list(
        connection.execute(sa.select(chats.c.id).where(unpinned).with_for_update(key_share=True)).scalars()
    )
    return [chat_id for batch in _batches(ids) for chat_id in _pin(connection, batch, agent_id)]


def _mark_dirty(connection: sa.Connection, agent_id: UUID, current: bytes, *, now: datetime) -> list[UUID]:
    """Tell pins that differ from *current* from those that don't (any more); ids of those that changed."""
    chats = schema.chats
    pinned = (
        (chats.c.agent_id == agent_id)
        & chats.c.archived.is_(False)
        & (sa.func.length(chats.c.context_aggregate_hash) > 0)
    )
    differs = chats.c.context_aggregate_hash != current
    changes = [
        (differs & chats.c.context_dirty_since.is_(None), now),
        (~differs & chats.c.context_dirty_since.is_not(None), None),
    ]
    ids: list[UUID] = []
    for condition, since in changes:
        statement = chats.update().where(pinned, condition).values(context_dirty_since=since)
        ids += connection.execute(statement.returning(chats.c.id)).scalars()
    return ids


# -- a chat's pin ----------------------------------------------------------------------


def pin_new_chat(connection: sa.Connection, chat: sa.RowMapping, *, parent_id: UUID | None) -> sa.RowMapping:
    """
    Pin a chat in the transaction that makes it, best effort; the row as it is then.

    A child of the same agent is pinned as its parent, any other to the agent's
    snapshot. The agent must have been locked.
    """
    if chat["agent_id"] is None:
        return chat
    with _best_effort(connection, chat["id"]):
        parent = None if parent_id is None else _read(connection, parent_id)
        if parent is not None and parent["agent_id"] == chat["agent_id"] and _is_settled(parent):
            _copy_pin(connection, parent, chat["id"])
        else:
            _pin(connection, [chat["id"]], chat["agent_id"])
    return _read(connection, chat["id"])


def _is_settled(chat: sa.RowMapping) -> bool:
    """Whether the chat has a pin, or is known to go without: its children need not wait then."""
    return is_pinned(chat) or chat["context_error"] is not None


def pin_unpinned(connection: sa.Connection, chat_id: UUID) -> tuple[sa.RowMapping, bool]:
    """
    Pin a chat that has no pin, if its agent has a snapshot; the row as it is then, and whether it changed.

    Raises:
        NotFound: there is no such chat.
        PinLost: try again.
    """
    chat = _lock(connection, chat_id)
    if is_pinned(chat) or chat["archived"] or chat["agent_id"] is None:
        return chat, False
    is_changed = bool(_pin(connection, [chat_id], chat["agent_id"]))
    return _read(connection, chat_id), is_changed


def refresh(connection: sa.Connection, chat_id: UUID) -> tuple[sa.RowMapping, bool]:
    """
    Pin a chat anew to what its agent has now; without agent or snapshot the pin is cleared.

    The row as it is then, which always counts as changed.

    Raises:
        NotFound: there is no such chat.
        PinLost: try again.
    """
    chat = _lock(connection, chat_id)
    _repin(connection, chat_id, chat["agent_id"])
    return _read(connection, chat_id), True


def rebind(
    connection: sa.Connection, chat_id: UUID, agent_id: UUID | None, *, now: datetime
) -> sa.RowMapping:
    """
    Give the chat another agent, or none, and pin it anew, best effort: the binding stands in any case.

    Raises:
        NotFound: there is no such chat.
    """
    if agent_id is not None:
        lock_agent(connection, agent_id)
    chats = schema.chats
    _lock_chat(connection, chat_id)
    binding = chats.update().where(chats.c.id == chat_id).values(agent_id=agent_id, updated_at=now)
    connection.execute(binding)
    with _best_effort(connection, chat_id):
        _repin(connection, chat_id, agent_id)
    return _read(connection, chat_id)


def record_failure(connection: sa.Connection, chat_id: UUID, reason: str) -> None:
    """Remember why a chat goes without a pin, so that later turns don't wait again; a pin is left alone."""
    chats = schema.chats
    missing = sa.or_(chats.c.context_aggregate_hash.is_(None), chats.c.context_aggregate_hash == b"")
    connection.execute(chats.update().where(chats.c.id == chat_id, missing).values(context_error=reason))


def read_pin(connection: sa.Connection, chat_id: UUID) -> Pin:
    """The chat's pin, on one snapshot."""
    chat = _read(connection, chat_id)
    return Pin(resources=pinned_resources(connection, chat_id), environment=chat["context_environment"] or {})


def pinned_resources(connection: sa.Connection, chat_id: UUID) -> list[Resource]:
    """What the chat is pinned to, by source."""
    chats, table = schema.chats, schema.pinned_context
    joined = sa.join(chats, table, table.c.pin_id == chats.c.context_pin_id)
    statement = sa.select(table).select_from(joined).where(chats.c.id == chat_id).order_by(table.c.source)
    return _resources(connection, statement)


def agent_resources(connection: sa.Connection, agent_id: UUID | None) -> list[Resource] | None:
    """What the agent pushed last, by source; None when it never did."""
    snapshots, table = schema.context_snapshots, schema.agent_context
    known = sa.select(snapshots.c.agent_id).where(snapshots.c.agent_id == agent_id)
    if agent_id is None or connection.execute(known).scalar_one_or_none() is None:
        return None
    return _resources(
        connection, sa.select(table).where(table.c.agent_id == agent_id).order_by(table.c.source)
    )


# -- pieces ----------------------------------------------------------------------------


def lock_agent(connection: sa.Connection, agent_id: UUID) -> None:
    """Keep other pushes to, and pins from, this agent away until the transaction ends."""
    agents = schema.agents
    connection.execute(sa.select(agents.c.id).where(agents.c.id == agent_id).with_for_update(key_share=True))


@contextlib.contextmanager
def _best_effort(connection: sa.Connection, whose: UUID) -> Iterator[None]:
    """A failure undoes what was done inside and is logged; what the transaction is really about goes on."""
    try:
        with connection.begin_nested():
            yield
    except (sa.exc.DatabaseError, NotFound):
        log.exception("pin failed", action="pin_failed", whose=str(whose))


def _lock(connection: sa.Connection, chat_id: UUID) -> sa.RowMapping:
    """Lock the chat's agent, then the chat, which must still have it."""
    agent_id = _read(connection, chat_id)["agent_id"]
    if agent_id is not None:
        lock_agent(connection, agent_id)
    chat = _lock_chat(connection, chat_id)
    if chat["agent_id"] != agent_id:
        raise PinLost
    return chat


def _lock_chat(connection: sa.Connection, chat_id: UUID) -> sa.RowMapping:
    statement = sa.select(schema.chats).where(schema.chats.c.id == chat_id).with_for_update(key_share=True)
    chat = connection.execute(statement).mappings().one_or_none()
    if chat is None:
        raise NotFound("no such chat")
    return chat


def _read(connection: sa.Connection, chat_id: UUID) -> sa.RowMapping:
    chat = (
        connection.execute(sa.select(schema.chats).where(schema.chats.c.id == chat_id))
        .mappings()
        .one_or_none()
    )
    if chat is None:
        raise NotFound("no such chat")
    return chat


def _repin(connection: sa.Connection, chat_id: UUID, agent_id: UUID | None) -> None:
    """Clear, then pin: where there is nothing to pin to, nothing of the old pin is left."""
    chats = schema.chats
    cleared = dict.fromkeys(_PIN)
    connection.execute(chats.update().where(chats.c.id == chat_id).values(cleared))
    if agent_id is not None:
        _pin(connection, [chat_id], agent_id)


def _pin(connection: sa.Connection, chat_ids: Sequence[UUID], agent_id: UUID) -> list[UUID]:
    """Pin chats to the agent's snapshot; none of them when there is no snapshot."""
    snapshots, chats = schema.context_snapshots, schema.chats
    mine = snapshots.c.agent_id == agent_id
    snapshot = connection.execute(sa.select(snapshots).where(mine)).mappings().one_or_none()
    if snapshot is None or not chat_ids:
        return []
    pin_id = snapshot["pin_id"]
    if pin_id is None:
        pin_id = _copy_snapshot(connection, snapshot)
        connection.execute(snapshots.update().where(mine).values(pin_id=pin_id))
    values = {
        "context_aggregate_hash": snapshot["aggregate_hash"],
        "context_pin_id": pin_id,
        "context_error": snapshot["error"],
        "context_dirty_since": None,
        "context_environment": snapshot["environment"],
    }
    connection.execute(chats.update().where(chats.c.id.in_(chat_ids)).values(values))
    return list(chat_ids)


def _copy_snapshot(connection: sa.Connection, snapshot: sa.RowMapping) -> UUID:
    pin_id, pushed = uuid.uuid4(), schema.agent_context
    values = {
        "id": pin_id,
        "agent_id": snapshot["agent_id"],
        "aggregate_hash": snapshot["aggregate_hash"],
        "created_at": snapshot["received_at"],
    }
    connection.execute(schema.context_pins.insert().values(values))
    source = sa.select(sa.literal(pin_id, sa.Uuid()), *(pushed.c[name] for name in _COLUMNS)).where(
        pushed.c.agent_id == snapshot["agent_id"]
    )
    connection.execute(schema.pinned_context.insert().from_select(["pin_id", *_COLUMNS], source))
    return pin_id


def _copy_pin(connection: sa.Connection, parent: sa.RowMapping, chat_id: UUID) -> None:
    """Give a child what its parent has: a pin, dirty or not, or the reason for none."""
    chats, snapshots = schema.chats, schema.context_snapshots
    values = {name: parent[name] for name in _PIN}
    # Nobody marks a parent that was put away.
    current = sa.select(snapshots).where(snapshots.c.agent_id == parent["agent_id"])
    snapshot = connection.execute(current).mappings().one_or_none()
    if is_pinned(parent) and snapshot is not None:
        differs = snapshot["aggregate_hash"] != parent["context_aggregate_hash"]
        since = parent["context_dirty_since"] or snapshot["received_at"]
        values["context_dirty_since"] = since if differs else None
    connection.execute(chats.update().where(chats.c.id == chat_id).values(values))


def _drop_unused(connection: sa.Connection, agent_id: UUID) -> None:
    """Delete the agent's copies that neither a chat nor its snapshot has; one taken meanwhile stays."""
    copies, chats, snapshots = schema.context_pins, schema.chats, schema.context_snapshots
    unused = (
        (copies.c.agent_id == agent_id)
        & ~sa.exists().where(chats.c.context_pin_id == copies.c.id)
        & ~sa.exists().where(snapshots.c.pin_id == copies.c.id)
    )
    with _best_effort(connection, agent_id):
        connection.execute(copies.delete().where(unused))


def _batches(ids: Sequence[UUID]) -> Iterator[Sequence[UUID]]:
    """Both databases limit the parameters of one statement."""
    for start in range(0, len(ids), BATCH):
        yield ids[start : start + BATCH]


def _values(resource: Resource, now: datetime) -> dict[str, Any]:
    return {
        "source": resource.source,
        "kind": resource.kind,
        "status": resource.status,
        "content_hash": bytes.fromhex(resource.content_hash),
        "size_bytes": resource.size_bytes,
        "source_path": resource.source_path,
        "error": resource.error,
        "body": resource.body.model_dump(mode="json"),
        "created_at": now,
        "updated_at": now,
    }


def _resources(connection: sa.Connection, statement: sa.Select[Any]) -> list[Resource]:
    return [
        Resource.model_validate({**row, "content_hash": row["content_hash"].hex()})
        for row in connection.execute(statement).mappings()
    ]
