"""
A neutral request as Anthropic Messages parameters. Pure.

Source: ``anthropic.types.message_create_params``.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from chatd.prompt.convert import (
    IMAGE_TYPES,
    Media,
    describe_call,
    describe_result,
    read_file_part,
    read_result,
    safe_tool_id,
)
from chatd.provider.computer_forms import FORMS, ComputerForm, lacking_actions
from chatd.provider.computer_map import COMPUTER_TOOL, replayable_actions
from chatd.provider.computer_map_anthropic import anthropic_from_canonical
from chatd.provider.protocol import ComputerSpec, ModelRequest, PromptMessage, WebSearch
from chatd.wire import FilePart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

__all__ = [
    "TOOLSET_NAME",
    "ComputerForm",
    "build_messages",
    "build_system",
    "build_tools",
    "goes_on_unthought",
]

# The family name that a toolset's blocks carry.
TOOLSET_NAME = "computer"

# Versions of the vendor's own web search, and since when models take the newer ones.
NEWEST_SEARCH, OLDER_SEARCH = "web_search_20260318", "web_search_20250305"
_FILTERING_SINCE = (4, 6)
_VERSION = re.compile(r"(?:opus|sonnet|haiku)-(\d+)(?:-(\d{1,2})(?!\d))?")
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
    if request.web_search is not None:
        tools.append(_search_tool(request.web_search, request.model))
    return tools


def web_search_version(model: str) -> str:
    """The newest web search that *model* takes; models that we can't tell are taken to be new."""
    if model.startswith(("claude-2", "claude-3")):
        return OLDER_SEARCH
    found = _VERSION.search(model)
    version = (int(found[1]), int(found[2] or 0)) if found else _FILTERING_SINCE
    return NEWEST_SEARCH if version >= _FILTERING_SINCE else OLDER_SEARCH


def _search_tool(search: WebSearch, model: str) -> _Block:
    tool: _Block = {"type": web_search_version(model), "name": "web_search"}
    if tool["type"] != OLDER_SEARCH:
        # The model itself: else it would want to call it from code that the vendor runs.
        tool["allowed_callers"] = ["direct"]
    if search.allowed_domains:
        tool["allowed_domains"] = list(search.allowed_domains)
    elif search.blocked_domains:
        tool["blocked_domains"] = list(search.blocked_domains)
    return tool


def build_messages(request: ModelRequest, form: ComputerForm) -> list[_Block]:
    """Return the messages, alternating roles, the last two marked for the prompt cache."""
    writer = _Writer(request, form)
    for message in request.messages:
        writer.add(message, is_last=message is request.messages[-1])
    messages = writer.finish()
    for written in messages[-_MARKED_MESSAGES:]:
        _mark(written["content"])
    return messages


def goes_on_unthought(messages: list[_Block]) -> bool:
    """Whether the last answer called tools without a thought before it that can be sent back."""
    answers = [message["content"] for message in messages if message["role"] == "assistant"]
    said: list[_Block] = answers[-1] if answers else []
    has_calls = any(block["type"] == "tool_use" for block in said)
    return has_calls and said[0]["type"] not in _UNMARKABLE


def _computer_tool(computer: ComputerSpec, form: ComputerForm) -> _Block:
    lacking = lacking_actions(form, computer.input_schema)
    if form == "toolset":
        # Every member is on unless it is switched off.
        configs = {name: {"enabled": False} for name in lacking}
        return {"type": FORMS[form].type, **({"configs": configs} if configs else {})}
    width, height = computer.model_size
    tool = {
        "type": FORMS[form].type,
        "name": COMPUTER_TOOL,
        "display_width_px": width,
        "display_height_px": height,
    }
    return tool | {"enable_zoom": "zoom" not in lacking} if "zoom" in FORMS[form].actions else tool


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

    def add(self, message: PromptMessage, *, is_last: bool) -> None:
        match message.role:
            case "user":
                self._append("user", _user_blocks(message.content))
            case "assistant":
                self._calls = {}
                self._append("assistant", self._assistant_blocks(message.content, is_last=is_last))
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

    def _assistant_blocks(self, content: Iterable[Part], *, is_last: bool) -> list[_Block]:
        blocks: list[_Block] = []
        content = tuple(content)
        ran = _ran_by_vendor(content, is_paused=is_last)
        for place, part in enumerate(content):
            match part:
                case TextPart() if part.text.strip():
                    blocks.append(_text_block(part, has_results=bool(ran)))
                case ToolCallPart() | ToolResultPart() if part.provider_executed:
                    if place in ran:
                        blocks.append(dict(_own_block(part)))
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
        if isinstance(raw, Mapping) and self._takes(raw):
            return dict(raw)
        translated = anthropic_from_canonical(replayable_actions(part))
        # What this version can't do would be refused, or taught to a model that can't either.
        if translated is None or translated[0] not in FORMS[self._form].actions:
            return None
        name, parameters = translated
        if self._form == "toolset":
            return {"name": name, "toolset_name": TOOLSET_NAME, "input": parameters}
        return {"name": COMPUTER_TOOL, "input": {"action": name, **parameters}}

    def _takes(self, raw: Mapping[str, Any]) -> bool:
        """Whether a call as the vendor wrote it is no other version's: a chat's model may change."""
        if ("toolset_name" in raw) != (self._form == "toolset"):
            return False
        given = raw.get("input")
        action = given.get("action") if isinstance(given, Mapping) else None
        return action not in FORMS["single"].actions - FORMS[self._form].actions

    def _result_blocks(self, content: Iterable[Part]) -> list[_Block]:
        blocks: list[_Block] = []
        for part in content:
            if isinstance(part, ToolResultPart):
                call = self._calls.get(part.tool_call_id)
                blocks.extend(_prose_result(part) if call is None else [_tool_result(part, call)])
        return blocks


def _own_block(part: Part) -> Mapping[str, Any]:
    """The block of a call or result that this vendor ran, as it came; empty if there is none."""
    known = (getattr(part, "provider_metadata", None) or {}).get("anthropic")
    block = known.get("block") if isinstance(known, Mapping) else None
    return block if isinstance(block, Mapping) else {}


def _ran_by_vendor(content: Iterable[Part], *, is_paused: bool) -> frozenset[int]:
    """
    Places of the calls that this vendor ran and of their answers, one for one, in that order.

    One without the other is refused, and neither can be made up: what was cut off goes. At
    the end of a prompt that *is_paused* there is the call that the vendor is about to run.
    """
    # The newest call of each id that nothing answered.
    waiting: dict[str, int] = {}
    ran: set[int] = set()
    for place, part in enumerate(content):
        if isinstance(part, ToolCallPart | ToolResultPart) and part.provider_executed and _own_block(part):
            if isinstance(part, ToolCallPart):
                waiting[part.tool_call_id] = place
            elif part.tool_call_id in waiting:
                ran |= {waiting.pop(part.tool_call_id), place}
    return frozenset(ran.union(waiting.values()) if is_paused else ran)


def _text_block(part: TextPart, *, has_results: bool) -> _Block:
    known = (part.provider_metadata or {}).get("anthropic")
    citations = known.get("citations") if isinstance(known, Mapping) and has_results else None
    block: _Block = {"type": "text", "text": part.text}
    return {**block, "citations": citations} if citations else block


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
