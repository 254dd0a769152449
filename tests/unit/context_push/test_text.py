"""Text made safe."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_push.wire.text import clean_line, first_line, sanitize, truncate_bytes


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("# Rules\n\nBe kind.\n", "# Rules\n\nBe kind.\n"),
        ("a<!-- b -->c", "ac"),
        ("a<!-- b\nc -->d", "ad"),
        ("a<!-- never closed", "a"),
        ("<!-<!-- -->- x -->y", "y"),
        ("<\u200b!-- x -->y", "y"),
        ("<!\x00-- x -->y", "y"),
        ("in\u200bvis\u2060ible\ufeff", "invisible"),
        ("\u202eesrever", "esrever"),
        ("tag\U000e0041s", "tags"),
        ("selector\U000e0100", "selector"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\tb\x1b[31m", "a\tb[31m"),
        ("a\u2028b", "ab"),
        ("\ud800x", "x"),
        ("❤\ufe0f naïve 漢字", "❤\ufe0f naïve 漢字"),
    ],
)
def test_what_people_do_not_see_is_removed(text: str, safe: str) -> None:
    """Spec 5.6: comments and invisible characters; ours: controls, and comments built from comments."""
    assert sanitize(text) == safe


def test_comments_within_comments_end_somewhere() -> None:
    """Ours: 64 KiB of layers take no time worth naming, and none opens in the end."""
    layers = 5000

    assert "<!--" not in sanitize("<!-" * layers + "<!-- -->" + "- x -->" * layers)
    assert "<!--" not in sanitize("<!" * layers + "<!--" + "--" * layers)


@given(st.text() | st.text("<!-> x\n"))
def test_nothing_hidden_is_ever_left(text: str) -> None:
    """Ours: no comment can open, and doing it again changes nothing."""
    safe = sanitize(text)

    assert "<!--" not in safe
    assert sanitize(safe) == safe
    assert safe.encode().decode() == safe


def test_the_first_line_that_says_something() -> None:
    """Spec 5.2: without leading #."""
    assert first_line("\n<!-- x -->\n##\n#  Rules of   the house \nmore") == "Rules of the house"
    assert first_line(" \n") == ""


def test_lines_and_cuts() -> None:
    """Ours: one line, and never half a character."""
    assert clean_line(" a\n\tb\u200b ") == "a b"
    assert truncate_bytes("aé", 2) == "a"
