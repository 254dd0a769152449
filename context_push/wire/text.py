"""
Text from a workspace, made safe to put before a model. Pure.

What a person who reads the file cannot see, the model must not see either: HTML
comments, invisible characters, controls.
"""

import re

__all__ = ["clean_line", "first_line", "sanitize", "truncate_bytes"]

# Layers of comments put together by comments; more are an attack, and their openings are broken up.
MAX_COMMENT_PASSES = 16

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
# Fillers, soft hyphen, joiners, direction marks and overrides, invisible operators, byte-order mark,
# interlinear marks, tag characters and the variation selectors beyond those that emoji use.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# C0 but for tab and newline, DEL, C1, the two separators that split lines without looking so, and
# surrogates, which have no encoding.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def sanitize(text: str) -> str:
    """*text* without HTML comments, invisible characters and controls; line ends are newlines."""
    text = _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _INVISIBLE.sub("", text)
    # Removing one comment may put together another: `<!-<!-- -->- x -->`.
    for _ in range(MAX_COMMENT_PASSES):
        shorter = _COMMENT.sub("", text)
        if shorter == text:
            return text
        text = shorter
    return text.replace("<!--", "<! --")


def clean_line(text: str) -> str:
    """*text* as one line: sanitized, white space folded."""
    return " ".join(sanitize(text).split())


def first_line(text: str) -> str:
    """The first line of an instruction file that says something, without leading ``#``."""
    for line in sanitize(text).splitlines():
        words = clean_line(line.strip().lstrip("#"))
        if words:
            return words
    return ""


def truncate_bytes(text: str, limit: int) -> str:
    """*text* cut to *limit* bytes of UTF-8, on a character's boundary."""
    return text.encode()[:limit].decode(errors="ignore")
