"""
A neutral request as Chat Completions parameters. Pure.

For servers that speak OpenAI's older protocol. The computer is an ordinary
function; tool messages hold text only, so pictures follow in one user message.

Source: ``openai.types.chat.completion_create_params``.
"""

import json
from collections.abc import Iterable
from typing import Any

from chatd.prompt.convert import (
    IMAGE_TYPES,
    Media,
    describe_result,
    read_file_part,
    read_result,
    safe_tool_id,
)
from chatd.provider.computer_map import COMPUTER_TOOL
from chatd.provider.protocol import ModelRequest, PromptMessage
from chatd.wire import FilePart, Part, TextPart, ToolCallPart, ToolResultPart

__all__ = ["build_messages", "build_tools"]

_Message = dict[str, Any]
_PICTURE_NOTE = "[the picture follows in the next user message]"
_PICTURES_TEXT = "Pictures returned by the tools above, in order:"


def build_tools(request: ModelRequest) -> list[dict[str, Any]]:
    """Return the function tools and behind them the computer as a function."""
    offered = [(tool.name, tool.description, tool.input_schema) for tool in request.tools]
    if request.computer is not None:
        offered.append((COMPUTER_TOOL, request.computer.description, request.computer.input_schema))
    return [
        {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}
        for name, description, schema in offered
    ]


def build_messages(request: ModelRequest) -> list[_Message]:
    """Return the system prompt and the history."""
    messages: list[_Message] = []
    if request.system.strip():
        messages.append({"role": "system", "content": request.system})
    pictures: list[Media] = []
    for message in request.messages:
        if message.role != "tool":
            messages.extend(_picture_message(pictures))
            pictures = []
        messages.extend(_written(message, pictures))
    messages.extend(_picture_message(pictures))
    return messages


def _written(message: PromptMessage, pictures: list[Media]) -> list[_Message]:
    """Write one message; pictures of tool results are added to *pictures*."""
    if message.role == "user":
        return _user_messages(message.content)
    if message.role == "assistant":
        return _assistant_messages(message.content)
    return [_tool_message(part, pictures) for part in message.content if isinstance(part, ToolResultPart)]


def _user_messages(content: Iterable[Part]) -> list[_Message]:
    blocks: list[_Message] = []
    for part in content:
        if isinstance(part, TextPart) and part.text.strip():
            blocks.append({"type": "text", "text": part.text})
        elif isinstance(part, FilePart):
            blocks.append(_file_block(read_file_part(part)))
    if not blocks:
        return []
    if all(block["type"] == "text" for block in blocks):
        # Many compatible servers take plain strings only.
        return [{"role": "user", "content": "\n\n".join(block["text"] for block in blocks)}]
    return [{"role": "user", "content": blocks}]


def _assistant_messages(content: Iterable[Part]) -> list[_Message]:
    parts = list(content)
    text = "\n\n".join(part.text for part in parts if isinstance(part, TextPart) and part.text.strip())
    # What another vendor ran itself has a result that no message of this protocol may carry.
    calls = [_call(part) for part in parts if isinstance(part, ToolCallPart) and not part.provider_executed]
    if not text and not calls:
        return []
    message: _Message = {"role": "assistant", "content": text or None}
    return [{**message, "tool_calls": calls} if calls else message]


def _call(part: ToolCallPart) -> _Message:
    arguments = json.dumps(part.args or {}, ensure_ascii=False)
    function = {"name": part.tool_name, "arguments": arguments}
    return {"id": safe_tool_id(part.tool_call_id), "type": "function", "function": function}


def _tool_message(part: ToolResultPart, pictures: list[Media]) -> _Message:
    found = read_result(part)
    lines = [f"Error: {found.text}" if found.is_error else found.text]
    if found.media is not None and found.media.media_type in IMAGE_TYPES:
        pictures.append(found.media)
        lines.append(_PICTURE_NOTE)
    elif found.media is not None:
        lines.append(describe_result(part, found))
    content = "\n".join(line for line in lines if line.strip())
    return {"role": "tool", "tool_call_id": safe_tool_id(part.tool_call_id), "content": content}


def _picture_message(pictures: list[Media]) -> list[_Message]:
    if not pictures:
        return []
    text: _Message = {"type": "text", "text": _PICTURES_TEXT}
    return [{"role": "user", "content": [text, *(_file_block(picture) for picture in pictures)]}]


def _file_block(found: Media | str) -> _Message:
    if isinstance(found, str):
        return {"type": "text", "text": found}
    if found.media_type in IMAGE_TYPES:
        return {"type": "image_url", "image_url": {"url": found.data_url}}
    return {"type": "file", "file": {"filename": "file.pdf", "file_data": found.data_url}}
