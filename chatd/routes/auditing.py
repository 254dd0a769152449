"""Entries of the audit log for requests: who asked, and from where."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa
from aiohttp import web

from chatd.audit import AuditAction, AuditEntry
from chatd.routes.context import IDENTITY, services
from chatd.routes.guarding import remote_of
from chatd.store import audit

__all__ = ["entry_of", "record", "write_audited"]

T = TypeVar("T")
P = ParamSpec("P")


def entry_of(
    request: web.Request, action: AuditAction, *, target: str | None = None, **details: str
) -> AuditEntry:
    """An entry about what the caller does; who has no token is a guest."""
    who = request.get(IDENTITY)
    return AuditEntry(
        action=action,
        actor="guest" if who is None else who.user_name,
        actor_id=None if who is None else who.user_id,
        target=target,
        remote=remote_of(request),
        details=details,
    )


async def record(
    request: web.Request, action: AuditAction, *, target: str | None = None, **details: str
) -> None:
    """Note what is no change of the database: a refusal, an opening."""
    store = services(request).store
    entry = entry_of(request, action, target=target, **details)
    await store.write(audit.note, entry, now=store.now())


async def write_audited(
    request: web.Request,
    entry: AuditEntry | Callable[[T], AuditEntry | None],
    run: Callable[Concatenate[sa.Connection, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """*run* and its entry in one transaction."""
    store = services(request).store
    return await store.write(audit.audited(run, entry, at=store.now()), *args, **kwargs)
