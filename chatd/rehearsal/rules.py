"""
What each vendor's API asks of a request beyond its shape, written down as checks. Pure.

The codecs (``decode``) refuse what is no request of their protocol and calls without
results. These are the other rules by which a vendor answers 400: alternation, empty
text, illegal or doubled ids, pictures that are none. The rehearsal model applies them
to every request it gets, and tests to every history that can be stored.

Sources: the vendors' API references and their servers' error messages.
"""

import base64
import binascii
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from chatd.rehearsal.asking import anthropic_asking, completions_asking, gemini_asking, responses_asking
from chatd.rehearsal.conversation import Page

__all__ = ["Protocol", "Violation", "violations"]

Protocol = Literal["anthropic", "responses", "completions", "gemini"]
Violation = str
Json = dict[str, Any]

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_GEMINI_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}")
_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
# How an encoded picture begins, by its type.
_SIGNATURES: Mapping[str, tuple[bytes, ...]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
# Characters of base64 of one picture, and pictures of one request.
_PICTURE_CHARACTERS = 5 * 1024 * 1024
_PICTURES = 100
_CACHE_MARKS = 4


def violations(protocol: Protocol, body: Json) -> list[Violation]:
    """Every rule that *body* breaks, each with its place; empty when the vendor takes it."""
    try:
        return [*_ASKING[protocol](body), *_CHECKS[protocol](body)]
    except (AttributeError, IndexError, KeyError, TypeError) as exc:
        # The rules are about requests of the protocol's shape; what has another is refused for that.
        return [f"the request is malformed: {type(exc).__name__} {exc}"]


# -- Anthropic -----------------------------------------------------------------


def _anthropic(body: Json) -> Iterator[Violation]:
    messages = body["messages"]
    yield from _anthropic_roles(messages)
    for place, message in enumerate(messages):
        where, content = f"messages.{place}", _blocks(message)
        if not content:
            yield f"{where}: content must not be empty"
        for index, block in enumerate(content):
            yield from _anthropic_block(block, f"{where}.content.{index}")
        yield from _results_first(content, where)
        yield from _ran_by_vendor(content, where)
    yield from _anthropic_whole(body, [block for message in messages for block in _blocks(message)])


def _anthropic_whole(body: Json, blocks: list[Json]) -> Iterator[Violation]:
    """What is counted over the whole request."""
    kinds = {block["type"] for block in blocks}
    yield from _unique((b["id"] for b in blocks if b["type"] == "tool_use"), "`tool_use` ids must be unique")
    if not kinds.isdisjoint({"tool_use", "tool_result"}) and not body.get("tools"):
        yield "requests that include `tool_use` or `tool_result` blocks must define tools"
    system = body["system"] if isinstance(body.get("system"), list) else []
    if any(not block["text"].strip() for block in system):
        yield "system: text content blocks must be non-empty"
    marked = sum("cache_control" in block for block in (*blocks, *system, *(body.get("tools") or [])))
    if marked > _CACHE_MARKS:
        yield f"a maximum of {_CACHE_MARKS} blocks with cache_control may be provided"
    yield from _few(sum(block["type"] == "image" for block in _deep(blocks)))


def _anthropic_roles(messages: list[Json]) -> Iterator[Violation]:
    roles = [message["role"] for message in messages]
    if roles[:1] != ["user"]:
        yield "messages.0: first message must use the user role"
    if roles[-1:] == ["assistant"]:
        yield "this model does not support assistant message prefill; the conversation must end with a user"
    for place in range(1, len(roles)):
        if roles[place] == roles[place - 1]:
            yield f"messages.{place}: roles must alternate"


def _blocks(message: Json) -> list[Json]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _deep(blocks: Iterable[Json]) -> Iterator[Json]:
    for block in blocks:
        yield block
        if block["type"] == "tool_result" and isinstance(block.get("content"), list):
            yield from block["content"]


def _anthropic_block(block: Json, where: str) -> Iterator[Violation]:
    match block["type"]:
        case "text" if not block["text"].strip():
            yield f"{where}: text content blocks must contain non-whitespace text"
        case "thinking" if not block.get("signature"):
            yield f"{where}: thinking blocks must be signed"
        case "image":
            yield from _picture(block["source"].get("media_type"), block["source"].get("data"), where)
        case "web_search_tool_result":
            yield from _sealed(block, where)
        case "tool_use":
            yield from _legal(block["id"], _ID, f"{where}.id")
            yield from _legal(block["name"], _NAME, f"{where}.name")
        case "tool_result":
            yield from _legal(block["tool_use_id"], _ID, f"{where}.tool_use_id")
            inner = block.get("content") or []
            for index, part in enumerate(inner if isinstance(inner, list) else []):
                yield from _anthropic_block(part, f"{where}.content.{index}")
                if block.get("is_error") and part["type"] != "text":
                    yield f"{where}: all content must be of type text if is_error is true"


def _sealed(block: Json, where: str) -> Iterator[Violation]:
    """What was found goes back as it came: only the vendor can read it."""
    content = block.get("content")
    for page in content if isinstance(content, list) else []:
        if page.get("encrypted_content") != Page(url=page["url"], title="").seal:
            yield f"{where}: invalid `encrypted_content` in `web_search_tool_result` block"


def _ran_by_vendor(content: list[Json], where: str) -> Iterator[Violation]:
    """Each search is followed by what it found, in the same message."""
    waiting: list[str] = []
    for block in content:
        if block["type"] == "server_tool_use":
            waiting.append(block["id"])
        elif block["type"] == "web_search_tool_result":
            if block["tool_use_id"] not in waiting:
                yield f"{where}: unexpected `web_search_tool_result`: {block['tool_use_id']}"
            else:
                waiting.remove(block["tool_use_id"])
    if waiting:
        yield f"{where}: `server_tool_use` without its `web_search_tool_result`: {waiting}"


def _results_first(content: list[Json], where: str) -> Iterator[Violation]:
    kinds = [block["type"] == "tool_result" for block in content]
    if kinds != sorted(kinds, reverse=True):
        yield f"{where}: tool_result blocks must come before other content"


# -- OpenAI --------------------------------------------------------------------


def _responses(body: Json) -> Iterator[Violation]:
    items = body["input"] if isinstance(body["input"], list) else []
    kinds = [item.get("type", "message") for item in items]
    for place, (item, kind) in enumerate(zip(items, kinds, strict=True)):
        where = f"input[{place}]"
        if kind == "reasoning" and kinds[place + 1 : place + 2] not in (
            ["message"],
            ["function_call"],
            ["computer_call"],
            ["reasoning"],
            ["web_search_call"],
        ):
            yield f"{where}: item of type 'reasoning' was provided without its required following item"
        if "call_id" in item:
            yield from _legal(item["call_id"], _ID, f"{where}.call_id")
        if kind == "function_call":
            yield from _legal(item["name"], _NAME, f"{where}.name")
        yield from _responses_content(item.get("content", item.get("output")), where)
    calls = [
        item["call_id"]
        for item, kind in zip(items, kinds, strict=True)
        if kind.endswith("_call") and "call_id" in item
    ]
    yield from _unique(calls, "duplicate call_id")
    yield from _unique((item["id"] for item in items if item.get("id")), "duplicate item id")


def _responses_content(content: object, where: str) -> Iterator[Violation]:
    parts = content if isinstance(content, list) else [content] if isinstance(content, dict) else []
    if isinstance(content, list) and not content:
        yield f"{where}: content must not be empty"
    for part in parts:
        url = part.get("image_url")
        if isinstance(url, str):
            yield from _data_url(url, where)


def _completions(body: Json) -> Iterator[Violation]:
    for place, message in enumerate(body["messages"]):
        where = f"messages[{place}]"
        content, calls = message.get("content"), message.get("tool_calls") or []
        if not content and (message["role"] == "user" or (message["role"] == "assistant" and not calls)):
            yield f"{where}.content: must not be empty"
        if message["role"] == "tool":
            yield from _legal(message["tool_call_id"], _ID, f"{where}.tool_call_id")
            if not isinstance(content, str | list):
                yield f"{where}.content: must be given"
        for part in content if isinstance(content, list) else []:
            yield from _completions_part(part, where)
        for call in calls:
            yield from _legal(call["id"], _ID, f"{where}.tool_calls.id")
            yield from _legal(call["function"]["name"], _NAME, f"{where}.tool_calls.function.name")
        yield from _unique((call["id"] for call in calls), f"{where}: duplicate tool call id")


def _completions_part(part: Json, where: str) -> Iterator[Violation]:
    if part["type"] == "text" and not part["text"].strip():
        yield f"{where}.content: text must not be empty"
    if part["type"] == "image_url":
        yield from _data_url(part["image_url"]["url"], where)


# -- Google --------------------------------------------------------------------


def _gemini(body: Json) -> Iterator[Violation]:
    contents = body["contents"]
    roles = [content.get("role", "user") for content in contents]
    if roles[:1] != ["user"]:
        yield "contents[0]: please ensure that single turn requests start with a user role"
    for place, content in enumerate(contents):
        where = f"contents[{place}]"
        calls = [part for part in content["parts"] if "functionCall" in part]
        if calls and place and roles[place - 1] == roles[place]:
            yield f"{where}: a function call turn must come right after a user or function response turn"
        for part in content["parts"]:
            yield from _gemini_part(part, where)


def _gemini_part(part: Json, where: str) -> Iterator[Violation]:
    if "text" in part and not part["text"].strip() and "thoughtSignature" not in part:
        yield f"{where}: text must not be empty"
    call = part.get("functionCall") or part.get("functionResponse")
    if call is not None:
        yield from _legal(call["name"], _GEMINI_NAME, f"{where}.name")
    for inner in [part, *((part.get("functionResponse") or {}).get("parts") or [])]:
        inline = inner.get("inlineData")
        # JSON of protocol buffers: either spelling is taken.
        media_type = (inline or {}).get("mimeType") or (inline or {}).get("mime_type") or ""
        if inline is not None and media_type.startswith("image/"):
            data = inline["data"].translate(str.maketrans("-_", "+/"))
            yield from _picture(media_type, data, where)


# -- all of them ---------------------------------------------------------------


def _legal(value: object, pattern: re.Pattern[str], where: str) -> Iterator[Violation]:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        yield f"{where}: should match {pattern.pattern!r}"


def _unique(values: Iterable[str], text: str) -> Iterator[Violation]:
    for value, count in Counter(values).items():
        if count > 1:
            yield f"{text}: {value}"


def _few(count: int) -> Iterator[Violation]:
    if count > _PICTURES:
        yield f"at most {_PICTURES} images may be sent, not {count}"


def _data_url(url: str, where: str) -> Iterator[Violation]:
    header, comma, data = url.partition(",")
    if not header.startswith("data:"):
        return
    if not comma or not header.endswith(";base64"):
        yield f"{where}: invalid data URL"
        return
    yield from _picture(header[5:].removesuffix(";base64"), data, where)


def _picture(media_type: object, data: object, where: str) -> Iterator[Violation]:
    if not isinstance(media_type, str) or media_type not in _IMAGE_TYPES:
        yield f"{where}: {media_type!r} is no supported image type"
        return
    if not isinstance(data, str) or not data:
        yield f"{where}: the image is empty"
        return
    if len(data) > _PICTURE_CHARACTERS:
        yield f"{where}: image exceeds 5 MB maximum: {len(data)} bytes > {_PICTURE_CHARACTERS} bytes"
    try:
        head = base64.b64decode(data[:64], validate=True)
    except (binascii.Error, ValueError):
        yield f"{where}: invalid base64 data"
        return
    if not any(head.startswith(start) or start.startswith(head) for start in _SIGNATURES[media_type]):
        yield f"{where}: the image does not look like {media_type}"


_ASKING: Mapping[Protocol, Callable[[Json], Iterator[Violation]]] = {
    "anthropic": anthropic_asking,
    "responses": responses_asking,
    "completions": completions_asking,
    "gemini": gemini_asking,
}
_CHECKS: Mapping[Protocol, Callable[[Json], Iterator[Violation]]] = {
    "anthropic": _anthropic,
    "responses": _responses,
    "completions": _completions,
    "gemini": _gemini,
}
