"""
A neutral request as Gemini's contents and configuration. Pure: plain JSON in the API's own names.

Results of functions carry their pictures themselves. Thought signatures go back on the very part
that brought them; without them the model forgets what it thought, and newer ones refuse.

Source: ``google.genai.types`` (Content, Part, Tool), v1beta.
"""

from collections.abc import Iterable
from typing import Any

from chatd.prompt.convert import (
    Media,
    describe_call,
    describe_result,
    read_file_part,
    read_result,
    safe_tool_id,
)
from chatd.provider.computer_map import COMPUTER_TOOL, replayable_actions
from chatd.provider.computer_map_google import google_from_canonical
from chatd.provider.protocol import ModelRequest, PromptMessage
from chatd.wire import FilePart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

__all__ = ["METADATA", "build_contents", "build_tools", "has_computer_tool"]

# Our key in a part's provider metadata.
METADATA = "google"
# Models that know the desktop's actions by name; others get the computer as a function.
COMPUTER_MODELS = ("gemini-3.5-", "gemini-3.8-", "rehearsal")

_Json = dict[str, Any]


def has_computer_tool(model: str) -> bool:
    """Whether *model* takes the vendor's own computer tool for desktops."""
    return model.removeprefix("models/").startswith(COMPUTER_MODELS)


def build_tools(request: ModelRequest) -> list[_Json]:
    """Return the functions in one tool and the computer in its own, or among the functions."""
    functions: list[_Json] = [
        {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.input_schema}
        for tool in request.tools
    ]
    tools: list[_Json] = []
    if request.computer is not None and has_computer_tool(request.model):
        tools.append({"computerUse": {"environment": "ENVIRONMENT_DESKTOP"}})
    elif request.computer is not None:
        functions.append(
            {
                "name": COMPUTER_TOOL,
                "description": request.computer.description,
                "parametersJsonSchema": request.computer.input_schema,
            }
        )
    if request.web_search is not None and (combines_tools(request.model) or not functions + tools):
        tools.append({"googleSearch": {}})
    return [*([{"functionDeclarations": functions}] if functions else []), *tools]


def combines_tools(model: str) -> bool:
    """Whether *model* takes functions and the vendor's own tools at once."""
    return not model.removeprefix("models/").startswith(("gemini-1", "gemini-2"))


def build_contents(request: ModelRequest) -> list[_Json]:
    """Return the history; neighbours of one role are one content, as the vendor wants."""
    writer = _Writer(request)
    contents: list[_Json] = []
    for message in request.messages:
        parts = writer.parts(message)
        role = "model" if message.role == "assistant" else "user"
        if parts and contents and contents[-1]["role"] == role:
            contents[-1]["parts"].extend(parts)
        elif parts:
            contents.append({"role": role, "parts": parts})
    return contents


class _Writer:
    """Remembers how each call was named: its result must carry the same name and id."""

    def __init__(self, request: ModelRequest) -> None:
        self._size = request.computer.model_size if request.computer is not None else (1, 1)
        self._is_native = has_computer_tool(request.model) and request.computer is not None
        self._calls: dict[str, _Json] = {}

    def parts(self, message: PromptMessage) -> list[_Json]:
        match message.role:
            case "user":
                return list(_user_parts(message.content))
            case "assistant":
                return [part for found in message.content for part in self._assistant_part(found)]
            case "tool":
                results = [part for part in message.content if isinstance(part, ToolResultPart)]
                return [block for part in results for block in self._result(part)]

    def _assistant_part(self, part: Part) -> list[_Json]:
        metadata = (getattr(part, "provider_metadata", None) or {}).get(METADATA, {})
        signed = {"thoughtSignature": metadata["signature"]} if metadata.get("signature") else {}
        match part:
            case TextPart(text=text) if text.strip() or signed:
                return [{"text": text, **signed}]
            case ToolCallPart() | ToolResultPart() if part.provider_executed:
                return [dict(metadata["part"])] if metadata.get("part") else []
            # Unsigned thoughts are for people; the vendor does not want them back.
            case ReasoningPart(text=text) if signed:
                return [{"text": text, "thought": True, **signed}]
            case ToolCallPart():
                return [self._call(part, metadata, signed)]
        return []

    def _call(self, part: ToolCallPart, metadata: _Json, signed: _Json) -> _Json:
        call = metadata.get("call") or self._translated(part)
        if call is None:
            return {"text": describe_call(part)}
        call = {**call, "id": safe_tool_id(part.tool_call_id)}
        self._calls[part.tool_call_id] = call
        return {"functionCall": call, **signed}

    def _translated(self, part: ToolCallPart) -> _Json | None:
        if part.tool_name != COMPUTER_TOOL or not self._is_native:
            return {"name": part.tool_name, "args": part.args or {}}
        said = google_from_canonical(replayable_actions(part), self._size)
        return None if said is None else {"name": said[0], "args": said[1]}

    def _result(self, part: ToolResultPart) -> list[_Json]:
        found = read_result(part)
        call = self._calls.get(part.tool_call_id)
        if call is None:
            text: _Json = {"text": describe_result(part, found)}
            return [text, *([_inline(found.media)] if found.media else [])]
        response: _Json = {"error": found.text} if found.is_error else {"output": found.text}
        answer: _Json = {"name": call["name"], "id": call["id"], "response": response}
        if found.media is not None:
            answer["parts"] = [_inline(found.media)]
        return [{"functionResponse": answer}]


def _user_parts(content: Iterable[Part]) -> Iterable[_Json]:
    for part in content:
        if isinstance(part, TextPart) and part.text.strip():
            yield {"text": part.text}
        elif isinstance(part, FilePart):
            found = read_file_part(part)
            yield {"text": found} if isinstance(found, str) else _inline(found)


def _inline(media: Media) -> _Json:
    return {"inlineData": {"mimeType": media.media_type, "data": media.data}}
