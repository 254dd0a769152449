"""What is down on an X server, asked of the server itself."""

from functools import cache

from Xlib import XK, X

from computer.display.x11.connection import XConnection

__all__ = ["CORE_BUTTONS", "read_buttons", "read_keys"]

# Buttons that the core protocol's mask tells of.
CORE_BUTTONS = 5
_UNICODE = 0x0100_0000


def read_buttons(connection: XConnection) -> tuple[int, ...]:
    """Buttons 1 to 5 that are down."""
    mask = connection.screen().root.query_pointer().mask
    return tuple(button for button in range(1, CORE_BUTTONS + 1) if mask & (X.Button1Mask << (button - 1)))


def read_keys(connection: XConnection) -> tuple[str, ...]:
    """Keys that are down, by the name of the keysym on their first level."""
    codes = [
        index * 8 + bit
        for index, byte in enumerate(connection.query_keymap())
        for bit in range(8)
        if byte >> bit & 1
    ]
    return tuple(_name(connection, keycode) for keycode in codes)


def _name(connection: XConnection, keycode: int) -> str:
    keysym = connection.get_keyboard_mapping(keycode, 1)[0][0]
    if keysym in _names():
        return _names()[keysym]
    if keysym & _UNICODE:
        return f"U{keysym & 0xFF_FFFF:04X}"
    return f"0x{keysym:x}" if keysym else f"keycode {keycode}"


@cache
def _names() -> dict[int, str]:
    XK.load_keysym_group("xf86")
    names: dict[int, str] = {}
    for name in sorted(dir(XK)):
        if name.startswith("XK_"):
            names.setdefault(getattr(XK, name), name.removeprefix("XK_"))
    return names
