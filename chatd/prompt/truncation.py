"""
How much of a tool's result a model may see. Pure.

The budget is half of the model's window, in bytes; head and tail are kept, since what a command
prints last is often what matters. What is cut is cut at a character and counted.
"""

from dataclasses import dataclass
from typing import Any

from chatd.constants import (
    MIN_BUDGET_BYTES,
    RESULT_BYTES_PER_TOKEN,
    RESULT_WINDOW_DIVISOR,
    UNKNOWN_WINDOW_BYTES,
)

__all__ = [
    "MIN_BUDGET_BYTES",
    "UNKNOWN_WINDOW_BYTES",
    "Truncated",
    "budget_bytes",
    "text_bytes",
    "truncate_text",
    "truncate_value",
]

# Bytes kept free for the note in the middle.
MARKER_BYTES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated:
    """A text within its budget, and how many bytes of it are gone (0: it is whole)."""

    text: str
    removed_bytes: int = 0


def budget_bytes(context_window: int | None) -> int:
    """Bytes that one result may have for a model of *context_window* tokens."""
    if context_window is None or context_window <= 0:
        return UNKNOWN_WINDOW_BYTES
    return max(context_window // RESULT_WINDOW_DIVISOR * RESULT_BYTES_PER_TOKEN, MIN_BUDGET_BYTES)


def truncate_text(text: str, budget: int) -> Truncated:
    """
    Cut *text* to *budget* bytes of UTF-8, the note included; a budget of 0 or less cuts nothing.

    A small budget has no room for a note: the text is cut off at it.
    """
    raw = text.encode(errors="replace")
    if budget <= 0 or len(raw) <= budget:
        return Truncated(text=text)
    if budget <= 2 * MARKER_BYTES:
        kept = _head(raw, budget)
        return Truncated(text=kept, removed_bytes=len(raw) - len(kept.encode()))
    available = budget - MARKER_BYTES
    head_bytes = available * 2 // 3
    head, tail = _head(raw, head_bytes), _tail(raw, available - head_bytes)
    removed = len(raw) - len(head.encode()) - len(tail.encode())
    note = f"\n\n[truncated: {removed} bytes removed; ask for a narrower part, a file or a range]\n\n"
    return Truncated(text=head + note + tail, removed_bytes=removed)


def text_bytes(value: Any) -> int:  # noqa: ANN401 -- JSON
    """Bytes of the texts in a JSON *value*."""
    return sum(len(text.encode(errors="replace")) for text in _texts(value))


def truncate_value(value: Any, budget: int) -> tuple[Any, int]:  # noqa: ANN401 -- JSON
    """
    Cut the texts in a JSON *value*, the longest first, until they fit *budget* together.

    Returns:
        The value, its shape unchanged, and how many bytes are gone.
    """
    sizes = sorted((len(text.encode(errors="replace")) for text in _texts(value)), reverse=True)
    total = sum(sizes)
    if budget <= 0 or total <= budget:
        return value, 0
    limit = _fair_limit(sizes, budget)
    removed = 0

    def cut(found: Any) -> Any:  # noqa: ANN401 -- JSON
        nonlocal removed
        if isinstance(found, str):
            shorter = truncate_text(found, limit)
            removed += shorter.removed_bytes
            return shorter.text
        if isinstance(found, dict):
            return {key: cut(item) for key, item in found.items()}
        return [cut(item) for item in found] if isinstance(found, list | tuple) else found

    return cut(value), removed


def _fair_limit(sizes: list[int], budget: int) -> int:
    """The largest size to which texts can be cut so that all together fit; *sizes* descend."""
    rest = sum(sizes)
    for count, size in enumerate(sizes, start=1):
        rest -= size
        following = sizes[count] if count < len(sizes) else 0
        limit = (budget - rest) // count
        if limit >= following:
            return max(limit, 1)
    return 1


def _texts(value: Any) -> list[str]:  # noqa: ANN401 -- JSON
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    return [text for item in value for text in _texts(item)] if isinstance(value, list | tuple) else []


def _head(raw: bytes, size: int) -> str:
    """The longest whole characters within *size* bytes."""
    return raw[:size].decode(errors="ignore")


def _tail(raw: bytes, size: int) -> str:
    start = len(raw) - size
    while start < len(raw) and raw[start] & 0xC0 == 0x80:
        start += 1
    return raw[start:].decode(errors="ignore")
