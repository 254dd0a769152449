"""
Canonical desktop actions and their results, as JSON.

Owns the one vocabulary that every vendor's computer tool is mapped to. Knows
no vendor, no display and no I/O. Coordinates are ``[x, y]`` pixels, origin top
left, in the frame named by ``ComputerCall.model_size`` (native pixels when that
is absent). ``[0, 0]`` is a place; an absent coordinate means "at the pointer".
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, TypeAdapter

__all__ = [
    "MAX_ACTIONS",
    "MAX_CHANGED_BOXES",
    "MAX_CLICKS",
    "MAX_CLIPBOARD_CHARACTERS",
    "MAX_DURATION_MS",
    "MAX_SCROLL_NOTCHES",
    "MAX_TEXT_CHARACTERS",
    "MAX_TRIPWIRES",
    "Action",
    "ActionReport",
    "AppInfo",
    "Button",
    "ButtonClick",
    "ButtonEdge",
    "Click",
    "ClickAction",
    "ComputerCall",
    "ComputerResult",
    "CursorPosition",
    "DesktopState",
    "DesktopStatus",
    "Drag",
    "GetClipboard",
    "Held",
    "HoldKey",
    "Key",
    "KeyEdge",
    "KeySequence",
    "LaunchReport",
    "LeftClickDrag",
    "MouseButtonEdge",
    "MouseMove",
    "PasteText",
    "RegionTripwire",
    "ScreenshotAction",
    "ScreenshotData",
    "Scroll",
    "ScrollDirection",
    "SetClipboard",
    "Size",
    "TitleTripwire",
    "Tripwire",
    "TypeText",
    "Wait",
    "WaitSettled",
    "WindowInfo",
    "WindowReport",
    "WireBox",
    "WireCoordinate",
    "Zoom",
    "action_adapter",
]

# Actions in one call. Vendors batch a handful; more than this is a runaway model.
MAX_ACTIONS = 100
# Milliseconds. Vendors quote 300 s as the longest hold or wait.
MAX_DURATION_MS = 300_000
# Wheel notches in one scroll. A screen is about 10; 100 reaches any list's end.
MAX_SCROLL_NOTCHES = 100
# Clicks of one action: toolkits count no further.
MAX_CLICKS = 3
# Conditions of one call.
MAX_TRIPWIRES = 8
# Characters in one type action; longer text belongs into a file.
MAX_TEXT_CHARACTERS = 100_000
# Characters on the clipboard, about 1 MiB of ASCII; Xvnc drops longer cut texts without a word.
MAX_CLIPBOARD_CHARACTERS = 1_048_576
# Boxes in which a result says what changed; more are merged.
MAX_CHANGED_BOXES = 16

WireCoordinate = tuple[StrictInt, StrictInt]
Size = tuple[Annotated[int, Field(ge=1, le=32_767)], Annotated[int, Field(ge=1, le=32_767)]]
WireBox = tuple[StrictInt, StrictInt, StrictInt, StrictInt]
Button = Literal["left", "middle", "right", "back", "forward"]
ScrollDirection = Literal["up", "down", "left", "right"]
ClickAction = Literal[
    "left_click",
    "right_click",
    "middle_click",
    "back_click",
    "forward_click",
    "double_click",
    "triple_click",
]
KeyText = Annotated[str, Field(min_length=1, max_length=200)]
DurationMs = Annotated[int, Field(ge=0, le=MAX_DURATION_MS)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScreenshotAction(_Frozen):
    """Look at the screen."""

    action: Literal["screenshot"] = "screenshot"


class Zoom(_Frozen):
    """Look at a region, cropped from native pixels. Never moves the coordinate frame."""

    action: Literal["zoom"] = "zoom"
    region: tuple[StrictInt, StrictInt, StrictInt, StrictInt] = Field(
        description="[x1, y1, x2, y2]; right and bottom edges are exclusive."
    )


class CursorPosition(_Frozen):
    """Where the pointer is."""

    action: Literal["cursor_position"] = "cursor_position"


class MouseMove(_Frozen):
    """Move the pointer."""

    action: Literal["mouse_move"] = "mouse_move"
    coordinate: WireCoordinate


class Click(_Frozen):
    """Click one to three times, with modifiers held; VNC has no back and forward button."""

    action: ClickAction
    coordinate: WireCoordinate | None = None
    modifiers: KeyText | None = Field(default=None, description='Keys held meanwhile, "ctrl+shift".')


class ButtonClick(_Frozen):
    """Click any button one to three times; VNC has no back and forward: press alt+Left, alt+Right there."""

    action: Literal["click"] = "click"
    button: Button = "left"
    count: Annotated[int, Field(ge=1, le=MAX_CLICKS)] = 1
    coordinate: WireCoordinate | None = None
    modifiers: KeyText | None = Field(default=None, description='Keys held meanwhile, "ctrl+shift".')


class MouseButtonEdge(_Frozen):
    """Press or release the left button."""

    action: Literal["left_mouse_down", "left_mouse_up"]
    coordinate: WireCoordinate | None = None


class ButtonEdge(_Frozen):
    """Press or release any pointer button and leave it so."""

    action: Literal["button_down", "button_up"]
    button: Button = "left"
    coordinate: WireCoordinate | None = None


class LeftClickDrag(_Frozen):
    """Drag with the left button from one point (or the pointer) to another."""

    action: Literal["left_click_drag"] = "left_click_drag"
    start_coordinate: WireCoordinate | None = None
    coordinate: WireCoordinate
    modifiers: KeyText | None = None


class Drag(_Frozen):
    """Drag along a path."""

    action: Literal["drag"] = "drag"
    path: tuple[WireCoordinate, ...] = Field(min_length=2, max_length=1_000)
    button: Button = "left"
    modifiers: KeyText | None = None


class Scroll(_Frozen):
    """Turn the wheel by notches."""

    action: Literal["scroll"] = "scroll"
    coordinate: WireCoordinate | None = None
    scroll_direction: ScrollDirection = "down"
    scroll_amount: Annotated[int, Field(ge=0, le=MAX_SCROLL_NOTCHES)] = 3
    modifiers: KeyText | None = None


class Key(_Frozen):
    """Press and release one chord ("ctrl+l", "Return")."""

    action: Literal["key"] = "key"
    text: KeyText


class KeySequence(_Frozen):
    """Press and release chords one after another; refused whole when one of them is unknown."""

    action: Literal["key_sequence"] = "key_sequence"
    keys: tuple[KeyText, ...] = Field(min_length=1, max_length=MAX_ACTIONS)


class HoldKey(_Frozen):
    """Hold a chord for a while."""

    action: Literal["hold_key"] = "hold_key"
    text: KeyText
    duration_ms: DurationMs = 1_000


class KeyEdge(_Frozen):
    """Press or release a chord and leave it so."""

    action: Literal["key_down", "key_up"]
    text: KeyText


class _WithText(_Frozen):
    """An action that carries text, which may be a secret."""

    secret: bool = Field(
        default=False, description="A password or the like: kept out of every log, result and error."
    )

    def __repr_args__(self) -> Iterator[tuple[str | None, object]]:
        """Fields for ``repr``, without the text of a secret."""
        for name, value in super().__repr_args__():
            yield name, "***" if name == "text" and self.secret else value


class TypeText(_WithText):
    """Type text exactly; a newline is Return, a tab is Tab, unless *plain* refuses both."""

    action: Literal["type"] = "type"
    text: Annotated[str, Field(min_length=1, max_length=MAX_TEXT_CHARACTERS)]
    plain: bool = Field(default=False, description="Refuse newlines and tabs instead of pressing keys.")


class PasteText(_WithText):
    """Insert text through the clipboard, in one piece; the clipboard is restored afterwards."""

    action: Literal["paste"] = "paste"
    text: Annotated[str, Field(min_length=1, max_length=MAX_TEXT_CHARACTERS)]


class SetClipboard(_WithText):
    """Put text on the clipboard."""

    action: Literal["set_clipboard"] = "set_clipboard"
    text: Annotated[str, Field(max_length=MAX_CLIPBOARD_CHARACTERS)]


class GetClipboard(_Frozen):
    """Read the clipboard's text; it is the report's output."""

    action: Literal["get_clipboard"] = "get_clipboard"


class Wait(_Frozen):
    """Let time pass."""

    action: Literal["wait"] = "wait"
    duration_ms: DurationMs = 1_000


class WaitSettled(_Frozen):
    """Let time pass until the screen has been quiet for *quiet_ms*, at most *timeout_ms*."""

    action: Literal["wait_settled"] = "wait_settled"
    quiet_ms: Annotated[int, Field(ge=10, le=10_000)] = 400
    timeout_ms: Annotated[int, Field(ge=0, le=MAX_DURATION_MS)] = 3_000


Action = Annotated[
    ScreenshotAction
    | Zoom
    | CursorPosition
    | MouseMove
    | Click
    | ButtonClick
    | MouseButtonEdge
    | ButtonEdge
    | LeftClickDrag
    | Drag
    | Scroll
    | Key
    | KeySequence
    | HoldKey
    | KeyEdge
    | TypeText
    | PasteText
    | SetClipboard
    | GetClipboard
    | Wait
    | WaitSettled,
    Field(discriminator="action"),
]
action_adapter: TypeAdapter[Action] = TypeAdapter(Action)


class TitleTripwire(_Frozen):
    """The active window's title must hold *text* before each action."""

    kind: Literal["window_title"] = "window_title"
    text: Annotated[str, Field(min_length=1, max_length=500)]


class RegionTripwire(_Frozen):
    """A region must look before each further action as it did when the call began, pointer left out."""

    kind: Literal["region_unchanged"] = "region_unchanged"
    region: tuple[StrictInt, StrictInt, StrictInt, StrictInt] = Field(
        description="[x1, y1, x2, y2]; right and bottom edges are exclusive."
    )


Tripwire = Annotated[TitleTripwire | RegionTripwire, Field(discriminator="kind")]


class ComputerCall(_Frozen):
    """
    Arguments of the ``computer`` tool: actions performed in order.

    The first failure stops the rest. One screenshot is taken at the end.
    """

    actions: tuple[Action, ...] = Field(min_length=1, max_length=MAX_ACTIONS)
    model_size: Size | None = Field(
        default=None, description="Frame of the coordinates and size of the picture; native if absent."
    )
    screenshot: bool = Field(default=True, description="Take a screenshot after the last action.")
    tripwires: tuple[Tripwire, ...] = Field(
        default=(), max_length=MAX_TRIPWIRES, description="What must hold, or the rest is not done."
    )


class ActionReport(_Frozen):
    """What one action did."""

    action: str
    output: str = Field(description="One sentence for the model, in its own coordinate frame.")
    native_point: WireCoordinate | None = Field(
        default=None, description="Where it happened, in native pixels."
    )
    warning: str | None = Field(default=None, description="Set when the effect was not confirmed.")


class ScreenshotData(_Frozen):
    """An encoded picture of the framebuffer at one instant."""

    media_type: Literal["image/png", "image/jpeg", "image/webp"] = "image/png"
    data: str = Field(description="base64")
    model_size: Size
    native_size: Size
    taken_at: datetime
    unchanged: bool = Field(default=False, description="The same pixels as the last picture handed out.")


class Held(_Frozen):
    """What is down, read back from the server."""

    keys: tuple[str, ...] = Field(default=(), description="X keysym names")
    buttons: tuple[int, ...] = Field(default=(), description="X button numbers")


class ComputerResult(_Frozen):
    """
    Result of the ``computer`` tool.

    *settled_ms* is how long the wait for a quiet screen took; *still_changing* that it
    ended without one. *changed* holds boxes ``[x1, y1, x2, y2]`` in native pixels that
    changed since the call began; *pointer* is native too.

    ``error`` is set when an action failed; ``reports`` then holds those that
    were done before it, and ``screenshot`` shows the screen as it is now.
    """

    reports: tuple[ActionReport, ...] = ()
    screenshot: ScreenshotData | None = None
    settled_ms: float | None = None
    still_changing: bool = False
    changed: tuple[WireBox, ...] = Field(default=(), max_length=MAX_CHANGED_BOXES)
    pointer: WireCoordinate | None = None
    held: Held | None = None
    warnings: tuple[str, ...] = ()
    error: str | None = None
    error_code: str | None = None


class WindowInfo(_Frozen):
    """One window of an application, as the window manager lists it. Boxes are native pixels."""

    id: StrictInt
    title: str
    window_class: str = Field(description='Class of WM_CLASS, "XTerm"; empty when the window has none.')
    pid: int | None = Field(default=None, description="Process that made it, where it says so.")
    bounds: WireBox = Field(description="What the application draws in: [x1, y1, x2, y2].")
    frame: WireBox = Field(description="The same with the window manager's frame round it.")
    active: bool = False
    minimized: bool = False


class WindowReport(_Frozen):
    """A window as it is after a request; *warning* tells what came out otherwise than asked."""

    window: WindowInfo
    warning: str | None = None


class LaunchReport(_Frozen):
    """A program that was started, and its first window; None when none came in time."""

    pid: int
    window: WindowInfo | None = None
    warning: str | None = None


DesktopState = Literal["stopped", "starting", "running", "failed"]


class AppInfo(_Frozen):
    """A program that was opened at the desktop and runs."""

    pid: int = Field(description="Leader of its process group.")
    argv: tuple[str, ...]


class DesktopStatus(_Frozen):
    """One desktop session, as ``agentd desktop status`` shows it."""

    name: str
    state: DesktopState
    display: str | None = Field(default=None, description='X display, ":10"; null while stopped.')
    backend: str = Field(description="xvnc or portabledesktop")
    geometry: str = Field(description="WIDTHxHEIGHT, native pixels")
    pids: dict[str, int] = Field(default_factory=dict, description="role to process id")
    viewers: int = 0
    control: str | None = Field(default=None, description="person who has control; null: the agent")
    control_seat: str | None = Field(default=None, description="that person's screen")
    error: str | None = None
    restarts: int = Field(default=0, description="Times that it, or a member, was started again by itself.")
    warnings: tuple[str, ...] = Field(default=(), description="What it lacks on this machine.")
    clipboard_withheld_bytes: int = Field(
        default=0,
        description="Size of a text on its clipboard that a viewer asked for and that was too long; 0: none.",
    )
