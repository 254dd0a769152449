"""Keyboard details on a real server: bindings, layouts, pings."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from Xlib import XK, X
from Xlib.protocol import event

from computer.display.x11 import X11Display
from computer.display.x11.connection import XConnection, connect, disconnect
from computer.display.x11.ping import ping_active_window
from computer.keys import parse_chord
from computer.session import DesktopSession

# Seconds. Generous: other tests share the machine.
LIMIT_S = 30


@pytest.fixture
async def other(session: DesktopSession) -> AsyncIterator[XConnection]:
    """A second client of the running session."""
    await session.ensure_running()
    assert session._live is not None
    connection = connect(session._live.desktop.display, session._live.desktop.cookie)
    yield connection
    disconnect(connection)


@pytest.fixture
def display(session: DesktopSession, other: XConnection) -> X11Display:
    """A display of the test's own on it."""
    assert session._live is not None
    return X11Display(session._live.desktop.display, session._live.desktop.cookie)


def _symbol(connection: XConnection, keycode: int) -> int:
    return int(connection.get_keyboard_mapping(keycode, 1)[0][0])


def _bound(connection: XConnection, keysym: int) -> list[int]:
    info = connection.display.info
    return [
        keycode
        for keycode in range(info.min_keycode, info.max_keycode + 1)
        if _symbol(connection, keycode) == keysym
    ]


def test_chord_of_a_key_that_the_layout_lacks_is_bound(display: X11Display, other: XConnection) -> None:
    """Ours: ctrl+€ works on a layout without €; the spare key is given back at the end."""
    keysym = 0x010020AC
    display.press_chord(parse_chord("ctrl+€"))
    keycodes = _bound(other, keysym)
    down = other.query_keymap()
    display.release_all()
    display.close()

    assert len(keycodes) == 1
    assert down[keycodes[0] // 8] >> keycodes[0] % 8 & 1
    assert _bound(other, keysym) == []


def test_shift_of_a_character_is_pressed_with_it(display: X11Display, other: XConnection) -> None:
    """Ours: "A" alone is a capital."""
    display.press_chord(parse_chord("A"))
    mask = other.screen().root.query_pointer().mask
    display.release_chord(parse_chord("A"))

    assert mask & X.ShiftMask
    assert not other.screen().root.query_pointer().mask & X.ShiftMask
    display.close()


def test_keycode_that_another_client_took_is_bound_anew(display: X11Display, other: XConnection) -> None:
    """Ours: the layout is read again when the server says that it changed."""
    list(display.type_text("漢"))
    keycode = _bound(other, 0x01006F22)[0]
    other.change_keyboard_mapping(keycode, [[XK.XK_F1, XK.XK_F1]])
    other.sync()
    list(display.type_text("漢"))
    again = _bound(other, 0x01006F22)
    display.close()

    assert len(again) == 1
    assert again[0] != keycode


@pytest.mark.parametrize("takes_part", [True, False])
async def test_ping_tells_whether_the_window_has_read(
    session: DesktopSession,
    other: XConnection,
    takes_part: bool,
) -> None:
    """EWMH: an application that takes part answers; others are not waited for."""
    root = other.screen().root
    window = root.create_window(0, 0, 50, 50, 0, X.CopyFromParent)
    protocols, ping = other.intern_atom("WM_PROTOCOLS"), other.intern_atom("_NET_WM_PING")
    if takes_part:
        window.set_wm_protocols([ping])
    root.change_property(other.intern_atom("_NET_ACTIVE_WINDOW"), 33, 32, [window.id])
    other.sync()
    assert session._live is not None
    asker = connect(session._live.desktop.display, session._live.desktop.cookie)
    waiting = asyncio.create_task(asyncio.to_thread(ping_active_window, asker, 7, LIMIT_S))
    async with asyncio.timeout(LIMIT_S):
        while takes_part and not waiting.done():
            while other.pending_events():
                question = other.next_event()
                answer = event.ClientMessage(window=root, client_type=protocols, data=question.data)
                root.send_event(answer, event_mask=X.SubstructureNotifyMask | X.SubstructureRedirectMask)
                other.flush()
            await asyncio.sleep(0.01)
        answered = await waiting
    disconnect(asker)

    assert answered is takes_part
