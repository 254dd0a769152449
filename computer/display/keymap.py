"""
Which keycode, with which modifiers, makes a keysym; and by which way a text is typed.

Pure. A character that the layout lacks gets a *spare* keycode of its own. Applications look
a key up with the mapping of the moment in which they read the event, so everything that a
text needs is bound before its first key, kept after it, and never replaced for the sake of
typing: a text that needs more spare keys than are free is pasted.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NewType

from computer.errors import InvalidAction
from computer.keys import Keysym, Way, character_keysym

__all__ = [
    "MAX_BURST_KEYS",
    "MAX_KEYED_CHARACTERS",
    "MAX_SPARE",
    "Bindings",
    "Burst",
    "KeyPosition",
    "Keycode",
    "Keymap",
    "Piece",
    "TypingPlan",
    "consecutive_runs",
    "cut_bursts",
    "cut_pieces",
    "plan_typing",
    "read_keymap",
]

Keycode = NewType("Keycode", int)

# Keycodes. A usual layout leaves 17 to 19 unused; the rest is left for the server, which binds
# what VNC viewers type.
MAX_SPARE = 15
# Keys of one burst: a cancelled call ends within this many.
MAX_BURST_KEYS = 200
# Characters typed by keys. A toolkit needs 1 to 1.5 ms for each: longer text is pasted.
MAX_KEYED_CHARACTERS = 2_000
# Characters of a line that keys put in about as soon as a paste would: where some other line must
# be pasted, and where keys could do it all.
MAX_SHORT_LINE = 40
MAX_KEYED_LINE = 250
NO_SYMBOL = Keysym(0)
SHIFT_L = Keysym(0xFFE1)
LEVEL3_SHIFT = Keysym(0xFE03)
CAPS_LOCK = Keysym(0xFFE5)
RETURN = Keysym(0xFF0D)
TAB = Keysym(0xFF09)
NUM_LOCK = Keysym(0xFF7F)
# Keysyms of the number pad, whose level depends on Num Lock.
KEYPAD = range(0xFF80, 0xFFBE)
SHIFT_ROW, LOCK_ROW = 0, 1
# Columns of the core mapping by group: plain, shift; then AltGr, AltGr with shift.
_LEVELS = (
    ((0, False, False), (1, True, False), (4, False, True), (5, True, True)),
    ((2, False, False), (3, True, False), (6, False, True), (7, True, True)),
)
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
    """
    A keyboard layout.

    Attributes:
        positions: where each keysym is.
        spare: keycodes that make nothing.
        shift, altgr: keys that really act as these modifiers, or None.
        modifiers: keycodes of all modifiers.
        locks: bits of the modifier state that are locks (Caps, Num), not keys being held.
        num_lock: the bit of Num Lock among them, or 0.
    """

    positions: Mapping[Keysym, KeyPosition]
    spare: tuple[Keycode, ...]
    shift: Keycode | None = None
    altgr: Keycode | None = None
    modifiers: frozenset[Keycode] = frozenset()
    locks: int = 1 << LOCK_ROW
    num_lock: int = 0

    def find(self, keysym: Keysym) -> KeyPosition | None:
        """Position of *keysym*, or None when the layout lacks it or a modifier that works."""
        position = self.positions.get(keysym)
        if position is None or (position.shift and self.shift is None):
            return None
        if position.altgr and self.altgr is None:
            return None
        return position


def read_keymap(
    first: int,
    rows: Sequence[Sequence[int]],
    modifiers: Sequence[Sequence[int]],
    *,
    own: Iterable[Keycode] = (),
    group: int = 0,
) -> Keymap:
    """
    Read the server's core keyboard mapping.

    Args:
        first: keycode of the first row.
        rows: keysyms of each keycode by column; 0 is none.
        modifiers: keycodes of Shift, Lock, Control, Mod1 to Mod5; 0 is none.
        own: keycodes that were spare and carry bindings of ours.
        group: which of two layouts is active.
    """
    owned = set(own)
    acting = frozenset(Keycode(code) for row in modifiers for code in row if code)
    positions: dict[Keysym, KeyPosition] = {}
    spare: list[Keycode] = []
    for offset, row in enumerate(rows):
        keycode = Keycode(first + offset)
        if keycode in owned or (not any(row) and keycode not in acting):
            spare.append(keycode)
            continue
        for column, shift, altgr in _LEVELS[min(group, 1)]:
            if column < len(row) and row[column]:
                position = KeyPosition(keycode=keycode, shift=shift, altgr=altgr)
                positions.setdefault(Keysym(row[column]), position)

    def acts(keycode: int, keysym: Keysym) -> bool:
        return first <= keycode < first + len(rows) and keysym in rows[keycode - first]

    def find_acting(keysym: Keysym, among: Iterable[Sequence[int]]) -> Keycode | None:
        return next((Keycode(code) for row in among for code in row if acts(code, keysym)), None)

    num_lock = sum(
        1 << index for index, row in enumerate(modifiers) if any(acts(code, NUM_LOCK) for code in row)
    )
    return Keymap(
        positions=positions,
        spare=tuple(spare[:MAX_SPARE]),
        shift=find_acting(SHIFT_L, modifiers[: SHIFT_ROW + 1]),
        altgr=find_acting(LEVEL3_SHIFT, modifiers),
        modifiers=acting,
        locks=1 << LOCK_ROW | num_lock,
        num_lock=num_lock,
    )


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

    def count_free(self, spare: Sequence[Keycode]) -> int:
        """Spare keycodes that carry nothing yet."""
        return len(set(spare) - self.keycodes)

    def keep_only(self, keycodes: Iterable[Keycode]) -> None:
        """Forget bindings whose keycode was taken over by somebody else."""
        kept = set(keycodes)
        self._bound = OrderedDict((sym, code) for sym, code in self._bound.items() if code in kept)

    def items(self) -> tuple[tuple[Keysym, Keycode], ...]:
        """All bindings, least recently used first."""
        return tuple(self._bound.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a text, from *start* to *end*, that goes in one way."""

    start: int
    end: int
    is_paste: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TypingPlan:
    """
    How a text will be typed.

    Attributes:
        pieces: its parts, in order, without gaps.
        missing: keysyms to be bound before the first key, none of them bound yet.
        way: what to call it.
        keys_way: what to call it where keys do all of it.
        has_keys: the whole text could be typed by keys.
    """

    pieces: tuple[Piece, ...]
    missing: tuple[Keysym, ...]
    way: Way
    keys_way: Way
    has_keys: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """Keys typed in one go; ``end`` is the offset after them."""

    keys: tuple[KeyPosition, ...]
    end: int


def plan_typing(
    text: str,
    keymap: Keymap,
    bindings: Bindings,
    *,
    may_use_keys: bool = True,
) -> TypingPlan:
    """
    Choose between keys, spare keys and pasting.

    Args:
        text: line feeds are Return, tabs are Tab, in whichever way.
        keymap: the layout.
        bindings: what spare keycodes carry already.
        may_use_keys: false when a lock would garble letters.
    """
    foreign = [char for char in dict.fromkeys(text) if find_character(char, keymap) is None]
    keysyms = [_keysym(char) for char in foreign]
    missing = tuple(keysym for keysym in keysyms if bindings.get(keysym) is None)
    has_keys = may_use_keys and len(missing) <= bindings.count_free(keymap.spare)
    if has_keys and len(text) <= MAX_KEYED_CHARACTERS:
        pieces: tuple[Piece, ...] = (Piece(start=0, end=len(text), is_paste=False),)
    elif has_keys:
        pieces = tuple(cut_pieces(text, frozenset(text), MAX_KEYED_LINE))
    else:
        may_key = frozenset(text).difference(foreign) if may_use_keys else frozenset[str]()
        pieces = tuple(cut_pieces(text, may_key, MAX_SHORT_LINE))
        missing = tuple({RETURN, TAB}.intersection(missing))
    keys_way = Way.SPARE_KEYS if foreign else Way.KEYS
    way = Way.PASTE if any(piece.is_paste for piece in pieces) else keys_way
    return TypingPlan(pieces=pieces, missing=missing, way=way, keys_way=keys_way, has_keys=has_keys)


def cut_bursts(text: str, piece: Piece, keymap: Keymap, bindings: Bindings) -> Iterator[Burst]:
    """
    Cut a piece of *text* into bursts; everything that it needs is on the layout or bound.

    Raises:
        InvalidAction: a character can't be produced; names its offset. Raised before the
            first burst.
    """
    keys: list[KeyPosition] = []
    for offset in range(piece.start, piece.end):
        position = find_character(text[offset], keymap)
        if position is None:
            keycode = bindings.get(_keysym(text[offset]))
            if keycode is None:
                msg = f"character {offset} of the text ({text[offset]!r}) is on no key and was not delivered"
                raise InvalidAction(msg)
            position = KeyPosition(keycode=keycode)
        keys.append(position)
    for start in range(0, len(keys), MAX_BURST_KEYS):
        part = tuple(keys[start : start + MAX_BURST_KEYS])
        yield Burst(keys=part, end=piece.start + start + len(part))


def cut_pieces(text: str, may_key: frozenset[str], longest: int) -> Iterator[Piece]:
    """
    Cut *text* into line ends, tabs and short lines as keys, and everything else as pastes.

    Args:
        text: in which a line feed is Return and a tab is Tab.
        may_key: characters that keys can make.
        longest: characters of a line that keys should make.
    """
    start = 0
    for match in re.finditer(r"[^\n\t]+", text):
        is_short = len(match[0]) <= longest and may_key.issuperset(match[0])
        if is_short:
            continue
        if match.start() > start:
            yield Piece(start=start, end=match.start(), is_paste=False)
        yield Piece(start=match.start(), end=match.end(), is_paste=True)
        start = match.end()
    if start < len(text):
        yield Piece(start=start, end=len(text), is_paste=False)


def _keysym(character: str) -> Keysym:
    return next(_keysyms(character))


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
