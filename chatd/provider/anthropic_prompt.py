"""
A neutral request as Anthropic Messages parameters. Pure.

Source: ``anthropic.types.message_create_params``.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from chatd.prompt.convert import (
    IMAGE_TYPES,
    Media,
    describe_call,
    describe_result,
    read_file_part,
    read_result,
    safe_tool_id,
)
from chatd.provider.computer_map import COMPUTER_TOOL, replayable_actions
from chatd.provider.computer_map_anthropic import anthropic_from_canonical
from chatd.provider.protocol import ComputerSpec, ModelRequest, PromptMessage
from chatd.wire import FilePart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

__all__ = ["TOOLSET_NAME", "ComputerForm", "build_messages", "build_system", "build_tools"]

# The family name that a toolset's blocks carry.
TOOLSET_NAME = "computer"

ComputerForm = Literal["toolset", "single"]
_Block = dict[str, Any]
_EPHEMERAL = {"type": "ephemeral"}
# Cache marks end a prefix; thinking blocks may not carry one.
_UNMARKABLE = frozenset({"thinking", "redacted_thinking"})
# Messages from the end that get a cache mark.
_MARKED_MESSAGES = 2


def build_system(system: str) -> list[_Block]:
    """Return the system prompt with its cache mark; empty when there is none."""
    if not system.strip():
        return []
    return [{"type": "text", "text": system, "cache_control": _EPHEMERAL}]


def build_tools(request: ModelRequest, form: ComputerForm) -> list[_Block]:
    """Return the function tools and behind them the computer, in the given *form*."""
    tools: list[_Block] = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
        for tool in request.tools
    ]
    if request.computer is not None:
        tools.append(_computer_tool(request.computer, form))
    return tools


def build_messages(request: ModelRequest, form: ComputerForm) -> list[_Block]:
    """Return the messages, alternating roles, the last two marked for the prompt cache."""
    writer = _Writer(request, form)
    for message in request.messages:
        writer.add(message)
    messages = writer.finish()
    for written in messages[-_MARKED_MESSAGES:]:
        _mark(written["content"])
    return messages


def _computer_tool(computer: ComputerSpec, form: ComputerForm) -> _Block:
    if form == "toolset":
        return {"type": "computer_toolset_20260801"}
    width, height = computer.model_size
    return {
        "type": "computer_20251124",
        "name": COMPUTER_TOOL,
        "display_width_px": width,
        "display_height_px": height,
        "enable_zoom": True,
    }


def _mark(blocks: list[_Block]) -> None:
    for block in reversed(blocks):
        if block["type"] not in _UNMARKABLE:
            block["cache_control"] = _EPHEMERAL
            return


class _Writer:
    """Collects messages; remembers how the calls of the last assistant message were written."""

    def __init__(self, request: ModelRequest, form: ComputerForm) -> None:
        self._form = form
        self._has_computer = request.computer is not None
        self._has_tools = self._has_computer or bool(request.tools)
        self._messages: list[_Block] = []
        # Call id -> its block; None for a call that was written as prose.
        self._calls: dict[str, _Block | None] = {}

    def add(self, message: PromptMessage) -> None:
        match message.role:
            case "user":
                self._append("user", _user_blocks(message.content))
            case "assistant":
                self._calls = {}
                self._append("assistant", self._assistant_blocks(message.content))
            case "tool":
                self._append("user", self._result_blocks(message.content))

    def finish(self) -> list[_Block]:
        for message in self._messages:
            # The results of a turn must stand before anything else said in it.
            message["content"].sort(key=lambda block: block["type"] != "tool_result")
        return self._messages

    def _append(self, role: str, blocks: list[_Block]) -> None:
        if not blocks:
            return
        if self._messages and self._messages[-1]["role"] == role:
            self._messages[-1]["content"].extend(blocks)
        else:
            self._messages.append({"role": role, "content": blocks})

    def _assistant_blocks(self, content: Iterable[Part]) -> list[_Block]:
        blocks: list[_Block] = []
        for part in content:
            match part:
                case TextPart() if part.text.strip():
                    blocks.append({"type": "text", "text": part.text})
                case ReasoningPart():
                    blocks.extend(_reasoning_blocks(part))
                case ToolCallPart():
                    block = self._call_block(part)
                    self._calls[part.tool_call_id] = block
                    blocks.append(block or {"type": "text", "text": describe_call(part)})
                case _:
                    pass
        return blocks

    def _call_block(self, part: ToolCallPart) -> _Block | None:
        if not self._has_tools:
            # Anthropic refuses calls in a prompt that declares no tools.
            return None
        block: _Block = {"type": "tool_use", "id": safe_tool_id(part.tool_call_id)}
        if part.tool_name != COMPUTER_TOOL:
            return block | {"name": part.tool_name, "input": part.args or {}}
        shape = self._computer_shape(part) if self._has_computer else None
        return None if shape is None else block | shape

    def _computer_shape(self, part: ToolCallPart) -> _Block | None:
        raw = (part.provider_metadata or {}).get("anthropic")
        if isinstance(raw, Mapping) and ("toolset_name" in raw) == (self._form == "toolset"):
            return dict(raw)
        translated = anthropic_from_canonical(replayable_actions(part))
        if translated is None:
            return None
        name, parameters = translated
        if self._form == "toolset":
            return {"name": name, "toolset_name": TOOLSET_NAME, "input": parameters}
        return {"name": COMPUTER_TOOL, "input": {"action": name, **parameters}}

    def _result_blocks(self, content: Iterable[Part]) -> list[_Block]:
        blocks: list[_Block] = []
        for part in content:
            if isinstance(part, ToolResultPart):
                call = self._calls.get(part.tool_call_id)
                blocks.extend(_prose_result(part) if call is None else [_tool_result(part, call)])
        return blocks


def _user_blocks(content: Iterable[Part]) -> list[_Block]:
    blocks: list[_Block] = []
    for part in content:
        if isinstance(part, TextPart) and part.text.strip():
            blocks.append({"type": "text", "text": part.text})
        elif isinstance(part, FilePart):
            blocks.append(_file_block(read_file_part(part)))
    return blocks


def _file_block(found: Media | str) -> _Block:
    if isinstance(found, str):
        return {"type": "text", "text": found}
    kind = "image" if found.media_type in IMAGE_TYPES else "document"
    return {"type": kind, "source": {"type": "base64", "media_type": found.media_type, "data": found.data}}


def _reasoning_blocks(part: ReasoningPart) -> list[_Block]:
    # Another vendor's reasoning has no signature and would be refused.
    known = (part.provider_metadata or {}).get("anthropic")
    if not isinstance(known, Mapping):
        return []
    if "data" in known:
        return [{"type": "redacted_thinking", "data": known["data"]}]
    if known.get("signature"):
        return [{"type": "thinking", "thinking": part.text, "signature": known["signature"]}]
    return []


def _tool_result(part: ToolResultPart, call: _Block) -> _Block:
    found = read_result(part)
    blocks: list[_Block] = []
    if found.text.strip():
        blocks.append({"type": "text", "text": found.text})
    if found.media is not None:
        blocks.append(_file_block(found.media))
    result: _Block = {"type": "tool_result", "tool_use_id": call["id"], "content": blocks}
    if "toolset_name" in call:
        result["toolset_name"] = call["toolset_name"]
    # An error result may hold text only; with a picture the text has to say it.
    if found.is_error and found.media is None:
        result["is_error"] = True
    return result


def _prose_result(part: ToolResultPart) -> list[_Block]:
    found = read_result(part)
    blocks: list[_Block] = [{"type": "text", "text": describe_result(part, found)}]
    if found.media is not None:
        blocks.append(_file_block(found.media))
    return blocks
