"""
The schema's versions, and which of them a process of this code can work with.

Each migration says its *phase*. ``pre`` only adds: code of before works on it, so it runs while old
processes still do. ``post`` takes away what only old code used, so it runs when those are gone; it says
by *needs* the oldest code (by its newest migration) that works afterwards.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa
import structlog
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from chatd.errors import Misuse, Refused
from chatd.store import schema

__all__ = [
    "Migration",
    "Phase",
    "SchemaUnfit",
    "Versions",
    "alembic_config",
    "known_migrations",
    "migrate",
    "migrate_to",
    "read_versions",
]

Phase = Literal["pre", "post", "all"]
# Key of PostgreSQL's advisory lock of whoever migrates: "migr" in ASCII.
MIGRATING_KEY = 0x6D696772
# Seconds between looks whether another process is done migrating.
LOOK_S = 0.5
# Where the oldest code that works on the schema is written down.
FLOOR = "schema-floor"

log = structlog.get_logger("chatd.store")


class SchemaUnfit(Refused):
    """The database's schema is none that this code works with."""

    code = "schema_unfit"


@dataclass(frozen=True, slots=True)
class Migration:
    """One step; *needs* is only of ``post`` ones."""

    revision: str
    phase: Literal["pre", "post"]
    needs: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """
    What the database has (None: nothing yet), and what this code knows, oldest first.

    *floor* is the oldest code that the database still takes.
    """

    current: str | None
    known: tuple[Migration, ...]
    floor: str | None = None

    @property
    def head(self) -> str:
        """The newest version that this code knows."""
        return self.known[-1].revision

    @property
    def is_newer(self) -> bool:
        """Whether a newer code migrated already."""
        return self.current is not None and self.current not in {one.revision for one in self.known}

    def pending(self) -> tuple[Migration, ...]:
        """What was not run yet."""
        if self.current is None:
            return self.known
        if self.is_newer:
            return ()
        names = [one.revision for one in self.known]
        return self.known[names.index(self.current) + 1 :]

    def target(self, phase: Phase) -> str | None:
        """The version that *phase* leads to; None: there is nothing to do."""
        steps = list(self.pending())
        if phase == "pre":
            first = next((at for at, one in enumerate(steps) if one.phase == "post"), len(steps))
            steps = steps[:first]
        elif phase == "post" and any(one.phase == "pre" for one in steps[:1]):
            raise SchemaUnfit("run the phase pre first: chatd migrate --phase pre")
        return steps[-1].revision if steps else None

    def problem(self) -> str | None:
        """Why this code can't work on the schema; None: it can."""
        if self.is_newer:
            if self.floor is not None and self.floor > self.head:
                return (
                    f"the database's schema {self.current} is for newer code (at least {self.floor}; this is "
                    f"{self.head}): upgrade this chatd"
                )
            return None
        missing = [one.revision for one in self.pending() if one.phase == "pre"]
        if missing:
            return (
                f"the database's schema {self.current or '(none)'} lacks {', '.join(missing)}: "
                "run chatd migrate --phase pre"
            )
        return None


def alembic_config() -> Config:
    """Where Alembic finds the migrations."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


def known_migrations() -> tuple[Migration, ...]:
    """Those of this code, oldest first."""
    found = [
        Migration(
            script.revision, getattr(script.module, "phase", "pre"), getattr(script.module, "needs", None)
        )
        for script in ScriptDirectory.from_config(alembic_config()).walk_revisions()
    ]
    return tuple(reversed(found))


def read_versions(connection: sa.Connection) -> Versions:
    """What the database is like, beside what this code knows."""
    current = MigrationContext.configure(connection).get_current_revision()
    floor = None
    if sa.inspect(connection).has_table("deployment_settings"):
        table = schema.deployment_settings
        stored = sa.select(table.c.value).where(table.c.name == FLOOR)
        floor = connection.execute(stored).scalar_one_or_none()
    return Versions(current=current, known=known_migrations(), floor=floor)


def migrate(engine: sa.Engine, phase: Phase) -> Sequence[str]:
    """
    Run what is pending of *phase*, while no other process does; the versions that were reached.

    Raises:
        SchemaUnfit: *phase* is ``post``, and ``pre`` was not run.
    """
    with engine.connect() as connection, _without_foreign_keys(connection):
        is_postgres = connection.dialect.name == "postgresql"
        if is_postgres:
            _wait_turn(connection)
        try:
            before = read_versions(connection)
            target = before.target(phase)
            connection.rollback()
            if target is None:
                return ()
            config = alembic_config()
            config.attributes["connection"] = connection
            command.upgrade(config, target)
            done = before.pending()
            names = [one.revision for one in done]
            done = done[: names.index(target) + 1]
            _write_floor(connection, done)
            return [one.revision for one in done]
        finally:
            if is_postgres:
                connection.rollback()
                connection.execute(sa.select(sa.func.pg_advisory_unlock(MIGRATING_KEY)))
                connection.commit()


def migrate_to(engine: sa.Engine, revision: str) -> None:
    """Run all pending migrations up to *revision*."""
    config = alembic_config()
    with engine.connect() as connection, _without_foreign_keys(connection):
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


def _write_floor(connection: sa.Connection, done: Sequence[Migration]) -> None:
    floors = [one.needs for one in done if one.needs is not None]
    if not floors:
        return
    table = schema.deployment_settings
    connection.execute(table.delete().where(table.c.name == FLOOR))
    values = {"name": FLOOR, "value": max(floors), "updated_at": sa.func.now()}
    connection.execute(table.insert().values(values))
    connection.commit()


def _wait_turn(connection: sa.Connection) -> None:
    is_told = False
    while not connection.execute(sa.select(sa.func.pg_try_advisory_lock(MIGRATING_KEY))).scalar_one():
        connection.rollback()
        if not is_told:
            log.info("another process migrates; waiting for it", action="migration_waits")
            is_told = True
        time.sleep(LOOK_S)
    connection.commit()


@contextmanager
def _without_foreign_keys(connection: sa.Connection) -> Iterator[None]:
    """
    Let tables be made anew, as SQLite changes columns: dropping one would take what refers to it along.

    Raises:
        Misuse: afterwards something refers to nothing.
    """
    if connection.dialect.name != "sqlite":
        yield
        return
    # Past SQLAlchemy, which begins a transaction: inside of one the pragma does nothing.
    raw: Any = connection.connection.dbapi_connection
    raw.execute("PRAGMA foreign_keys=OFF")
    try:
        yield
        connection.rollback()
        if lost := raw.execute("PRAGMA foreign_key_check").fetchall():
            raise Misuse(f"a migration left references to nothing: {lost[:3]}")
    finally:
        connection.rollback()
        raw.execute("PRAGMA foreign_keys=ON")
