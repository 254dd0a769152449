"""
Chords: what a model calls a key, turned into X11 keysyms.

Pure. One grammar for every vendor. It understands xdotool and X keysym names (``Page_Down``,
``XF86AudioPlay``, ``Ntilde``), DOM ``key`` and ``code`` names (``ArrowLeft``, ``KeyA``,
``Digit1``, ``ControlLeft``), what models say besides (``cmd``, ``pgdn``, ``right arrow``),
single characters, ``U20AC``, ``U+20AC`` and ``0xff0d``.

Joining: ``ctrl+l``; ``Ctrl-Shift-T`` and Emacs' ``C-x`` where every part but the last is a
modifier; GTK's ``<Ctrl>l``. ``+`` alone, a trailing ``++`` and a trailing ``-+`` mean the plus
key. Spaces round a key are ignored; a lone space is the space bar.

Case: names don't depend on case, nor on ``_``, ``-`` or spaces between words, but for X's names
of letters (``Ntilde`` is a capital). A letter by itself keeps its case: ``A`` is a capital. A
letter beside other keys is lower case: ``ctrl+L`` is ``ctrl+l``, so a capital in a chord takes an
explicit ``shift``. Emacs' ``C``, ``M`` and ``S`` are capitals and stand before a dash.
``Control_L`` is a key; ``Control-L`` is ctrl+l. A sign brings the Shift that its layout needs:
``ctrl+?`` is one chord everywhere.

Never half a chord: a part that is unknown refuses all of it, with the nearest known name.
"""

import difflib
import re
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import NewType

from computer.errors import InvalidAction, UnknownKey
from computer.keysyms import KEYSYMS

__all__ = ["MAX_CHORD_KEYS", "Chord", "Keysym", "Way", "character_keysym", "keysym_name", "parse_chord"]

Keysym = NewType("Keysym", int)

# Keys in one chord. Nobody has more fingers.
MAX_CHORD_KEYS = 10
_UNICODE = 0x0100_0000


class Way(StrEnum):
    """How text reaches an application."""

    KEYS = "keys"
    SPARE_KEYS = "spare keys"
    PASTE = "paste"


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


def keysym_name(keysym: Keysym) -> str:
    """X's name of a keysym; ``U20AC`` for a character that has none, a hexadecimal number for the rest."""
    if keysym in _X_NAMES:
        return _X_NAMES[keysym]
    return f"U{keysym & 0xFF_FFFF:04X}" if keysym >> 24 == 1 else f"0x{keysym:x}"


def _split(text: str) -> list[str]:
    if text in {"+", "-"}:
        return [text]
    text = _LAST_ANGLED.sub(r"\1", _ANGLED.sub(r"\1+", _UNICODE_NAME.sub(r"U\1", text)))
    if len(text) > 2 and text[-2:] in {"++", "-+"}:
        head = text[:-2]
        return [*(_split_plain(head) if head not in _EMACS else [_EMACS[head]]), "+"]
    return _split_plain(text)


def _split_plain(text: str) -> list[str]:
    parts: list[str] = []
    for part in text.split("+"):
        parts.extend(_split_dashes(part.strip() or part[:1]))
    return parts


def _split_dashes(part: str) -> list[str]:
    """Parts of ``Ctrl-Shift-T``, or the whole where what comes before the last dash is no modifier."""
    if "-" not in part or len(part) == 1:
        return [part]
    head, _, last = part[:-1].rpartition("-") if part.endswith("--") else part.rpartition("-")
    modifiers = [_EMACS.get(word.strip(), word.strip()) for word in head.split("-")]
    if part.endswith("--"):
        last = "-"
    is_chord = all(NAMES.get(_normalise(word)) in _MODIFIERS for word in modifiers)
    return [*modifiers, last.strip() or last[:1]] if is_chord else [part]


def _resolve(part: str, *, is_alone: bool) -> Keysym:
    if part == "":
        raise InvalidAction("a chord has an empty part; the plus key is '+' or 'plus'")
    keysym = _find(part if is_alone or len(part) > 1 else part.lower()[:1])
    if keysym is None:
        raise UnknownKey(part, _suggest(part))
    return keysym


def _find(part: str) -> Keysym | None:
    if len(part) == 1:
        return _find_character(part)
    for names, name in ((NAMES, _normalise(part)), (KEYSYMS, part), (_FOLDED, _normalise(part))):
        if name in names:
            return Keysym(names[name])
    if match := _PREFIXED.fullmatch(part):
        return _find(match[1] if len(match[1]) > 1 else match[1].lower())
    return _find_number(part)


def _find_character(character: str) -> Keysym | None:
    if character in _SYMBOLS:
        return Keysym(_SYMBOLS[character])
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
    for names in (NAMES, _FOLDED):
        near = difflib.get_close_matches(_normalise(part)[:40], names, n=1, cutoff=0.6)
        if near:
            return near[0]
    return None


def _normalise(name: str) -> str:
    return name.replace("_", "").replace("-", "").replace(" ", "").casefold()


# "U+20AC", whose plus joins nothing; and "<Ctrl>" before another key.
_UNICODE_NAME = re.compile(r"(?<![^+])[Uu]\+([0-9A-Fa-f]{4,6})(?![^+])")
_ANGLED = re.compile(r"<([^<>]{2,40})>\+?(?=.)")
_LAST_ANGLED = re.compile(r"<([^<>]{2,40})>$")
# What a program calls a key: "VK_RETURN", "KEY_ENTER", "Key.enter".
_PREFIXED = re.compile(r"(?:VK_|KEY_|[Kk]eys?\.)(\w+)")
_EMACS = {"C": "ctrl", "M": "alt", "S": "shift"}
# Control characters, and the signs that are printed on keys.
_SYMBOLS = {
    "\n": 0xFF0D, "\r": 0xFF0D, "\t": 0xFF09, "\b": 0xFF08, "\x1b": 0xFF1B, "\x7f": 0xFFFF,
    "⏎": 0xFF0D, "↵": 0xFF0D, "⇥": 0xFF09, "⌫": 0xFF08, "⎋": 0xFF1B, "⌦": 0xFFFF, "␣": 0x20,
    "⌃": 0xFFE3, "⌥": 0xFFE9, "⇧": 0xFFE1, "⌘": 0xFFEB,
    "←": 0xFF51, "↑": 0xFF52, "→": 0xFF53, "↓": 0xFF54,
}  # fmt: skip
# Shift to Hyper and AltGr, without Caps Lock and Shift Lock.
_MODIFIERS = frozenset({*range(0xFFE1, 0xFFE5), *range(0xFFE7, 0xFFEF), 0xFE03})

# Each line: the keysym, then every spelling of it. Case and "_" don't matter.
_TABLE = """
ff08 BackSpace bksp back bs
ff09 Tab
ff0a Linefeed
ff0b Clear
ff0d Return enter ret newline
ff13 Pause pausebreak
ff14 Scroll_Lock scroll
ff15 Sys_Req sysrq
ff1b Escape esc
ffff Delete del forwarddelete
ff50 Home
ff51 Left arrowleft leftarrow
ff52 Up arrowup uparrow
ff53 Right arrowright rightarrow
ff54 Down arrowdown downarrow
ff55 Page_Up Prior pgup
ff56 Page_Down Next pgdn pgdown pgdwn
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
ff9a KP_Page_Up KP_Prior
ff9b KP_Page_Down KP_Next
ff9c KP_End
ff9d KP_Begin
ff9e KP_Insert
ff9f KP_Delete
ffaa KP_Multiply numpadmultiply multiply numpadstar
ffab KP_Add numpadadd add
ffac KP_Separator numpadcomma separator
ffad KP_Subtract numpadsubtract subtract
ffae KP_Decimal numpaddecimal decimal
ffaf KP_Divide numpaddivide divide
ffbd KP_Equal numpadequal
ffe1 Shift_L shift shiftleft lshift leftshift
ffe2 Shift_R shiftright rshift rightshift
ffe3 Control_L control ctrl controlleft ctrlleft lctrl ctl leftcontrol leftctrl lcontrol ctrll
ffe3 primary commandorcontrol cmdorctrl
ffe4 Control_R controlright ctrlright rctrl rightcontrol rightctrl rcontrol ctrlr
ffe5 Caps_Lock caps
ffe6 Shift_Lock
ffe7 Meta_L
ffe8 Meta_R
ffe9 Alt_L alt altleft lalt option opt optionleft leftalt lmenu leftoption
ffea Alt_R altright ralt optionright rightalt rmenu rightoption
ffeb Super_L super meta cmd command win windows os gui metaleft osleft lwin commandleft
ffeb leftsuper leftcommand leftmeta lcmd leftcmd
ffec Super_R rsuper metaright osright rwin commandright
ffec rightsuper rightcommand rightmeta rcmd rightcmd
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
ff31 Hangul lang1
ff34 Hangul_Hanja lang2
0020 space spacebar spc
0021 exclam exclamation
0022 quotedbl doublequote
0023 numbersign hash pound numpadhash
0024 dollar dollarsign
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
1008ff02 XF86MonBrightnessUp brightnessup
1008ff03 XF86MonBrightnessDown brightnessdown
1008ff10 XF86Standby standby
1008ff19 XF86Mail launchmail
1008ff1d XF86Calculator launchapp2 calculator
1008ff2a XF86PowerOff power poweroff
1008ff2b XF86WakeUp wakeup
1008ff2c XF86Eject eject
1008ff2f XF86Sleep sleep
1008ff30 XF86Favorites browserfavorites
1008ff32 XF86AudioMedia mediaselect
1008ff33 XF86MyComputer launchapp1
1008ff57 XF86Copy copy
1008ff58 XF86Cut cut
1008ff6d XF86Paste paste
1008ff8b XF86ZoomIn zoomin
1008ff8c XF86ZoomOut zoomout
1008ffa8 XF86Hibernate hibernate
00a5 yen intlyen
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
        names[f"numpad{digit}"] = names[f"num{digit}"] = names[f"kp{digit}"] = 0xFFB0 + digit
    names.update({f"key{chr(code)}": code for code in range(ord("a"), ord("z") + 1)})
    names.update({"capslock": 0xFFE5, "numlock": 0xFF7F, "scrolllock": 0xFF14})
    return names


def _build_x_names() -> dict[int, str]:
    names = {code: name for name, code in KEYSYMS.items()}
    names |= {0xFFBD + number: f"F{number}" for number in range(1, 36)}
    names |= {0xFFB0 + digit: f"KP_{digit}" for digit in range(10)}
    names |= {code: chr(code) for code in range(0x30, 0x7B) if chr(code).isalnum()}
    for line in reversed(_TABLE.split("\n")):
        if line:
            code, name, *_ = line.split()
            names[int(code, 16)] = name
    return names


NAMES = MappingProxyType(_build_names())
_X_NAMES = MappingProxyType(_build_x_names())
# X's names in any case; where two differ by case only, the small letter's.
_FOLDED = MappingProxyType({_normalise(name): code for name, code in sorted(KEYSYMS.items())})
_COMMANDS = frozenset(
    NAMES[name]
    for name in (
        "return", "kpenter", "escape", "ctrl", "rctrl", "alt", "ralt", "super", "rsuper", "menu",
        *(f"f{number}" for number in range(1, 13)),
    )
)  # fmt: skip
