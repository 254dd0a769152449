"""
The vendor's own words, made fit to show.

The text crosses a trust boundary: it is stored with the chat and shown to its
owner. Credentials and URL parts that may hold them are cut, whitespace is
collapsed, the length is bounded.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from chatd.constants import MAX_DETAIL_CHARACTERS

__all__ = [
    "MAX_DETAIL_CHARACTERS",
    "diagnostic_text",
    "structured_detail",
    "structured_error",
    "structured_words",
]

# Bytes of a response body that are worth parsing for a message.
_MAX_BODY = 65_536
_URL = re.compile(
    r"\b([a-z][a-z0-9+.-]*)://(?:[^\s/@?#\"']*@)?([^\s/?#\"'<>]*)([^\s?#\"'<>]*)[^\s\"'<>]*",
    re.IGNORECASE,
)
_SECRET = re.compile(
    r"\bsk-[\w*.-]{4,}|\bAIza[\w*-]{10,}"
    r"|\b(?:bearer|x-api-key:?)\s+[\w*.=-]{8,}"
    r"|\b(?:api[-_ ]?key|secret|token|password)[\"']?\s*[:=]\s*[\"']?[\w*.+/-]{8,}",
    re.IGNORECASE,
)


def diagnostic_text(text: str) -> str:
    """Return *text* on one line, without credentials, userinfo, query or fragment, at most 500 characters."""
    # Bounded first: the patterns below must not run over megabytes.
    one_line = " ".join(text[:_MAX_BODY].split())
    shown = _SECRET.sub("[redacted]", _URL.sub(r"\1://\2\3", one_line))
    return shown if len(shown) <= MAX_DETAIL_CHARACTERS else shown[: MAX_DETAIL_CHARACTERS - 1] + "…"


def structured_detail(exc: BaseException) -> str | None:
    """
    Return the message a vendor put into its error response.

    Understands the SDKs' ``body`` (parsed or raw) and falls back to their
    ``message`` when the error carries an HTTP status; None for anything else.
    """
    body = _body(exc)
    message = _message_in(body)
    if message:
        return message
    if isinstance(getattr(exc, "status_code", None), int) or body:
        return str(getattr(exc, "message", "")).strip() or None
    return None


def structured_error(exc: BaseException) -> Mapping[str, Any]:
    """The error object of a vendor's response, or empty."""
    body = _body(exc)
    inner = body.get("error") if isinstance(body, dict) else None
    return inner if isinstance(inner, dict) else body if isinstance(body, dict) else {}


def structured_words(exc: BaseException) -> list[str]:
    """
    The stable words that a vendor put beside its message: type, code, status, reasons.

    The SDKs' own texts don't repeat them.
    """
    error = structured_error(exc)
    words = [error.get(name) for name in ("type", "code", "status")]
    details = error.get("details")
    words += (
        [item.get("reason") for item in details if isinstance(item, dict)]
        if isinstance(details, list)
        else []
    )
    metadata = error.get("metadata")
    if isinstance(metadata, dict):
        words.append(metadata.get("raw"))
    return [word for word in words if isinstance(word, str)]


def _body(exc: BaseException) -> object:
    # Google's SDK calls it "details".
    return _parsed(getattr(exc, "body", None) or getattr(exc, "details", None))


def _parsed(body: object) -> object:
    if not isinstance(body, str) or not 0 < len(body) <= _MAX_BODY:
        return body
    try:
        return json.loads(body)
    except ValueError:
        return body


def _message_in(body: object) -> str | None:
    if not isinstance(body, dict):
        return None
    inner = body.get("error")
    holder = inner if isinstance(inner, dict) else body
    message = holder.get("message")
    if not isinstance(message, str) and isinstance(inner, str):
        message = inner
    return message.strip() or None if isinstance(message, str) else None
