"""What is done once an hour: old chats are archived or deleted; what is forgotten or has ended goes."""

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

import sqlalchemy as sa
import structlog

from chatd.constants import ANSWER_S, AUTO_ARCHIVE_BATCH, AUTO_ARCHIVE_INTERVAL_S, UPLOAD_S
from chatd.errors import ChatdError, Refused
from chatd.store import audit, deployment, requests, tokens, uploads
from chatd.store.idle import delete_archived, idle_roots
from chatd.store.machine import ChatTx
from chatd.store.spending import period_bounds
from chatd.store.store import Store
from chatd.worker.services import Services

__all__ = ["archive_idle", "idle_limit", "keep_house"]

# How long a token that ended can still be looked up.
TOKEN_KEPT = timedelta(days=30)

log = structlog.get_logger("chatd.housekeeping")


async def keep_house(services: Services) -> None:
    """Work for ever, an hour apart; a failure is logged and tried again."""
    while True:
        try:
            await clean_up(services)
        except (sa.exc.SQLAlchemyError, ChatdError):
            log.exception("housekeeping failed", action="housekeeping_failed")
        await asyncio.sleep(AUTO_ARCHIVE_INTERVAL_S)


async def clean_up(services: Services) -> None:
    """One round."""
    store = services.store
    now = store.now()
    await store.write(uploads.delete_unlinked, before=now - timedelta(seconds=UPLOAD_S))
    await store.write(requests.delete_answers, before=now - timedelta(seconds=ANSWER_S))
    await store.write(tokens.delete_dead, before=now - TOKEN_KEPT)
    await store.write(audit.delete_entries, before=now - timedelta(days=services.settings.audit_days))
    days = await services.auto_archive_days()
    if days:
        archived = await archive_idle(store, before=idle_limit(now, days))
        log.info("idle chats archived", action="auto_archived", count=archived)
    kept_days = await store.read(deployment.read_setting, "retention-days")
    if kept_days:
        # What was paid for in a limit's period still counts in it.
        month, _ = period_bounds("month", now)
        deleted = await store.write(delete_archived, before=min(idle_limit(now, kept_days), month))
        log.info("archived chats deleted", action="chats_deleted", count=deleted)


def idle_limit(now: datetime, days: int) -> datetime:
    """The start of the UTC day *days* before today's."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today - timedelta(days=days)


async def archive_idle(store: Store, *, before: datetime) -> int:
    """Archive the families of idle roots, each judged again under its locks; how many."""
    count = 0
    for root_id in await store.read(idle_roots, before=before, limit=AUTO_ARCHIVE_BATCH):
        try:
            await store.transition_family(root_id, partial(_archive, root_id=root_id, before=before))
        except Refused:
            # Used again since the look.
            continue
        count += 1
    return count


def _archive(tx: ChatTx, *, root_id: UUID, before: datetime) -> None:
    if tx.chat_id == root_id and not idle_roots(tx.connection, before=before, limit=1, only=root_id):
        raise Refused("used again")
    if not tx["archived"]:
        tx.archive()
