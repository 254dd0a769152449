"""Why a chat does not go on, read from the database itself: it works when chatd does not."""

from uuid import UUID

import sqlalchemy as sa

from chatd.errors import NotFound, Unavailable
from chatd.settings import ChatdSettings
from chatd.state.why import Why, explain
from chatd.store.database import Database, sqlite_url
from chatd.store.facts import read_facts
from chatd.store.store import utc_now

__all__ = ["ask_why", "render_why"]


async def ask_why(settings: ChatdSettings, chat_id: UUID) -> Why:
    """
    Read and explain; nothing is written, so a chatd may run meanwhile.

    Raises:
        NotFound: there is no such database or chat.
        Unavailable: the database can't be read, or is of another version.
    """
    if settings.database is None and not settings.database_path.is_file():
        raise NotFound(f"there is no {settings.database_path}; name the data directory with --data")
    database = Database(settings.database or sqlite_url(settings.database_path))
    try:
        return explain(await database.read(read_facts, chat_id), now=utc_now(), lease=settings.lease)
    except sa.exc.DatabaseError as exc:
        raise Unavailable(f"can't read {database}: {exc.orig}") from exc
    finally:
        await database.close()


def render_why(why: Why) -> str:
    """The answer for people, one fact a line."""
    lines = [f"{why.waits_for}: {why.summary}", f"since {why.since:%Y-%m-%d %H:%M:%S} UTC, state {why.state}"]
    if why.deadline_at is not None:
        lines.append(f"until {why.deadline_at:%Y-%m-%d %H:%M:%S} UTC at the latest")
    if why.lease is not None:
        lines.append(f"owned by runner {why.lease.runner_id}, last sign of life {why.lease.heartbeat_at}")
    lines += [
        f"call {call.tool_call_id}: {call.tool_name}, handed over {call.handed_over_at or 'never'}"
        for call in why.calls
    ]
    lines += [f"agent {child.chat_id}: {child.title}, {child.status}" for child in why.children]
    if why.queued:
        lines.append(f"{why.queued} messages wait behind it")
    return "\n".join([*lines, f"{why.unblocked_by} can help: {why.advice}"])
