"""Edits by matching text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.files.edits import Edit, EditRefused, apply_edits, diff


def edit(old: str, new: str, *, every: bool = False) -> Edit:
    """Shorthand."""
    return Edit(old_text=old, new_text=new, replace_all=every)


TABLE = [
    ("exact", "a b c", [edit("b", "x")], "a x c"),
    ("exact wins over loose", "b \nb", [edit("b \n", "x\n")], "x\nb"),
    ("everywhere", "b a b", [edit("b", "x", every=True)], "x a x"),
    ("in order, on what the one before left", "a", [edit("a", "b"), edit("b", "c")], "c"),
    ("trailing space is ignored", "if x:  \n    y\t\nz", [edit("if x:\n    y", "pass")], "pass\nz"),
    ("edge space is ignored", "    if x:\n        y\n", [edit("if x:\n  y\n", "ok\n")], "ok\n"),
    ("the file's last line, without newline", "a\n  b", [edit("b  ", "x")], "a\nx"),
    ("CRLF is kept", "a\r\nb\r\nc\r\n", [edit("a\nb", "x\ny")], "x\r\ny\r\nc\r\n"),
    ("CRLF in the edit, LF in the file", "a\nb\n", [edit("a\r\nb", "x")], "x\n"),
    ("mixed line ends are left as they are", "a\r\nb\n", [edit("b", "x")], "a\r\nx\n"),
    ("to nothing", "abc", [edit("b", "")], "ac"),
    ("combining characters are not folded", "e\u0301 \u00e9", [edit("\u00e9", "x")], "e\u0301 x"),
]


@pytest.mark.parametrize(
    ("content", "edits", "after"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_edit(content: str, edits: list[Edit], after: str) -> None:
    """Every way of matching, cell by cell."""
    assert apply_edits(content, edits) == after


REFUSED = [
    ("empty", "a", [edit("", "x")], "edit 1: the text to replace is empty"),
    ("missing", "a", [edit("b", "x")], "edit 1: the text to replace was not found: 'b'"),
    ("second one missing", "a", [edit("a", "b"), edit("a", "c")], "edit 2: the text"),
    ("twice", "b\na\nb", [edit("b", "x")], "found 2 times (lines 1, 3)"),
    ("twice, loosely", " b\nb \n", [edit("\tb", "x")], "found 2 times (lines 1, 2)"),
    ("only space", "a\n\n\nb", [edit(" \n ", "x")], "was not found"),
]


@pytest.mark.parametrize(
    ("content", "edits", "text"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_refused(content: str, edits: list[Edit], text: str) -> None:
    """What matches nothing, or more than it says, is refused with the reason."""
    with pytest.raises(EditRefused) as caught:
        apply_edits(content, edits)

    assert text in str(caught.value)


words = st.text(alphabet="ab \n", max_size=30)


@given(words, words.filter(bool), words)
def test_exact_edit_equals_replace(content: str, old: str, new: str) -> None:
    """Where the text is there exactly, replacing all is what ``str.replace`` does."""
    if old in content:
        assert apply_edits(content, [edit(old, new, every=True)]) == content.replace(old, new)


@given(words, words, words)
def test_loose_match_keeps_the_rest(before: str, line: str, after: str) -> None:
    """A loose match replaces whole lines and nothing else."""
    if not line.strip() or "\n" in line:
        return
    content = f"{before}\n{line}  \n{after}"
    try:
        result = apply_edits(content, [edit(f"{line} \t", "XX")])
    except EditRefused:
        return
    head, _, tail = result.partition("XX")
    assert content.startswith(head)
    assert content.endswith(tail)


def test_diff_says_when_the_last_newline_is_missing() -> None:
    """The diff can be applied by others."""
    text = diff("a\nb", "a\nc\n", "f.txt")

    assert text.splitlines() == [
        "--- f.txt",
        "+++ f.txt",
        "@@ -1,2 +1,2 @@",
        " a",
        "-b",
        "\\ No newline at end of file",
        "+c",
    ]
