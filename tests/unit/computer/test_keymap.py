"""Keyboard layouts and bursts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from computer.display import Way
from computer.display.keymap import (
    LEVEL3_SHIFT,
    MAX_BURST_KEYS,
    MAX_KEYED_CHARACTERS,
    MAX_SHORT_LINE,
    MAX_SPARE,
    NUM_LOCK,
    RETURN,
    SHIFT_L,
    Bindings,
    Keycode,
    Keymap,
    KeyPosition,
    Piece,
    TypingPlan,
    consecutive_runs,
    cut_bursts,
    find_character,
    plan_typing,
    read_keymap,
)
from computer.errors import InvalidAction
from computer.keys import Keysym, character_keysym

FIRST = 8
ROWS: list[list[int]] = [
    [SHIFT_L, 0, 0, 0, 0, 0],
    [ord("a"), ord("A"), ord("a"), ord("A"), 0xE6, 0xC6],
    [0x6C1, 0x6E1, 0, 0, 0, 0],
    [LEVEL3_SHIFT, 0, 0, 0, 0, 0],
    [0xFF0D, 0, 0, 0, 0, 0],
    [0xFF09, 0xFE20, 0, 0, 0, 0],
    [0, 0, 0, 0, 0, 0],
]
SPARE_ROWS = [[0] * 6 for _ in range(30)]


# Shift, Lock, Control, Mod1 to Mod5; AltGr acts as Mod5. Keycode 14 is a modifier without a keysym.
MODIFIERS = [[FIRST, 14], [0], [], [], [], [], [], [11]]


def _keymap(spare: int) -> Keymap:
    return read_keymap(FIRST, ROWS + SPARE_ROWS[:spare], MODIFIERS)


def _plan(text: str, keymap: Keymap, bindings: Bindings | None = None, **options: bool) -> TypingPlan:
    """Plan, and bind what the plan wants, as the keyboard does."""
    bindings = bindings if bindings is not None else Bindings()
    plan = plan_typing(text, keymap, bindings, **options)
    for keysym in plan.missing:
        _, replaced = bindings.assign(keysym, keymap.spare)
        assert not replaced
    return plan


@pytest.mark.parametrize(
    ("character", "expected"),
    [
        ("a", KeyPosition(keycode=Keycode(9))),
        ("A", KeyPosition(keycode=Keycode(9), shift=True)),
        ("æ", KeyPosition(keycode=Keycode(9), altgr=True)),
        ("Æ", KeyPosition(keycode=Keycode(9), shift=True, altgr=True)),
        ("а", KeyPosition(keycode=Keycode(10))),  # noqa: RUF001  Cyrillic, under its older keysym
        ("А", KeyPosition(keycode=Keycode(10), shift=True)),  # noqa: RUF001
        ("\n", KeyPosition(keycode=Keycode(12))),
        ("\t", KeyPosition(keycode=Keycode(13))),
        ("漢", None),
        ("ą", None),
    ],
)
def test_character_is_found_on_all_four_levels(character: str, expected: KeyPosition | None) -> None:
    """Ours: layout levels and older keysyms are used before spare keys."""
    assert expected == find_character(character, _keymap(3))


def test_level_without_its_modifier_is_no_position() -> None:
    """Ours: a layout without AltGr can't reach its third level."""
    keymap = read_keymap(FIRST, ROWS[:3], MODIFIERS)

    assert keymap.find(Keysym(0xE6)) is None
    assert keymap.find(Keysym(ord("A"))) is not None


def test_modifier_keys_that_act_as_nothing_are_not_used() -> None:
    """Required: an empty modifier map; Shift is on the layout, but shifts nothing."""
    keymap = read_keymap(FIRST, ROWS, [[]] * 8)

    assert (keymap.shift, keymap.altgr, keymap.modifiers) == (None, None, frozenset())
    assert keymap.find(Keysym(ord("A"))) is None
    assert keymap.find(Keysym(ord("a"))) is not None


def test_locks_are_told_from_modifiers_that_are_held() -> None:
    """Ours: Num Lock is on some Mod row; it and Caps Lock don't stop typing."""
    rows = [*ROWS[:6], [NUM_LOCK, 0]]
    keymap = read_keymap(FIRST, rows, [[FIRST], [], [], [], [14], [], [], []])

    assert (keymap.num_lock, keymap.locks) == (1 << 4, 1 << 4 | 1 << 1)


def test_second_layout_has_columns_of_its_own() -> None:
    """Ours: "us,ru" with the Russian group active."""
    rows = [*ROWS[:1], [ord("a"), ord("A"), 0x6C1, 0x6E1]]

    assert read_keymap(FIRST, rows, MODIFIERS, group=1).find(Keysym(0x6C1)) is not None
    assert read_keymap(FIRST, rows, MODIFIERS, group=1).find(Keysym(ord("a"))) is None


def test_spare_keycodes_exclude_modifiers_and_are_bounded() -> None:
    """Ours: a few are left for what viewers type."""
    keymap = _keymap(30)

    assert len(keymap.spare) == MAX_SPARE
    assert 14 not in keymap.spare


def test_keycode_with_a_binding_of_ours_stays_spare() -> None:
    """Ours: a changed layout is read without taking our bindings for keys."""
    rows = [*ROWS, [0x1006F22, 0x1006F22, 0, 0, 0, 0]]
    keymap = read_keymap(FIRST, rows, MODIFIERS, own=[Keycode(15)])

    assert keymap.spare == (15,)
    assert keymap.find(Keysym(0x1006F22)) is None


def test_missing_characters_are_bound_before_the_first_key_and_kept() -> None:
    """Ours: the second text needs no binding."""
    keymap, bindings = _keymap(5), Bindings()
    first = _plan("a漢字", keymap, bindings)
    second = _plan("字漢a", keymap, bindings)

    assert [character_keysym("漢"), character_keysym("字")] == list(first.missing)
    assert (first.way, second.way) == (Way.SPARE_KEYS, Way.SPARE_KEYS)
    assert second.missing == ()


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("aA", Way.KEYS),
        ("a\n\ta", Way.KEYS),
        ("a漢字", Way.SPARE_KEYS),
        ("漢字漢字漢字", Way.SPARE_KEYS),
        ("一二三", Way.PASTE),
        ("a" * MAX_KEYED_CHARACTERS, Way.KEYS),
        ("a" * (MAX_KEYED_CHARACTERS + 1), Way.PASTE),
    ],
)
def test_way_is_chosen_by_what_is_missing_and_by_length(text: str, way: Way) -> None:
    """Design: keys, a few spare keys, otherwise the clipboard."""
    assert _plan(text, _keymap(2)).way is way


def test_binding_in_use_is_never_replaced_for_a_text() -> None:
    """Measured: applications look keys up late; a text that finds no free key is pasted."""
    keymap, bindings = _keymap(2), Bindings()
    _plan("漢字", keymap, bindings)

    assert _plan("一", keymap, bindings).way is Way.PASTE
    assert _plan("字", keymap, bindings).way is Way.SPARE_KEYS


def test_line_ends_and_tabs_are_keys_even_when_the_rest_is_pasted() -> None:
    """Required: a newline is Return, a tab is Tab, by whichever way."""
    text = "一二三\n\t四五\naA\n"
    plan = _plan(text, _keymap(1))
    parts = [(text[piece.start : piece.end], piece.is_paste) for piece in plan.pieces]

    assert parts == [("一二三", True), ("\n\t", False), ("四五", True), ("\naA\n", False)]


def test_long_line_within_a_paste_is_pasted() -> None:
    """Ours: keys are quicker for a few characters only."""
    text = "一二三\n" + "a" * (MAX_SHORT_LINE + 1)

    assert [piece.is_paste for piece in _plan(text, _keymap(1)).pieces] == [True, False, True]


def test_line_end_that_the_layout_lacks_is_bound() -> None:
    """Ours: Return may be missing from a broken layout."""
    keymap = read_keymap(FIRST, ROWS[:4] + SPARE_ROWS[:2], MODIFIERS)

    assert RETURN in _plan("一二三\n", keymap).missing


def test_lock_that_stays_on_leaves_letters_to_the_clipboard() -> None:
    """Ours: Caps Lock without a key that turns it off."""
    plan = _plan("aA\n", _keymap(3), may_use_keys=False)

    assert (plan.way, plan.has_keys) == (Way.PASTE, False)
    assert [piece.is_paste for piece in plan.pieces] == [True, False]


@given(st.text(st.sampled_from("aAæ漢字一二三四五六\n"), max_size=60), st.integers(0, 6), st.integers(0, 9))
def test_every_piece_delivers_what_the_text_says(text: str, spare: int, skip: int) -> None:
    """Ours: pieces have no gaps; replayed on the bindings, each key gives its character."""
    keymap, bindings = _keymap(spare), Bindings()
    _plan("六五四三二一"[: min(skip, spare)], keymap, bindings)
    plan = _plan(text, keymap, bindings)
    bound = {keycode: keysym for keysym, keycode in bindings.items()}
    done = 0
    for piece in plan.pieces:
        assert piece.start == done
        done = piece.end
        if piece.is_paste:
            assert not set(text[piece.start : piece.end]) & {"\n", "\t"}
            continue
        typed = [key for burst in cut_bursts(text, piece, keymap, bindings) for key in burst.keys]
        for position, character in zip(typed, text[piece.start : piece.end], strict=True):
            on_layout = find_character(character, keymap)
            assert on_layout == position or bound[position.keycode] == character_keysym(character)

    assert done == len(text)


def test_long_text_is_cut_so_that_a_cancel_can_act() -> None:
    """Ours: a burst has at most so many keys."""
    text = "a" * (MAX_BURST_KEYS + 1)
    piece = Piece(start=0, end=len(text), is_paste=False)

    assert [burst.end for burst in cut_bursts(text, piece, _keymap(1), Bindings())] == [
        MAX_BURST_KEYS,
        MAX_BURST_KEYS + 1,
    ]


def test_character_that_cannot_be_delivered_is_named_by_its_offset() -> None:
    """Ours: without a key nothing is typed at all."""
    with pytest.raises(InvalidAction, match="character 2 "):
        next(cut_bursts("aA漢a", Piece(start=0, end=4, is_paste=False), _keymap(0), Bindings()))


def test_binding_taken_over_by_another_is_forgotten() -> None:
    """Ours: the keycode is bound anew when needed."""
    bindings = Bindings()
    bindings.assign(Keysym(1), [Keycode(15), Keycode(16)])
    bindings.assign(Keysym(2), [Keycode(15), Keycode(16)])
    bindings.keep_only([Keycode(16)])

    assert bindings.items() == ((2, 16),)


def test_neighbouring_keycodes_are_bound_together() -> None:
    """Ours: each request makes every client read the keyboard again."""
    assert consecutive_runs([Keycode(9), Keycode(7), Keycode(8), Keycode(20)]) == [[7, 8, 9], [20]]
    assert consecutive_runs([]) == []


def test_keysym_without_spare_key_is_refused() -> None:
    """Ours: a chord needs a key."""
    with pytest.raises(InvalidAction):
        Bindings().assign(Keysym(1), [])
