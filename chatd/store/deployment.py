"""What people set for the deployment while it runs, and what its new chats are told."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import sqlalchemy as sa

from chatd.store import schema
from chatd.store.inserts import upsert

__all__ = [
    "SettingName",
    "read_setting",
    "read_user_prompt",
    "save_setting",
    "save_user_prompt",
    "standing_prompts",
]

SettingName = Literal[
    "system-prompt",
    "plan-mode-instructions",
    "auto-archive-days",
    "retention-days",
    "usage-limits",
    "default-model",
    "personal-model-overrides",
]


def read_setting(connection: sa.Connection, name: SettingName) -> Any:  # noqa: ANN401 -- JSON
    """What was set; None: nothing was."""
    table = schema.deployment_settings
    return connection.execute(sa.select(table.c.value).where(table.c.name == name)).scalar_one_or_none()


def save_setting(connection: sa.Connection, name: SettingName, value: object, *, now: datetime) -> None:
    """Set it; None takes it back."""
    table = schema.deployment_settings
    if value is None:
        connection.execute(table.delete().where(table.c.name == name))
        return
    upsert(connection, table, {"name": name, "value": value, "updated_at": now}, key=("name",))


def read_user_prompt(connection: sa.Connection, user_id: UUID) -> str:
    """What the user wants new chats to be told; empty for nothing."""
    users = schema.users
    prompt = connection.execute(sa.select(users.c.prompt).where(users.c.id == user_id)).scalar_one()
    return prompt or ""


def save_user_prompt(connection: sa.Connection, user_id: UUID, prompt: str) -> None:
    """Set it; empty takes it back."""
    users = schema.users
    connection.execute(users.update().where(users.c.id == user_id).values(prompt=prompt or None))


def standing_prompts(connection: sa.Connection, user_id: UUID) -> Iterable[str]:
    """What a new chat of the user is told: by the deployment, then by the user; in one statement."""
    users, settings = schema.users, schema.deployment_settings
    deployment = sa.select(settings.c.value).where(settings.c.name == "system-prompt").scalar_subquery()
    statement = sa.select(deployment, users.c.prompt).where(users.c.id == user_id)
    return [text for text in connection.execute(statement).one() if text]
