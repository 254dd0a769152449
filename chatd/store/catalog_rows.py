"""Model configurations as rows: chats point at them even after their key is gone."""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import sqlalchemy as sa

from chatd.model_wire import ModelConfig
from chatd.store import schema
from chatd.store.inserts import insert_new

__all__ = ["ModelName", "list_configs", "name_of", "save_configs"]


class ModelName(NamedTuple):
    """What a model is called at its vendor."""

    provider: str
    model: str


def list_configs(connection: sa.Connection, *, and_gone: bool) -> list[sa.RowMapping]:
    """Models that there is a key for, the default first; *and_gone*: then those that there was one for."""
    table = schema.model_configs
    statement = sa.select(table).order_by(
        table.c.enabled.desc(), table.c.is_default.desc(), table.c.provider, table.c.model, table.c.id
    )
    if not and_gone:
        statement = statement.where(table.c.enabled)
    return list(connection.execute(statement).mappings())


def save_configs(connection: sa.Connection, configs: Iterable[ModelConfig], *, now: datetime) -> None:
    """Insert what is new, refresh what is known, disable what is gone; nothing is deleted."""
    table = schema.model_configs
    connection.execute(table.update().values(enabled=False, is_default=False))
    for config in configs:
        values = {
            "provider": config.provider,
            "model": config.model,
            "display_name": config.display_name,
            "rehearsal": config.rehearsal,
            "enabled": True,
            "is_default": config.is_default,
        }
        if not insert_new(connection, table, {"id": config.id, "created_at": now, **values}):
            connection.execute(table.update().where(table.c.id == config.id).values(values))


def name_of(connection: sa.Connection, config_id: UUID) -> ModelName | None:
    """The name of a model that was offered once; None for one that never was."""
    table = schema.model_configs
    found = connection.execute(sa.select(table.c.provider, table.c.model).where(table.c.id == config_id))
    row = found.one_or_none()
    return ModelName(row.provider, row.model) if row is not None else None
