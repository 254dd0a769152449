"""Text as stored: every character survives, and none is left that a database refuses."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chatd.store.columns import escape_json, escape_text, unescape_text

TRICKY = st.text(st.sampled_from("\x00\ue000\ue001a\\") | st.characters(exclude_categories=["Cs"]))


@given(TRICKY)
def test_every_text_comes_back(text: str) -> None:
    """Spec 4.1: NUL is escaped into a private-use pair before storage and restored on reading."""
    stored = escape_text(text)

    assert "\x00" not in stored
    assert unescape_text(stored) == text


@given(st.text(st.characters()))
def test_what_is_stored_is_text(text: str) -> None:
    """Ours: half a surrogate pair is no character; whole pairs and all the rest stay."""
    restored = unescape_text(escape_text(text))

    assert restored.encode("utf-8").decode("utf-8") == restored
    assert restored == text or not text.isascii()


def test_two_halves_that_meet_are_one_character() -> None:
    """Ours: JSON may bring an astral character as two escapes."""
    assert escape_text("\ud83d\ude00") == "😀"
    assert escape_text("\ud83d x") == "\ufffd x"


def test_every_string_of_a_json_value_is_escaped_and_odd_numbers_are_null() -> None:
    """Ours: keys too; jsonb knows no NaN."""
    value: dict[str, Any] = {"a\x00": ["\x00", 1, True, None, float("nan")], "b": {"c": float("-inf")}}

    assert escape_json(value) == {
        "a\ue000\ue001": ["\ue000\ue001", 1, True, None, None],
        "b": {"c": None},
    }
