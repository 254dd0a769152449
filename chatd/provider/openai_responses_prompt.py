"""
A neutral request as OpenAI Responses parameters. Pure.

The whole history is sent each time; nothing is stored at the vendor. Reasoning
items travel back encrypted, right before the item they led to.

Source: ``openai.types.responses.response_input_item_param``.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from chatd.prompt.convert import (
    IMAGE_TYPES,
    Media,
    ResultContent,
    describe_call,
    describe_result,
    read_file_part,
    read_result,
    safe_tool_id,
)
from chatd.provider.computer_forms import is_preview_model
from chatd.provider.computer_map import COMPUTER_TOOL, replayable_actions
from chatd.provider.computer_map_openai import openai_from_canonical
from chatd.provider.protocol import ComputerSpec, ModelRequest, PromptMessage, WebSearch
from chatd.wire import FilePart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

__all__ = ["METADATA_KEY", "build_include", "build_input", "build_tools"]

METADATA_KEY = "openai"
_Item = dict[str, Any]
# Models that do not reason; they refuse to be asked for encrypted reasoning.
_PLAIN_MODEL = re.compile(r"^(?:ft:)?(?:gpt-3|gpt-4|chatgpt-4)")


def build_tools(request: ModelRequest) -> list[_Item]:
    """Return the function tools and behind them the computer."""
    tools: list[_Item] = [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.input_schema,
            "strict": False,
        }
        for tool in request.tools
    ]
    if request.computer is not None:
        tools.append(_computer_tool(request.model, request.computer))
    if request.web_search is not None:
        tools.append(_search_tool(request.web_search))
    return tools


def _computer_tool(model: str, computer: ComputerSpec) -> _Item:
    if not is_preview_model(model):
        return {"type": "computer"}
    width, height = computer.model_size
    return {
        "type": "computer_use_preview",
        "display_width": width,
        "display_height": height,
        "environment": "linux",
    }


def _search_tool(search: WebSearch) -> _Item:
    tool: _Item = {"type": "web_search"}
    if search.context_size is not None:
        tool["search_context_size"] = search.context_size
    if search.allowed_domains:
        tool["filters"] = {"allowed_domains": list(search.allowed_domains)}
    return tool


def build_include(model: str, *, has_search: bool = False) -> list[str]:
    """Return what to ask for beyond the default, by model."""
    reasoning = [] if _PLAIN_MODEL.match(model) else ["reasoning.encrypted_content"]
    return [*reasoning, "web_search_call.action.sources"] if has_search else reasoning


def build_input(request: ModelRequest) -> list[_Item]:
    """Return the history as input items."""
    items: list[_Item] = []
    has_computer, is_preview = request.computer is not None, is_preview_model(request.model)
    for index, message in enumerate(request.messages):
        if message.role == "user":
            items.extend(_user_items(message.content))
        elif message.role == "assistant":
            results = _results_behind(request.messages, index)
            items.extend(_turn_items(message.content, results, has_computer=has_computer))
    items = _distinct(items)
    return [_one_action(item) for item in items] if is_preview else items


def _distinct(items: Iterable[_Item]) -> list[_Item]:
    """
    The items with each id once: the vendor refuses a second one, as compatible servers give them.

    A second one goes on without; so does what led to it. A search is nothing without its id.
    """
    kept: list[_Item] = []
    seen: set[str] = set()
    for item in items:
        is_second = item.get("id") in seen
        if is_second:
            _drop_trailing_reasoning(kept)
        found = _anonymous(item) if is_second else [item]
        seen.update(one["id"] for one in found if "id" in one)
        kept.extend(found)
    return kept


def _anonymous(item: _Item) -> list[_Item]:
    match item["type"]:
        case "message":
            return [_text_message("assistant", item["content"][0]["text"])]
        case "function_call":
            return [{key: value for key, value in item.items() if key != "id"}]
        case "computer_call":
            # Its id must be there; those of calls are each there once.
            return [item | {"id": f"cu_{item['call_id']}_again"}]
    return []


def _one_action(item: _Item) -> _Item:
    """A computer call in the preview's form, which holds one action; later ones are left to its picture."""
    if item.get("type") != "computer_call" or "actions" not in item:
        return item
    actions = item["actions"]
    return {key: value for key, value in item.items() if key != "actions"} | {"action": actions[0]}


def _results_behind(messages: tuple[PromptMessage, ...], index: int) -> dict[str, ToolResultPart]:
    found: dict[str, ToolResultPart] = {}
    for message in messages[index + 1 :]:
        if message.role != "tool":
            break
        for part in message.content:
            if isinstance(part, ToolResultPart):
                found.setdefault(part.tool_call_id, part)
    return found


def _turn_items(
    content: Iterable[Part], results: Mapping[str, ToolResultPart], *, has_computer: bool
) -> list[_Item]:
    """Write an assistant message and the results behind it."""
    items: list[_Item] = []
    outputs: list[_Item] = []
    for part in content:
        match part:
            case TextPart() if part.text.strip():
                items.append(_assistant_item(part))
            case ReasoningPart():
                items.extend(_reasoning_items(part))
            case ToolCallPart() if part.provider_executed:
                items.extend(_vendor_items(part, items))
            case ToolCallPart():
                call, output = _call_items(part, results.get(part.tool_call_id), has_computer=has_computer)
                if call["type"] == "message":
                    # Reasoning is refused without the very item it led to, and that one becomes prose.
                    _drop_trailing_reasoning(items)
                items.append(call)
                outputs.extend(output)
            case _:
                pass
    # Reasoning that led nowhere (an interrupted answer) has no item to stand before.
    _drop_trailing_reasoning(items)
    return items + outputs


def _vendor_items(part: ToolCallPart, items: list[_Item]) -> list[_Item]:
    """A search that this vendor ran, as it came; what another vendor ran goes, and the thought before it."""
    raw = (part.provider_metadata or {}).get(METADATA_KEY)
    if isinstance(raw, Mapping) and raw.get("type") == "web_search_call" and raw.get("status") == "completed":
        return [dict(raw)]
    _drop_trailing_reasoning(items)
    return []


def _drop_trailing_reasoning(items: list[_Item]) -> None:
    while items and items[-1]["type"] == "reasoning":
        items.pop()


def _call_items(
    part: ToolCallPart, result: ToolResultPart | None, *, has_computer: bool
) -> tuple[_Item, list[_Item]]:
    found = read_result(result) if result is not None else None
    if part.tool_name != COMPUTER_TOOL:
        return _function_call(part), [] if found is None else [_function_output(part, found)]
    # A computer call can only be answered with a picture.
    call = _computer_call(part) if has_computer and found is not None and found.media is not None else None
    if call is None:
        prose = [] if result is None or found is None else [_prose_result(result, found)]
        return _text_message("assistant", describe_call(part)), prose
    return call, _computer_output(call, found)


def _function_call(part: ToolCallPart) -> _Item:
    item: _Item = {
        "type": "function_call",
        "call_id": safe_tool_id(part.tool_call_id),
        "name": part.tool_name,
        "arguments": json.dumps(part.args or {}, ensure_ascii=False),
    }
    known = (part.provider_metadata or {}).get(METADATA_KEY)
    return {**item, "id": known["id"]} if isinstance(known, Mapping) and known.get("id") else item


def _function_output(part: ToolCallPart, found: ResultContent) -> _Item:
    output: str | list[_Item] = found.text
    if found.media is not None:
        output = [*_text_blocks(found.text), _media_block(found.media)]
    return {"type": "function_call_output", "call_id": safe_tool_id(part.tool_call_id), "output": output}


def _computer_call(part: ToolCallPart) -> _Item | None:
    raw = (part.provider_metadata or {}).get(METADATA_KEY)
    if isinstance(raw, Mapping) and raw.get("type") == "computer_call":
        # Checks that nobody approved must not be replayed as if they were settled.
        call_id = safe_tool_id(part.tool_call_id)
        is_settled = part.approved or not raw.get("pending_safety_checks")
        return {**raw, "call_id": call_id} if is_settled else None
    actions = openai_from_canonical(replayable_actions(part))
    if actions is None:
        return None
    call_id = safe_tool_id(part.tool_call_id)
    return {
        "type": "computer_call",
        "id": f"cu_{call_id}",
        "call_id": call_id,
        "actions": actions,
        "pending_safety_checks": [],
        "status": "completed",
    }


def _computer_output(call: _Item, found: ResultContent | None) -> list[_Item]:
    if found is None or found.media is None:
        return []
    output = {"type": "computer_screenshot", "image_url": found.media.data_url}
    item: _Item = {"type": "computer_call_output", "call_id": call["call_id"], "output": output}
    if call.get("pending_safety_checks"):
        # Only a call that a person allowed comes so far.
        item["acknowledged_safety_checks"] = call["pending_safety_checks"]
    items: list[_Item] = [item]
    if found.text.strip():
        # The output has no room for words; warnings and errors would be lost.
        items.append(_text_message("user", f"[computer] {found.text}"))
    return items


def _prose_result(result: ToolResultPart, found: ResultContent) -> _Item:
    blocks = _text_blocks(describe_result(result, found))
    if found.media is not None:
        blocks.append(_media_block(found.media))
    return {"type": "message", "role": "user", "content": blocks}


def _assistant_item(part: TextPart) -> _Item:
    known = (part.provider_metadata or {}).get(METADATA_KEY)
    if not isinstance(known, Mapping) or not known.get("id"):
        return _text_message("assistant", part.text)
    content = [{"type": "output_text", "text": part.text, "annotations": []}]
    item: _Item = {"type": "message", "role": "assistant", "status": "completed", "content": content}
    return item | {key: known[key] for key in ("id", "phase") if known.get(key)}


def _reasoning_items(part: ReasoningPart) -> list[_Item]:
    known = (part.provider_metadata or {}).get(METADATA_KEY)
    # Without the encrypted form the vendor would look for a stored item, and there is none.
    if not isinstance(known, Mapping) or not known.get("encrypted_content"):
        return []
    return [{key: value for key, value in known.items() if key != "status"}]


def _user_items(content: Iterable[Part]) -> list[_Item]:
    blocks: list[_Item] = []
    for part in content:
        if isinstance(part, TextPart) and part.text.strip():
            blocks.extend(_text_blocks(part.text))
        elif isinstance(part, FilePart):
            found = read_file_part(part)
            blocks.extend(_text_blocks(found) if isinstance(found, str) else [_media_block(found)])
    return [{"type": "message", "role": "user", "content": blocks}] if blocks else []


def _text_message(role: str, text: str) -> _Item:
    return {"type": "message", "role": role, "content": text}


def _text_blocks(text: str) -> list[_Item]:
    return [{"type": "input_text", "text": text}] if text.strip() else []


def _media_block(media: Media) -> _Item:
    if media.media_type in IMAGE_TYPES:
        return {"type": "input_image", "image_url": media.data_url, "detail": "auto"}
    return {"type": "input_file", "filename": "file.pdf", "file_data": media.data_url}
