"""
Google's desktop actions, to and from the canonical ones. Pure; one table per direction.

Each action is a function call of its own. Coordinates are thousandths of the screen, 0 to 999;
scrolling is given in pixels, waiting in seconds. Every call carries an *intent*, which is prose,
and may carry a safety decision, which a person has to make.

Source: Gemini API, computer use, ``ENVIRONMENT_DESKTOP``; ``google.genai.types.ComputerUse``.
"""

from collections.abc import Callable, Mapping
from typing import Any

from chatd.provider.computer_map import BadAction, MappedCall, canonical_call, refuse
from chatd.provider.computer_map_openai import PIXELS_PER_NOTCH
from computer.wire import MAX_SCROLL_NOTCHES

__all__ = ["GOOGLE_ACTIONS", "canonical_from_google", "google_from_canonical", "is_computer_call"]

# Parts that each side of the screen is divided into.
GRID = 1_000
DEFAULT_SCROLL_PIXELS = 300
DEFAULT_WAIT_S = 1
# Decisions that let an action pass; anything else wants a person.
ALLOWED = frozenset({None, "", "regular", "allowed"})

_Action = dict[str, Any]
_Size = tuple[int, int]


def is_computer_call(name: str) -> bool:
    """Whether a function of this name is one of the desktop's."""
    return name in GOOGLE_ACTIONS


def canonical_from_google(name: str, given: Mapping[str, Any], model_size: _Size) -> MappedCall:
    """Translate one function call; unknown parameters are ignored."""
    translate = GOOGLE_ACTIONS.get(name)
    if translate is None:
        return refuse(f"there is no action {name!r}")
    decision = given.get("safety_decision")
    if isinstance(decision, Mapping) and decision.get("decision") not in ALLOWED:
        reason = str(decision.get("explanation") or decision.get("decision"))
        return MappedCall(
            args={}, invalid=f"Not done: a person must approve this action first. {reason}"[:300]
        )
    try:
        return canonical_call(translate(given, model_size), model_size)
    except BadAction as error:
        return refuse(str(error))


def google_from_canonical(actions: list[_Action], model_size: _Size) -> tuple[str, _Action] | None:
    """Return the function and its arguments, None if one Google call cannot say the same."""
    if len(actions) != 1:
        return None
    action = actions[0]
    name = _NAME_OF.get(action["action"])
    extra = set(action) - {"action", "coordinate", "text", "duration_ms"}
    if name is None or extra:
        return None
    arguments: _Action = {}
    if "coordinate" in action:
        x, y = action["coordinate"]
        arguments = {"x": x * GRID // model_size[0], "y": y * GRID // model_size[1]}
    elif name in _POINTED:
        return None
    if name == "type":
        arguments["text"] = action["text"]
    if name == "hotkey":
        arguments["keys"] = action["text"].split("+")
    if name == "wait":
        arguments["seconds"] = max(1, round(action["duration_ms"] / 1_000))
    return name, arguments


def _pointed(action: str) -> Callable[[Mapping[str, Any], _Size], list[_Action]]:
    def translate(given: Mapping[str, Any], size: _Size) -> list[_Action]:
        return [{"action": action, "coordinate": _point(given, size, "x", "y")}]

    return translate


def _type(given: Mapping[str, Any], _size: _Size) -> list[_Action]:
    typed: list[_Action] = [{"action": "type", "text": given.get("text")}]
    return [*typed, {"action": "key", "text": "Return"}] if given.get("press_enter") is True else typed


def _drag(given: Mapping[str, Any], size: _Size) -> list[_Action]:
    start, end = _point(given, size, "start_x", "start_y"), _point(given, size, "end_x", "end_y")
    return [{"action": "left_click_drag", "start_coordinate": start, "coordinate": end}]


def _wait(given: Mapping[str, Any], _size: _Size) -> list[_Action]:
    seconds = _number(given.get("seconds", DEFAULT_WAIT_S), "seconds")
    return [{"action": "wait", "duration_ms": round(seconds * 1_000)}]


def _key(field: str, action: str) -> Callable[[Mapping[str, Any], _Size], list[_Action]]:
    def translate(given: Mapping[str, Any], _size: _Size) -> list[_Action]:
        keys = given.get(field)
        names = [keys] if isinstance(keys, str) else keys
        if not isinstance(names, list) or not names or not all(isinstance(n, str) and n for n in names):
            message = f"{field} must name at least one key"
            raise BadAction(message)
        return [{"action": action, "text": "+".join("plus" if name == "+" else name for name in names)}]

    return translate


def _scroll(given: Mapping[str, Any], size: _Size) -> list[_Action]:
    pixels = _number(given.get("magnitude_in_pixels", DEFAULT_SCROLL_PIXELS), "magnitude_in_pixels")
    notches = min(max(round(abs(pixels) / PIXELS_PER_NOTCH), 1), MAX_SCROLL_NOTCHES)
    return [
        {
            "action": "scroll",
            "coordinate": _point(given, size, "x", "y"),
            "scroll_direction": given.get("direction"),
            "scroll_amount": notches,
        }
    ]


def _screenshot(_given: Mapping[str, Any], _size: _Size) -> list[_Action]:
    return [{"action": "screenshot"}]


GOOGLE_ACTIONS: Mapping[str, Callable[[Mapping[str, Any], _Size], list[_Action]]] = {
    "click": _pointed("left_click"),
    "double_click": _pointed("double_click"),
    "triple_click": _pointed("triple_click"),
    "middle_click": _pointed("middle_click"),
    "right_click": _pointed("right_click"),
    "mouse_down": _pointed("left_mouse_down"),
    "mouse_up": _pointed("left_mouse_up"),
    "move": _pointed("mouse_move"),
    "type": _type,
    "drag_and_drop": _drag,
    "wait": _wait,
    "press_key": _key("key", "key"),
    "key_down": _key("key", "key_down"),
    "key_up": _key("key", "key_up"),
    "hotkey": _key("keys", "key"),
    "take_screenshot": _screenshot,
    "scroll": _scroll,
}
# The other direction, where one call says the same. Keys are sent as hotkeys: a chord may be one key.
_NAME_OF: Mapping[str, str] = {
    "left_click": "click",
    "double_click": "double_click",
    "triple_click": "triple_click",
    "middle_click": "middle_click",
    "right_click": "right_click",
    "mouse_move": "move",
    "type": "type",
    "key": "hotkey",
    "wait": "wait",
    "screenshot": "take_screenshot",
}
_POINTED = frozenset({"click", "double_click", "triple_click", "middle_click", "right_click", "move"})


def _point(given: Mapping[str, Any], size: _Size, x: str, y: str) -> list[int]:
    return [_pixel(given.get(x), x, size[0]), _pixel(given.get(y), y, size[1])]


def _pixel(value: object, name: str, extent: int) -> int:
    place = _number(value, name)
    if not 0 <= place < GRID:
        message = f"{name} is {value}, outside 0 to {GRID - 1}"
        raise BadAction(message)
    return int(place * extent / GRID)


def _number(value: object, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e9:
        message = f"{name}: expected a number, not {str(value)[:40]!r}"
        raise BadAction(message)
    return value
