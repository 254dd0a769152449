"""
What the vendors' computer tools have in common: the canonical call.

Vendor modules turn their own shape into plain action objects; here they are
checked against ``computer.wire`` and become a tool call's arguments, or a
sentence that says why they cannot.
"""

from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from chatd.wire import ToolCallPart
from computer.wire import ComputerCall

__all__ = [
    "COMPUTER_TOOL",
    "BadAction",
    "MappedCall",
    "canonical_call",
    "read_canonical",
    "refuse",
    "replayable_actions",
]

COMPUTER_TOOL = "computer"
# Characters of a refusal; enough for one validation error.
_MAX_REASON = 300


class BadAction(ValueError):
    """A vendor's action that has no meaning here; the text goes to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedCall:
    """Arguments of the canonical ``computer`` tool; *invalid* says why there are none."""

    args: dict[str, Any]
    invalid: str | None = None


def canonical_call(actions: list[dict[str, Any]], model_size: tuple[int, int]) -> MappedCall:
    """Check *actions* and frame them; coordinates are pixels of a *model_size* screenshot."""
    return read_canonical({"actions": actions}, model_size)


def read_canonical(args: dict[str, Any], model_size: tuple[int, int]) -> MappedCall:
    """Check arguments that a model wrote in the canonical form; the frame is ours, not the model's."""
    framed = {"screenshot": True, **args, "model_size": list(model_size)}
    try:
        ComputerCall.model_validate(framed)
    except ValidationError as error:
        return refuse(_first_problem(error))
    return MappedCall(args=framed)


def refuse(reason: str) -> MappedCall:
    """Return a call that must not run, with its reason."""
    return MappedCall(args={}, invalid=f"The computer action was not understood: {reason}"[:_MAX_REASON])


def replayable_actions(part: ToolCallPart) -> list[dict[str, Any]]:
    """
    Return a stored call's actions with defaults filled in, for translation into another vendor's shape.

    Trailing screenshots go: every vendor's call ends with one anyway. Empty when the
    stored arguments are no canonical call.
    """
    try:
        call = ComputerCall.model_validate(part.args or {})
    except ValidationError:
        return []
    actions = [action.model_dump(mode="json", exclude_none=True) for action in call.actions]
    while len(actions) > 1 and actions[-1]["action"] == "screenshot":
        actions.pop()
    return actions


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    # Location: "actions", the index, the discriminator's tag, then the field.
    where = ".".join(str(step) for step in first["loc"])
    return f"{where}: {first['msg']}"
