"""Events of a chat's stream that hold nothing stored: what to forget, and how a call goes."""

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict

__all__ = ["HistoryResetEvent", "PreviewResetEvent", "ToolProgressEvent"]


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    def to_json(self) -> str:
        """As it travels."""
        return self.model_dump_json()


class PreviewResetEvent(_Wire):
    """Forget every fragment shown so far."""

    type: Literal["preview_reset"] = "preview_reset"
    chat_id: UUID


class ToolProgressEvent(_Wire):
    """What a call that runs tells of itself, in place of what it told before; *seq* grows with each."""

    type: Literal["tool_progress"] = "tool_progress"
    chat_id: UUID
    tool_call_id: str
    text: str
    seq: int


class HistoryResetEvent(_Wire):
    """Forget every message; the current ones follow."""

    type: Literal["history_reset"] = "history_reset"
    chat_id: UUID
