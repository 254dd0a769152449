"""
Which form of its computer tool a vendor's model takes, and which actions that form knows. Tables.

A model that is not named here is newer than the table and gets the newest form.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["FORMS", "AnthropicForm", "ComputerForm", "anthropic_form", "is_preview_model", "lacking_actions"]

# ``single`` is ``computer_20251124``, the newest of the tools that are one tool.
ComputerForm = Literal["toolset", "single", "20250124", "20241022"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicForm:
    """
    One version of Anthropic's computer tool.

    Args:
        type: its name in a request.
        beta: the header it needs; None for one that is no beta any more.
        actions: what it can do.
    """

    type: str
    beta: str | None
    actions: frozenset[str]


_FIRST = frozenset(
    {
        "cursor_position", "double_click", "key", "left_click", "left_click_drag", "middle_click",
        "mouse_move", "right_click", "screenshot", "type",
    }
)  # fmt: skip
_SECOND = _FIRST | {"hold_key", "left_mouse_down", "left_mouse_up", "scroll", "triple_click", "wait"}
_THIRD = _SECOND | {"zoom"}

FORMS: Mapping[ComputerForm, AnthropicForm] = {
    "toolset": AnthropicForm(type="computer_toolset_20260801", beta=None, actions=_THIRD),
    "single": AnthropicForm(type="computer_20251124", beta="computer-use-2025-11-24", actions=_THIRD),
    "20250124": AnthropicForm(type="computer_20250124", beta="computer-use-2025-01-24", actions=_SECOND),
    "20241022": AnthropicForm(type="computer_20241022", beta="computer-use-2024-10-22", actions=_FIRST),
}

# Older models by the beginning of their names; the first that fits. From 5 on the toolset.
_MODELS: tuple[tuple[re.Pattern[str], ComputerForm], ...] = (
    (re.compile(r"claude-3-5-"), "20241022"),
    (
        re.compile(
            r"claude-3-7-|claude-(?:sonnet|haiku)-4-5|claude-opus-4-1|claude-(?:opus|sonnet)-4-(?:0|2\d{7})"
        ),
        "20250124",
    ),
    (re.compile(r"claude-(?:opus|sonnet|haiku)-4-"), "single"),
)
_PREVIEW = re.compile(r"computer-use-preview")


def anthropic_form(model: str) -> ComputerForm:
    """The form that *model* takes."""
    return next((form for pattern, form in _MODELS if pattern.match(model)), "toolset")


def lacking_actions(form: ComputerForm, input_schema: Mapping[str, Any]) -> list[str]:
    """
    What *form* can do and the desktop can't, by its canonical schema; nothing where that names no actions.

    A workspace's daemon may be older than we are, and its schema is what it can do.
    """
    kinds = [kind for kind in input_schema.get("$defs", {}).values() if isinstance(kind, Mapping)]
    told = [kind.get("properties", {}).get("action", {}) for kind in kinds]
    offered = {name for action in told for name in (*action.get("enum", ()), action.get("const"))} - {None}
    return sorted(FORMS[form].actions - offered) if offered else []


def is_preview_model(model: str) -> bool:
    """Whether OpenAI's *model* takes ``computer_use_preview``, which asks for one action at a time."""
    return _PREVIEW.match(model) is not None
