"""Models that chats may use, how hard they are asked to think, and which one a person prefers, as JSON."""

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["EFFORTS", "ModelConfig", "ModelOverride", "OverrideContext", "ReasoningEffort", "StoredModel"]

# How hard a model thinks before it answers: the union of the vendors' words, the least first.
ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
# Chats that a person opens, and agents that these start. Those at the desktop have their chat's model.
OverrideContext = Literal["root", "general", "explore"]
EFFORTS: tuple[ReasoningEffort, ...] = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class ModelConfig(BaseModel):
    """A model that chats may use. *rehearsal* marks the built-in stand-in that needs no key."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: UUID
    provider: Literal["anthropic", "google", "openai", "openai-compat"]
    model: str
    display_name: str
    is_default: bool = False
    rehearsal: bool = False
    fallback_id: UUID | None = Field(
        default=None, description="The model that a turn goes on with when this one fails."
    )
    reasoning_efforts: tuple[ReasoningEffort, ...] = Field(
        default=(),
        description="What reasoning_effort of a message may be; none: it offers no choice.",
    )
    default_reasoning_effort: ReasoningEffort | None = Field(
        default=None, description="What a chat that chose none gets; absent: the vendor's own."
    )


class StoredModel(BaseModel):
    """A model as the database has it; not *enabled*: no key for it any more, kept for chats that had it."""

    id: UUID
    provider: str
    model: str
    display_name: str
    is_default: bool
    rehearsal: bool
    enabled: bool


class ModelOverride(BaseModel):
    """The model, and how hard it thinks, that a person's new chats or agents get unless another is named."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model_config_id: UUID
    reasoning_effort: ReasoningEffort | None = Field(default=None, description="Absent: the model's own.")
