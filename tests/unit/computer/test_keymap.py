"""Keyboard layouts and bursts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from computer.display.keymap import (
    LEVEL3_SHIFT,
    MAX_BURST_KEYS,
    MAX_SPARE,
    SHIFT_L,
    Bindings,
    Keycode,
    Keymap,
    KeyPosition,
    consecutive_runs,
    find_character,
    plan_bursts,
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


def _keymap(spare: int) -> Keymap:
    return read_keymap(FIRST, ROWS + SPARE_ROWS[:spare], [FIRST, 14])


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
    keymap = read_keymap(FIRST, ROWS[:3], [])

    assert keymap.find(Keysym(0xE6)) is None


def test_spare_keycodes_exclude_modifiers_and_are_bounded() -> None:
    """Ours: a few are left for what viewers type."""
    keymap = _keymap(30)

    assert len(keymap.spare) == MAX_SPARE
    assert 14 not in keymap.spare


def test_keycode_with_a_binding_of_ours_stays_spare() -> None:
    """Ours: a changed layout is read without taking our bindings for keys."""
    rows = [*ROWS, [0x1006F22, 0x1006F22, 0, 0, 0, 0]]
    keymap = read_keymap(FIRST, rows, [14], own=[Keycode(15)])

    assert keymap.spare == (15,)
    assert keymap.find(Keysym(0x1006F22)) is None


def test_missing_characters_are_bound_before_the_burst_and_kept() -> None:
    """Ours: the second text needs no binding."""
    keymap, bindings = _keymap(5), Bindings()
    first = list(plan_bursts("a漢字", keymap, bindings))
    second = list(plan_bursts("字漢a", keymap, bindings))

    assert [(15, character_keysym("漢")), (16, character_keysym("字"))] == list(first[0].bind)
    assert second[0].bind == ()
    assert not first[0].replaces


def test_more_characters_than_spare_keys_go_in_groups() -> None:
    """Ours: a binding is replaced only between bursts."""
    bursts = list(plan_bursts("一二三四五", _keymap(2), Bindings()))

    assert [burst.end for burst in bursts] == [2, 4, 5]
    assert [burst.replaces for burst in bursts] == [False, True, True]


@given(st.text(st.sampled_from("aAæ漢字一二三四五六\n"), max_size=60), st.integers(1, 6), st.integers(0, 9))
def test_every_burst_types_what_the_text_says(text: str, spare: int, skip: int) -> None:
    """Ours: replayed on the bindings of its moment, each key gives its character."""
    keymap, bindings = _keymap(spare), Bindings()
    list(plan_bursts("六五四三二一"[:skip], keymap, bindings))
    bound = {keycode: keysym for keysym, keycode in bindings.items()}
    typed = 0
    for burst in plan_bursts(text, keymap, bindings):
        bound.update(burst.bind)
        for position, character in zip(burst.keys, text[typed : burst.end], strict=True):
            on_layout = find_character(character, keymap)
            assert on_layout == position or bound[position.keycode] == character_keysym(character)
        typed = burst.end

    assert len(text) == typed


def test_long_text_is_cut_so_that_a_cancel_can_act() -> None:
    """Ours: a burst has at most so many keys."""
    ends = [burst.end for burst in plan_bursts("a" * (MAX_BURST_KEYS + 1), _keymap(1), Bindings())]

    assert ends == [MAX_BURST_KEYS, MAX_BURST_KEYS + 1]


def test_character_that_cannot_be_delivered_is_named_by_its_offset() -> None:
    """Ours: without spare keys nothing is typed at all."""
    with pytest.raises(InvalidAction, match="character 2 "):
        next(plan_bursts("aA漢a", _keymap(0), Bindings()))


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
