"""The models that people prefer over what their new chats and agents would get, and whether they may."""

from uuid import UUID

import sqlalchemy as sa

from chatd.model_wire import ModelOverride, OverrideContext
from chatd.store import deployment, schema
from chatd.store.inserts import upsert

__all__ = ["are_allowed", "delete_override", "list_overrides", "read_override", "save_override"]

_TABLE = schema.model_overrides


def are_allowed(connection: sa.Connection) -> bool:
    """Whether people's preferences count: unless an administrator said no."""
    return deployment.read_setting(connection, "personal-model-overrides") is not False


def read_override(connection: sa.Connection, user_id: UUID, context: OverrideContext) -> ModelOverride | None:
    """What the user prefers there; None: nothing, or preferences don't count."""
    if not are_allowed(connection):
        return None
    return list_overrides(connection, user_id).get(context)


def list_overrides(connection: sa.Connection, user_id: UUID) -> dict[OverrideContext, ModelOverride]:
    """What the user prefers, whether it counts or not."""
    statement = sa.select(_TABLE).where(_TABLE.c.user_id == user_id)
    return {
        row["context"]: ModelOverride(
            model_config_id=row["model_config_id"], reasoning_effort=row["reasoning_effort"]
        )
        for row in connection.execute(statement).mappings()
    }


def save_override(
    connection: sa.Connection, user_id: UUID, context: OverrideContext, wish: ModelOverride
) -> None:
    """Prefer this model there, in place of what was preferred before."""
    values = {"user_id": user_id, "context": context, **wish.model_dump()}
    upsert(connection, _TABLE, values, key=("user_id", "context"))


def delete_override(connection: sa.Connection, user_id: UUID, context: OverrideContext) -> None:
    """Prefer nothing there."""
    mine = (_TABLE.c.user_id == user_id) & (_TABLE.c.context == context)
    connection.execute(_TABLE.delete().where(mine))
