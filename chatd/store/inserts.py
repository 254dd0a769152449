"""Inserts of rows that another transaction may be inserting at the same moment."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

__all__ = ["insert_new", "upsert", "upsert_all"]

_Insert = postgresql.Insert | sqlite.Insert


def insert_new(connection: sa.Connection, table: sa.Table, values: dict[str, Any]) -> bool:
    """
    Insert a row unless a unique key of it exists; whether it was inserted.

    Transaction: joined; waits for one that inserts the same key. When it returns False,
    the other row can be read.
    """
    statement = _insert(connection, table).values(values).on_conflict_do_nothing()
    # Not the row count: drivers report none for an INSERT.
    inserted = connection.execute(statement.returning(*table.primary_key.columns))
    return inserted.one_or_none() is not None


def upsert(
    connection: sa.Connection,
    table: sa.Table,
    values: dict[str, Any],
    *,
    key: Sequence[str],
    unless: sa.ColumnElement[bool] | None = None,
) -> None:
    """Insert a row, or give the row of the same *key* these values, but not one of which *unless* holds."""
    statement = _insert(connection, table).values(values)
    changed = {name: value for name, value in values.items() if name not in key}
    where = None if unless is None else sa.not_(unless)
    connection.execute(statement.on_conflict_do_update(index_elements=list(key), set_=changed, where=where))


def upsert_all(
    connection: sa.Connection,
    table: sa.Table,
    rows: Sequence[dict[str, Any]],
    *,
    key: Sequence[str],
    keep: Sequence[str] = (),
) -> None:
    """Insert rows of the same columns, or give those of the same *key* their values, but for *keep*."""
    if not rows:
        return
    statement = _insert(connection, table)
    changed = {name: statement.excluded[name] for name in rows[0] if name not in {*key, *keep}}
    connection.execute(statement.on_conflict_do_update(index_elements=list(key), set_=changed), list(rows))


def _insert(connection: sa.Connection, table: sa.Table) -> _Insert:
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)
