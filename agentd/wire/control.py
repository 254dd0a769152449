"""Control of a desktop's input, as it travels."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["ControlParams", "ControlState", "SeatName", "ViewerFigures", "ViewerGrant"]

SeatName = Annotated[str, Field(min_length=1, max_length=200)]


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ControlState(_Wire):
    """Who has control of a desktop's input; without a *seat* it is the agent."""

    epoch: int = Field(description="Grows with each change of holder.")
    seat: str | None = Field(default=None, description="The person's screen that has control.")
    name: str | None = Field(default=None, description="The person's name.")
    ends_in_s: float | None = Field(default=None, description="Seconds until it ends, unless it is used.")


class ControlParams(_Wire):
    """Take control of a desktop for a person's screen, or give it back."""

    wish: Literal["take", "give_back"]
    seat: SeatName
    name: SeatName
    chat_id: str | None = Field(default=None, description="Chat that a person opened; null: of nobody.")
    agent_chat_id: str | None = Field(
        default=None, description="Agent whose desktop is meant, where each has its own; null: the chat's."
    )


class ViewerGrant(_Wire):
    """
    What one viewer of a desktop may do, decided by whoever let it in.

    ``view`` never gets input through; ``control`` does while its seat has control; ``take`` asks for
    control when it connects, and again with each press while nobody else has it.
    """

    seat: SeatName
    name: SeatName = "a person"
    may: Literal["view", "control", "take"] = "view"
    sees_clipboard: bool = Field(
        default=True, description="Without it, the viewer must know the extended clipboard, and gets no text."
    )


class ViewerFigures(_Wire):
    """One viewer, as ``agentd desktop viewers`` shows it."""

    id: int
    desktop: str
    seat: str
    name: str
    may: str = Field(description="view, control or take")
    role: str = Field(description="viewer or controller, at this moment")
    source: str = Field(description="server: the desktop's own stream; broadcast: encoded once for many.")
    since: datetime
    sent_bytes: int
    received_bytes: int
    frames: int | None = Field(
        description="Updates that the viewer has taken in; null: it gets them unasked and does not tell."
    )
    lag_ms: float = Field(description="How long it has not taken what waits for it; 0 when nothing waits.")
    dropped: dict[str, int] = Field(description="Messages that were not passed on, by what they were.")
