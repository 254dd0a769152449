"""What SQLite could not do, in words for people; such failures pass when somebody helps."""

import sqlite3

import sqlalchemy as sa

__all__ = ["explain_fault"]

# By SQLite's primary result code.
TEXTS = {
    sqlite3.SQLITE_FULL: "The disk that holds the database is full; free some space.",
    sqlite3.SQLITE_READONLY: "The database can't be written; look at its disk and its permissions.",
    sqlite3.SQLITE_IOERR: "The disk that holds the database fails; look at the system's log.",
    sqlite3.SQLITE_CANTOPEN: "The database can't be opened; look at its disk and its permissions.",
    sqlite3.SQLITE_BUSY: "Another program holds the database locked; try again.",
    sqlite3.SQLITE_LOCKED: "Another program holds the database locked; try again.",
}


def explain_fault(error: BaseException) -> str | None:
    """The sentence for *error*; None when it is no such failure."""
    original = error.orig if isinstance(error, sa.exc.DBAPIError) else None
    if not isinstance(original, sqlite3.Error):
        return None
    # Absent in errors that the module itself raises.
    code = getattr(original, "sqlite_errorcode", 0)
    return TEXTS.get(code & 0xFF)
