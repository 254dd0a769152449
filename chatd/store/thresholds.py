"""At what percentage of a model's window each user's chats are summarised."""

from uuid import UUID

import sqlalchemy as sa

from chatd.store import schema

__all__ = ["delete_threshold", "list_thresholds", "read_threshold", "save_threshold"]

TABLE = schema.compaction_thresholds


def read_threshold(connection: sa.Connection, user_id: UUID, model_config_id: UUID) -> int | None:
    """The user's percentage for a model; None: she set none."""
    statement = sa.select(TABLE.c.threshold_percent).where(_row(user_id, model_config_id))
    return connection.execute(statement).scalar_one_or_none()


def list_thresholds(connection: sa.Connection, user_id: UUID) -> dict[UUID, int]:
    """The user's percentages by model."""
    statement = sa.select(TABLE).where(TABLE.c.user_id == user_id).order_by(TABLE.c.model_config_id)
    return {row.model_config_id: row.threshold_percent for row in connection.execute(statement)}


def save_threshold(connection: sa.Connection, user_id: UUID, model_config_id: UUID, percent: int) -> None:
    """Set the user's percentage for a model."""
    delete_threshold(connection, user_id, model_config_id)
    row = {"user_id": user_id, "model_config_id": model_config_id, "threshold_percent": percent}
    connection.execute(TABLE.insert().values(row))


def delete_threshold(connection: sa.Connection, user_id: UUID, model_config_id: UUID) -> None:
    """Go back to the model's own percentage."""
    connection.execute(TABLE.delete().where(_row(user_id, model_config_id)))


def _row(user_id: UUID, model_config_id: UUID) -> sa.ColumnElement[bool]:
    return (TABLE.c.user_id == user_id) & (TABLE.c.model_config_id == model_config_id)
