"""
Pure: what is pushed, where it may go, and what an answer of a push service means.

Sources: RFC 8030 (push), RFC 8291 (encryption), RFC 8292 (VAPID).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

__all__ = [
    "MAX_PAYLOAD_BYTES",
    "SMALL_PAYLOAD_BYTES",
    "Notification",
    "Reaction",
    "bears_silence",
    "may_push_to",
    "react",
    "summary",
]

# Bytes before encryption. Services take 4,096 after it: a header of 86, padding and a tag of 17 come on top.
MAX_PAYLOAD_BYTES = 3_900
# For a service that finds that too large.
SMALL_PAYLOAD_BYTES = 2_900
# Services whose browsers end a subscription after a few pushes that show nothing.
NEVER_SILENT = ("web.push.apple.com",)
MAX_TITLE = 200
MAX_BODY = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """
    One notification.

    Attributes:
        path: what a click opens, below this server's root.
        tag: a later one with the same tag takes its place.
        is_clear: shows nothing but takes back what is shown under its tag.
        at_ms: milliseconds since 1970, when it was told; none clears one that was told after it.
    """

    title: str = ""
    body: str = ""
    path: str = ""
    tag: str = ""
    is_clear: bool = False
    at_ms: int = 0

    def payload(self, max_bytes: int = MAX_PAYLOAD_BYTES) -> bytes:
        """The JSON that the page's service worker reads, within *max_bytes*."""
        shown = replace(self, title=_cut(self.title, MAX_TITLE), body=_cut(self.body, MAX_BODY))
        while len(data := _dump(shown)) > max_bytes and shown.body:
            shown = replace(shown, body=_cut(shown.body, len(shown.body) * 3 // 4))
        return data


def _dump(shown: Notification) -> bytes:
    fields: dict[str, str | int] = {"type": "clear" if shown.is_clear else "show", "tag": shown.tag}
    if not shown.is_clear:
        fields |= {"title": shown.title, "body": shown.body, "path": shown.path}
    if shown.at_ms:
        fields["at"] = shown.at_ms
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace")


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[: max(0, characters - 1)] + "…"


def summary(text: str) -> str:
    """An answer's beginning as one line."""
    return _cut(" ".join(text.split()), MAX_BODY) or "The agent is done."


class Reaction(StrEnum):
    """What to do after an answer; ``SKIP``: it was not sent, a newer one of its tag is on its way."""

    DONE = "done"
    FORGET = "forget"
    SHRINK = "shrink"
    RETRY = "retry"
    FAIL = "fail"
    SKIP = "skip"


def react(status: int) -> Reaction:
    """By HTTP status; no answer at all is like a 5xx."""
    if 200 <= status < 300:
        return Reaction.DONE
    if status in {404, 410}:
        return Reaction.FORGET
    if status == 413:
        return Reaction.SHRINK
    if status == 429 or status >= 500:
        return Reaction.RETRY
    return Reaction.FAIL


def may_push_to(endpoint: str, allowed: Sequence[str]) -> bool:
    """
    Whether *endpoint* is a push service's: a browser names it, and we send requests there.

    Args:
        endpoint: the URL of a subscription.
        allowed: names of hosts, ``*.`` for any below, reached by HTTPS; or whole origins.
    """
    try:
        parts = urlsplit(endpoint)
        port = parts.port
    except ValueError:
        return False
    if parts.username is not None or not endpoint.isascii() or not endpoint.isprintable():
        return False
    if f"{parts.scheme}://{parts.netloc}" in allowed:
        return True
    host = parts.hostname or ""
    return parts.scheme == "https" and port in {None, 443} and any(fnmatchcase(host, one) for one in allowed)


def bears_silence(endpoint: str) -> bool:
    """Whether the browser of a subscription may get a push that shows nothing."""
    return urlsplit(endpoint).hostname not in NEVER_SILENT
