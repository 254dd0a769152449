"""Workspaces and shared desktops, as the API tells them."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, ConfigDict

__all__ = ["DesktopShare", "Workspace"]


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class DesktopShare(_Wire):
    """A link by which anybody may watch a chat's desktop; *url* only in the answer that made it."""

    id: UUID
    created_at: datetime
    expires_at: datetime
    views: int = 0
    last_viewed_at: datetime | None = None
    url: str | None = None


class Workspace(_Wire):
    """A machine that chats work on, which is an agent's; *connected*: it is linked now."""

    id: UUID
    name: str
    connected: bool
    created_at: datetime
