"""
OpenAI's computer actions, to and from the canonical ones. Pure.

A ``computer_call`` holds a batch (``actions``) or, in its older form, one
``action``. Scrolling is given in pixels, keys as lists of names.

Source: ``openai.types.responses.response_computer_tool_call``.
"""

from collections.abc import Callable, Mapping
from typing import Any

from chatd.provider.computer_map import BadAction, MappedCall, canonical_call, refuse
from computer.wire import MAX_SCROLL_NOTCHES

__all__ = ["PIXELS_PER_NOTCH", "canonical_from_openai", "openai_from_canonical"]

# Pixels that browsers scroll per wheel notch, about.
PIXELS_PER_NOTCH = 100
_WAIT_MS = 1_000
_BUTTONS = {
    "left": "left_click",
    "right": "right_click",
    "wheel": "middle_click",
    "back": "back_click",
    "forward": "forward_click",
}
_BUTTON_OF = {action: button for button, action in _BUTTONS.items()}
# Lowercased vendor name -> X name. Names not listed are passed on unchanged.
_KEYS = {
    "control": "ctrl",
    "ctrl": "ctrl",
    "cmd": "super",
    "command": "super",
    "meta": "super",
    "super": "super",
    "win": "super",
    "option": "alt",
    "alt": "alt",
    "shift": "shift",
    "enter": "Return",
    "return": "Return",
    "esc": "Escape",
    "escape": "Escape",
    "tab": "Tab",
    "space": "space",
    " ": "space",
    "backspace": "BackSpace",
    "delete": "Delete",
    "del": "Delete",
    "insert": "Insert",
    "home": "Home",
    "end": "End",
    "pageup": "Page_Up",
    "page_up": "Page_Up",
    "pagedown": "Page_Down",
    "page_down": "Page_Down",
    "arrowup": "Up",
    "up": "Up",
    "arrowdown": "Down",
    "down": "Down",
    "arrowleft": "Left",
    "left": "Left",
    "arrowright": "Right",
    "right": "Right",
    "capslock": "Caps_Lock",
    # "+" joins the keys of a chord, so the key itself needs its name.
    "+": "plus",
}

_Action = dict[str, Any]


def canonical_from_openai(item: Mapping[str, Any], model_size: tuple[int, int]) -> MappedCall:
    """Translate a ``computer_call`` item (as JSON); the batch is refused whole if one action is malformed."""
    batch = item.get("actions") or ([item["action"]] if item.get("action") else [])
    if not isinstance(batch, list):
        return refuse("actions must be a list")
    try:
        return canonical_call([found for action in batch for found in _actions(action)], model_size)
    except BadAction as error:
        return refuse(str(error))


def openai_from_canonical(actions: list[_Action]) -> list[_Action] | None:
    """Return a batch of the same meaning, None if OpenAI's vocabulary lacks an action."""
    batch: list[_Action] = []
    for action in actions:
        translated = _reverse(action)
        if translated is None:
            return None
        batch.append(translated)
    return batch or None


def _actions(action: object) -> list[_Action]:
    if not isinstance(action, Mapping):
        raise BadAction("an action must be an object")
    kind = action.get("type")
    translate = _FORWARD.get(kind) if isinstance(kind, str) else None
    if translate is None:
        message = f"there is no action {str(kind)[:40]!r}"
        raise BadAction(message)
    return translate(action)


def _click(action: Mapping[str, Any]) -> list[_Action]:
    button = action.get("button", "left")
    if button not in _BUTTONS:
        message = f"there is no button {str(button)[:40]!r}"
        raise BadAction(message)
    return [{"action": _BUTTONS[button], "coordinate": _point(action), **_modifiers(action)}]


def _double_click(action: Mapping[str, Any]) -> list[_Action]:
    return [{"action": "double_click", "coordinate": _point(action), **_modifiers(action)}]


def _move(action: Mapping[str, Any]) -> list[_Action]:
    # Keys held while the pointer merely moves change nothing; they are dropped.
    return [{"action": "mouse_move", "coordinate": _point(action)}]


def _drag(action: Mapping[str, Any]) -> list[_Action]:
    path = action.get("path")
    if not isinstance(path, list):
        raise BadAction("a drag needs a path of points")
    return [{"action": "drag", "path": [_point(step) for step in path], **_modifiers(action)}]


def _scroll(action: Mapping[str, Any]) -> list[_Action]:
    at: _Action = {"coordinate": _point(action), **_modifiers(action)}
    vertical = _integer(action.get("scroll_y") or 0)
    horizontal = _integer(action.get("scroll_x") or 0)
    turns = [
        {"action": "scroll", "scroll_direction": direction, "scroll_amount": _notches(pixels), **at}
        for pixels, direction in (
            (vertical, "down" if vertical > 0 else "up"),
            (horizontal, "right" if horizontal > 0 else "left"),
        )
        if pixels
    ]
    return turns or [{"action": "mouse_move", "coordinate": at["coordinate"]}]


def _keypress(action: Mapping[str, Any]) -> list[_Action]:
    chord = _chord(action.get("keys"))
    if not chord:
        raise BadAction("a keypress needs at least one key")
    return [{"action": "key", "text": chord}]


def _type(action: Mapping[str, Any]) -> list[_Action]:
    return [{"action": "type", "text": action.get("text")}]


def _wait(_action: Mapping[str, Any]) -> list[_Action]:
    return [{"action": "wait", "duration_ms": _WAIT_MS}]


def _screenshot(_action: Mapping[str, Any]) -> list[_Action]:
    return [{"action": "screenshot"}]


_FORWARD: Mapping[str, Callable[[Mapping[str, Any]], list[_Action]]] = {
    "click": _click,
    "double_click": _double_click,
    "move": _move,
    "drag": _drag,
    "scroll": _scroll,
    "keypress": _keypress,
    "type": _type,
    "wait": _wait,
    "screenshot": _screenshot,
}


def _point(holder: object) -> list[int]:
    if not isinstance(holder, Mapping):
        raise BadAction("a point must be an object with x and y")
    return [_integer(holder.get("x")), _integer(holder.get("y"))]


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e9:
        message = f"expected a number, not {str(value)[:40]!r}"
        raise BadAction(message)
    return round(value)


def _notches(pixels: int) -> int:
    return min(max(round(abs(pixels) / PIXELS_PER_NOTCH), 1), MAX_SCROLL_NOTCHES)


def _modifiers(action: Mapping[str, Any]) -> _Action:
    chord = _chord(action.get("keys"))
    return {"modifiers": chord} if chord else {}


def _chord(keys: object) -> str:
    if keys is None:
        return ""
    if not isinstance(keys, list) or not all(isinstance(key, str) and key for key in keys):
        raise BadAction("keys must be a list of key names")
    return "+".join(_key_name(key) for key in keys)


def _key_name(key: str) -> str:
    known = _KEYS.get(key.lower())
    if known is None and not key.strip():
        raise BadAction("a key name must not be blank")
    return known or (key.lower() if len(key) == 1 else key)


def _reverse(action: _Action) -> _Action | None:
    translate = _REVERSE.get(action["action"])
    return translate(action) if translate else None


def _reverse_click(action: _Action) -> _Action | None:
    if "coordinate" not in action:
        return None
    return {"type": "click", "button": _BUTTON_OF[action["action"]], **_at(action), **_held(action)}


def _reverse_double_click(action: _Action) -> _Action | None:
    if "coordinate" not in action:
        return None
    return {"type": "double_click", **_at(action), "keys": _held(action).get("keys")}


def _reverse_drag(action: _Action) -> _Action | None:
    if action.get("button", "left") != "left":
        return None
    return {"type": "drag", "path": [{"x": x, "y": y} for x, y in action["path"]], **_held(action)}


def _reverse_left_click_drag(action: _Action) -> _Action | None:
    if "start_coordinate" not in action:
        return None
    ends = (action["start_coordinate"], action["coordinate"])
    return {"type": "drag", "path": [{"x": x, "y": y} for x, y in ends], **_held(action)}


def _reverse_scroll(action: _Action) -> _Action | None:
    if "coordinate" not in action:
        return None
    direction = action["scroll_direction"]
    pixels = action["scroll_amount"] * PIXELS_PER_NOTCH * (1 if direction in ("down", "right") else -1)
    vertical = direction in ("up", "down")
    amounts = {"scroll_x": 0 if vertical else pixels, "scroll_y": pixels if vertical else 0}
    return {"type": "scroll", **_at(action), **amounts, **_held(action)}


def _at(action: _Action) -> _Action:
    x, y = action["coordinate"]
    return {"x": x, "y": y}


def _held(action: _Action) -> _Action:
    return {"keys": action["modifiers"].split("+")} if "modifiers" in action else {}


# Canonical actions that OpenAI can say. Zoom, cursor_position, triple_click, hold_key and the
# edges of keys and buttons have no counterpart.
_REVERSE: Mapping[str, Callable[[_Action], _Action | None]] = {
    **dict.fromkeys(_BUTTON_OF, _reverse_click),
    "double_click": _reverse_double_click,
    "mouse_move": lambda action: {"type": "move", **_at(action)},
    "drag": _reverse_drag,
    "left_click_drag": _reverse_left_click_drag,
    "scroll": _reverse_scroll,
    "key": lambda action: {"type": "keypress", "keys": action["text"].split("+")},
    "type": lambda action: {"type": "type", "text": action["text"]},
    "wait": lambda _action: {"type": "wait"},
    "screenshot": lambda _action: {"type": "screenshot"},
}
