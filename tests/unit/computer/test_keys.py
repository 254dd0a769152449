"""Chords and key names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from computer.errors import InvalidAction, Refused, UnknownKey
from computer.keys import MAX_CHORD_KEYS, NAMES, character_keysym, parse_chord

CTRL, SHIFT, ALT, SUPER = 0xFFE3, 0xFFE1, 0xFFE9, 0xFFEB

SPELLINGS = [
    # letters, digits, signs
    ("a", [0x61]), ("A", [0x41]), ("Z", [0x5A]), ("1", [0x31]), ("+", [0x2B]), ("-", [0x2D]),
    ("_", [0x5F]), (" ", [0x20]), ("/", [0x2F]), ("é", [0xE9]), ("€", [0x10020AC]), ("漢", [0x1006F22]),
    ("\n", [0xFF0D]), ("\t", [0xFF09]), ("U20AC", [0x10020AC]), ("u0041", [0x41]), ("0xff0d", [0xFF0D]),
    # names
    ("Return", [0xFF0D]), ("return", [0xFF0D]), ("ENTER", [0xFF0D]), ("enter", [0xFF0D]),
    ("KP_Enter", [0xFF8D]), ("NumpadEnter", [0xFF8D]), ("Escape", [0xFF1B]), ("esc", [0xFF1B]),
    ("ESC", [0xFF1B]), ("Tab", [0xFF09]), ("BackSpace", [0xFF08]), ("Backspace", [0xFF08]),
    ("back_space", [0xFF08]), ("Delete", [0xFFFF]), ("del", [0xFFFF]), ("Insert", [0xFF63]),
    ("ins", [0xFF63]), ("space", [0x20]), ("Space", [0x20]), ("SPACEBAR", [0x20]), ("Home", [0xFF50]),
    ("End", [0xFF57]), ("Page_Up", [0xFF55]), ("page_down", [0xFF56]), ("PageDown", [0xFF56]),
    ("page-down", [0xFF56]), ("Prior", [0xFF55]), ("Next", [0xFF56]), ("pgup", [0xFF55]),
    ("Left", [0xFF51]), ("ArrowLeft", [0xFF51]), ("ARROWUP", [0xFF52]), ("arrow_down", [0xFF54]),
    ("RightArrow", [0xFF53]), ("F1", [0xFFBE]), ("f12", [0xFFC9]), ("F35", [0xFFE0]), ("Print", [0xFF61]),
    ("PrintScreen", [0xFF61]), ("Menu", [0xFF67]), ("ContextMenu", [0xFF67]), ("Caps_Lock", [0xFFE5]),
    ("CapsLock", [0xFFE5]), ("capslock", [0xFFE5]), ("Num_Lock", [0xFF7F]), ("scroll-lock", [0xFF14]),
    ("Pause", [0xFF13]), ("plus", [0x2B]), ("minus", [0x2D]), ("slash", [0x2F]), ("question", [0x3F]),
    ("BracketLeft", [0x5B]), ("Backquote", [0x60]), ("grave", [0x60]), ("period", [0x2E]),
    ("KeyA", [0x61]), ("Digit7", [0x37]), ("Numpad7", [0xFFB7]), ("KP_7", [0xFFB7]), ("KP_Add", [0xFFAB]),
    ("XF86AudioMute", [0x1008FF12]), ("AudioVolumeUp", [0x1008FF13]), ("BrowserBack", [0x1008FF26]),
    # modifiers
    ("ctrl", [CTRL]), ("Control", [CTRL]), ("Control_L", [CTRL]), ("ControlLeft", [CTRL]),
    ("Control_R", [0xFFE4]), ("Shift", [SHIFT]), ("ShiftRight", [0xFFE2]), ("Alt_L", [ALT]),
    ("option", [ALT]), ("super", [SUPER]), ("cmd", [SUPER]), ("Meta", [SUPER]), ("win", [SUPER]),
    ("Super_L", [SUPER]), ("Meta_L", [0xFFE7]), ("AltGr", [0xFE03]), ("ISO_Level3_Shift", [0xFE03]),
    # chords
    ("ctrl+c", [CTRL, 0x63]), ("CTRL+L", [CTRL, 0x6C]), ("Ctrl-Shift-T", [CTRL, SHIFT, 0x74]),
    ("ctrl + c", [CTRL, 0x63]), ("cmd+a", [SUPER, 0x61]), ("CMD+A", [SUPER, 0x61]),
    ("ALT+F4", [ALT, 0xFFC1]), ("SHIFT+TAB", [SHIFT, 0xFF09]), ("shift-tab", [SHIFT, 0xFF09]),
    ("ctrl++", [CTRL, 0x2B]), ("ctrl+plus", [CTRL, 0x2B]), ("ctrl+-", [CTRL, 0x2D]),
    ("ctrl--", [CTRL, 0x2D]), ("Control-L", [CTRL, 0x6C]), ("ctrl+shift+Escape", [CTRL, SHIFT, 0xFF1B]),
    ("alt-left", [ALT, 0xFF51]), ("super+Return", [SUPER, 0xFF0D]), ("ctrl+alt+t", [CTRL, ALT, 0x74]),
    ("ctrl+ctrl", [CTRL]), ("ctrl+page-down", [CTRL, 0xFF56]), ("shift+A", [SHIFT, 0x61]),
    ("ctrl+Ä", [CTRL, 0xE4]), ("ctrl+ ", [CTRL, 0x20]), ("Control+Shift", [CTRL, SHIFT]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "keysyms"), SPELLINGS)
def test_spelling_means_these_keys(text: str, keysyms: list[int]) -> None:
    """Ours: xdotool, X11, DOM and vendors' spellings; spec rows 25 and 31."""
    assert tuple(keysyms) == parse_chord(text).keysyms


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [("Retrun", "return"), ("ctrl+pagedwn", "pgdwn"), ("Dellete", "delete"), ("shft", "shift")],
)
def test_unknown_name_is_refused_whole_with_a_suggestion(text: str, suggestion: str) -> None:
    """Ours: half a chord is never pressed."""
    with pytest.raises(UnknownKey) as caught:
        parse_chord(text)

    assert caught.value.suggestion in {suggestion, "pagedown", "pgdown"}


@pytest.mark.parametrize(
    "text", ["Down Down", "right arrow key", "\x00", "U+110000", "ctrl+\x07", "UD800", "0x1"]
)
def test_what_is_no_key_is_refused(text: str) -> None:
    """Ours: one action, one chord."""
    with pytest.raises(UnknownKey):
        parse_chord(text)


@pytest.mark.parametrize("text", ["", "ctrl+", "+a", "++", "ctrl++a", "a+" * MAX_CHORD_KEYS + "b"])
def test_malformed_chord_is_refused(text: str) -> None:
    """Ours: an empty part is a mistake, not a key."""
    with pytest.raises(InvalidAction):
        parse_chord(text)


def test_spaces_in_a_name_are_read_like_underscores() -> None:
    """Ours: models write "right arrow" and "page down"."""
    assert parse_chord("right arrow").keysyms == parse_chord("Right").keysyms


@pytest.mark.parametrize("text", ["Return", "ctrl+l", "F5", "alt+Tab", "super"])
def test_chord_that_starts_something_is_a_command(text: str) -> None:
    """Ours: after these a screenshot waits longer for a first change."""
    assert parse_chord(text).is_command


@pytest.mark.parametrize("text", ["a", "Left", "shift+Tab", "Delete"])
def test_chord_that_only_edits_is_no_command(text: str) -> None:
    """Ours: an echo is quick."""
    assert not parse_chord(text).is_command


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    """Ours: a chord from a model never raises anything but a refusal."""
    try:
        chord = parse_chord(text)
    except Refused:
        return

    assert 1 <= len(chord.keysyms) <= MAX_CHORD_KEYS


def test_every_name_in_the_table_parses_to_its_keysym() -> None:
    """Ours: no name is shadowed by another rule of the grammar."""
    assert {name: (keysym,) for name, keysym in NAMES.items()} == {
        name: parse_chord(name).keysyms for name in NAMES
    }


def test_latin_1_is_its_own_keysym_and_the_rest_is_unicode() -> None:
    """X11 protocol, appendix A."""
    assert [character_keysym(char) for char in "~ÿĀ😀"] == [0x7E, 0xFF, 0x1000100, 0x101F600]
