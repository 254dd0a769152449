"""
Which keycode, with which modifiers, makes a keysym; and how text is cut into bursts.

Pure. A character that the layout lacks gets a *spare* keycode of its own. Applications look
a key up with the mapping of the moment in which they read the event, so bindings are made
before a burst, kept after it, and replaced, least recently used first, only when there is
no room left.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NewType

from computer.errors import InvalidAction
from computer.keys import Keysym, character_keysym

__all__ = [
    "MAX_BURST_KEYS",
    "MAX_SPARE",
    "Bindings",
    "Burst",
    "KeyPosition",
    "Keycode",
    "Keymap",
    "consecutive_runs",
    "plan_bursts",
    "read_keymap",
]

Keycode = NewType("Keycode", int)

# Keycodes. A usual layout leaves 17 to 19 unused; the rest is left for the server, which binds
# what VNC viewers type.
MAX_SPARE = 15
# Keys of one burst: a cancelled call ends within this many.
MAX_BURST_KEYS = 200
NO_SYMBOL = Keysym(0)
SHIFT_L = Keysym(0xFFE1)
LEVEL3_SHIFT = Keysym(0xFE03)
CAPS_LOCK = Keysym(0xFFE5)
RETURN = Keysym(0xFF0D)
TAB = Keysym(0xFF09)
# Columns of the core mapping: first group plain, shift; then AltGr, AltGr with shift.
_LEVELS = ((0, False, False), (1, True, False), (4, False, True), (5, True, True))
# Pages of X11's older keysyms whose low byte is that of an 8-bit character set, and the first
# letter in it. Layouts still use these (Russian, Greek, Polish).
_LEGACY_PAGES = ((0x06, "koi8_r", 0xC0), (0x01, "iso8859_2", 0xA1), (0x07, "iso8859_7", 0xC1))
_LEGACY_SINGLES = {"€": Keysym(0x20AC), "ё": Keysym(0x06A3), "Ё": Keysym(0x06B3)}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPosition:
    """A key and the modifiers under which it makes a certain keysym."""

    keycode: Keycode
    shift: bool = False
    altgr: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Keymap:
    """A keyboard layout: where each keysym is, and which keycodes are free."""

    positions: Mapping[Keysym, KeyPosition]
    spare: tuple[Keycode, ...]

    def find(self, keysym: Keysym) -> KeyPosition | None:
        """Position of *keysym*, or None when the layout lacks it or its modifier."""
        position = self.positions.get(keysym)
        if position is None or (position.shift and SHIFT_L not in self.positions):
            return None
        if position.altgr and LEVEL3_SHIFT not in self.positions:
            return None
        return position


def read_keymap(
    first: int, rows: Sequence[Sequence[int]], modifiers: Iterable[int], *, own: Iterable[Keycode] = ()
) -> Keymap:
    """
    Read the server's core keyboard mapping.

    Args:
        first: keycode of the first row.
        rows: keysyms of each keycode by column; 0 is none.
        modifiers: keycodes that act as modifiers, never spare.
        own: keycodes that were spare and carry bindings of ours.
    """
    owned = set(own)
    reserved = set(modifiers)
    positions: dict[Keysym, KeyPosition] = {}
    spare: list[Keycode] = []
    for offset, row in enumerate(rows):
        keycode = Keycode(first + offset)
        if keycode in owned or (not any(row) and keycode not in reserved):
            spare.append(keycode)
            continue
        for column, shift, altgr in _LEVELS:
            if column < len(row) and row[column]:
                position = KeyPosition(keycode=keycode, shift=shift, altgr=altgr)
                positions.setdefault(Keysym(row[column]), position)
    return Keymap(positions=positions, spare=tuple(spare[:MAX_SPARE]))


class Bindings:
    """Spare keycodes in use, least recently used first."""

    def __init__(self) -> None:
        self._bound: OrderedDict[Keysym, Keycode] = OrderedDict()

    @property
    def keycodes(self) -> frozenset[Keycode]:
        """All keycodes that carry a binding of ours."""
        return frozenset(self._bound.values())

    def get(self, keysym: Keysym) -> Keycode | None:
        """Keycode bound to *keysym*, which thereby becomes the most recently used."""
        if keysym in self._bound:
            self._bound.move_to_end(keysym)
        return self._bound.get(keysym)

    def assign(self, keysym: Keysym, spare: Sequence[Keycode]) -> tuple[Keycode, bool]:
        """
        Bind *keysym* to a spare keycode; the flag says whether an older binding was replaced.

        Raises:
            InvalidAction: the layout has no spare keycode at all.
        """
        used = self.keycodes
        free = next((keycode for keycode in spare if keycode not in used), None)
        if free is not None:
            self._bound[keysym] = free
            return free, False
        if not self._bound:
            msg = "the keyboard layout lacks this character and has no spare key for it"
            raise InvalidAction(msg)
        _, recycled = self._bound.popitem(last=False)
        self._bound[keysym] = recycled
        return recycled, True

    def keep_only(self, keycodes: Iterable[Keycode]) -> None:
        """Forget bindings whose keycode was taken over by somebody else."""
        kept = set(keycodes)
        self._bound = OrderedDict((sym, code) for sym, code in self._bound.items() if code in kept)

    def items(self) -> tuple[tuple[Keysym, Keycode], ...]:
        """All bindings, least recently used first."""
        return tuple(self._bound.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """
    Keys typed in one go: ``bind`` first, then ``keys``; ``end`` is the offset after it.

    With ``replaces`` set an older binding is overwritten: the application must have read
    what was typed before.
    """

    bind: tuple[tuple[Keycode, Keysym], ...]
    keys: tuple[KeyPosition, ...]
    end: int
    replaces: bool


def plan_bursts(text: str, keymap: Keymap, bindings: Bindings) -> Iterator[Burst]:
    """
    Cut *text* into bursts, assigning spare keycodes as it goes.

    Raises:
        InvalidAction: a character can't be produced; names its offset. Raised before the
            first burst.
    """
    if not keymap.spare:
        _check_layout_has_all(text, keymap)
    start = 0
    while start < len(text):
        burst = _plan_burst(text, start, keymap, bindings)
        start = burst.end
        yield burst


def _check_layout_has_all(text: str, keymap: Keymap) -> None:
    for offset, character in enumerate(text):
        if find_character(character, keymap) is None:
            msg = f"character {offset} of the text ({character!r}) is not on the keyboard layout"
            raise InvalidAction(msg)


def consecutive_runs(keycodes: Iterable[Keycode]) -> list[list[Keycode]]:
    """Group keycodes into runs without gaps, in rising order."""
    runs: list[list[Keycode]] = []
    for keycode in sorted(keycodes):
        if runs and keycode == runs[-1][-1] + 1:
            runs[-1].append(keycode)
        else:
            runs.append([keycode])
    return runs


def find_character(character: str, keymap: Keymap) -> KeyPosition | None:
    """Position of a character on the layout itself, under any keysym that means it."""
    for keysym in _keysyms(character):
        position = keymap.find(keysym)
        if position is not None:
            return position
    return None


def _plan_burst(text: str, start: int, keymap: Keymap, bindings: Bindings) -> Burst:
    missing: set[Keysym] = set()
    bind: list[tuple[Keycode, Keysym]] = []
    keys: list[KeyPosition] = []
    replaces = False
    end = start
    limit = min(len(text), start + MAX_BURST_KEYS)
    # Two passes: whatever this burst needs is made recently used before anything is replaced,
    # so that a binding of this very burst is never the one that goes.
    while end < limit:
        if find_character(text[end], keymap) is None:
            keysym = character_keysym(text[end])
            if keysym not in missing and len(missing) == len(keymap.spare):
                break
            missing.add(keysym)
            bindings.get(keysym)
        end += 1
    for character in text[start:end]:
        position = find_character(character, keymap)
        if position is None:
            keysym = character_keysym(character)
            keycode = bindings.get(keysym)
            if keycode is None:
                keycode, is_replaced = bindings.assign(keysym, keymap.spare)
                bind.append((keycode, keysym))
                replaces = replaces or is_replaced
            position = KeyPosition(keycode=keycode)
        keys.append(position)
    return Burst(bind=tuple(bind), keys=tuple(keys), end=end, replaces=replaces)


def _keysyms(character: str) -> Iterator[Keysym]:
    if character == "\n":
        yield RETURN
    elif character == "\t":
        yield TAB
    else:
        yield character_keysym(character)
        yield from _legacy_keysyms(character)


def _legacy_keysyms(character: str) -> Iterator[Keysym]:
    if character in _LEGACY_SINGLES:
        yield _LEGACY_SINGLES[character]
    if character.isascii():
        return
    for page, charset, first in _LEGACY_PAGES:
        try:
            byte = character.encode(charset)[0]
        except UnicodeEncodeError:
            continue
        if byte >= first:
            yield Keysym(page << 8 | byte)
