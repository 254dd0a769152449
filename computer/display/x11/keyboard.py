"""
The keyboard of an X server, by XTEST.

Owns the mapping, the bindings of spare keycodes and what is held down. Belongs to the
thread of its display.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from Xlib import X

from computer.display.held import HeldKeys
from computer.display.keymap import (
    CAPS_LOCK,
    KEYPAD,
    NO_SYMBOL,
    SHIFT_L,
    SHIFT_ROW,
    Bindings,
    Burst,
    Keycode,
    Keymap,
    KeyPosition,
    consecutive_runs,
    read_keymap,
)
from computer.display.x11.connection import XConnection
from computer.display.x11.ping import Pinger
from computer.errors import InvalidAction
from computer.keys import Chord, Keysym

__all__ = ["Keyboard"]

# Seconds in which a window that answers pings must have read what was typed.
READ_LIMIT_S = 3.0
# Seconds per key that a slow widget needs to read what was typed, where it answers no ping, and
# the least and most of that.
READ_S_PER_KEY = 0.005
READ_MIN_S = 0.03
READ_MAX_S = 1.5
# Seconds that Chromium takes to read the keyboard again after it was told of a new binding.
BIND_S = 0.1
INSERT = Keysym(0xFF63)
# Where the core state tells which of two layouts is active.
GROUP_SHIFT = 13
# All of Shift, Lock, Control and Mod1 to Mod5.
MODIFIER_BITS = 0xFF


class Keyboard:
    """
    Presses, releases and types.

    Attributes:
        keymap: the layout as it was read last.
        bindings: what the spare keycodes carry.
        pinger: asks whether the active window has read its keys.
    """

    def __init__(self, connection: XConnection) -> None:
        self._connection = connection
        self._root = connection.screen().root
        self._held: HeldKeys[Keycode] = HeldKeys()
        self._unread = 0
        self._group = 0
        self.pinger = Pinger(connection)
        self.bindings = Bindings()
        self.keymap = self._read()

    def press(self, chord: Chord) -> None:
        """Press a chord; raises InvalidAction before anything is pressed."""
        self._refresh()
        positions = [(keysym, self._place(keysym)) for keysym in chord.keysyms]
        for keysym, position in positions:
            for keycode in self._held.press(keysym, (*self._modifiers(position), position.keycode)):
                self._connection.xtest_fake_input(X.KeyPress, keycode)
        self._connection.sync()

    def release(self, chord: Chord) -> None:
        """Release what ``press`` pressed for this chord."""
        for keysym in reversed(chord.keysyms):
            for keycode in self._held.release(keysym):
                self._connection.xtest_fake_input(X.KeyRelease, keycode)
        self._connection.sync()

    @contextmanager
    def undisturbed(self) -> Iterator[bool]:
        """
        Caps Lock off and no modifier down, for the time of a block; afterwards as before.

        Yields whether keys can be trusted: false when Caps Lock can't be turned off.

        Raises:
            InvalidAction: somebody else holds a modifier key that can't be released.
        """
        self._refresh()
        lifted = [keycode for keycode in self._held.down if keycode in self.keymap.modifiers]
        for keycode in reversed(lifted):
            self._connection.xtest_fake_input(X.KeyRelease, keycode)
        caps = self.keymap.find(CAPS_LOCK)
        has_caps = bool(self._mask() & X.LockMask)
        if has_caps and caps is not None:
            self._tap(caps.keycode)
        try:
            self._release_foreign()
            yield not self._mask() & X.LockMask
        finally:
            if has_caps and caps is not None and not self._mask() & X.LockMask:
                self._tap(caps.keycode)
            for keycode in lifted:
                if keycode in self._held.down:
                    self._connection.xtest_fake_input(X.KeyPress, keycode)
            self._connection.sync()

    def bind(self, keysyms: Sequence[Keysym]) -> None:
        """Give each keysym a spare keycode that is free; there must be enough of them."""
        if keysyms:
            self._rewrite({self.bindings.assign(keysym, self.keymap.spare)[0]: keysym for keysym in keysyms})
            self.pace()
            time.sleep(BIND_S)

    def type_burst(self, burst: Burst) -> None:
        """Type keys in one go."""
        for position in burst.keys:
            modifiers = self._modifiers(position)
            for keycode in modifiers:
                self._connection.xtest_fake_input(X.KeyPress, keycode)
            self._tap(position.keycode)
            for keycode in reversed(modifiers):
                self._connection.xtest_fake_input(X.KeyRelease, keycode)
        self._unread += len(burst.keys)
        self._connection.sync()

    def tap_paste(self) -> None:
        """Press Shift+Insert, which pastes in every toolkit and in terminals."""
        insert = self._place(INSERT).keycode
        with self._working_shift() as shift:
            self._connection.xtest_fake_input(X.KeyPress, shift)
            self._tap(insert)
            self._connection.xtest_fake_input(X.KeyRelease, shift)
            self._connection.sync()

    def release_all(self) -> None:
        """Release every key that was pressed here."""
        for keycode in self._held.release_all():
            self._connection.xtest_fake_input(X.KeyRelease, keycode)
        self._connection.sync()

    def release_leftovers(self) -> None:
        """Release whatever an earlier owner of this display left down."""
        for keycode in _keys_down(self._connection.query_keymap()):
            self._connection.xtest_fake_input(X.KeyRelease, keycode)
        self._connection.sync()

    def unbind(self) -> None:
        """Give the spare keycodes back."""
        self._rewrite(dict.fromkeys(self.bindings.keycodes, NO_SYMBOL))
        self.bindings = Bindings()

    def wait_read(self) -> None:
        """Wait until the active window has read what was typed, or has had the time to."""
        if not self.pinger.wait_read(READ_LIMIT_S):
            time.sleep(min(READ_MAX_S, max(READ_MIN_S, self._unread * READ_S_PER_KEY)))
        self._unread = 0

    def pace(self) -> None:
        """Wait for a window that tells what it has read; go on at once where none does."""
        self.pinger.wait_read(READ_LIMIT_S)

    def _read(self) -> Keymap:
        connection = self._connection
        first = connection.display.info.min_keycode
        rows = connection.get_keyboard_mapping(first, connection.display.info.max_keycode - first + 1)
        self.bindings.keep_only(
            keycode for keysym, keycode in self.bindings.items() if rows[keycode - first][0] == keysym
        )
        self._group = self._mask() >> GROUP_SHIFT & 3
        modifiers = [list(row) for row in connection.get_modifier_mapping()]
        return read_keymap(first, rows, modifiers, own=self.bindings.keycodes, group=self._group)

    def _refresh(self) -> None:
        # Somebody else may have changed the layout; the server tells every client.
        has_news = self._mask() >> GROUP_SHIFT & 3 != self._group
        while self._connection.pending_events():
            has_news = self._connection.next_event().type == X.MappingNotify or has_news
        if has_news:
            self.keymap = self._read()

    def _place(self, keysym: Keysym) -> KeyPosition:
        position = self.keymap.find(keysym)
        if position is not None:
            is_switched = keysym in KEYPAD and bool(self._mask() & self.keymap.num_lock)
            shift = position.shift != is_switched and self.keymap.shift is not None
            return KeyPosition(keycode=position.keycode, shift=shift, altgr=position.altgr)
        keycode = self.bindings.get(keysym)
        if keycode is None:
            try:
                keycode, replaced = self.bindings.assign(keysym, self.keymap.spare)
            except InvalidAction as exc:
                msg = f"no key of this layout makes keysym 0x{keysym:x}"
                raise InvalidAction(msg) from exc
            if replaced:
                self.wait_read()
            self._rewrite({keycode: keysym})
        return KeyPosition(keycode=keycode)

    def _modifiers(self, position: KeyPosition) -> tuple[Keycode, ...]:
        wanted = ((position.shift, self.keymap.shift), (position.altgr, self.keymap.altgr))
        return tuple(keycode for is_wanted, keycode in wanted if is_wanted and keycode is not None)

    @contextmanager
    def _working_shift(self) -> Iterator[Keycode]:
        """A key that acts as Shift, made one for the time of a block where none does."""
        if self.keymap.shift is not None:
            yield self.keymap.shift
            return
        shift = self.keymap.positions.get(SHIFT_L)
        if shift is None:
            msg = "the keyboard layout has no Shift key to paste with"
            raise InvalidAction(msg)
        rows = [list(row) for row in self._connection.get_modifier_mapping()]
        changed = [[*row, shift.keycode] if index == SHIFT_ROW else row for index, row in enumerate(rows)]
        self._connection.set_modifier_mapping(changed)
        try:
            yield shift.keycode
        finally:
            self._connection.set_modifier_mapping(rows)

    def _release_foreign(self) -> None:
        """Release modifiers that others hold: they would turn text into commands."""
        if not self._held_modifiers():
            return
        down = _keys_down(self._connection.query_keymap())
        for keycode in down:
            if keycode in self.keymap.modifiers:
                self._connection.xtest_fake_input(X.KeyRelease, keycode)
        if self._held_modifiers():
            msg = "somebody holds a modifier key down; character 0 of the text was not delivered"
            raise InvalidAction(msg)

    def _held_modifiers(self) -> int:
        return self._mask() & MODIFIER_BITS & ~self.keymap.locks

    def _mask(self) -> int:
        return int(self._root.query_pointer().mask)

    def _rewrite(self, symbols: Mapping[Keycode, Keysym]) -> None:
        # Neighbours go in one request: every request makes every client, the window manager above
        # all, read the whole keyboard again. Only keycodes of ours are touched: rewriting others
        # gives them a second group. On both levels, so that Shift makes no difference.
        for run in consecutive_runs(symbols):
            rows = [[symbols[keycode], symbols[keycode]] for keycode in run]
            self._connection.change_keyboard_mapping(run[0], rows)
        if symbols:
            self._connection.sync()

    def _tap(self, keycode: Keycode) -> None:
        self._connection.xtest_fake_input(X.KeyPress, keycode)
        self._connection.xtest_fake_input(X.KeyRelease, keycode)


def _keys_down(keymap: Sequence[int]) -> list[Keycode]:
    return [
        Keycode(index * 8 + bit) for index, byte in enumerate(keymap) for bit in range(8) if byte >> bit & 1
    ]
