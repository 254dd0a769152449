"""The audit log as rows: added to in the transaction that does what an entry tells, and read."""

from collections.abc import Callable
from datetime import datetime
from typing import Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa

from chatd.audit import AuditEntry
from chatd.store import schema

__all__ = ["audited", "delete_entries", "list_entries", "newest_id", "note"]

T = TypeVar("T")
P = ParamSpec("P")
_TABLE = schema.audit_log


def note(connection: sa.Connection, entry: AuditEntry, *, now: datetime) -> None:
    """
    Add an entry.

    Transaction: joined, so that it is there if and only if what it tells of was done.
    """
    kept = entry.plain()
    connection.execute(
        _TABLE.insert().values(
            at=now,
            action=kept.action.value,
            actor_id=kept.actor_id,
            actor=kept.actor,
            target=kept.target,
            remote=kept.remote,
            details=kept.details,
        )
    )


def audited(
    run: Callable[Concatenate[sa.Connection, P], T],
    entry: AuditEntry | Callable[[T], AuditEntry | None],
    *,
    at: datetime,
) -> Callable[Concatenate[sa.Connection, P], T]:
    """*run*, and its entry in the same transaction; an entry may be made of what *run* returned."""

    def both(connection: sa.Connection, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result = run(connection, *args, **kwargs)
        found = entry(result) if callable(entry) else entry
        if found is not None:
            note(connection, found, now=at)
        return result

    return both


def list_entries(
    connection: sa.Connection,
    *,
    after_id: int | None = None,
    before_id: int | None = None,
    action: str | None = None,
    actor: str | None = None,
    limit: int = 100,
) -> list[sa.RowMapping]:
    """Entries, the newest first; with *after_id* those behind it, the oldest first."""
    statement = sa.select(_TABLE).limit(limit)
    for column, value in ((_TABLE.c.action, action), (_TABLE.c.actor, actor)):
        if value is not None:
            statement = statement.where(column == value)
    if before_id is not None:
        statement = statement.where(_TABLE.c.id < before_id)
    if after_id is None:
        statement = statement.order_by(_TABLE.c.id.desc())
    else:
        statement = statement.where(_TABLE.c.id > after_id).order_by(_TABLE.c.id)
    return list(connection.execute(statement).mappings())


def delete_entries(connection: sa.Connection, *, before: datetime) -> int:
    """Forget what is older than *before*; what is younger than 90 days the database itself keeps."""
    return connection.execute(_TABLE.delete().where(_TABLE.c.at < before)).rowcount


def newest_id(connection: sa.Connection) -> int:
    """The id of the newest entry; 0 when there is none."""
    found: int = connection.execute(sa.select(sa.func.coalesce(sa.func.max(_TABLE.c.id), 0))).scalar_one()
    return found
