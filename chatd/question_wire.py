"""What an agent asked while it went on, as the API tells it."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, ConfigDict

__all__ = ["AskedOption", "AskedQuestion", "OpenQuestion"]


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class AskedOption(_Wire):
    """One answer to choose."""

    label: str
    description: str


class AskedQuestion(_Wire):
    """One question, with its answers to choose from; another one may be given."""

    header: str
    question: str
    options: tuple[AskedOption, ...]


class OpenQuestion(_Wire):
    """Questions that were asked together and are answered together, by a ``question-answer``."""

    question_id: UUID
    message_id: int
    asked_at: datetime
    questions: tuple[AskedQuestion, ...]
