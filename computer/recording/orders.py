"""What a recorder is asked to do and what it tells, as JSON between two processes."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["CHANGES_SUFFIX", "THUMBNAIL_SUFFIX", "FinishOrder", "RecordOrder", "Report"]

# Beside the film: when something changed (little-endian u32 milliseconds), and the picture of its end.
CHANGES_SUFFIX = ".changes"
THUMBNAIL_SUFFIX = ".thumb.jpg"


class _Order(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RecordOrder(_Order):
    """Record *display* into *path* until told to stop or a limit is reached."""

    display: str
    authority: str | None = Field(default=None, description="X authority file with the cookie.")
    path: str = Field(description="The film; must not exist.")
    frames_per_s: int = Field(default=15, ge=1, le=60)
    max_duration_s: float = Field(default=3600, gt=0)
    max_bytes: int = Field(default=100 * 2**20, gt=0)


class FinishOrder(_Order):
    """Make a recorded film seekable, with its stills sped up, and its thumbnail if that is missing."""

    path: str
    speedup: float = Field(default=20, ge=1)
    least_idle_s: float = Field(default=0.35, gt=0)


class Report(_Order):
    """One line of a recorder's output."""

    event: Literal["started", "stopped", "finished"]
    reason: Literal["asked", "duration_limit", "size_limit", "desktop_lost", "disk", ""] = ""
    detail: str = ""
    duration_s: float = 0
    width: int = 0
    height: int = 0
