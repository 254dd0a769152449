"""
Chords: what a model calls a key, turned into X11 keysyms.

Pure. Understands xdotool and X keysym names, DOM ``key`` and ``code`` names, the spellings
that vendors' models use, single characters, ``U20AC`` and ``0xff0d``.

Grammar: keys are joined by ``+`` (``ctrl+l``) or, where that reads as known keys only, by
``-`` (``Ctrl-Shift-T``). ``+`` alone and a trailing ``++`` (``ctrl++``) mean the plus key.
Spaces round a key are ignored; a lone space is the space bar.

Case: names don't depend on case, nor on ``_`` between words. A letter by itself keeps its
case (``A`` is a capital); a letter beside other keys is lower case (``ctrl+L`` is ``ctrl+l``),
so capitals in a chord take an explicit ``shift``. ``Control_L`` is a key; ``Control-L`` is ctrl+l.
"""

import difflib
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import NewType

from computer.errors import InvalidAction, UnknownKey

__all__ = ["MAX_CHORD_KEYS", "Chord", "Keysym", "character_keysym", "parse_chord"]

Keysym = NewType("Keysym", int)

# Keys in one chord. Nobody has more fingers.
MAX_CHORD_KEYS = 10
_UNICODE = 0x0100_0000


@dataclass(frozen=True, slots=True, kw_only=True)
class Chord:
    """Keys held together: pressed in order, released in reverse."""

    keysyms: tuple[Keysym, ...]
    text: str

    @property
    def is_command(self) -> bool:
        """Whether it tends to start something: Return, Escape, F-keys, or ctrl, alt, super."""
        return any(keysym in _COMMANDS for keysym in self.keysyms)


def parse_chord(text: str) -> Chord:
    """
    Parse a chord, whole or not at all.

    Raises:
        UnknownKey: a part is no key that we know; carries the nearest known name.
        InvalidAction: empty, an empty part, or more than ``MAX_CHORD_KEYS`` keys.
    """
    if text == "":
        raise InvalidAction("a chord needs at least one key")
    parts = _split(text)
    if len(parts) > MAX_CHORD_KEYS:
        msg = f"a chord has at most {MAX_CHORD_KEYS} keys, not {len(parts)}"
        raise InvalidAction(msg)
    is_alone = len(parts) == 1
    keysyms = dict.fromkeys(_resolve(part, is_alone=is_alone) for part in parts)
    return Chord(keysyms=tuple(keysyms), text=text.strip() or "space")


def character_keysym(character: str) -> Keysym:
    """
    Keysym that produces one character: Latin-1 as it is, others in X11's Unicode range.

    Source: X Window System Protocol, appendix A, "KEYSYM encoding".
    """
    code = ord(character)
    if 0x20 <= code <= 0x7E or 0xA0 <= code <= 0xFF:
        return Keysym(code)
    return Keysym(_UNICODE | code)


def _split(text: str) -> list[str]:
    if text == "+":
        return [text]
    if text.endswith("++"):
        return [*_clean(text[:-2].split("+")), "+"]
    if "+" in text:
        return _clean(text.split("+"))
    if "-" in text and len(text) > 1:
        dashed = _clean_dashed(text)
        if all(_find(part) is not None for part in dashed):
            return dashed
    return _clean([text])


def _clean_dashed(text: str) -> list[str]:
    parts = [*text[:-2].split("-"), "-"] if text.endswith("--") else text.split("-")
    return [part.strip() for part in parts]


def _clean(parts: list[str]) -> list[str]:
    return [part.strip() or part[:1] for part in parts]


def _resolve(part: str, *, is_alone: bool) -> Keysym:
    if part == "":
        raise InvalidAction("a chord has an empty part; the plus key is '+' or 'plus'")
    keysym = _find(part if is_alone or len(part) > 1 else part.lower()[:1])
    if keysym is None and "-" in part:
        keysym = _find(part.replace("-", ""))
    if keysym is None:
        raise UnknownKey(part, _suggest(part))
    return keysym


def _find(part: str) -> Keysym | None:
    if len(part) == 1:
        return _find_character(part)
    named = NAMES.get(_normalise(part))
    if named is not None:
        return Keysym(named)
    return _find_number(part)


def _find_character(character: str) -> Keysym | None:
    if character in _CONTROL_CHARACTERS:
        return Keysym(_CONTROL_CHARACTERS[character])
    return character_keysym(character) if character.isprintable() else None


def _find_number(part: str) -> Keysym | None:
    if match := re.fullmatch(r"[Uu]\+?([0-9A-Fa-f]{4,6})", part):
        code = int(match[1], 16)
        is_character = code <= 0x10_FFFF and not 0xD800 <= code <= 0xDFFF
        return character_keysym(chr(code)) if is_character and chr(code).isprintable() else None
    if match := re.fullmatch(r"0[xX]([0-9A-Fa-f]{1,8})", part):
        value = int(match[1], 16)
        return Keysym(value) if 0x20 <= value <= 0x1FFF_FFFF else None
    return None


def _suggest(part: str) -> str | None:
    near = difflib.get_close_matches(_normalise(part)[:40], NAMES, n=1, cutoff=0.6)
    return near[0] if near else None


def _normalise(name: str) -> str:
    return name.replace("_", "").replace(" ", "").casefold()


_CONTROL_CHARACTERS = {"\n": 0xFF0D, "\r": 0xFF0D, "\t": 0xFF09, "\b": 0xFF08, "\x1b": 0xFF1B, "\x7f": 0xFFFF}

# Each line: the keysym, then every spelling of it. Case and "_" don't matter.
_TABLE = """
ff08 BackSpace bksp back
ff09 Tab
ff0a Linefeed
ff0b Clear
ff0d Return enter ret newline
ff13 Pause
ff14 Scroll_Lock scroll
ff15 Sys_Req
ff1b Escape esc
ffff Delete del forwarddelete
ff50 Home
ff51 Left arrowleft leftarrow
ff52 Up arrowup uparrow
ff53 Right arrowright rightarrow
ff54 Down arrowdown downarrow
ff55 Prior pageup pgup
ff56 Next pagedown pgdn pgdown
ff57 End
ff58 Begin
ff60 Select
ff61 Print printscreen prtsc prtscr printscrn snapshot
ff62 Execute
ff63 Insert ins
ff65 Undo
ff66 Redo Again
ff67 Menu contextmenu apps application
ff68 Find
ff69 Cancel
ff6a Help
ff6b Break
ff7e Mode_switch script_switch
ff7f Num_Lock
ff80 KP_Space
ff89 KP_Tab
ff8d KP_Enter numpadenter
ff91 KP_F1
ff92 KP_F2
ff93 KP_F3
ff94 KP_F4
ff95 KP_Home
ff96 KP_Left
ff97 KP_Up
ff98 KP_Right
ff99 KP_Down
ff9a KP_Prior KP_Page_Up
ff9b KP_Next KP_Page_Down
ff9c KP_End
ff9d KP_Begin
ff9e KP_Insert
ff9f KP_Delete
ffaa KP_Multiply numpadmultiply multiply
ffab KP_Add numpadadd add
ffac KP_Separator numpadcomma separator
ffad KP_Subtract numpadsubtract subtract
ffae KP_Decimal numpaddecimal decimal
ffaf KP_Divide numpaddivide divide
ffbd KP_Equal numpadequal
ffe1 Shift_L shift shiftleft lshift
ffe2 Shift_R shiftright rshift
ffe3 Control_L control ctrl controlleft ctrlleft lctrl ctl
ffe4 Control_R controlright ctrlright rctrl
ffe5 Caps_Lock caps
ffe6 Shift_Lock
ffe7 Meta_L
ffe8 Meta_R
ffe9 Alt_L alt altleft lalt option opt optionleft
ffea Alt_R altright ralt optionright
ffeb Super_L super meta cmd command win windows os gui metaleft osleft lwin commandleft
ffec Super_R metaright osright rwin commandright
ffed Hyper_L hyper
ffee Hyper_R
fe03 ISO_Level3_Shift altgr altgraph
fe20 ISO_Left_Tab backtab
fe50 dead_grave
fe51 dead_acute
fe52 dead_circumflex
fe53 dead_tilde
fe54 dead_macron
fe57 dead_diaeresis
fe5b dead_cedilla
ff20 Multi_key compose
ff21 Kanji
ff22 Muhenkan nonconvert
ff23 Henkan convert
ff27 Hiragana_Katakana kanamode
ff2a Zenkaku_Hankaku
ff31 Hangul
ff34 Hangul_Hanja
0020 space spacebar
0021 exclam exclamation
0022 quotedbl doublequote
0023 numbersign hash pound
0024 dollar
0025 percent
0026 ampersand
0027 apostrophe quoteright quote singlequote
0028 parenleft leftparen
0029 parenright rightparen
002a asterisk star
002b plus
002c comma
002d minus dash hyphen
002e period dot fullstop
002f slash forwardslash
003a colon
003b semicolon
003c less intlbackslash
003d equal equals
003e greater
003f question questionmark
0040 at
005b bracketleft leftbracket
005c backslash
005d bracketright rightbracket
005e asciicircum caret circumflex
005f underscore
0060 grave quoteleft backquote backtick
007b braceleft leftbrace
007c bar pipe
007d braceright rightbrace
007e asciitilde tilde
00a0 nobreakspace
00a3 sterling
00a7 section
00b0 degree
00b5 mu
20ac EuroSign euro
1008ff11 XF86AudioLowerVolume audiovolumedown volumedown
1008ff12 XF86AudioMute audiovolumemute volumemute mute
1008ff13 XF86AudioRaiseVolume audiovolumeup volumeup
1008ff14 XF86AudioPlay mediaplaypause playpause
1008ff15 XF86AudioStop mediastop
1008ff16 XF86AudioPrev mediatrackprevious previoustrack
1008ff17 XF86AudioNext mediatracknext nexttrack
1008ff18 XF86HomePage browserhome
1008ff1b XF86Search browsersearch
1008ff26 XF86Back browserback
1008ff27 XF86Forward browserforward
1008ff28 XF86Stop browserstop
1008ff29 XF86Refresh browserrefresh XF86Reload
"""


def _build_names() -> dict[str, int]:
    names: dict[str, int] = {}
    for line in _TABLE.split("\n"):
        if line:
            code, *spellings = line.split()
            names.update({_normalise(spelling): int(code, 16) for spelling in spellings})
    names.update({f"f{number}": 0xFFBD + number for number in range(1, 36)})
    for digit in range(10):
        names[f"digit{digit}"] = 0x30 + digit
        names[f"numpad{digit}"] = names[f"kp{digit}"] = 0xFFB0 + digit
    names.update({f"key{chr(code)}": code for code in range(ord("a"), ord("z") + 1)})
    names.update({"capslock": 0xFFE5, "numlock": 0xFF7F, "scrolllock": 0xFF14})
    return names


NAMES = MappingProxyType(_build_names())
_COMMANDS = frozenset(
    NAMES[name]
    for name in (
        "return", "kpenter", "escape", "controll", "controlr", "altl", "altr", "superl", "superr", "menu",
        *(f"f{number}" for number in range(1, 13)),
    )
)  # fmt: skip
