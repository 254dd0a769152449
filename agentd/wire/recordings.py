"""
Recordings over the link and the local API.

The control plane calls ``recordings/start``, ``recordings/stop``, ``recordings/list`` and
``recordings/read``. A film stays in the workspace; whoever wants it reads it piece by piece.
"""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "MAX_PIECE_BYTES",
    "RECORDINGS_LIST",
    "RECORDINGS_READ",
    "RECORDINGS_START",
    "RECORDINGS_STOP",
    "RecordingInfo",
    "RecordingList",
    "RecordingPiece",
    "RecordingReadParams",
    "RecordingStartParams",
    "RecordingStopParams",
    "RecordingStopped",
]

RECORDINGS_START = "recordings/start"
RECORDINGS_STOP = "recordings/stop"
RECORDINGS_LIST = "recordings/list"
RECORDINGS_READ = "recordings/read"
# Bytes of a film in one answer: base64 makes a third more of it, and others use the link as well.
MAX_PIECE_BYTES = 512 * 1024

RecordingState = Literal["recording", "processing", "ready", "failed"]


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class RecordingInfo(_Wire):
    """
    One recording.

    ``recording``: the film grows. ``processing``: it is whole and plays, its stills are being sped
    up. ``ready``: it stays as it is. ``failed``: there is no film that plays.
    """

    id: UUID
    desktop: str
    chat_id: str | None = None
    state: RecordingState
    reason: str | None = Field(
        default=None,
        description="Why it ended: asked, idle, duration_limit, size_limit, desktop_lost, disk, killed, "
        "shutdown.",
    )
    started_at: datetime
    stopped_at: datetime | None = None
    duration_s: float | None = Field(default=None, description="Of the film as it is now.")
    size_bytes: int | None = None
    width: int | None = None
    height: int | None = None
    media_type: Literal["video/mp4"] = "video/mp4"
    has_thumbnail: bool = False
    error: str | None = None


class RecordingStartParams(_Wire):
    """Start recording; an active recording of the same id goes on, an ended one is made anew."""

    id: UUID | None = Field(default=None, description="A new one when absent.")
    desktop: str | None = Field(default=None, description="The chat's, or the main one, when absent.")
    chat_id: str | None = None
    agent_chat_id: str | None = Field(
        default=None, description="Agent whose desktop is meant, where each has its own; null: the chat's."
    )


class RecordingStopParams(_Wire):
    """Stop recording; one that has ended stays as it is."""

    id: UUID
    settle_s: Annotated[float, Field(ge=0, le=300)] = Field(
        default=0, description="Answer once the film's stills are sped up, or that much later at most."
    )


class RecordingStopped(_Wire):
    """A recording that ended, and a small picture of its end."""

    recording: RecordingInfo
    thumbnail: str | None = Field(default=None, description="JPEG, base64")


class RecordingList(_Wire):
    """All recordings, newest first."""

    recordings: tuple[RecordingInfo, ...]


class RecordingReadParams(_Wire):
    """Read a piece of a film."""

    id: UUID
    offset: Annotated[int, Field(ge=0)] = 0
    length: Annotated[int, Field(ge=1, le=MAX_PIECE_BYTES)] = MAX_PIECE_BYTES


class RecordingPiece(_Wire):
    """Bytes of a film; *total_bytes* is its size now."""

    data: str = Field(description="base64")
    offset: int
    total_bytes: int
    media_type: str = "video/mp4"
