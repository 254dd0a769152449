"""Which failures of a database pass by themselves: it is away, restarting, full, or another one leads now."""

import sqlalchemy as sa

__all__ = ["is_outage"]

# PostgreSQL's codes that SQLAlchemy files elsewhere: a server that only reads (a standby).
PASSING_STATES = frozenset({"25006"})


def is_outage(error: BaseException | None) -> bool:
    """Whether the same statement may work later, unchanged; of several that ran at once, all of them."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_outage(one) for one in error.exceptions)
    if isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError | sa.exc.TimeoutError):
        return True
    if not isinstance(error, sa.exc.DBAPIError):
        return False
    return error.connection_invalidated or getattr(error.orig, "sqlstate", None) in PASSING_STATES
