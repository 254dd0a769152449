"""Planning of canonical actions."""

import itertools

import pytest
from pydantic import ValidationError

from computer.actions import (
    DRAG_STRIDES,
    AwaitAnswer,
    Effect,
    KeyDown,
    KeyUp,
    Listen,
    Look,
    MoveTo,
    PasteCharacters,
    Pause,
    PlannedAction,
    Press,
    ReadClipboard,
    Release,
    TypeCharacters,
    WriteClipboard,
    plan_action,
    plan_call,
    render_output,
)
from computer.display import Way
from computer.errors import InvalidAction, OutOfBounds, UnknownKey
from computer.geometry import ModelPoint, Point, Rect, Scale, Size
from computer.keys import parse_chord
from computer.wire import ComputerCall, action_adapter

SCALE = Scale(native=Size(width=1920, height=1080), model=Size(width=1280, height=720))


def _plan(**fields: object) -> PlannedAction:
    return plan_action(action_adapter.validate_python(fields), SCALE)


def _move(x: int, y: int) -> MoveTo:
    return MoveTo(point=Point(x=x, y=y))


@pytest.mark.parametrize(
    ("action", "button", "times"),
    [
        ("left_click", 1, 1),
        ("right_click", 3, 1),
        ("middle_click", 2, 1),
        ("back_click", 8, 1),
        ("forward_click", 9, 1),
        ("double_click", 1, 2),
        ("triple_click", 1, 3),
    ],
)
def test_click_moves_then_clicks(action: str, button: int, times: int) -> None:
    """Spec: table of actions; one injection for a double click (defect 16)."""
    planned = _plan(action=action, coordinate=[640, 360])

    assert (_move(960, 540), *(Press(button=button), Release(button=button)) * times) == planned.steps
    assert planned.effect is Effect.START


@pytest.mark.parametrize(("button", "number"), [("left", 1), ("middle", 2), ("right", 3), ("forward", 9)])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_any_button_clicks_up_to_three_times(button: str, number: int, count: int) -> None:
    """Required: left, middle, right, back, forward; 1-3 times; with modifiers."""
    chord = parse_chord("shift")
    planned = _plan(action="click", button=button, count=count, coordinate=[640, 360], modifiers="shift")

    clicks = (Press(button=number), Release(button=number)) * count
    assert (_move(960, 540), KeyDown(chord=chord), *clicks, KeyUp(chord=chord)) == planned.steps
    assert planned.effect is Effect.START


def test_click_says_which_button_and_how_often() -> None:
    """Ours: one click with the left button, unless told otherwise."""
    twice = _plan(action="click", button="right", count=2, coordinate=[3, 4])
    once = _plan(action="click")

    assert render_output(twice, twice.point) == "Double-clicked the right button at (3, 4)."
    assert (Press(button=1), Release(button=1)) == once.steps
    assert once.at_pointer


@pytest.mark.parametrize("count", [0, 4])
def test_click_more_than_three_times_is_refused(count: int) -> None:
    """Required: 1-3 times."""
    with pytest.raises(ValidationError):
        _plan(action="click", count=count)


def test_origin_is_a_place() -> None:
    """Spec: row 2 and defect 8."""
    planned = _plan(action="left_click", coordinate=[0, 0])

    assert planned.steps[0] == _move(0, 0)
    assert render_output(planned, planned.point) == "Left-clicked at (0, 0)."


def test_click_without_coordinate_stays_at_the_pointer() -> None:
    """Ours: absent means "at the pointer"."""
    planned = _plan(action="left_click")

    assert (Press(button=1), Release(button=1)) == planned.steps
    assert planned.at_pointer


def test_modifiers_are_held_round_a_click() -> None:
    """Spec: row 24."""
    chord = parse_chord("ctrl+shift")
    planned = _plan(action="left_click", coordinate=[1, 1], modifiers="ctrl+shift")

    clicks = (Press(button=1), Release(button=1))
    assert (_move(2, 2), KeyDown(chord=chord), *clicks, KeyUp(chord=chord)) == planned.steps
    assert render_output(planned, planned.point) == "Left-clicked with ctrl+shift at (1, 1)."


@pytest.mark.parametrize(("direction", "button"), [("up", 4), ("down", 5), ("left", 6), ("right", 7)])
def test_scroll_turns_the_wheel(direction: str, button: int) -> None:
    """Spec: mouse buttons of the wheel."""
    planned = _plan(action="scroll", coordinate=[0, 0], scroll_direction=direction, scroll_amount=2)

    assert (_move(0, 0), *(Press(button=button), Release(button=button)) * 2) == planned.steps


def test_scroll_defaults_to_three_notches_down() -> None:
    """Spec: row 20."""
    planned = _plan(action="scroll", coordinate=[500, 400])

    assert planned.steps[1:] == (Press(button=5), Release(button=5)) * 3


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"action": "left_click_drag", "start_coordinate": [0, 0], "coordinate": [1279, 719]}, DRAG_STRIDES),
        ({"action": "drag", "path": [[0, 0], [10, 0]]}, 1),
        ({"action": "drag", "path": [[0, 0], [10, 0], [10, 10]]}, 2),
    ],
)
def test_drag_moves_while_the_button_is_down(fields: dict[str, object], count: int) -> None:
    """Ours: toolkits start a drag on motion."""
    steps = _plan(**fields).steps

    assert steps[0] == _move(0, 0)
    assert isinstance(steps[1], Press)
    assert isinstance(steps[-1], Release)
    assert count == sum(isinstance(step, MoveTo) for step in steps[2:])


def test_drag_comes_in_parts_over_time() -> None:
    """Ours: a late window manager reads waiting motion as one event, which only starts the move."""
    steps = _plan(action="left_click_drag", start_coordinate=[0, 0], coordinate=[640, 400]).steps
    kinds = [type(step) for step in steps[1:]]
    pauses = [index for index, kind in enumerate(kinds) if kind is Pause]

    assert kinds[:3] == [Press, Pause, Listen]
    assert kinds.index(AwaitAnswer) < pauses[1]
    assert kinds.count(AwaitAnswer) == 1
    assert kinds[-2] is Pause
    assert len(pauses) >= 6
    assert all(MoveTo in kinds[start:end] for start, end in itertools.pairwise(pauses))


def test_drag_ends_exactly_where_it_should() -> None:
    """Ours: strides never lose a pixel."""
    steps = _plan(action="drag", path=[[3, 5], [777, 501]], button="right").steps
    moves = [step for step in steps if isinstance(step, MoveTo)]

    assert moves[-1].point == SCALE.to_native(ModelPoint(x=777, y=501))
    assert steps[-1] == Release(button=3)


def test_drag_from_the_pointer_presses_where_it_is() -> None:
    """Ours: an absent start means the pointer."""
    steps = _plan(action="left_click_drag", coordinate=[4, 4], modifiers="shift").steps

    assert isinstance(steps[0], KeyDown)
    assert steps[1] == Press(button=1)
    assert steps[-2:] == (Release(button=1), KeyUp(chord=parse_chord("shift")))


@pytest.mark.parametrize(
    ("fields", "kinds", "output"),
    [
        ({"action": "key", "text": "ctrl+l"}, [KeyDown, KeyUp], "Pressed ctrl+l."),
        (
            {"action": "hold_key", "text": "w", "duration_ms": 500},
            [KeyDown, Pause, KeyUp],
            "Held w for 0.5 s.",
        ),
        ({"action": "key_down", "text": "shift"}, [KeyDown], "shift is down."),
        ({"action": "key_up", "text": "shift"}, [KeyUp], "shift is up."),
        ({"action": "type", "text": "-n hello"}, [TypeCharacters], "Typed 8 characters."),
        ({"action": "type", "text": "x"}, [TypeCharacters], "Typed 1 character."),
        ({"action": "wait", "duration_ms": 2000}, [Pause], "Waited 2 s."),
        ({"action": "screenshot"}, [], "Took a screenshot."),
        ({"action": "zoom", "region": [0, 0, 10, 20]}, [Look], "Zoomed into [0, 0, 10, 20]."),
        ({"action": "left_mouse_down"}, [Press], "Pressed the left button."),
        ({"action": "left_mouse_up", "coordinate": [1, 1]}, [MoveTo, Release], "Released the left button."),
        ({"action": "mouse_move", "coordinate": [1, 1]}, [MoveTo], "Moved the pointer."),
        ({"action": "button_down", "button": "middle"}, [Press], "Pressed the middle button."),
        ({"action": "button_up", "coordinate": [1, 1]}, [MoveTo, Release], "Released the left button."),
        ({"action": "paste", "text": "a\nb"}, [PasteCharacters], "Pasted 3 characters."),
        ({"action": "set_clipboard", "text": "abc"}, [WriteClipboard], "Put 3 characters on the clipboard."),
        ({"action": "set_clipboard", "text": ""}, [WriteClipboard], "Put 0 characters on the clipboard."),
        ({"action": "get_clipboard"}, [ReadClipboard], "Read the clipboard."),
        (
            {"action": "key_sequence", "keys": ["ctrl+k", "ctrl+s"]},
            [KeyDown, KeyUp, KeyDown, KeyUp],
            "Pressed ctrl+k, ctrl+s.",
        ),
    ],
)
def test_action_becomes_these_steps(fields: dict[str, object], kinds: list[type], output: str) -> None:
    """Spec: table of actions, rows 22, 23 and 32."""
    planned = _plan(**fields)

    assert kinds == [type(step) for step in planned.steps]
    assert render_output(planned, None) == output


@pytest.mark.parametrize("button", ["left", "middle", "right", "back", "forward"])
def test_any_button_may_be_pressed_and_left_so(button: str) -> None:
    """Required: press and release of every button."""
    number = {"left": 1, "middle": 2, "right": 3, "back": 8, "forward": 9}[button]

    assert _plan(action="button_down", button=button).steps == (Press(button=number),)
    assert _plan(action="button_up", button=button).steps == (Release(button=number),)


def test_sequence_with_one_unknown_key_is_refused_whole() -> None:
    """Required: never half of it."""
    with pytest.raises(UnknownKey):
        _plan(action="key_sequence", keys=["ctrl+k", "nosuchkey"])


def test_sequence_starts_something_when_one_of_its_chords_does() -> None:
    """Ours: the screenshot waits as it would after that chord."""
    assert _plan(action="key_sequence", keys=["Left", "Return"]).effect is Effect.START
    assert _plan(action="key_sequence", keys=["Left", "a"]).effect is Effect.ECHO


@pytest.mark.parametrize("text", ["ab\nc", "ab\tc", "ab\rc"])
def test_plain_text_refuses_what_would_press_another_key(text: str) -> None:
    """BUGS 5: an option to reject newlines and tabs."""
    with pytest.raises(InvalidAction, match=r"character 2 .* plain"):
        _plan(action="type", text=text, plain=True)
    assert _plan(action="type", text="abc", plain=True).steps == (TypeCharacters(text="abc"),)


def test_pasted_text_keeps_its_line_ends() -> None:
    """BUGS 12: one insert, no Return and no Tab."""
    assert _plan(action="paste", text="a\tb\r\nc").steps == (PasteCharacters(text="a\tb\r\nc"),)


def test_way_of_the_text_is_told() -> None:
    """Required: the result says how it was typed."""
    planned = _plan(action="type", text="x" * 300)

    assert render_output(planned, None, Way.PASTE) == "Typed 300 characters by paste."
    assert render_output(planned, None, Way.SPARE_KEYS) == "Typed 300 characters by spare keys."


def test_cursor_position_has_its_exact_form() -> None:
    """Spec: row 9."""
    planned = _plan(action="cursor_position")

    assert render_output(planned, ModelPoint(x=640, y=360)) == "x=640,y=360"


def test_zoom_looks_at_native_pixels() -> None:
    """Design: zoom crops from native pixels."""
    steps = _plan(action="zoom", region=[0, 0, 640, 360]).steps

    assert steps == (Look(region=Rect(left=0, top=0, right=960, bottom=540)),)


def test_line_ends_become_one_return_each() -> None:
    """Ours: text from Windows types no empty lines."""
    planned = _plan(action="type", text="a\r\nb\rc\td\n")

    assert planned.steps == (TypeCharacters(text="a\nb\nc\td\n"),)
    assert planned.effect is Effect.START


@pytest.mark.parametrize("text", ["ab\x00", "ab\x1b[A", "ab\ud800", "ab\x7f", "ab\x9b"])
def test_text_that_no_keyboard_can_type_is_refused_with_its_offset(text: str) -> None:
    """Ours: nothing is typed, and the model learns where it went wrong."""
    action = action_adapter.validate_python({"action": "type", "text": "ab"})

    with pytest.raises(InvalidAction, match="character 2 "):
        plan_action(action.model_copy(update={"text": text}), SCALE)


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        ({"action": "mouse_move", "coordinate": [1280, 0]}, OutOfBounds),
        ({"action": "drag", "path": [[0, 0], [-1, 0]]}, OutOfBounds),
        ({"action": "zoom", "region": [0, 0, 0, 5]}, InvalidAction),
        ({"action": "key", "text": "ctrl+nosuchkey"}, UnknownKey),
        ({"action": "left_click", "modifiers": "hyperspace"}, UnknownKey),
    ],
)
def test_mistake_in_a_later_action_is_refused_before_the_first(
    bad: dict[str, object], kind: type[Exception]
) -> None:
    """Ours: a call is planned whole; spec row 17."""
    call = ComputerCall.model_validate({"actions": [{"action": "screenshot"}, bad]})

    with pytest.raises(kind, match=r"^action 2 of 2 \(\w+\): .*; nothing was done$"):
        plan_call(call, SCALE)


def test_single_action_is_refused_in_plain_words() -> None:
    """Ours: no numbering where there is one."""
    call = ComputerCall.model_validate({"actions": [{"action": "key", "text": "Retrun"}]})

    with pytest.raises(UnknownKey, match=r"^unknown key 'Retrun'; did you mean 'return'"):
        plan_call(call, SCALE)
