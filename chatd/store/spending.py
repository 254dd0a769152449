"""
What a user spent, and the limit of it; amounts in millionths of a dollar.

Deleted messages count: they were paid for, and so were calls beside the turns. What has no price
counts as nothing and is told apart.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import UUID

import sqlalchemy as sa

from chatd.errors import NotFound, UsageLimitReached
from chatd.store import deployment, schema

__all__ = [
    "Limit",
    "LimitKind",
    "Period",
    "SpendPolicy",
    "Spending",
    "chat_cost",
    "list_limits",
    "period_bounds",
    "set_limit",
    "set_named_limit",
]

Period = Literal["day", "week", "month"]
LimitKind = Literal["user", "group"]
_LIMITED: dict[LimitKind, sa.Table] = {"user": schema.users, "group": schema.user_groups}


def period_bounds(period: Period, now: datetime) -> tuple[datetime, datetime]:
    """Start and end of the period that *now* is in; UTC, weeks from Monday."""
    day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if period == "day":
        return day, day + timedelta(days=1)
    if period == "week":
        monday = day - timedelta(days=day.weekday())
        return monday, monday + timedelta(days=7)
    first = day.replace(day=1)
    return first, (first + timedelta(days=32)).replace(day=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What holds for one user; None: no limit."""

    limit_micros: int | None
    period: Period


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending:
    """A user's spending in the period that lasts from *start* to *end*."""

    limit_micros: int | None
    period: Period
    spent_micros: int
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendPolicy:
    """
    The installation's limit for each user; None: only those who have one of their own.

    What people set while it runs is in its place.
    """

    limit_micros: int | None = None
    period: Period = "month"

    def stored(self, connection: sa.Connection) -> dict[str, Any]:
        """``{enabled, default_limit_micros, period}`` as people set it, else as the installation."""
        known: dict[str, Any] | None = deployment.read_setting(connection, "usage-limits")
        return self._usual() if known is None else known

    def limit_of(self, connection: sa.Connection, user_id: UUID) -> Limit:
        """The user's own limit, else the least of their groups', else everybody's; in one statement."""
        users, groups, members = schema.users, schema.user_groups, schema.user_group_members
        settings = schema.deployment_settings
        joined = sa.join(groups, members, groups.c.id == members.c.group_id)
        least = (
            sa.select(sa.func.min(groups.c.spend_limit_micros))
            .select_from(joined)
            .where(members.c.user_id == user_id)
        )
        stored = sa.select(settings.c.value).where(settings.c.name == "usage-limits")
        statement = sa.select(
            users.c.spend_limit_micros, least.scalar_subquery(), stored.scalar_subquery()
        ).where(users.c.id == user_id)
        own, group, known = connection.execute(statement).one()
        policy = known or self._usual()
        limits = (own, group, policy["default_limit_micros"])
        limit = next((one for one in limits if one is not None), None)
        return Limit(limit_micros=limit if policy["enabled"] else None, period=policy["period"])

    def _usual(self) -> dict[str, Any]:
        return {"enabled": True, "default_limit_micros": self.limit_micros, "period": self.period}

    def spending_of(self, connection: sa.Connection, user_id: UUID, *, now: datetime) -> Spending:
        """What the user spent in the current period, and the limit of it."""
        limit = self.limit_of(connection, user_id)
        start, end = period_bounds(limit.period, now)
        return Spending(
            limit_micros=limit.limit_micros,
            period=limit.period,
            spent_micros=_spent(connection, user_id, start),
            start=start,
            end=end,
        )

    def check(self, connection: sa.Connection, user_id: UUID, *, now: datetime) -> None:
        """
        Let the user ask for one more answer.

        Raises:
            UsageLimitReached: the period's limit is used up.

        Transaction: joined. Two requests at once may both pass: the next one will not.
        """
        limit = self.limit_of(connection, user_id)
        if limit.limit_micros is None:
            return
        start, end = period_bounds(limit.period, now)
        spent = _spent(connection, user_id, start)
        if spent >= limit.limit_micros:
            raise UsageLimitReached(
                f"this {limit.period}'s usage limit is used up; it begins anew at {end.isoformat()}",
                spent_micros=spent,
                limit_micros=limit.limit_micros,
                resets_at=end.isoformat(),
            )


def _spent(connection: sa.Connection, user_id: UUID, start: datetime) -> int:
    chats = schema.chats

    def sum_of(table: sa.Table) -> sa.ScalarSelect[Any]:
        return (
            sa.select(sa.func.coalesce(sa.func.sum(table.c.cost_micros), 0))
            .join(chats, chats.c.id == table.c.chat_id)
            .where(chats.c.owner_id == user_id, table.c.created_at >= start)
            .scalar_subquery()
        )

    total = sum_of(schema.messages) + sum_of(schema.side_calls)
    return int(connection.execute(sa.select(total)).scalar_one())


def set_limit(connection: sa.Connection, user_id: UUID, limit_micros: int | None) -> None:
    """Give a user a limit of their own; None takes it away."""
    users = schema.users
    connection.execute(users.update().where(users.c.id == user_id).values(spend_limit_micros=limit_micros))


def set_named_limit(connection: sa.Connection, kind: LimitKind, name: str, limit_micros: int | None) -> None:
    """
    Give a user or the members of a group a limit of their own; None takes it away.

    Raises:
        NotFound: there is none of that name.
    """
    table = _LIMITED[kind]
    change = table.update().where(table.c.name == name).values(spend_limit_micros=limit_micros)
    if connection.execute(change).rowcount != 1:
        raise NotFound(f"no such {kind}")


def list_limits(connection: sa.Connection, kind: LimitKind) -> dict[str, int]:
    """Limits of users or groups that have one, by name."""
    table = _LIMITED[kind]
    has_limit = table.c.spend_limit_micros.is_not(None)
    rows = connection.execute(sa.select(table).where(has_limit).order_by(table.c.name))
    return {row.name: row.spend_limit_micros for row in rows}


def chat_cost(connection: sa.Connection, chat_id: UUID) -> dict[str, Any]:
    """
    What a chat and all chats below it cost: their answers, and the calls beside them.

    Totals are of both; the other counts tell them apart.
    """
    chats, messages = schema.chats, schema.messages
    family = sa.select(chats.c.id).where(
        sa.or_(chats.c.id == chat_id, chats.c.parent_chat_id == chat_id, chats.c.root_chat_id == chat_id)
    )
    # Older rows of other roles hold what a summary or advice cost.
    answers = _totals(connection, messages, family)
    beside = _totals(connection, schema.side_calls, family)
    return {
        "total_cost_micros": answers["cost_micros"] + beside["cost_micros"],
        "priced_messages": answers["priced"],
        "unpriced_messages": answers["unpriced"],
        "input_tokens": answers["input_tokens"] + beside["input_tokens"],
        "output_tokens": answers["output_tokens"] + beside["output_tokens"],
        "side_call_cost_micros": beside["cost_micros"],
        "priced_side_calls": beside["priced"],
        "unpriced_side_calls": beside["unpriced"],
    }


def _totals(connection: sa.Connection, table: sa.Table, family: sa.Select[Any]) -> sa.RowMapping:
    tokens = table.c.total_tokens.is_not(None) | table.c.output_tokens.is_not(None)

    def sum_of(name: str) -> sa.Label[int]:
        return sa.cast(sa.func.coalesce(sa.func.sum(table.c[name]), 0), sa.BigInteger).label(name)

    statement = sa.select(
        *map(sum_of, ("cost_micros", "input_tokens", "output_tokens")),
        sa.func.count(table.c.cost_micros).label("priced"),
        sa.func.count(sa.case((tokens & table.c.cost_micros.is_(None), 1))).label("unpriced"),
    ).where(table.c.chat_id.in_(family))
    return connection.execute(statement).mappings().one()
