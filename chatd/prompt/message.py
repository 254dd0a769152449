"""One message of a prompt, before any vendor's shape."""

from dataclasses import dataclass
from typing import Literal

from chatd.wire import Part

__all__ = ["PromptMessage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptMessage:
    """One message of the prompt; tool results stand in messages of role ``tool``, media resolved inline."""

    role: Literal["user", "assistant", "tool"]
    content: tuple[Part, ...]
