"""
Keys of an RFB server, by keysym.

Owns what is held down, and the rule which characters a keyboard types: ASCII. A client can't
see the server's layout; servers press Shift and AltGr as their layout wants it where they know
one (Xvnc, x11vnc), and take keysyms for positions of a US keyboard where they know none (QEMU).
So Shift is sent as on a US keyboard, which both understand.
"""

from collections.abc import Iterator

from computer.display.held import HeldKeys
from computer.display.vnc.connection import RfbConnection
from computer.errors import InvalidAction
from computer.keys import Chord, Keysym, character_keysym
from computer.rfb.messages import Led, render_key

__all__ = ["MAX_BURST_KEYS", "Keyboard", "check_typable", "find_untypable"]

# Keys of one burst: a cancelled call ends within this many.
MAX_BURST_KEYS = 200
SHIFT_L = Keysym(0xFFE1)
_SHIFTS = (SHIFT_L, Keysym(0xFFE2))
CAPS_LOCK = Keysym(0xFFE5)
INSERT = Keysym(0xFF63)
_CONTROLS = {"\n": Keysym(0xFF0D), "\t": Keysym(0xFF09)}
_SHIFTED = frozenset('~!@#$%^&*()_+{}|:"<>?ABCDEFGHIJKLMNOPQRSTUVWXYZ')


class Keyboard:
    """Presses, releases and types on *connection*."""

    def __init__(self, connection: RfbConnection) -> None:
        self._connection = connection
        self._held: HeldKeys[Keysym] = HeldKeys()

    @property
    def held(self) -> tuple[Keysym, ...]:
        """Keysyms that are down, in the order in which they were pressed."""
        return self._held.down

    @property
    def _has_caps(self) -> bool:
        """Whether Caps Lock is on, as far as the server tells."""
        leds = self._connection.client.leds
        return bool(leds and leds & Led.CAPS)

    def press(self, chord: Chord) -> None:
        """Press a chord, with the Shift that its characters need."""
        out = bytearray()
        for keysym in chord.keysyms:
            wanted = (*self._shift_for(keysym), self._cased(keysym))
            for key in self._held.press(keysym, wanted):
                out += render_key(key, down=True)
        self._connection.send(bytes(out))

    def release(self, chord: Chord) -> None:
        """Release what ``press`` pressed for this chord."""
        out = bytearray()
        for keysym in reversed(chord.keysyms):
            for key in self._held.release(keysym):
                out += render_key(key, down=False)
        self._connection.send(bytes(out))

    def release_all(self) -> None:
        """Release every key that was pressed here."""
        released = (render_key(key, down=False) for key in self._held.release_all())
        self._connection.send(b"".join(released))

    def type(self, text: str) -> Iterator[int]:
        """Type characters of a US keyboard in bursts, with Caps Lock off; yields characters done."""
        has_caps = self._has_caps
        if has_caps:
            self._tap(CAPS_LOCK)
        try:
            for start in range(0, len(text), MAX_BURST_KEYS):
                part = text[start : start + MAX_BURST_KEYS]
                self._connection.send(self._render(part))
                self._connection.sync()
                yield start + len(part)
        finally:
            if has_caps:
                self._tap(CAPS_LOCK)

    def tap_paste(self) -> None:
        """Press Shift+Insert, which pastes in terminals and toolkits alike."""
        added = [key for key in (SHIFT_L, INSERT) if key not in self.held]
        down = b"".join(render_key(key, down=True) for key in added)
        self._connection.send(down + b"".join(render_key(key, down=False) for key in reversed(added)))

    def _render(self, text: str) -> bytes:
        out = bytearray()
        is_shifted = has_shift = any(shift in self.held for shift in _SHIFTS)
        for character in text:
            keysym = _CONTROLS.get(character) or character_keysym(character)
            wants_shift = has_shift or character in _SHIFTED
            if wants_shift != is_shifted:
                out += render_key(SHIFT_L, down=wants_shift)
                is_shifted = wants_shift
            out += render_key(keysym, down=True) + render_key(keysym, down=False)
        if is_shifted != has_shift:
            out += render_key(SHIFT_L, down=has_shift)
        return bytes(out)

    def _shift_for(self, keysym: Keysym) -> tuple[Keysym, ...]:
        is_shifted = keysym < 0x7F and chr(keysym) in _SHIFTED
        if not is_shifted or any(shift in self.held for shift in _SHIFTS):
            return ()
        return (SHIFT_L,)

    def _cased(self, keysym: Keysym) -> Keysym:
        """A letter as a keyboard makes it now: for the other case servers lift Shift, or press it."""
        character = chr(keysym) if keysym < 0x7F else ""
        if not character.isalpha():
            return keysym
        is_shifted = character in _SHIFTED or any(shift in self.held for shift in _SHIFTS)
        cased = character.upper() if is_shifted != self._has_caps else character.lower()
        return character_keysym(cased)

    def _tap(self, keysym: Keysym) -> None:
        self._connection.send(render_key(keysym, down=True) + render_key(keysym, down=False))


def find_untypable(text: str) -> int | None:
    """Offset of the first character that no US keyboard types; None when it types them all."""
    return next((offset for offset, character in enumerate(text) if not _is_typable(character)), None)


def check_typable(text: str, reason: str) -> None:
    """
    Refuse text that a keyboard can't type.

    Raises:
        InvalidAction: names the offset of the first such character, and *reason*.
    """
    offset = find_untypable(text)
    if offset is not None:
        msg = f"character {offset} of the text ({text[offset]!r}) is not on the keyboard, and {reason}"
        raise InvalidAction(msg)


def _is_typable(character: str) -> bool:
    return character in _CONTROLS or " " <= character <= "~"
