"""
Column types that mean the same on every database.

Text is escaped before it is stored and restored on reading, because PostgreSQL
takes no NUL: U+0000 becomes the pair U+E000 U+E001, and a U+E000 that was there
already is doubled. A lone surrogate is no text at all and becomes U+FFFD.
"""

import math
import re
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

__all__ = ["BigId", "Json", "SafeText", "UtcDateTime", "escape_json", "escape_text", "unescape_text"]

ESCAPE = "\ue000"
NUL = "\ue001"
_TO_ESCAPE = re.compile("[\x00\ue000]")
_ESCAPED = re.compile("\ue000([\ue000\ue001])")
_SURROGATE = re.compile("[\ud800-\udfff]")


def escape_text(text: str) -> str:
    """*text* as stored."""
    if _SURROGATE.search(text):
        # A pair that JSON brought as two halves is one character; a half alone is none.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _TO_ESCAPE.sub(lambda match: ESCAPE + (NUL if match[0] == "\x00" else ESCAPE), text)


def unescape_text(text: str) -> str:
    """The text that was stored as *text*."""
    if ESCAPE not in text:
        return text
    return _ESCAPED.sub(lambda match: "\x00" if match[1] == NUL else ESCAPE, text)


def escape_json(value: Any) -> Any:  # noqa: ANN401 -- any JSON
    """A JSON value as stored; a number that JSON does not know becomes null."""
    match value:
        case str():
            return escape_text(value)
        case dict():
            return {escape_text(key): escape_json(item) for key, item in value.items()}
        case list() | tuple():
            return [escape_json(item) for item in value]
        case float() if not math.isfinite(value):
            return None
        case _:
            return value


def _unescape_json(value: Any) -> Any:  # noqa: ANN401 -- any JSON
    match value:
        case str():
            return unescape_text(value)
        case dict():
            return {unescape_text(key): _unescape_json(item) for key, item in value.items()}
        case list():
            return [_unescape_json(item) for item in value]
        case _:
            return value


class SafeText(sa.TypeDecorator[str]):
    """Text in which every character may occur."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Any) -> str | None:  # noqa: ANN401, ARG002
        """Escape."""
        return None if value is None else escape_text(value)

    def process_result_value(self, value: str | None, dialect: Any) -> str | None:  # noqa: ANN401, ARG002
        """Restore."""
        return None if value is None else unescape_text(value)


class Json(sa.TypeDecorator[Any]):
    """JSON; ``None`` is SQL's NULL. PostgreSQL keeps it as jsonb."""

    impl = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Any) -> Any:  # noqa: ANN401, ARG002
        """Escape every string."""
        return escape_json(value)

    def process_result_value(self, value: Any, dialect: Any) -> Any:  # noqa: ANN401, ARG002
        """Restore every string."""
        return _unescape_json(value)


class UtcDateTime(sa.TypeDecorator[datetime]):
    """An aware UTC instant; SQLite keeps no zone, so it is put back on reading."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:  # noqa: ANN401, ARG002
        """Store UTC; a naive time is a bug."""
        if value is None:
            return None
        if value.tzinfo is None:
            msg = "a stored time must be aware"
            raise ValueError(msg)
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:  # noqa: ANN401, ARG002
        """Read as aware UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


# SQLite gives row ids only to INTEGER keys.
BigId = sa.BigInteger().with_variant(sa.Integer, "sqlite")
