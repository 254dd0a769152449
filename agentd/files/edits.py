"""
Edits by matching text; pure.

An edit's text is looked for exactly, then line by line without trailing space, then without
any space at the edges of lines. The first way that finds it decides; there, it must be found
once, or everywhere when all are to be replaced.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import unified_diff

__all__ = ["Edit", "EditRefused", "apply_edits", "diff"]


class EditRefused(ValueError):
    """An edit that matches nothing, or more than it says; the text says which and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Replace *old_text* by *new_text*, once or everywhere."""

    old_text: str
    new_text: str
    replace_all: bool = False


Span = tuple[int, int]


def apply_edits(content: str, edits: Sequence[Edit]) -> str:
    """
    Apply *edits* in order, each to what the one before left.

    A file whose lines all end with CRLF keeps them; edits may be written with either.

    Raises:
        EditRefused: an edit can't be applied; nothing is.
    """
    crlf = "\r\n" in content and content.count("\r\n") == content.count("\n")
    text = content.replace("\r\n", "\n") if crlf else content
    for number, edit in enumerate(edits, start=1):
        text = _apply(text, edit if not crlf else _with_newlines(edit), number)
    return text.replace("\n", "\r\n") if crlf else text


def diff(before: str, after: str, path: str) -> str:
    """Unified diff of one file, "" when nothing changed."""
    lines = unified_diff(before.splitlines(True), after.splitlines(True), path, path)
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _with_newlines(edit: Edit) -> Edit:
    return Edit(
        old_text=edit.old_text.replace("\r\n", "\n"),
        new_text=edit.new_text.replace("\r\n", "\n"),
        replace_all=edit.replace_all,
    )


def _apply(text: str, edit: Edit, number: int) -> str:
    if not edit.old_text:
        msg = f"edit {number}: the text to replace is empty; to make a file, write it whole"
        raise EditRefused(msg)
    spans = _find(text, edit.old_text)
    if not spans:
        msg = f"edit {number}: the text to replace was not found: {_shown(edit.old_text)}"
        raise EditRefused(msg)
    if len(spans) > 1 and not edit.replace_all:
        lines = ", ".join(str(text.count("\n", 0, start) + 1) for start, _ in spans[:10])
        msg = (
            f"edit {number}: the text to replace was found {len(spans)} times (lines {lines}); "
            "give more of what is around it, or replace all"
        )
        raise EditRefused(msg)
    pieces = []
    end = 0
    for start, stop in spans:
        pieces += [text[end:start], edit.new_text]
        end = stop
    return "".join([*pieces, text[end:]])


def _find(text: str, wanted: str) -> list[Span]:
    return (
        _find_exact(text, wanted)
        or _find_lines(text, wanted, str.rstrip)
        or _find_lines(text, wanted, str.strip)
    )


def _find_exact(text: str, wanted: str) -> list[Span]:
    spans = []
    start = text.find(wanted)
    while start >= 0:
        spans.append((start, start + len(wanted)))
        start = text.find(wanted, start + len(wanted))
    return spans


def _find_lines(text: str, wanted: str, reduce: Callable[[str], str]) -> list[Span]:
    """Whole lines that equal those of *wanted* after *reduce*; its final newline is part of the match."""
    ends_line = wanted.endswith("\n")
    needle = [reduce(line) for line in wanted.removesuffix("\n").split("\n")]
    if not any(needle):
        return []
    lines = text.split("\n")
    reduced = [reduce(line) for line in lines]
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line) + 1)
    spans = []
    row = 0
    while row + len(needle) <= len(lines):
        last = row + len(needle)
        if reduced[row:last] == needle and (not ends_line or last < len(lines)):
            spans.append((offsets[row], offsets[last] - (0 if ends_line else 1)))
            row = last
        else:
            row += 1
    return spans


def _shown(text: str) -> str:
    first = text.strip().split("\n", 1)[0]
    return repr(first[:80] + ("…" if len(first) > 80 or "\n" in text.strip() else ""))
