"""
Results as servers send them, as blocks that chats understand.

Text, pictures and sound stay what they are. Resources become text or pictures; links, and
whatever can't be shown, become a sentence in brackets. What is said stays bounded.

Source: specification of the workspace, 6.3; MCP, tools/call.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from typing import Any

from mcp_bridge.wire import AudioBlock, CallOutcome, ImageBlock, OutcomeBlock, TextBlock

__all__ = ["MAX_MEDIA_BYTES", "MAX_TEXT", "outcome_of", "picture_type"]

# Characters of all text of one result. Chats cut further; this keeps a frame of the link small.
MAX_TEXT = 1_000_000
# Bytes of all pictures and sound of one result, as base64; a frame of the link has 16 MiB.
MAX_MEDIA_BYTES = 12 * 1024 * 1024
# Blocks of one result.
MAX_BLOCKS = 1_000

# First bytes of the pictures that models take; what a server calls them is not asked.
SIGNATURES = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


def outcome_of(result: Mapping[str, Any]) -> CallOutcome:
    """
    Translate the result of ``tools/call``.

    Args:
        result: JSON of the server, of any shape.
    """
    blocks = _bounded(_blocks(result.get("content")))
    structured = result.get("structuredContent")
    if structured is not None and not any(isinstance(block, TextBlock) for block in blocks):
        blocks = [TextBlock(text=_cut(_json(structured), MAX_TEXT)), *blocks]
    if structured is not None and not isinstance(structured, dict):
        structured = {"value": structured}
    if structured is not None and len(_json(structured)) > MAX_TEXT:
        structured = None
    return CallOutcome(
        content=tuple(blocks), is_error=result.get("isError") is True, structured=_clean(structured)
    )


def _blocks(content: object) -> Iterable[OutcomeBlock]:
    if not isinstance(content, list):
        return
    for item in content[:MAX_BLOCKS]:
        yield _block(item) if isinstance(item, dict) else _note("something that is no content")
    if len(content) > MAX_BLOCKS:
        yield _note(f"{len(content) - MAX_BLOCKS} more items were left out")


def _block(item: Mapping[str, Any]) -> OutcomeBlock:
    match item.get("type"):
        case "text":
            return TextBlock(text=_text(item, "text"))
        case "image":
            return _media(item, item.get("data"))
        case "audio":
            return _media(item, item.get("data"))
        case "resource":
            resource = item.get("resource")
            return _resource(resource) if isinstance(resource, dict) else _note("an empty resource")
        case "resource_link":
            return _link(item)
        case other:
            return _note(f"content of an unknown type: {str(other)[:50]}")


def _resource(resource: Mapping[str, Any]) -> OutcomeBlock:
    uri = _text(resource, "uri") or "without an address"
    if isinstance(resource.get("text"), str):
        return TextBlock(text=f"[resource {uri}]\n{_text(resource, 'text')}")
    block = _media(resource, resource.get("blob"))
    if isinstance(block, TextBlock):
        return TextBlock(text=f"[resource {uri}] {block.text}")
    return block


def _link(item: Mapping[str, Any]) -> TextBlock:
    title = _text(item, "title") or _text(item, "name")
    words = [f"link to {_text(item, 'uri')}", f'"{title}"' if title else "", _text(item, "mimeType")]
    note = _note(", ".join(word for word in words if word))
    description = _text(item, "description")
    return TextBlock(text=f"{note.text} {description}") if description else note


def _media(item: Mapping[str, Any], encoded: object) -> OutcomeBlock:
    """Sound or a picture; what it says it is counts only where its bytes agree."""
    claimed = _text(item, "mimeType") or "unknown type"
    if not isinstance(encoded, str):
        return _note(f"{claimed}, without data")
    if encoded.startswith("data:"):
        encoded = encoded.partition(",")[2]
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return _note(f"{claimed}, not shown: its base64 is broken")
    seen = picture_type(data)
    if seen is not None:
        return ImageBlock(data=encoded, mime_type=seen)
    if claimed.startswith("audio/") and data:
        return AudioBlock(data=encoded, mime_type=claimed)
    return _note(f"{claimed}, {len(data):,} bytes, not shown")


def picture_type(data: bytes) -> str | None:
    """The media type of a picture that models take, by its first bytes; None for anything else."""
    for signature, media_type in SIGNATURES:
        if data.startswith(signature):
            return media_type
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def _bounded(blocks: Iterable[OutcomeBlock]) -> list[OutcomeBlock]:
    text_left, media_left = MAX_TEXT, MAX_MEDIA_BYTES
    kept: list[OutcomeBlock] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            text = _cut(block.text, text_left)
            text_left = max(0, text_left - len(text))
            if text or not block.text:
                kept.append(block if text is block.text else TextBlock(text=text))
        elif len(block.data) <= media_left:
            media_left -= len(block.data)
            kept.append(block)
        else:
            kept.append(_note(f"{block.mime_type}, {len(block.data) * 3 // 4:,} bytes, not shown: too large"))
    return kept


def _cut(text: str, limit: int) -> str:
    """Head and tail of a text that is too long; a note says how much is missing."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 4
    missing = len(text) - head - tail
    return f"{text[:head]}\n[{missing:,} characters were left out]\n{text[len(text) - tail :]}"


def _text(item: Mapping[str, Any], key: str) -> str:
    """Text that has an encoding: half a surrogate pair has none."""
    value = item.get(key)
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""


def _note(text: str) -> TextBlock:
    return TextBlock(text=f"[{text}]")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False).encode(errors="replace").decode()


def _clean(value: dict[str, Any] | None) -> dict[str, Any] | None:
    if value is None:
        return None
    cleaned: dict[str, Any] = json.loads(_json(value))
    return cleaned
