"""What is down on an X server, asked of the server itself."""

from Xlib import X

from computer.display.x11.connection import XConnection
from computer.display.x11.questions import ask_keymap, ask_pointer, await_answers
from computer.keys import Keysym, keysym_name
from computer.wire import Held

__all__ = ["CORE_BUTTONS", "read_buttons", "read_held"]

# Buttons that the core protocol's mask tells of.
CORE_BUTTONS = 5


def read_buttons(connection: XConnection) -> tuple[int, ...]:
    """Buttons 1 to 5 that are down."""
    return _buttons(connection.screen().root.query_pointer().mask)


def read_held(connection: XConnection) -> Held:
    """Buttons 1 to 5 and keys that are down; keys by the name of the keysym on their first level."""
    pointer, keymap = ask_pointer(connection), ask_keymap(connection)
    await_answers(pointer, keymap)
    codes = [index * 8 + bit for index, byte in enumerate(keymap.map) for bit in range(8) if byte >> bit & 1]
    return Held(keys=tuple(_name(connection, code) for code in codes), buttons=_buttons(pointer.mask))


def _buttons(mask: int) -> tuple[int, ...]:
    return tuple(button for button in range(1, CORE_BUTTONS + 1) if mask & (X.Button1Mask << (button - 1)))


def _name(connection: XConnection, keycode: int) -> str:
    keysym = connection.get_keyboard_mapping(keycode, 1)[0][0]
    return keysym_name(Keysym(keysym)) if keysym else f"keycode {keycode}"
