"""Conversions that every vendor's prompt needs: ids, arguments, results, files, descriptions."""

import base64
import binascii
import json
import re
from dataclasses import dataclass
from typing import Any

from chatd.wire import FilePart, FileReferencePart, ToolCallPart, ToolResultPart

__all__ = [
    "IMAGE_TYPES",
    "Media",
    "ResultContent",
    "describe_call",
    "describe_reference",
    "describe_result",
    "parse_arguments",
    "read_file_part",
    "read_result",
    "safe_tool_id",
]

# Pictures that every vendor takes.
IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
# Characters of arguments shown when a call is replayed as prose.
_MAX_DESCRIBED = 2_000
# A surrogate, as JSON writes it.
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """A picture or file, inline; *data* is base64."""

    media_type: str
    data: str

    @property
    def data_url(self) -> str:
        """The same as a data URL (RFC 2397)."""
        return f"data:{self.media_type};base64,{self.data}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultContent:
    """A tool result as a model sees it."""

    text: str
    media: Media | None = None
    is_error: bool = False


def safe_tool_id(tool_call_id: str) -> str:
    """Return the id in the alphabet every vendor accepts."""
    return _UNSAFE.sub("_", tool_call_id) or "call"


def parse_arguments(text: str) -> tuple[dict[str, Any], str | None]:
    """
    Read a function call's arguments.

    Returns:
        The object and None; for text that is no JSON object, ``{}`` and a sentence
        that says so. Nothing at all is an empty object: models omit it when a
        function takes no arguments.
    """
    if not text.strip():
        return {}, None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}, "The arguments were not valid JSON, so the tool was not run."
    if not isinstance(value, dict):
        return {}, "The arguments were not a JSON object, so the tool was not run."
    return (_whole_characters(value) if _HALF.search(text) else value), None


def _whole_characters(value: Any) -> Any:  # noqa: ANN401 -- JSON
    """JSON without halves of characters: no encoder takes them."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_whole_characters(key): _whole_characters(item) for key, item in value.items()}
    return [_whole_characters(item) for item in value] if isinstance(value, list) else value


def read_result(part: ToolResultPart) -> ResultContent:
    """Read a stored result; pictures come out as media, never as base64 text."""
    result = {} if part.result is None else part.result
    if not isinstance(result, dict):
        return ResultContent(text=_as_text(result), is_error=part.is_error)
    media = _media_in(result) if part.is_media else None
    if part.is_error:
        error = result.get("error")
        text = error if isinstance(error, str) else _without_data(result, part)
        return ResultContent(text=text, media=media, is_error=True)
    if media is not None:
        return ResultContent(text=_string(result, "text"), media=media)
    if part.is_media:
        note = _string(result, "text") or "The picture that belongs here is missing or corrupted."
        return ResultContent(text=note)
    return ResultContent(text=_output(result))


def read_file_part(part: FilePart) -> Media | str:
    """Return a file's picture or PDF, the text of a text file, or a sentence in its place."""
    media = _media_in({"data": part.data, "mime_type": part.media_type})
    name = f" {part.name!r}" if part.name else ""
    if media is None:
        kind = "" if part.media_type in ("", "application/octet-stream") else f" ({part.media_type})"
        return f"[file{name}{kind}: content not available]"
    if part.media_type in IMAGE_TYPES or part.media_type == "application/pdf":
        return media
    if part.media_type.startswith("text/") or part.media_type == "application/json":
        body = base64.b64decode(media.data).decode("utf-8", errors="replace")
        return f"[file{name}]\n{body}"
    return f"[file{name} ({part.media_type}): this model cannot read it]"


def describe_reference(part: FileReferencePart) -> str:
    """Lines of a file as a model reads them: a tag with the place, then the snippet, fenced."""
    lines = f"{part.start_line}"
    if part.end_line > part.start_line:
        lines += f"-{part.end_line}"
    tag = f"[file-reference {part.file_name}:{lines}]"
    if not part.content.strip():
        return tag
    fence = "```"
    while fence in part.content:
        fence += "`"
    return f"{tag}\n{fence}\n{part.content}\n{fence}"


def describe_call(part: ToolCallPart) -> str:
    """Return a call as prose, for a vendor that cannot replay it."""
    arguments = json.dumps(part.args or {}, ensure_ascii=False)[:_MAX_DESCRIBED]
    return f"[earlier tool call: {part.tool_name} {arguments}]"


def describe_result(part: ToolResultPart, content: ResultContent) -> str:
    """Return a result as prose, for a vendor that cannot replay its call."""
    state = "failed" if content.is_error else "result"
    return f"[earlier tool call {part.tool_name}, {state}] {content.text}".rstrip()


def _media_in(result: dict[str, Any]) -> Media | None:
    data, media_type = result.get("data"), result.get("mime_type")
    if not isinstance(data, str) or not isinstance(media_type, str) or not data or not media_type:
        return None
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None
    return Media(media_type=media_type, data=data)


def _without_data(result: dict[str, Any], part: ToolResultPart) -> str:
    if not part.is_media:
        return _output(result)
    return _string(result, "text") or _as_text({key: value for key, value in result.items() if key != "data"})


def _output(result: dict[str, Any]) -> str:
    output = result.get("output")
    return output if len(result) == 1 and isinstance(output, str) else _as_text(result)


def _string(result: dict[str, Any], key: str) -> str:
    value = result.get(key)
    return value if isinstance(value, str) else ""


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
