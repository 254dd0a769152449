"""Migrations by hand, for upgrades without a pause; ``chatd migrate``."""

from dataclasses import dataclass

import sqlalchemy as sa

from chatd.errors import Unavailable
from chatd.settings import ChatdSettings
from chatd.store.database import Database, sqlite_url
from chatd.store.migrating import Phase

__all__ = ["MigrationReport", "migrate_schema"]


class DatabaseUnreachable(Unavailable):
    """It can't be opened."""

    code = "database_unreachable"


@dataclass(frozen=True, slots=True)
class MigrationReport:
    """Versions: where the schema was and is, what was run, what is left; *problem*: why not to serve."""

    before: str | None
    now: str | None
    ran: list[str]
    pending: list[str]
    problem: str | None

    def render(self) -> str:
        """For people."""
        lines = [f"schema {self.before or '(none)'} -> {self.now}" if self.ran else f"schema {self.now}"]
        lines += [f"pending: {', '.join(self.pending)}"] if self.pending else []
        return "\n".join(lines + ([self.problem] if self.problem else []))


async def migrate_schema(settings: ChatdSettings, phase: Phase, *, only_check: bool) -> MigrationReport:
    """
    Run what is pending of *phase*, beside chatds that run; *only_check* changes nothing.

    Raises:
        SchemaUnfit: the phases were asked for in the wrong order.
        DatabaseUnreachable: the database does not answer.
    """
    if settings.database is None:
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    database = Database(settings.database or sqlite_url(settings.database_path))
    try:
        before = await database.versions()
        ran = [] if only_check else await database.migrate(phase)
        after = await database.versions()
    except sa.exc.DatabaseError as exc:
        raise DatabaseUnreachable(f"{database} can't be used: {exc.orig}") from exc
    finally:
        await database.close()
    return MigrationReport(
        before=before.current,
        now=after.current,
        ran=ran,
        pending=[f"{one.revision} ({one.phase})" for one in after.pending()],
        problem=after.problem(),
    )
