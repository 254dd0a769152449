"""Vendors' computer actions and the canonical ones, by table."""

from typing import Any

import pytest

from chatd.provider.computer_map import MappedCall, canonical_call, read_canonical, replayable_actions
from chatd.provider.computer_map_anthropic import anthropic_from_canonical, canonical_from_anthropic
from chatd.provider.computer_map_openai import canonical_from_openai, openai_from_canonical
from chatd.wire import ToolCallPart

SIZE = (1280, 800)
Json = dict[str, Any]


def only(mapped: MappedCall) -> list[Json]:
    """Return the actions of a valid call in our frame."""
    assert mapped.invalid is None
    assert (mapped.args["model_size"], mapped.args["screenshot"]) == ([1280, 800], True)
    actions: list[Json] = mapped.args["actions"]
    return actions


# action, vendor's parameters, canonical action without its name; these pairs also hold backwards.
ANTHROPIC_PAIRS: list[tuple[str, Json, Json]] = [
    ("screenshot", {}, {}),
    ("cursor_position", {}, {}),
    ("zoom", {"region": [0, 0, 100, 50]}, {"region": [0, 0, 100, 50]}),
    ("mouse_move", {"coordinate": [0, 0]}, {"coordinate": [0, 0]}),
    ("left_click", {}, {}),
    (
        "left_click",
        {"coordinate": [5, 6], "text": "ctrl+shift"},
        {"coordinate": [5, 6], "modifiers": "ctrl+shift"},
    ),
    ("right_click", {"coordinate": [5, 6]}, {"coordinate": [5, 6]}),
    ("middle_click", {"coordinate": [5, 6]}, {"coordinate": [5, 6]}),
    ("double_click", {"coordinate": [5, 6]}, {"coordinate": [5, 6]}),
    ("triple_click", {"coordinate": [5, 6]}, {"coordinate": [5, 6]}),
    (
        "left_click_drag",
        {"start_coordinate": [0, 0], "coordinate": [5, 6], "text": "alt"},
        {"start_coordinate": [0, 0], "coordinate": [5, 6], "modifiers": "alt"},
    ),
    ("left_mouse_down", {}, {}),
    ("left_mouse_up", {}, {}),
    (
        "scroll",
        {"coordinate": [5, 6], "scroll_direction": "up", "scroll_amount": 0, "text": "ctrl"},
        {"coordinate": [5, 6], "scroll_direction": "up", "scroll_amount": 0, "modifiers": "ctrl"},
    ),
    ("type", {"text": "a b\n"}, {"text": "a b\n"}),
    ("key", {"text": "ctrl+l"}, {"text": "ctrl+l"}),
    ("hold_key", {"text": "w", "duration": 2}, {"text": "w", "duration_ms": 2_000}),
    ("hold_key", {"text": "w", "duration": 0.25}, {"text": "w", "duration_ms": 250}),
    ("wait", {"duration": 0}, {"duration_ms": 0}),
    ("wait", {"duration": 300}, {"duration_ms": 300_000}),
]


@pytest.mark.parametrize(("name", "given", "canonical"), ANTHROPIC_PAIRS)
def test_anthropic_actions_map_both_ways(name: str, given: Json, canonical: Json) -> None:
    """Seconds become milliseconds, text becomes modifiers, and (0, 0) stays a place."""
    action = {"action": name, **canonical}
    assert only(canonical_from_anthropic(name, given, SIZE)) == [action]
    assert anthropic_from_canonical([action]) == (name, given)


@pytest.mark.parametrize(
    ("name", "given", "canonical"),
    [
        ("left_click", {"coordinate": None, "text": ""}, {}),
        ("left_click", {"coordinate": [4.6, 5.0], "unknown": 1}, {"coordinate": [5, 5]}),
        ("scroll", {"scroll_direction": "down", "scroll_amount": 900}, {"scroll_amount": 100}),
    ],
)
def test_anthropic_input_is_read_leniently(name: str, given: Json, canonical: Json) -> None:
    """Nulls are absent, fractions round, too long a scroll ends at the cap."""
    (action,) = only(canonical_from_anthropic(name, given, SIZE))
    assert action == action | canonical
    assert set(action) <= {"action", "scroll_direction", *canonical}


def test_anthropic_repeat_is_that_many_presses() -> None:
    """And goes back as one call."""
    actions = only(canonical_from_anthropic("key", {"text": "Tab", "repeat": 3}, SIZE))
    assert actions == [{"action": "key", "text": "Tab"}] * 3
    assert anthropic_from_canonical(actions) == ("key", {"text": "Tab", "repeat": 3})


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("fly", {}),
        ("mouse_move", {}),
        ("mouse_move", {"coordinate": [1]}),
        ("mouse_move", {"coordinate": "1,2"}),
        ("mouse_move", {"coordinate": [1, "2"]}),
        ("mouse_move", {"coordinate": [1, float("nan")]}),
        ("mouse_move", {"coordinate": [1, True]}),
        ("scroll", {"scroll_direction": "sideways", "scroll_amount": 1}),
        ("scroll", {"scroll_direction": "up", "scroll_amount": -1}),
        ("type", {}),
        ("type", {"text": 5}),
        ("key", {"text": "Tab", "repeat": 0}),
        ("key", {"text": "Tab", "repeat": 101}),
        ("key", {"text": "Tab", "repeat": "2"}),
        ("wait", {"duration": 301}),
        ("wait", {"duration": -1}),
        ("zoom", {"region": [1, 2, 3]}),
    ],
)
def test_malformed_anthropic_actions_are_refused_in_words(name: str, given: Json) -> None:
    """Nothing is guessed, nothing raises; the model is told."""
    mapped = canonical_from_anthropic(name, given, SIZE)
    assert mapped.args == {}
    assert mapped.invalid
    assert len(mapped.invalid) <= 300


CLICK = {"type": "click", "x": 0, "y": 0}
OPENAI_PAIRS: list[tuple[Json, list[Json]]] = [
    ({**CLICK, "button": "left"}, [{"action": "left_click", "coordinate": [0, 0]}]),
    ({**CLICK, "button": "right"}, [{"action": "right_click", "coordinate": [0, 0]}]),
    ({**CLICK, "button": "wheel"}, [{"action": "middle_click", "coordinate": [0, 0]}]),
    ({**CLICK, "button": "back"}, [{"action": "back_click", "coordinate": [0, 0]}]),
    ({**CLICK, "button": "forward"}, [{"action": "forward_click", "coordinate": [0, 0]}]),
    (
        {**CLICK, "button": "left", "keys": ["ctrl", "shift"]},
        [{"action": "left_click", "coordinate": [0, 0], "modifiers": "ctrl+shift"}],
    ),
    (
        {"type": "double_click", "x": 3, "y": 4, "keys": None},
        [{"action": "double_click", "coordinate": [3, 4]}],
    ),
    ({"type": "move", "x": 3, "y": 4}, [{"action": "mouse_move", "coordinate": [3, 4]}]),
    (
        {"type": "drag", "path": [{"x": 0, "y": 0}, {"x": 5, "y": 6}], "keys": ["alt"]},
        [{"action": "drag", "path": [[0, 0], [5, 6]], "modifiers": "alt"}],
    ),
    ({"type": "keypress", "keys": ["ctrl", "l"]}, [{"action": "key", "text": "ctrl+l"}]),
    ({"type": "type", "text": "a b"}, [{"action": "type", "text": "a b"}]),
    ({"type": "wait"}, [{"action": "wait", "duration_ms": 1_000}]),
    ({"type": "screenshot"}, [{"action": "screenshot"}]),
    (
        {"type": "scroll", "x": 3, "y": 4, "scroll_x": 0, "scroll_y": 300},
        [{"action": "scroll", "scroll_direction": "down", "scroll_amount": 3, "coordinate": [3, 4]}],
    ),
    (
        {"type": "scroll", "x": 3, "y": 4, "scroll_x": -200, "scroll_y": 0},
        [{"action": "scroll", "scroll_direction": "left", "scroll_amount": 2, "coordinate": [3, 4]}],
    ),
]


@pytest.mark.parametrize(("given", "canonical"), OPENAI_PAIRS)
def test_openai_actions_map_both_ways(given: Json, canonical: list[Json]) -> None:
    """Buttons, paths, keys and pixels keep their meaning."""
    assert only(canonical_from_openai({"actions": [given]}, SIZE)) == canonical
    assert openai_from_canonical(canonical) == [given]


@pytest.mark.parametrize(
    ("scroll", "turns"),
    [
        ((0, 1), [("down", 1)]),
        ((0, -149), [("up", 1)]),
        ((0, 151), [("down", 2)]),
        ((0, 999_999), [("down", 100)]),
        ((250, -100), [("up", 1), ("right", 2)]),
    ],
)
def test_openai_scroll_counts_notches(scroll: tuple[int, int], turns: list[tuple[str, int]]) -> None:
    """100 pixels each, at least one, at most 100; vertical before horizontal."""
    action = {"type": "scroll", "x": 1, "y": 2, "scroll_x": scroll[0], "scroll_y": scroll[1]}
    actions = only(canonical_from_openai({"actions": [action]}, SIZE))
    assert [(turn["scroll_direction"], turn["scroll_amount"]) for turn in actions] == turns


def test_openai_scroll_by_nothing_only_moves() -> None:
    """The pointer goes where the model wanted it."""
    action = {"type": "scroll", "x": 1, "y": 2, "scroll_x": 0, "scroll_y": 0}
    assert only(canonical_from_openai({"actions": [action]}, SIZE)) == [
        {"action": "mouse_move", "coordinate": [1, 2]}
    ]


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        (["CTRL", "ALT", "DELETE"], "ctrl+alt+Delete"),
        (["cmd", "A"], "super+a"),
        (["Option", "ArrowLeft"], "alt+Left"),
        (["ENTER"], "Return"),
        (["PageDown"], "Page_Down"),
        (["ctrl", "+"], "ctrl+plus"),
        ([" "], "space"),
        (["F5"], "F5"),
        (["é"], "é"),
    ],
)
def test_openai_key_names_become_x_names(keys: list[str], text: str) -> None:
    """Whatever the case; unknown names pass unchanged."""
    assert only(canonical_from_openai({"actions": [{"type": "keypress", "keys": keys}]}, SIZE)) == [
        {"action": "key", "text": text}
    ]


def test_openai_batch_keeps_its_order_and_the_older_single_action_works() -> None:
    """Both forms of the item are read."""
    batch = [{"type": "move", "x": 1, "y": 2}, {"type": "screenshot"}]
    actions = only(canonical_from_openai({"actions": batch}, SIZE))
    assert [action["action"] for action in actions] == ["mouse_move", "screenshot"]
    assert only(canonical_from_openai({"action": batch[0], "actions": None}, SIZE)) == actions[:1]


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"actions": "click"},
        {"actions": ["click"]},
        {"actions": [{"type": "fly"}]},
        {"actions": [{"type": ["click"]}]},
        {"actions": [{"type": "click", "button": "left", "x": 1}]},
        {"actions": [{"type": "click", "button": "thumb", "x": 1, "y": 2}]},
        {"actions": [{"type": "keypress", "keys": []}]},
        {"actions": [{"type": "keypress", "keys": ["\t"]}]},
        {"actions": [{"type": "keypress", "keys": "a"}]},
        {"actions": [{"type": "type"}]},
        {"actions": [{"type": "drag", "path": [{"x": 1, "y": 2}]}]},
        {"actions": [{"type": "drag", "path": [[1, 2], [3, 4]]}]},
        {"actions": [{"type": "drag"}]},
        {"actions": [{"type": "wait"}] * 101},
        {"actions": [{"type": "screenshot"}, {"type": "fly"}]},
    ],
)
def test_malformed_openai_calls_are_refused_whole(item: Json) -> None:
    """Half a batch is not run: the model meant all of it."""
    mapped = canonical_from_openai(item, SIZE)
    assert mapped.args == {}
    assert mapped.invalid


@pytest.mark.parametrize(
    "action",
    [
        {"action": "zoom", "region": [0, 0, 1, 1]},
        {"action": "triple_click", "coordinate": [1, 2]},
        {"action": "left_click"},
        {"action": "double_click"},
        {"action": "scroll", "scroll_direction": "up", "scroll_amount": 1},
        {"action": "left_click_drag", "coordinate": [1, 2]},
        {"action": "drag", "path": [[0, 0], [1, 1]], "button": "right"},
        {"action": "hold_key", "text": "a", "duration_ms": 1},
    ],
)
def test_actions_without_a_word_in_openais_vocabulary_are_not_forced(action: Json) -> None:
    """The whole call is then told in prose."""
    assert openai_from_canonical([{"action": "screenshot"}, action]) is None


def test_drag_between_points_is_a_path_for_openai() -> None:
    """Two names for one gesture."""
    action = {"action": "left_click_drag", "start_coordinate": [0, 0], "coordinate": [1, 2]}
    assert openai_from_canonical([action]) == [{"type": "drag", "path": [{"x": 0, "y": 0}, {"x": 1, "y": 2}]}]
    assert openai_from_canonical([]) is None


@pytest.mark.parametrize(
    "actions",
    [
        [],
        [{"action": "back_click"}],
        [{"action": "left_mouse_down", "coordinate": [1, 2]}],
        [{"action": "left_click"}, {"action": "left_click"}],
        [{"action": "screenshot"}, {"action": "left_click"}],
    ],
)
def test_what_one_anthropic_call_cannot_say_is_not_forced(actions: list[Json]) -> None:
    """One call, one action, one result."""
    assert anthropic_from_canonical(actions) is None


def test_replay_drops_trailing_screenshots_and_fills_defaults() -> None:
    """Every call ends with a screenshot anyway."""
    args = {"actions": [{"action": "wait"}, {"action": "screenshot"}]}
    part = ToolCallPart(tool_call_id="c", tool_name="computer", args=args)
    assert replayable_actions(part) == [{"action": "wait", "duration_ms": 1_000}]
    assert replayable_actions(part.model_copy(update={"args": {"actions": []}})) == []


def test_the_frame_is_ours_whatever_the_model_says() -> None:
    """A model that invents a screen size does not move its clicks."""
    mapped = read_canonical({"actions": [{"action": "wait"}], "model_size": [1, 1]}, SIZE)
    assert mapped.args["model_size"] == [1280, 800]
    assert canonical_call([{"action": "wait", "x": 1}], SIZE).invalid
