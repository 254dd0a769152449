"""Google's desktop actions, cell by cell."""

from typing import Any

import pytest

from chatd.provider.computer_map_google import GOOGLE_ACTIONS, canonical_from_google, google_from_canonical
from computer.wire import ComputerCall

SIZE = (1280, 800)
# name, arguments, canonical actions.
TABLE: list[tuple[str, dict[str, Any], list[dict[str, Any]]]] = [
    ("click", {"x": 0, "y": 0}, [{"action": "left_click", "coordinate": [0, 0]}]),
    ("click", {"x": 999, "y": 999}, [{"action": "left_click", "coordinate": [1278, 799]}]),
    ("double_click", {"x": 500, "y": 500}, [{"action": "double_click", "coordinate": [640, 400]}]),
    ("triple_click", {"x": 1, "y": 1}, [{"action": "triple_click", "coordinate": [1, 0]}]),
    ("middle_click", {"x": 500, "y": 0}, [{"action": "middle_click", "coordinate": [640, 0]}]),
    ("right_click", {"x": 500, "y": 0}, [{"action": "right_click", "coordinate": [640, 0]}]),
    ("mouse_down", {"x": 500, "y": 0}, [{"action": "left_mouse_down", "coordinate": [640, 0]}]),
    ("mouse_up", {"x": 500, "y": 0}, [{"action": "left_mouse_up", "coordinate": [640, 0]}]),
    ("move", {"x": 250, "y": 250}, [{"action": "mouse_move", "coordinate": [320, 200]}]),
    ("type", {"text": "hi"}, [{"action": "type", "text": "hi"}]),
    (
        "type",
        {"text": "hi", "press_enter": True},
        [{"action": "type", "text": "hi"}, {"action": "key", "text": "Return"}],
    ),
    (
        "drag_and_drop",
        {"start_x": 0, "start_y": 0, "end_x": 500, "end_y": 500},
        [{"action": "left_click_drag", "start_coordinate": [0, 0], "coordinate": [640, 400]}],
    ),
    ("wait", {}, [{"action": "wait", "duration_ms": 1000}]),
    ("wait", {"seconds": 5}, [{"action": "wait", "duration_ms": 5000}]),
    ("press_key", {"key": "enter"}, [{"action": "key", "text": "enter"}]),
    ("press_key", {"key": "+"}, [{"action": "key", "text": "plus"}]),
    ("key_down", {"key": "shift"}, [{"action": "key_down", "text": "shift"}]),
    ("key_up", {"key": "shift"}, [{"action": "key_up", "text": "shift"}]),
    ("hotkey", {"keys": ["ctrl", "c"]}, [{"action": "key", "text": "ctrl+c"}]),
    ("take_screenshot", {"intent": "look"}, [{"action": "screenshot"}]),
    (
        "scroll",
        {"x": 500, "y": 500, "direction": "down"},
        [
            {
                "action": "scroll",
                "coordinate": [640, 400],
                "scroll_direction": "down",
                "scroll_amount": 3,
            }
        ],
    ),
    (
        "scroll",
        {"x": 500, "y": 500, "direction": "left", "magnitude_in_pixels": 10},
        [
            {
                "action": "scroll",
                "coordinate": [640, 400],
                "scroll_direction": "left",
                "scroll_amount": 1,
            }
        ],
    ),
]


@pytest.mark.parametrize(("name", "given", "actions"), TABLE)
def test_forward(name: str, given: dict[str, Any], actions: list[dict[str, Any]]) -> None:
    """Each action of the vendor's desktop, with its defaults and edges."""
    mapped = canonical_from_google(name, given | {"intent": "because"}, SIZE)

    assert mapped.invalid is None
    assert mapped.args["actions"] == actions
    assert ComputerCall.model_validate(mapped.args)


def test_every_action_is_in_the_table() -> None:
    """A new action comes with its rows."""
    assert {row[0] for row in TABLE} == set(GOOGLE_ACTIONS)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("explode", {}),
        ("click", {}),
        ("click", {"x": 1000, "y": 0}),
        ("click", {"x": -1, "y": 0}),
        ("click", {"x": True, "y": 0}),
        ("click", {"x": "5", "y": 0}),
        ("type", {}),
        ("hotkey", {"keys": []}),
        ("hotkey", {"keys": ["ctrl", ""]}),
        ("press_key", {"key": 5}),
        ("scroll", {"x": 1, "y": 1, "direction": "away"}),
        ("wait", {"seconds": float("nan")}),
    ],
)
def test_malformed_calls_are_refused(name: str, given: dict[str, Any]) -> None:
    """A sentence for the model, and nothing to run."""
    mapped = canonical_from_google(name, given, SIZE)

    assert mapped.args == {}
    assert mapped.invalid


REVERSE: list[tuple[list[dict[str, Any]], tuple[str, dict[str, Any]] | None]] = [
    ([{"action": "left_click", "coordinate": [640, 400]}], ("click", {"x": 500, "y": 500})),
    ([{"action": "left_click", "coordinate": [1, 1], "modifiers": "ctrl"}], None),
    ([{"action": "left_click"}], None),
    ([{"action": "key", "text": "ctrl+c"}], ("hotkey", {"keys": ["ctrl", "c"]})),
    ([{"action": "type", "text": "a"}], ("type", {"text": "a"})),
    ([{"action": "wait", "duration_ms": 2000}], ("wait", {"seconds": 2})),
    ([{"action": "screenshot"}], ("take_screenshot", {})),
    ([{"action": "zoom", "region": [0, 0, 9, 9]}], None),
    ([{"action": "screenshot"}, {"action": "screenshot"}], None),
]


@pytest.mark.parametrize(("actions", "said"), REVERSE)
def test_reverse(actions: list[dict[str, Any]], said: tuple[str, dict[str, Any]] | None) -> None:
    """What another vendor's model did, in this one's words where there are any."""
    assert google_from_canonical(actions, SIZE) == said
