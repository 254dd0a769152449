"""
Canonical actions, planned into low-level steps.

Pure. A whole call is planned before any of it is performed, so that a mistake in the third
action is refused before the first one has touched the screen. Coordinates leave here in
native pixels; sentences for the model stay in the model's frame.
"""

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from computer.errors import ComputerError, InvalidAction
from computer.geometry import ModelPoint, Point, Rect, Scale
from computer.keys import Chord, Way, parse_chord
from computer.wire import (
    Action,
    ButtonClick,
    ButtonEdge,
    Click,
    ComputerCall,
    CursorPosition,
    Drag,
    GetClipboard,
    HoldKey,
    Key,
    KeyEdge,
    KeySequence,
    LeftClickDrag,
    MouseButtonEdge,
    MouseMove,
    PasteText,
    ScreenshotAction,
    Scroll,
    SetClipboard,
    TypeText,
    Wait,
    WaitSettled,
    WireCoordinate,
    Zoom,
)

__all__ = [
    "TEXT_STEPS",
    "AwaitAnswer",
    "AwaitRest",
    "Effect",
    "KeyDown",
    "KeyUp",
    "Listen",
    "Look",
    "MoveTo",
    "PasteCharacters",
    "Pause",
    "PlannedAction",
    "Press",
    "ReadClipboard",
    "Release",
    "Step",
    "TypeCharacters",
    "WriteClipboard",
    "naming_action",
    "plan_action",
    "plan_call",
    "render_output",
]

# X11 pointer buttons.
BUTTONS = {"left": 1, "middle": 2, "right": 3, "back": 8, "forward": 9}
WHEEL = {"up": 4, "down": 5, "left": 6, "right": 7}
CLICKS = {
    "left_click": ("left", 1, "Left-clicked"),
    "right_click": ("right", 1, "Right-clicked"),
    "middle_click": ("middle", 1, "Middle-clicked"),
    "back_click": ("back", 1, "Clicked the back button"),
    "forward_click": ("forward", 1, "Clicked the forward button"),
    "double_click": ("left", 2, "Double-clicked"),
    "triple_click": ("left", 3, "Triple-clicked"),
}
TIMES = {1: "clicked", 2: "double-clicked", 3: "triple-clicked"}
# Pixels between two motion events of a drag, and the most of them on one straight line. Toolkits
# start a drag only after they have seen the pointer move while the button is down.
DRAG_STRIDE = 16
DRAG_STRIDES = 32
# Seconds between press, motion and release of a drag: a toolkit needs one turn of its loop.
DRAG_PAUSE_S = 0.02
# A program that is late reads all waiting motion as one event. A window manager takes the first for
# the start of a move and needs a later one to carry it out: so the motion comes in parts, over time.
DRAG_PARTS = 8
# Seconds in which the screen should answer the first part: then whoever takes the drag has begun with
# it, however late. A drag that changes nothing waits in vain, and goes on.
DRAG_ANSWER_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveTo:
    """Move the pointer."""

    point: Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Press:
    """Press a pointer button (X11 number)."""

    button: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Release a pointer button."""

    button: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyDown:
    """Press the keys of a chord in order."""

    chord: Chord


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyUp:
    """Release the keys of a chord in reverse order."""

    chord: Chord


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeCharacters:
    """Type text, its line ends already normalised to line feeds."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PasteCharacters:
    """Insert text through the clipboard, as it is."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteClipboard:
    """Put text on the clipboard."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadClipboard:
    """Read the clipboard; its text is the action's output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Let time pass, in seconds."""

    duration_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitRest:
    """Let time pass until the screen has been quiet for *quiet_s*, at most *timeout_s*."""

    quiet_s: float
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Listen:
    """Take note of what has changed so far, so that ``AwaitAnswer`` waits for something new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitAnswer:
    """Let time pass until something changes on the screen, at most *limit_s*."""

    limit_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Capture a region of native pixels."""

    region: Rect


TextStep = TypeCharacters | PasteCharacters | WriteClipboard | ReadClipboard
TEXT_STEPS = (TypeCharacters, PasteCharacters, WriteClipboard, ReadClipboard)
Step = MoveTo | Press | Release | KeyDown | KeyUp | TextStep | Pause | Listen | AwaitAnswer | AwaitRest | Look


class Effect(StrEnum):
    """What an action may do to the screen, which says how long to wait before looking."""

    NONE = "none"
    ECHO = "echo"
    START = "start"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAction:
    """
    One action, ready to be performed.

    ``point`` is where it ends, in the model's frame; None with ``at_pointer`` set means
    wherever the pointer is then.
    """

    action: str
    steps: tuple[Step, ...]
    phrase: str
    effect: Effect = Effect.NONE
    point: ModelPoint | None = None
    preposition: str = "at"
    at_pointer: bool = False


def plan_call(call: ComputerCall, scale: Scale) -> tuple[PlannedAction, ...]:
    """
    Plan every action of a call.

    Raises:
        Refused: the first action that can't be done; the sentence names its number when
            there are several.
    """
    planned = []
    for index, action in enumerate(call.actions):
        with naming_action(call, index, note="; nothing was done"):
            planned.append(plan_action(action, scale))
    return tuple(planned)


@contextmanager
def naming_action(call: ComputerCall, index: int, note: str = "") -> Iterator[None]:
    """Say in an error which action of several it is about."""
    try:
        yield
    except ComputerError as exc:
        if len(call.actions) > 1:
            where = f"action {index + 1} of {len(call.actions)} ({call.actions[index].action})"
            exc.args = (f"{where}: {exc}{note}",)
        raise


def plan_action(action: Action, scale: Scale) -> PlannedAction:
    """
    Plan one action.

    Raises:
        OutOfBounds: a coordinate or region leaves the model's frame.
        UnknownKey: a chord can't be parsed.
        InvalidAction: text that no keyboard can type, or an empty region.
    """
    match action:
        case MouseMove() | Click() | ButtonClick() | MouseButtonEdge() | ButtonEdge():
            return _plan_pointer(action, scale)
        case LeftClickDrag() | Drag() | Scroll():
            return _plan_motion(action, scale)
        case Key() | KeySequence() | HoldKey() | KeyEdge():
            return _plan_keyboard(action)
        case TypeText() | PasteText() | SetClipboard() | GetClipboard():
            return _plan_text(action)
        case ScreenshotAction() | Zoom() | CursorPosition():
            return _plan_look(action, scale)
        case Wait() | WaitSettled():
            return _plan_wait(action)
        case _:
            assert_never(action)


def render_output(planned: PlannedAction, place: ModelPoint | None, way: Way | None = None) -> str:
    """Sentence for the model; *place* is in its frame, *way* is how text got there."""
    if planned.action == "cursor_position" and place is not None:
        return f"x={place.x},y={place.y}"
    phrase = planned.phrase if way is None else f"{planned.phrase} by {way}"
    return f"{phrase}." if place is None else f"{phrase} {planned.preposition} ({place.x}, {place.y})."


def _plan_look(action: ScreenshotAction | Zoom | CursorPosition, scale: Scale) -> PlannedAction:
    match action:
        case ScreenshotAction():
            return PlannedAction(action=action.action, steps=(), phrase="Took a screenshot")
        case Zoom():
            region = scale.region_to_native(*action.region)
            phrase = f"Zoomed into {list(action.region)}"
            return PlannedAction(action=action.action, steps=(Look(region=region),), phrase=phrase)
        case CursorPosition():
            return PlannedAction(action=action.action, steps=(), phrase="", at_pointer=True)


def _plan_wait(action: Wait | WaitSettled) -> PlannedAction:
    if isinstance(action, Wait):
        pause = Pause(duration_s=action.duration_ms / 1_000)
        return PlannedAction(action=action.action, steps=(pause,), phrase=f"Waited {pause.duration_s:g} s")
    rest = AwaitRest(quiet_s=action.quiet_ms / 1_000, timeout_s=action.timeout_ms / 1_000)
    return PlannedAction(action=action.action, steps=(rest,), phrase="Waited for the screen to come to rest")


def _plan_pointer(
    action: MouseMove | Click | ButtonClick | MouseButtonEdge | ButtonEdge, scale: Scale
) -> PlannedAction:
    match action:
        case MouseMove():
            model = _model(action.coordinate)
            steps = (MoveTo(point=scale.to_native(model)),)
            return PlannedAction(
                action=action.action,
                steps=steps,
                phrase="Moved the pointer",
                effect=Effect.ECHO,
                point=model,
                preposition="to",
            )
        case Click() | ButtonClick():
            return _plan_click(action, scale)
        case MouseButtonEdge() | ButtonEdge():
            return _plan_edge(action, scale)


def _plan_motion(action: LeftClickDrag | Drag | Scroll, scale: Scale) -> PlannedAction:
    match action:
        case Scroll():
            return _plan_scroll(action, scale)
        case LeftClickDrag():
            start = () if action.start_coordinate is None else (action.start_coordinate,)
            path = (*start, action.coordinate)
            return _plan_drag(action.action, path, 1, action.modifiers, scale)
        case Drag():
            return _plan_drag(action.action, action.path, BUTTONS[action.button], action.modifiers, scale)


def _plan_click(action: Click | ButtonClick, scale: Scale) -> PlannedAction:
    if isinstance(action, Click):
        name, times, phrase = CLICKS[action.action]
    else:
        name, times = action.button, action.count
        phrase = f"{TIMES[times].capitalize()} the {name} button"
    button = BUTTONS[name]
    clicks: tuple[Step, ...] = (Press(button=button), Release(button=button)) * times
    if action.modifiers:
        phrase = f"{phrase} with {action.modifiers}"
    return _at(
        action.action,
        action.coordinate,
        scale,
        steps=_with_modifiers(action.modifiers, clicks),
        phrase=phrase,
        effect=Effect.START,
    )


def _plan_edge(action: MouseButtonEdge | ButtonEdge, scale: Scale) -> PlannedAction:
    name = action.button if isinstance(action, ButtonEdge) else "left"
    is_press = action.action in {"left_mouse_down", "button_down"}
    button = BUTTONS[name]
    edge: Step = Press(button=button) if is_press else Release(button=button)
    phrase = f"{'Pressed' if is_press else 'Released'} the {name} button"
    return _at(action.action, action.coordinate, scale, steps=(edge,), phrase=phrase, effect=Effect.ECHO)


def _plan_scroll(action: Scroll, scale: Scale) -> PlannedAction:
    button = WHEEL[action.scroll_direction]
    notches: tuple[Step, ...] = (Press(button=button), Release(button=button)) * action.scroll_amount
    return _at(
        action.action,
        action.coordinate,
        scale,
        steps=_with_modifiers(action.modifiers, notches),
        phrase=f"Scrolled {action.scroll_direction} by {action.scroll_amount}",
        effect=Effect.ECHO,
    )


def _plan_drag(
    name: str, path: tuple[WireCoordinate, ...], button: int, modifiers: str | None, scale: Scale
) -> PlannedAction:
    models = [_model(coordinate) for coordinate in path]
    points = [scale.to_native(model) for model in models]
    pause = Pause(duration_s=DRAG_PAUSE_S)
    lead: list[Step] = []
    if len(points) > 1:
        lead.append(MoveTo(point=points[0]))
    moves: list[Step] = [step for start, end in itertools.pairwise(points) for step in _line(start, end)]
    moves = moves or [MoveTo(point=points[0])]
    motion: list[Step] = [Press(button=button), pause, Listen()]
    part_size = math.ceil(len(moves) / DRAG_PARTS)
    for start in range(0, len(moves), part_size):
        is_first = start == 0 and len(moves) > part_size
        answer = (AwaitAnswer(limit_s=DRAG_ANSWER_S),) if is_first else ()
        motion.extend((*moves[start : start + part_size], *answer, pause))
    motion.append(Release(button=button))
    steps = (*lead, *_with_modifiers(modifiers, tuple(motion)))
    return PlannedAction(
        action=name, steps=steps, phrase="Dragged", effect=Effect.START, point=models[-1], preposition="to"
    )


def _line(start: Point, end: Point) -> list[Step]:
    distance = max(abs(end.x - start.x), abs(end.y - start.y))
    strides = max(1, min(DRAG_STRIDES, distance // DRAG_STRIDE))
    return [
        MoveTo(
            point=Point(
                x=start.x + (end.x - start.x) * part // strides,
                y=start.y + (end.y - start.y) * part // strides,
            )
        )
        for part in range(1, strides + 1)
    ]


def _at(
    name: str,
    coordinate: WireCoordinate | None,
    scale: Scale,
    *,
    steps: tuple[Step, ...],
    phrase: str,
    effect: Effect,
) -> PlannedAction:
    if coordinate is None:
        return PlannedAction(action=name, steps=steps, phrase=phrase, effect=effect, at_pointer=True)
    model = _model(coordinate)
    moved = (MoveTo(point=scale.to_native(model)), *steps)
    return PlannedAction(action=name, steps=moved, phrase=phrase, effect=effect, point=model)


def _with_modifiers(modifiers: str | None, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    if modifiers is None:
        return steps
    chord = parse_chord(modifiers)
    return (KeyDown(chord=chord), *steps, KeyUp(chord=chord))


def _plan_keyboard(action: Key | KeySequence | HoldKey | KeyEdge) -> PlannedAction:
    if isinstance(action, KeySequence):
        return _plan_sequence(action)
    chord = parse_chord(action.text)
    effect = Effect.START if chord.is_command else Effect.ECHO
    down, up = KeyDown(chord=chord), KeyUp(chord=chord)
    steps: tuple[Step, ...]
    match action:
        case Key():
            steps, phrase = (down, up), f"Pressed {chord.text}"
        case HoldKey():
            pause = Pause(duration_s=action.duration_ms / 1_000)
            steps, phrase = (down, pause, up), f"Held {chord.text} for {pause.duration_s:g} s"
        case KeyEdge(action="key_down"):
            steps, phrase = (down,), f"{chord.text} is down"
        case _:
            steps, phrase = (up,), f"{chord.text} is up"
    return PlannedAction(action=action.action, steps=steps, phrase=phrase, effect=effect)


def _plan_sequence(action: KeySequence) -> PlannedAction:
    chords = [parse_chord(text) for text in action.keys]
    steps = tuple(step for chord in chords for step in (KeyDown(chord=chord), KeyUp(chord=chord)))
    return PlannedAction(
        action=action.action,
        steps=steps,
        phrase=f"Pressed {', '.join(chord.text for chord in chords)}",
        effect=Effect.START if any(chord.is_command for chord in chords) else Effect.ECHO,
    )


def _plan_text(action: TypeText | PasteText | SetClipboard | GetClipboard) -> PlannedAction:
    if isinstance(action, SetClipboard | GetClipboard):
        return _plan_clipboard(action)
    _check_text(action.text, allowed="" if isinstance(action, TypeText) and action.plain else "\n\r\t")
    step: Step
    if isinstance(action, TypeText):
        # A line end is Return, however it is written.
        text = action.text.replace("\r\n", "\n").replace("\r", "\n")
        step, verb, starts = TypeCharacters(text=text), "Typed", "\n" in text
    else:
        step, verb, starts = PasteCharacters(text=action.text), "Pasted", "\n" in action.text
    return PlannedAction(
        action=action.action,
        steps=(step,),
        phrase=f"{verb} {_amount(action)}",
        effect=Effect.START if starts else Effect.ECHO,
    )


def _plan_clipboard(action: SetClipboard | GetClipboard) -> PlannedAction:
    if isinstance(action, GetClipboard):
        return PlannedAction(action=action.action, steps=(ReadClipboard(),), phrase="Read the clipboard")
    phrase = f"Put {_amount(action)} on the clipboard"
    return PlannedAction(action=action.action, steps=(WriteClipboard(text=action.text),), phrase=phrase)


def _check_text(text: str, *, allowed: str) -> None:
    for offset, character in enumerate(text):
        if character in "\n\r\t" and character not in allowed:
            name = "a tab" if character == "\t" else "a line end"
            msg = f"character {offset} of the text is {name}, which plain text must not have"
            raise InvalidAction(msg)
        if not _is_typable(character):
            msg = (
                f"character {offset} of the text (U+{ord(character):04X}) can't be typed; use the key action"
            )
            raise InvalidAction(msg)


def _amount(action: TypeText | PasteText | SetClipboard) -> str:
    if action.secret:
        return "a secret"
    count = len(action.text)
    return f"{count} character{'' if count == 1 else 's'}"


def _is_typable(character: str) -> bool:
    code = ord(character)
    is_control = code < 0x20 or 0x7F <= code < 0xA0
    return character in "\n\r\t" or not (is_control or 0xD800 <= code <= 0xDFFF)


def _model(coordinate: WireCoordinate) -> ModelPoint:
    return ModelPoint(x=coordinate[0], y=coordinate[1])
