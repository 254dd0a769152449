"""Text of others in the audit log: one line, whatever it holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.audit import MAX_TEXT, AuditAction, AuditEntry, plain


@pytest.mark.attack
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ann", "ann"),
        ("jürgen 李", "jürgen 李"),
        ("a\nroot  login", "a\\x0aroot  login"),
        ("\x1b[2J\x1b]52;c;eA==\x07", "\\x1b[2J\\x1b]52;c;eA==\\x07"),
        ("a\r\tb\x00\x7f", "a\\x0d\\x09b\\x00\\x7f"),
        ("\x9b31m", "\\x9b31m"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("a\u2028b\u200bc\ufeff", "a\\u2028b\\u200bc\\ufeff"),
        ("x\ud800", "x\\ud800"),
        ("x" * (MAX_TEXT + 1), "x" * MAX_TEXT + "…"),
    ],
)
def test_what_could_forge_a_line_is_written_out(text: str, shown: str) -> None:
    """Ours: log injection: no new line, no terminal sequence, no text that runs backwards."""
    assert plain(text) == shown


@pytest.mark.attack
@given(st.text())
def test_any_text_is_one_printable_line(text: str) -> None:
    """Ours: and can be sent as UTF-8."""
    shown = plain(text)

    assert len(shown.splitlines()) <= 1
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in shown)
    shown.encode()


def test_every_text_of_an_entry_is_made_plain() -> None:
    """Ours: also the names of details."""
    entry = AuditEntry(
        action=AuditAction.LOGIN, actor="a\n", target="b\n", remote="c\n", details={"d\n": "e\n"}
    ).plain()

    assert (entry.actor, entry.target, entry.remote) == ("a\\x0a", "b\\x0a", "c\\x0a")
    assert entry.details == {"d\\x0a": "e\\x0a"}
