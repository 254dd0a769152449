"""
Migrations of phase pre only add: measured on a real PostgreSQL, one after the other.

The first release is at 0017; what came before it was never run beside other code.
"""

import asyncio

import sqlalchemy as sa
from alembic import command
from alembic.migration import MigrationContext
from alembic.operations import Operations

from chatd.store import migrating
from chatd.store.database import Database
from chatd.store.engines import check_url
from chatd.store.migrating import known_migrations
from tests.postgres import PostgresServer

BASELINE = "0017"


def upgrade(engine: sa.Engine, revision: str) -> None:
    """Run migrations up to *revision*."""
    config = migrating.alembic_config()
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


def losses(engine: sa.Engine, before: sa.MetaData) -> list[str]:
    """What code that believes in *before* would miss in the schema as it is now."""
    now, found = sa.MetaData(), []
    now.reflect(engine)
    for name, table in before.tables.items():
        if name not in now.tables:
            found.append(f"table {name} is gone")
            continue
        new = now.tables[name]
        for column in table.columns:
            if column.name not in new.columns:
                found.append(f"{name}.{column.name} is gone")
            elif repr(column.type) != repr(new.columns[column.name].type):
                found.append(f"{name}.{column.name} has another type")
            elif column.nullable and not new.columns[column.name].nullable:
                found.append(f"{name}.{column.name} takes no null any more")
        for column in new.columns:
            is_owed = not column.nullable and column.server_default is None
            if column.name not in table.columns and is_owed:
                found.append(f"{name}.{column.name} is wanted, and old code does not give it")
        found += _stricter(name, table, new)
    return found


def _stricter(name: str, old: sa.Table, new: sa.Table) -> list[str]:
    """Rules for rows that were not there: unique keys, checks, foreign keys from old columns."""

    def rules(table: sa.Table) -> set[str]:
        kinds = (sa.UniqueConstraint, sa.CheckConstraint, sa.ForeignKeyConstraint)
        named = {str(rule.name) for rule in table.constraints if isinstance(rule, kinds)}
        return named | {str(index.name) for index in table.indexes if index.unique}

    added = rules(new) - rules(old)
    fresh = {column.name for column in new.columns if column.name not in old.columns}
    return [
        f"{name} has the new rule {rule.name}"
        for rule in new.constraints
        if str(rule.name) in added and not {column.name for column in rule.columns} <= fresh
    ]


def test_every_pre_migration_only_adds(postgres: PostgresServer) -> None:
    """Issue: old code on the new schema; nothing that it reads or writes is taken away or made stricter."""
    url = postgres.create()
    engine = sa.create_engine(check_url(url), poolclass=sa.NullPool)
    upgrade(engine, BASELINE)
    found = {}
    for step in known_migrations():
        if step.revision <= BASELINE:
            continue
        before = sa.MetaData()
        before.reflect(engine)
        upgrade(engine, step.revision)
        if step.phase == "pre":
            found[step.revision] = losses(engine, before)
    postgres.drop(url)

    assert found
    assert not any(found.values()), found


def test_what_is_taken_away_is_found(postgres: PostgresServer) -> None:
    """Ours: the check above sees each kind of change that old code could not bear."""
    url = postgres.create()
    engine = sa.create_engine(check_url(url), poolclass=sa.NullPool)
    upgrade(engine, BASELINE)
    before = sa.MetaData()
    before.reflect(engine)
    with engine.begin() as connection:
        op = Operations(MigrationContext.configure(connection))
        op.drop_table("push_subscriptions")
        op.drop_column("users", "prompt")
        op.alter_column("agents", "name", type_=sa.String(9))
        op.alter_column("chats", "mode", nullable=False)
        op.add_column("chats", sa.Column("owed", sa.Integer(), nullable=False, server_default=None))
        op.create_unique_constraint("uq_chats_title", "chats", ["title"])
    found = losses(engine, before)
    postgres.drop(url)

    assert sorted(found) == [
        "agents.name has another type",
        "chats has the new rule uq_chats_title",
        "chats.mode takes no null any more",
        "chats.owed is wanted, and old code does not give it",
        "table push_subscriptions is gone",
        "users.prompt is gone",
    ]


async def test_two_processes_migrate_an_empty_database_at_once(postgres: PostgresServer) -> None:
    """Ours: three replicas that start together; one migrates, the others wait for it."""
    url = postgres.create()
    databases = [Database(url) for _ in range(3)]
    ran = await asyncio.gather(*(database.migrate("pre") for database in databases))
    versions = await databases[0].versions()
    for database in databases:
        await database.close()
    postgres.drop(url)

    assert sorted(map(len, ran))[:2] == [0, 0]
    assert versions.problem() is None
