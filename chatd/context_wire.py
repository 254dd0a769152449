"""What a chat knows of its workspace's instructions and skills, as JSON."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict

__all__ = ["ChangedResource", "ChatContext", "ContextDiff", "ContextResource"]


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ContextResource(_Wire):
    """One resource of a chat's context, without its text."""

    source: str
    kind: str
    status: str
    size_bytes: int
    error: str | None = None
    description: str | None = None
    skill_name: str | None = None


class ChatContext(_Wire):
    """
    What a chat knows of its workspace's instructions and skills.

    *dirty*: the workspace has other ones by now; a refresh takes them. *resources* are
    told when one chat is asked for. Without a pin, *error* says why.
    """

    pinned: bool
    dirty: bool = False
    dirty_since: datetime | None = None
    error: str | None = None
    resources: tuple[ContextResource, ...] | None = None


class ChangedResource(_Wire):
    """A resource before and after a refresh, with a unified diff of its texts."""

    before: ContextResource
    after: ContextResource
    diff: str = ""
    truncated: bool = False


class ContextDiff(_Wire):
    """What a refresh would change."""

    added: tuple[ContextResource, ...] = ()
    removed: tuple[ContextResource, ...] = ()
    modified: tuple[ChangedResource, ...] = ()
