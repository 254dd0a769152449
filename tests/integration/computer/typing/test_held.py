"""Keys and buttons around typing: what is held, what is left, what a window is sent."""

import asyncio
import random
from typing import Any

import pytest
from Xlib import X

from computer.display import Way
from computer.display.x11 import X11Display
from computer.display.x11.connection import XConnection
from computer.keys import parse_chord
from computer.session import DesktopSession
from computer.wire import ComputerCall
from tests.integration.computer.typing.programs import Program

LIMIT_S = 20


class Log:
    """A window with the focus, and the keys that it is sent."""

    def __init__(self, connection: XConnection) -> None:
        self._connection = connection
        root = connection.screen().root
        mask = X.KeyPressMask | X.KeyReleaseMask
        self._window = root.create_window(
            0, 0, 50, 50, 0, X.CopyFromParent, event_mask=mask, override_redirect=True
        )
        self._window.map()
        connection.sync()
        self._window.set_input_focus(X.RevertToParent, X.CurrentTime)
        connection.sync()

    def pressed(self) -> list[int]:
        """Unshifted keysyms of the keys that went down."""
        self._connection.sync()
        events: list[Any] = [self._connection.next_event() for _ in range(self._connection.pending_events())]
        return [
            self._connection.keycode_to_keysym(found.detail, 0)
            for found in events
            if found.type == X.KeyPress
        ]


def _down(connection: XConnection) -> int:
    return sum(byte.bit_count() for byte in connection.query_keymap())


def _tap(connection: XConnection, keysym: int, kind: int) -> None:
    connection.xtest_fake_input(kind, connection.keysym_to_keycode(keysym))
    connection.sync()


def test_newline_is_return_and_tab_is_tab(display: X11Display, other: XConnection) -> None:
    """BUGS 5: not Linefeed, not BackSpace."""
    log = Log(other)
    list(display.type_text("a\nb\tc"))

    assert log.pressed() == [0x61, 0xFF0D, 0x62, 0xFF09, 0x63]


def test_command_chord_is_sent_whole(display: X11Display, other: XConnection) -> None:
    """BUGS 17: cmd+c is super and c, never a plain c."""
    log = Log(other)
    display.press_chord(parse_chord("cmd+c"))
    display.release_chord(parse_chord("cmd+c"))

    assert log.pressed() == [0xFFEB, 0x63]


@pytest.mark.parametrize("num_lock", [False, True])
def test_number_pad_keys_mean_the_same_under_num_lock(
    display: X11Display, other: XConnection, num_lock: bool
) -> None:
    """Ours: KP_7 takes Shift, and with Num Lock on it takes none."""
    if num_lock:
        display.press_chord(parse_chord("Num_Lock"))
        display.release_chord(parse_chord("Num_Lock"))
    log = Log(other)
    display.press_chord(parse_chord("KP_7"))
    display.release_chord(parse_chord("KP_7"))

    assert log.pressed() == ([0xFF95] if num_lock else [0xFFE1, 0xFF95])


async def test_super_needs_no_pause_before_what_follows(desktop: DesktopSession, terminal: Program) -> None:
    """BUGS 21: super by itself, then text."""
    actions = [{"action": "key", "text": "super"}, {"action": "type", "text": "Ab\n"}]
    result = await desktop.perform(ComputerCall.model_validate({"actions": actions, "screenshot": False}))

    assert result.error is None
    assert await terminal.arrived("Ab\n") == "Ab\n"


async def test_modifier_that_the_model_holds_is_lifted_while_typing(
    terminal: Program, other: XConnection
) -> None:
    """Ours: text is exact whatever is held, and what is held stays so."""
    terminal.display.press_chord(parse_chord("ctrl+shift"))
    await terminal.type("abc-1")

    assert await terminal.arrived("abc-1") == "abc-1"
    assert _down(other) == 2
    terminal.display.release_all()
    assert _down(other) == 0


async def test_modifier_that_somebody_else_left_down_is_released(
    terminal: Program, other: XConnection
) -> None:
    """BUGS 22: it would turn text into commands."""
    _tap(other, 0xFFE3, X.KeyPress)
    await terminal.type("abc")

    assert await terminal.arrived("abc") == "abc"
    assert _down(other) == 0


async def test_nothing_is_held_after_typing_whatever_others_press(
    terminal: Program, other: XConnection
) -> None:
    """BUGS 22: 500 signs, control pressed and released meanwhile."""
    bursts = terminal.display.type_text("(Hello_World-42>)" * 30)
    for _ in bursts:
        _tap(other, 0xFFE3, X.KeyPress)
        _tap(other, 0xFFE3, X.KeyRelease)

    assert _down(other) == 0
    assert not other.screen().root.query_pointer().mask & 0xFF


async def test_shifted_signs_never_lose_their_shift(terminal: Program) -> None:
    """BUGS 8: fifty of fifty."""
    text = "Hello_World-42 (a>b)" * 50
    await terminal.type(text)

    assert await terminal.arrived(text) == text


async def test_server_without_spare_keys_still_takes_text(terminal: Program, other: XConnection) -> None:
    """BUGS 10: a viewer has used up all keycodes; the text is pasted."""
    info = other.display.info
    rows = other.get_keyboard_mapping(info.min_keycode, info.max_keycode - info.min_keycode + 1)
    for offset, row in enumerate(rows):
        if not any(row):
            symbol = 0x0100_5000 + offset
            other.change_keyboard_mapping(info.min_keycode + offset, [[symbol, symbol]])
    other.sync()
    typed = await terminal.type("я!")

    assert await terminal.arrived("я!") == "я!"
    assert typed.way is Way.PASTE


async def test_bindings_are_kept_between_texts_and_given_back_at_the_end(
    terminal: Program, other: XConnection
) -> None:
    """Measured: a mapping that is restored at once loses characters."""
    info = other.display.info
    before = other.get_keyboard_mapping(info.min_keycode, info.max_keycode - info.min_keycode + 1)
    await terminal.type("漢字")
    during = other.get_keyboard_mapping(info.min_keycode, info.max_keycode - info.min_keycode + 1)
    await terminal.arrived("漢字")
    terminal.display.close()
    after = other.get_keyboard_mapping(info.min_keycode, info.max_keycode - info.min_keycode + 1)

    assert list(map(list, before)) != list(map(list, during))
    assert [list(row)[:2] for row in before] == [list(row)[:2] for row in after]


async def test_abandoned_paste_gives_clipboard_and_keys_back(terminal: Program, other: XConnection) -> None:
    """BUGS 25: cancelled between two lines."""
    terminal.display.set_clipboard("theirs")
    bursts = terminal.display.type_text("".join(chr(0x4E00 + number) + "\n" for number in range(40)))
    next(bursts)
    bursts.close()

    assert terminal.display.get_clipboard() == "theirs"
    assert _down(other) == 0


@pytest.mark.slow
async def test_hundred_middle_clicks_with_cancels_leave_no_button_down(
    desktop: DesktopSession, other: XConnection
) -> None:
    """BUGS 26."""
    call = ComputerCall.model_validate(
        {"actions": [{"action": "middle_click", "coordinate": [600, 400]}], "screenshot": False}
    )
    chance = random.Random(26)  # noqa: S311
    for _ in range(100):
        task = asyncio.create_task(desktop.perform(call))
        for _ in range(chance.randrange(8)):
            await asyncio.sleep(0)
        if chance.random() < 0.5:
            task.cancel()
        await asyncio.wait({task}, timeout=LIMIT_S)

    assert not other.screen().root.query_pointer().mask & 0x1F00
