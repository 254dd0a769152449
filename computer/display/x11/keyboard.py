"""
The keyboard of an X server, by XTEST.

Owns the mapping, the bindings of spare keycodes and what is held down. Belongs to the
thread of its display.
"""

import time
from collections.abc import Iterator, Mapping, Sequence

from Xlib import X

from computer.display.keymap import (
    CAPS_LOCK,
    LEVEL3_SHIFT,
    NO_SYMBOL,
    SHIFT_L,
    Bindings,
    Burst,
    Keycode,
    Keymap,
    KeyPosition,
    consecutive_runs,
    plan_bursts,
    read_keymap,
)
from computer.display.x11.connection import XConnection
from computer.display.x11.ping import ping_active_window
from computer.errors import InvalidAction
from computer.keys import Chord, Keysym

__all__ = ["Keyboard"]

# Seconds. A window that takes part in pings answers within a millisecond.
PING_TIMEOUT_S = 0.1
# Seconds per key that a slow widget needs to read what was typed, where it answers no ping, and
# the least and most of that.
READ_S_PER_KEY = 0.005
READ_MIN_S = 0.03
READ_MAX_S = 1.5
# Serial numbers of our pings start here, to be told from a window manager's timestamps.
FIRST_SERIAL = 0x7A11_0000


class Keyboard:
    """Presses, releases and types."""

    def __init__(self, connection: XConnection) -> None:
        self._connection = connection
        self._bindings = Bindings()
        self._held: dict[Keycode, None] = {}
        self._pressed: dict[Keysym, tuple[Keycode, ...]] = {}
        self._serial = FIRST_SERIAL
        self._unread = 0
        self._keymap = self._read()

    def press(self, chord: Chord) -> None:
        """Press a chord; raises InvalidAction before anything is pressed."""
        self._refresh()
        positions = [(keysym, self._place(keysym)) for keysym in chord.keysyms]
        for keysym, position in positions:
            added = [code for code in (*self._modifiers(position), position.keycode) if self._down(code)]
            if added:
                self._pressed[keysym] = tuple(added)
        self._connection.sync()

    def release(self, chord: Chord) -> None:
        """Release what ``press`` pressed for this chord."""
        for keysym in reversed(chord.keysyms):
            for keycode in reversed(self._pressed.pop(keysym, ())):
                self._up(keycode)
        self._connection.sync()

    def type(self, text: str) -> Iterator[int]:
        """Type in bursts with Caps Lock off; yields characters done."""
        self._refresh()
        caps = self._keymap.find(CAPS_LOCK)
        has_caps = self._is_caps_on() and caps is not None
        if has_caps and caps is not None:
            self._tap(caps.keycode)
        try:
            for burst in plan_bursts(text, self._keymap, self._bindings):
                self._type_burst(burst)
                yield burst.end
        finally:
            if has_caps and caps is not None:
                self._tap(caps.keycode)
            self._connection.sync()

    def release_all(self) -> None:
        """Release every key that was pressed here."""
        for keycode in reversed(tuple(self._held)):
            self._up(keycode)
        self._pressed.clear()
        self._connection.sync()

    def release_leftovers(self) -> None:
        """Release whatever an earlier owner of this display left down."""
        for index, byte in enumerate(self._connection.query_keymap()):
            for bit in range(8):
                if byte >> bit & 1:
                    self._connection.xtest_fake_input(X.KeyRelease, index * 8 + bit)
        self._connection.sync()

    def unbind(self) -> None:
        """Give the spare keycodes back."""
        self._rewrite(dict.fromkeys(self._bindings.keycodes, NO_SYMBOL))
        self._bindings = Bindings()

    def _read(self) -> Keymap:
        connection = self._connection
        first = connection.display.info.min_keycode
        rows = connection.get_keyboard_mapping(first, connection.display.info.max_keycode - first + 1)
        self._bindings.keep_only(
            keycode for keysym, keycode in self._bindings.items() if rows[keycode - first][0] == keysym
        )
        modifiers = {code for row in connection.get_modifier_mapping() for code in row if code}
        return read_keymap(first, rows, modifiers, own=self._bindings.keycodes)

    def _refresh(self) -> None:
        # Somebody else may have changed the layout; the server tells every client.
        has_news = False
        while self._connection.pending_events():
            has_news = self._connection.next_event().type == X.MappingNotify or has_news
        if has_news:
            self._keymap = self._read()

    def _place(self, keysym: Keysym) -> KeyPosition:
        position = self._keymap.find(keysym)
        if position is not None:
            return position
        keycode = self._bindings.get(keysym)
        if keycode is None:
            try:
                keycode, replaced = self._bindings.assign(keysym, self._keymap.spare)
            except InvalidAction as exc:
                msg = f"no key of this layout makes keysym 0x{keysym:x}"
                raise InvalidAction(msg) from exc
            self._bind([(keycode, keysym)], replaces=replaced)
        return KeyPosition(keycode=keycode)

    def _modifiers(self, position: KeyPosition) -> tuple[Keycode, ...]:
        wanted = ((position.shift, SHIFT_L), (position.altgr, LEVEL3_SHIFT))
        return tuple(self._keymap.positions[keysym].keycode for is_wanted, keysym in wanted if is_wanted)

    def _type_burst(self, burst: Burst) -> None:
        self._bind(burst.bind, replaces=burst.replaces)
        for position in burst.keys:
            modifiers = self._modifiers(position)
            added = [code for code in modifiers if self._down(code)]
            self._tap(position.keycode)
            for keycode in reversed(added):
                self._up(keycode)
        self._unread += len(burst.keys)
        self._connection.sync()

    def _bind(self, pairs: Sequence[tuple[Keycode, Keysym]], *, replaces: bool) -> None:
        if replaces:
            self._wait_read()
        self._rewrite(dict(pairs))

    def _rewrite(self, symbols: Mapping[Keycode, Keysym]) -> None:
        # Neighbours go in one request: every request makes every client, the window manager above
        # all, read the whole keyboard again. Only keycodes of ours are touched: rewriting others
        # gives them a second group. On both levels, so that Shift makes no difference.
        for run in consecutive_runs(symbols):
            rows = [[symbols[keycode], symbols[keycode]] for keycode in run]
            self._connection.change_keyboard_mapping(run[0], rows)
        if symbols:
            self._connection.sync()

    def _wait_read(self) -> None:
        self._connection.sync()
        self._serial += 1
        if not ping_active_window(self._connection, self._serial, PING_TIMEOUT_S):
            time.sleep(min(READ_MAX_S, max(READ_MIN_S, self._unread * READ_S_PER_KEY)))
        self._unread = 0

    def _is_caps_on(self) -> bool:
        return bool(self._connection.screen().root.query_pointer().mask & X.LockMask)

    def _tap(self, keycode: Keycode) -> None:
        self._connection.xtest_fake_input(X.KeyPress, keycode)
        self._connection.xtest_fake_input(X.KeyRelease, keycode)

    def _down(self, keycode: Keycode) -> bool:
        if keycode in self._held:
            return False
        self._held[keycode] = None
        self._connection.xtest_fake_input(X.KeyPress, keycode)
        return True

    def _up(self, keycode: Keycode) -> None:
        self._held.pop(keycode, None)
        self._connection.xtest_fake_input(X.KeyRelease, keycode)
