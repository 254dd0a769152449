"""
Content of version 0, read as parts. Pure.

Three shapes were written: a JSON string, envelopes ``{"type", "data": {…}}``, and tool
rows ``{"tool_call_id", "tool_name", "result", …}``. Envelopes are told by their structure,
never by trying: one half-parses as a part, since its ``type`` fits, and would silently
lose what is in it. A part's own ``data`` is text or absent, so the two never collide.
"""

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from chatd.wire import (
    FilePart,
    Part,
    ReasoningPart,
    Role,
    SourcePart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    part_list_adapter,
)

__all__ = ["is_envelope", "read_legacy"]

Content = Any


def is_envelope(content: Content) -> bool:
    """Whether *content* is a list whose first element holds an object under ``data``."""
    return (
        isinstance(content, list)
        and bool(content)
        and isinstance(content[0], dict)
        and isinstance(content[0].get("data"), dict)
    )


def read_legacy(content: Content, role: Role) -> tuple[Part, ...]:
    """The parts of a row of version 0."""
    if role == "tool":
        return _read_tool(content)
    if isinstance(content, str):
        return (TextPart(text=content),) if content.strip() else ()
    if is_envelope(content):
        return tuple(part for block in content if (part := _read_block(block)) is not None)
    return _read_parts(content)


def _read_parts(content: Content) -> tuple[Part, ...]:
    """A list of parts; those that we don't know are left out, and a list without any type is nothing."""
    if not isinstance(content, list):
        return ()
    parts: list[Part] = []
    for item in content:
        try:
            parts += part_list_adapter.validate_python([item])
        except ValidationError:
            continue
    return tuple(parts)


def _read_tool(content: Content) -> tuple[Part, ...]:
    parts = _read_parts(content)
    if any(isinstance(part, ToolResultPart) for part in parts):
        return parts
    if is_envelope(content):
        return tuple(part for block in content if (part := _read_block(block)) is not None)
    rows = content if isinstance(content, list) else [content]
    return tuple(_result(row) for row in rows if isinstance(row, dict) and row.get("tool_call_id"))


def _text(data: dict[str, Any]) -> Part:
    return TextPart(text=_string(data, "text"), provider_metadata=_metadata(data))


def _reasoning(data: dict[str, Any]) -> Part:
    return ReasoningPart(text=_string(data, "text"), provider_metadata=_metadata(data))


def _call(data: dict[str, Any]) -> Part:
    args = data.get("args", data.get("input"))
    return ToolCallPart(
        tool_call_id=_string(data, "tool_call_id"),
        tool_name=_string(data, "tool_name"),
        args=args if isinstance(args, dict) else {},
        provider_executed=data.get("provider_executed") is True,
        provider_metadata=_metadata(data),
    )


def _result(data: dict[str, Any]) -> Part:
    return ToolResultPart(
        tool_call_id=_string(data, "tool_call_id"),
        tool_name=_string(data, "tool_name"),
        result=data.get("result", data.get("output")),
        is_error=data.get("is_error") is True,
        is_media=data.get("is_media") is True,
        provider_executed=data.get("provider_executed") is True,
        provider_metadata=_metadata(data),
    )


def _source(data: dict[str, Any]) -> Part:
    return SourcePart(
        source_id=data.get("source_id") or None,
        url=_string(data, "url"),
        title=data.get("title") or None,
        provider_metadata=_metadata(data),
    )


def _file(data: dict[str, Any]) -> Part:
    file_id = data.get("file_id")
    inline = data.get("data")
    return FilePart(
        media_type=_string(data, "media_type") or "application/octet-stream",
        name=data.get("name") or data.get("filename") or None,
        file_id=str(file_id) if file_id else None,
        # The stored file stands for its bytes.
        data=inline if isinstance(inline, str) and not file_id else None,
    )


_READERS: dict[str, Callable[[dict[str, Any]], Part]] = {
    "text": _text,
    "reasoning": _reasoning,
    "tool-call": _call,
    "tool-result": _result,
    "source": _source,
    "file": _file,
}


def _read_block(block: Content) -> Part | None:
    """One envelope; None for what was never a part."""
    if not isinstance(block, dict) or not isinstance(block.get("data"), dict):
        return None
    reader = _READERS.get(str(block.get("type")))
    return None if reader is None else reader(block["data"])


def _string(data: dict[str, Any], key: str) -> str:
    value = data.get(key)
    return value if isinstance(value, str) else ""


def _metadata(data: dict[str, Any]) -> dict[str, Any] | None:
    value = data.get("provider_metadata", data.get("provider_options"))
    return value if isinstance(value, dict) and value else None
