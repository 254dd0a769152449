"""How large a model's window is, as a server may say it somewhere in its answer. Pure."""

import re
from collections.abc import Iterator
from typing import Any

__all__ = ["context_limit_in"]

# Keys as they are once everything but letters and digits is gone.
_KEYS = frozenset(
    {
        "contextlimit", "contextwindow", "contextlength", "maxcontext", "maxcontexttokens", "maxinputtokens",
        "maxinputtoken", "inputtokenlimit",
    }
)  # fmt: skip
# Words that tell the same together with "context", however many others stand between them.
_WORDS: tuple[frozenset[str], ...] = tuple(
    map(
        frozenset,
        (
            ("limit",), ("window", "size"), ("window", "max"), ("length", "max"), ("token", "max"),
            ("tokens", "max"), ("token", "limit"), ("tokens", "limit"),
        ),
    )
)  # fmt: skip
_EDGES = re.compile(r"[^A-Za-z]+|(?<=[a-z])(?=[A-Z])")


def context_limit_in(metadata: object) -> int | None:
    """The largest number of tokens that *metadata* (any JSON) calls a limit of the context; None for none."""
    return max(_limits(metadata), default=None)


def _limits(value: object) -> Iterator[int]:
    if isinstance(value, list):
        for item in value:
            yield from _limits(item)
    if isinstance(value, dict):
        for key, item in value.items():
            number = _positive(item)
            if number is not None and _is_limit(str(key)):
                yield number
            yield from _limits(item)


def _is_limit(key: str) -> bool:
    if re.sub(r"[^a-z0-9]", "", key.lower()) in _KEYS:
        return True
    words = {word.lower() for word in _EDGES.split(key) if word}
    return "context" in words and any(wanted <= words for wanted in _WORDS)


def _positive(value: Any) -> int | None:  # noqa: ANN401 -- JSON
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        text = value.strip()
        value = int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0
    if isinstance(value, float):
        value = int(value) if value.is_integer() else 0
    return value if isinstance(value, int) and value > 0 else None
