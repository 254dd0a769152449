"""
What the four vendor codecs share: their interface, and strict reading of foreign JSON.

A codec is pure: it decodes a request's body into a ``Conversation``, encodes a
``Reply`` as a body or as stream events, and knows its vendor's shape of errors.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from chatd.errors import ChatdError
from chatd.rehearsal.conversation import Conversation, Entry, Picture, Reply

__all__ = [
    "ApiError",
    "Codec",
    "Event",
    "Json",
    "Stamp",
    "a_bool",
    "a_count",
    "a_list",
    "a_text",
    "an_object",
    "data_picture",
    "merge_entries",
    "pairing_problem",
    "pieces",
]

Json = dict[str, Any]
# Items in one list of a request. Vendors stop at 100 000 messages.
MAX_ITEMS = 100_000
# Characters of a call's arguments in one streamed piece.
PIECE_CHARACTERS = 40


@dataclass(eq=False)
class ApiError(ChatdError):
    """An answer that is a vendor's error. *param* names the field at fault, *reason* is OpenAI's code."""

    status: int = 400
    param: str | None = None
    reason: str | None = None
    code = "api_error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """What makes one answer unlike another: *nonce* for its ids, *created* in Unix seconds."""

    nonce: str
    created: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One server-sent event, sent *delay_ms* after the one before; *name* is left out when empty."""

    data: Json | str
    name: str = ""
    delay_ms: int = 0


class Codec(Protocol):
    """One vendor's wire protocol."""

    request_id_header: str

    def decode(self, body: Json) -> Conversation:
        """
        Read a request.

        Raises:
            ApiError: the vendor would refuse it.
        """
        ...

    def encode(self, conversation: Conversation, reply: Reply, stamp: Stamp) -> Json:
        """Write a whole answer."""
        ...

    def events(self, conversation: Conversation, reply: Reply, stamp: Stamp) -> Iterator[Event]:
        """Write an answer as a stream."""
        ...

    def error(self, error: ApiError, request_id: str) -> Json:
        """Write an error."""
        ...

    def report(self, error: ApiError, request_id: str) -> Event:
        """Write an error as an event of a stream that had begun well."""
        ...

    def models(self, names: Sequence[str]) -> Json:
        """Write the list of models."""
        ...


def an_object(value: object, where: str) -> Json:
    """*value* as an object, or an ``ApiError`` that names *where*."""
    if not isinstance(value, dict):
        raise ApiError(f"{where}: should be an object", param=where)
    return value


def a_list(value: object, where: str) -> list[Any]:
    """*value* as a list of bounded length, or an ``ApiError`` that names *where*."""
    if not isinstance(value, list) or len(value) > MAX_ITEMS:
        raise ApiError(f"{where}: should be a list", param=where)
    return value


def a_text(value: object, where: str, *, is_required: bool = False) -> str:
    """*value* as a string, or an ``ApiError`` that names *where*; *is_required* refuses an empty one."""
    if not isinstance(value, str) or (is_required and not value):
        raise ApiError(f"{where}: should be a{' non-empty' if is_required else ''} string", param=where)
    return value


def a_bool(value: object, where: str) -> bool:
    """*value* as a boolean, absent being false, or an ``ApiError`` that names *where*."""
    if value is not None and not isinstance(value, bool):
        raise ApiError(f"{where}: should be a boolean", param=where)
    return bool(value)


def a_count(value: object, where: str) -> int:
    """*value* as a positive integer, or an ``ApiError`` that names *where*."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ApiError(f"{where}: should be a positive integer", param=where)
    return value


def data_picture(url: object, where: str) -> Picture | None:
    """A picture in a ``data:`` URL; None for a picture that lies elsewhere."""
    header, comma, data = a_text(url, where, is_required=True).partition(",")
    if not header.startswith("data:") or not comma:
        return None
    return Picture(media_type=header[5:].split(";")[0], data=data)


def pieces(text: str) -> list[str]:
    """Cut *text* for streaming; empty text is no piece."""
    return [text[start : start + PIECE_CHARACTERS] for start in range(0, len(text), PIECE_CHARACTERS)]


def merge_entries(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Join neighbours of the assistant, and of tools, into one entry each."""
    merged: list[Entry] = []
    for entry in entries:
        if merged and merged[-1].role == entry.role != "user":
            merged[-1] = _joined(merged[-1], entry)
        else:
            merged.append(entry)
    return tuple(merged)


def pairing_problem(entries: Sequence[Entry]) -> tuple[str, str] | None:
    """
    Find a call without a result right after it, or a result without a call right before it.

    Returns:
        ``("call" or "output", call_id)``, or None.
    """
    open_ids: list[str] = []
    for entry in [*entries, Entry(role="user")]:
        given = [output.call_id for output in entry.outputs]
        stray = next((call_id for call_id in given if call_id not in open_ids), None)
        if stray is not None:
            return "output", stray
        missing = next((call_id for call_id in open_ids if call_id not in given), None)
        if missing is not None:
            return "call", missing
        open_ids = [call.call_id for call in entry.calls]
    return None


def _joined(first: Entry, second: Entry) -> Entry:
    return Entry(
        role=first.role,
        text="\n".join(filter(None, [first.text, second.text])),
        calls=first.calls + second.calls,
        outputs=first.outputs + second.outputs,
    )
