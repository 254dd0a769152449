"""Whether a database can be written: by writing, since a lock can be had where nothing can be kept."""

import sqlalchemy as sa

__all__ = ["prove_writable"]

# What leaves everything as it was, and yet has the disk take something at the commit.
STATEMENTS = {
    # SQLite writes a page whose row was set to what it is.
    "sqlite": "UPDATE alembic_version SET version_num = version_num",
    # A record in the log alone: no row that others lock, nothing for a vacuum to take away.
    "postgresql": "SELECT pg_logical_emit_message(true, 'chatd', 'can this be written?')",
}


def prove_writable(connection: sa.Connection) -> None:
    """
    Write something that nobody reads.

    Raises:
        sqlalchemy.exc.DBAPIError: a full disk, one that is read-only, a standby; at the commit at the latest.
    """
    connection.exec_driver_sql(STATEMENTS[connection.dialect.name])
