"""Model configurations as rows: chats point at them even after their key is gone."""

from collections.abc import Iterable
from datetime import datetime

import sqlalchemy as sa

from chatd.store import schema
from chatd.wire import ModelConfig

__all__ = ["save_configs"]


def save_configs(connection: sa.Connection, configs: Iterable[ModelConfig], *, now: datetime) -> None:
    """Insert what is new, refresh what is known; nothing is deleted."""
    table = schema.model_configs
    for config in configs:
        values = {
            "provider": config.provider,
            "model": config.model,
            "display_name": config.display_name,
            "rehearsal": config.rehearsal,
        }
        updated = connection.execute(table.update().where(table.c.id == config.id).values(values))
        if updated.rowcount == 0:
            connection.execute(table.insert().values(id=config.id, created_at=now, **values))
