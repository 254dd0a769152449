"""Which failures of a database pass by themselves."""

import psycopg
import pytest
import sqlalchemy as sa

from chatd.errors import BadRequest
from chatd.store.outages import is_outage


def failed(
    kind: type[sa.exc.DBAPIError], original: BaseException, *, is_cut: bool = False
) -> sa.exc.DBAPIError:
    """A failure as SQLAlchemy raises it."""
    return kind("SELECT 1", {}, original, connection_invalidated=is_cut)


GONE = failed(sa.exc.OperationalError, psycopg.errors.AdminShutdown())


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (GONE, True),
        (failed(sa.exc.InternalError, psycopg.errors.ReadOnlySqlTransaction()), True),
        (failed(sa.exc.DBAPIError, psycopg.Error(), is_cut=True), True),
        (sa.exc.TimeoutError(), True),
        (ExceptionGroup("tools", [GONE, ExceptionGroup("more", [GONE])]), True),
        (ExceptionGroup("tools", [GONE, ValueError()]), False),
        (failed(sa.exc.IntegrityError, psycopg.errors.UniqueViolation()), False),
        (failed(sa.exc.ProgrammingError, psycopg.errors.UndefinedTable()), False),
        (BadRequest("no"), False),
        (None, False),
    ],
    ids=str,
)
def test_an_outage_is_told_from_a_mistake(error: BaseException | None, *, passes: bool) -> None:
    """Issue: what the database's restart interrupts is done again; what is wrong stays wrong."""
    assert is_outage(error) is passes
