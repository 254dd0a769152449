"""
Anthropic's computer actions, to and from the canonical ones. Pure; one table serves both directions.

Serves the toolset (``computer_toolset_20260801``: the block's name is the action)
and the single tool (``computer_20251124``: the action stands in the input).

Source: ``anthropic.types.Computer*Input``.
"""

from collections.abc import Callable, Mapping
from typing import Any

from chatd.provider.computer_map import BadAction, MappedCall, canonical_call, refuse
from computer.wire import MAX_ACTIONS, MAX_SCROLL_NOTCHES

__all__ = ["anthropic_from_canonical", "canonical_from_anthropic"]

_CLICK = {"coordinate": "coordinate", "text": "modifiers"}
# action -> {vendor's field: canonical field}
_FIELDS: Mapping[str, Mapping[str, str]] = {
    "screenshot": {},
    "cursor_position": {},
    "zoom": {"region": "region"},
    "mouse_move": {"coordinate": "coordinate"},
    "left_click": _CLICK,
    "right_click": _CLICK,
    "middle_click": _CLICK,
    "double_click": _CLICK,
    "triple_click": _CLICK,
    "left_click_drag": {"start_coordinate": "start_coordinate", **_CLICK},
    "left_mouse_down": {},
    "left_mouse_up": {},
    "scroll": {"scroll_direction": "scroll_direction", "scroll_amount": "scroll_amount", **_CLICK},
    "type": {"text": "text"},
    "key": {"text": "text"},
    "hold_key": {"text": "text", "duration": "duration_ms"},
    "wait": {"duration": "duration_ms"},
}


def canonical_from_anthropic(name: str, given: Mapping[str, Any], model_size: tuple[int, int]) -> MappedCall:
    """Translate one action; *name* is the action, *given* its parameters (unknown ones are ignored)."""
    fields = _FIELDS.get(name)
    if fields is None:
        return refuse(f"there is no action {name!r}")
    try:
        action: dict[str, Any] = {"action": name}
        for vendor_field, field in fields.items():
            value = given.get(vendor_field)
            # Absent and null mean the default; [0, 0] and 0 are values.
            if value is not None and value != "":
                action[field] = _TRANSFORMS.get(field, _unchanged)(value)
        return canonical_call([action] * _repeat(name, given), model_size)
    except BadAction as error:
        return refuse(str(error))


def anthropic_from_canonical(actions: list[dict[str, Any]]) -> tuple[str, dict[str, Any]] | None:
    """Return the action and its parameters, None if one Anthropic call cannot say the same."""
    if not actions or any(action != actions[0] for action in actions):
        return None
    name = actions[0]["action"]
    fields = _FIELDS.get(name)
    if fields is None or (len(actions) > 1 and name != "key"):
        return None
    named = {field: vendor_field for vendor_field, field in fields.items()}
    parameters: dict[str, Any] = {}
    for field, value in actions[0].items():
        if field == "action":
            continue
        if field not in named:
            return None
        parameters[named[field]] = _seconds(value) if field == "duration_ms" else value
    return name, parameters | ({"repeat": len(actions)} if len(actions) > 1 else {})


def _repeat(name: str, given: Mapping[str, Any]) -> int:
    count = given.get("repeat")
    if name != "key" or count is None:
        return 1
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_ACTIONS:
        message = f"repeat must be a whole number from 1 to {MAX_ACTIONS}"
        raise BadAction(message)
    return count


def _numbers(value: object) -> list[int]:
    if not isinstance(value, (list, tuple)):
        message = f"expected a list of numbers, not {type(value).__name__}"
        raise BadAction(message)
    return [round(_number(item)) for item in value]


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e9:
        message = f"expected a number, not {str(value)[:40]!r}"
        raise BadAction(message)
    return value


def _notches(value: object) -> int:
    return min(round(_number(value)), MAX_SCROLL_NOTCHES)


def _milliseconds(value: object) -> int:
    return round(_number(value) * 1_000)


def _seconds(milliseconds: int) -> int | float:
    return milliseconds // 1_000 if milliseconds % 1_000 == 0 else milliseconds / 1_000


def _unchanged(value: object) -> object:
    return value


# Canonical field -> how the vendor's value becomes ours.
_TRANSFORMS: Mapping[str, Callable[[object], object]] = {
    "coordinate": _numbers,
    "start_coordinate": _numbers,
    "region": _numbers,
    "scroll_amount": _notches,
    "duration_ms": _milliseconds,
}
