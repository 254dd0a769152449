"""
Anthropic's Messages API, from the vendor's side.

Source: the types of the vendor's SDK. The computer comes as the tool
``computer_2025…`` (one tool, the action in its input) or as the toolset
``computer_toolset_2026…`` (one tool per action).
"""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from chatd.rehearsal.codec import (
    ApiError,
    Event,
    Json,
    Stamp,
    a_bool,
    a_count,
    a_list,
    a_text,
    an_object,
    merge_entries,
    pairing_problem,
    pieces,
)
from chatd.rehearsal.conversation import (
    Call,
    ComputerForm,
    Conversation,
    Entry,
    Finish,
    Picture,
    Reply,
    ToolOutput,
    ToolUse,
)
from computer.wire import Action

__all__ = ["AnthropicCodec"]

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_STOP_REASONS: dict[Finish, str] = {
    "stop": "end_turn",
    "tool-calls": "tool_use",
    "length": "max_tokens",
    "context-exceeded": "model_context_window_exceeded",
    "content-filter": "refusal",
}
# Blocks that carry nothing a program in our language could mean.
_IGNORED_BLOCKS = (
    "document",
    "redacted_thinking",
    "search_result",
    "server_tool_use",
    "thinking",
    "web_search_tool_result",
)

_Piece = str | Picture | ToolUse | ToolOutput


class AnthropicCodec:
    """``POST /v1/messages``."""

    request_id_header = "request-id"

    def decode(self, body: Json) -> Conversation:
        """Read a request; ``ApiError`` where the vendor would refuse it."""
        tools = [
            an_object(tool, f"tools.{index}")
            for index, tool in enumerate(a_list(body.get("tools") or [], "tools"))
        ]
        return Conversation(
            model=a_text(body.get("model"), "model", is_required=True),
            max_output_tokens=a_count(body.get("max_tokens"), "max_tokens"),
            system=_system(body.get("system")),
            entries=_entries(body.get("messages")),
            tools=frozenset(filter(None, map(_tool_name, tools))),
            computer=next(filter(None, map(_computer_form, tools)), None),
            stream=a_bool(body.get("stream"), "stream"),
            may_call=body.get("tool_choice") != {"type": "none"},
        )

    def encode(self, conversation: Conversation, reply: Reply, stamp: Stamp) -> Json:
        """Write a whole message."""
        citations = _citations(reply)
        content: list[Json] = (
            [{"type": "text", "text": reply.text, "citations": citations}] if reply.text else []
        )
        return {
            **_message(conversation, stamp),
            "content": _search_blocks(reply, stamp) + content + _tool_blocks(conversation, reply, stamp),
            "stop_reason": _STOP_REASONS[reply.finish],
            "usage": _usage(conversation.input_tokens, reply.output_tokens),
        }

    def events(self, conversation: Conversation, reply: Reply, stamp: Stamp) -> Iterator[Event]:
        """Write a message as a stream."""
        start = {**_message(conversation, stamp), "usage": _usage(conversation.input_tokens, 1)}
        yield _event({"type": "message_start", "message": start})
        yield _event({"type": "ping"})
        index = 0
        for block in _search_blocks(reply, stamp):
            yield from _search_events(index, block)
            index += 1
        if reply.text:
            yield from _text_events(index, reply)
            index += 1
        for block in _tool_blocks(conversation, reply, stamp):
            yield from _tool_events(index, block)
            index += 1
        delta = {"stop_reason": _STOP_REASONS[reply.finish], "stop_sequence": None}
        usage = {"output_tokens": reply.output_tokens}
        yield _event({"type": "message_delta", "delta": delta, "usage": usage})
        yield _event({"type": "message_stop"})

    def error(self, error: ApiError, request_id: str) -> Json:
        """Write an error."""
        kind = _ERROR_TYPES.get(error.status, "api_error")
        return {
            "type": "error",
            "error": {"type": kind, "message": error.user_text},
            "request_id": request_id,
        }

    def report(self, error: ApiError, request_id: str) -> Event:
        """Write an error as an event of a stream."""
        return Event(name="error", data=self.error(error, request_id))

    def models(self, names: Sequence[str]) -> Json:
        """Write the list of models."""
        data = [
            {
                "type": "model",
                "id": name,
                "display_name": name.capitalize(),
                "created_at": "2026-01-01T00:00:00Z",
                "lifecycle": "active",
            }
            for name in names
        ]
        return {"data": data, "has_more": False, "first_id": names[0], "last_id": names[-1]}


def _tool_name(tool: Json) -> str:
    name = tool.get("name")
    if name is None and str(tool.get("type", "")).startswith("computer_toolset_"):
        return "computer"
    return a_text(name, "tools.name", is_required=True)


def _computer_form(tool: Json) -> ComputerForm | None:
    kind = str(tool.get("type") or "custom")
    if kind.startswith("computer_toolset_"):
        return ComputerForm.ANTHROPIC_TOOLSET
    if kind.startswith("computer_"):
        return ComputerForm.ANTHROPIC_TOOL
    return ComputerForm.FUNCTION if kind == "custom" and tool.get("name") == "computer" else None


def _system(value: object) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    blocks = [an_object(block, "system") for block in a_list(value, "system")]
    return "\n".join(a_text(block.get("text"), "system.text") for block in blocks)


def _entries(value: object) -> tuple[Entry, ...]:
    messages = a_list(value, "messages")
    if not messages:
        raise ApiError("messages: at least one message is required", param="messages")
    entries: list[Entry] = []
    for index, message in enumerate(messages):
        entries.extend(_message_entries(an_object(message, f"messages.{index}"), f"messages.{index}"))
    merged = merge_entries(entries)
    problem = pairing_problem(merged)
    if problem is not None:
        kind, call_id = problem
        if kind == "call":
            text = f"`tool_use` ids were found without `tool_result` blocks immediately after: {call_id}"
        else:
            text = f"unexpected `tool_use_id` found in `tool_result` blocks: {call_id}"
        raise ApiError(f"messages: {text}", param="messages")
    return merged


def _message_entries(message: Json, where: str) -> list[Entry]:
    """A message as entries: the tool results in a user's message come first, as the vendor wants them."""
    role = message.get("role")
    if role not in ("user", "assistant"):
        raise ApiError(f"{where}.role: should be 'user' or 'assistant'", param=f"{where}.role")
    content = message.get("content")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    parts: list[_Piece] = []
    for index, item in enumerate(a_list(content, f"{where}.content")):
        spot = f"{where}.content.{index}"
        parts.extend(_read_block(an_object(item, spot), role, spot))
    outputs = tuple(part for part in parts if isinstance(part, ToolOutput))
    said = Entry(
        role=role,
        text="\n".join(part for part in parts if isinstance(part, str)),
        pictures=tuple(part for part in parts if isinstance(part, Picture)),
        calls=tuple(part for part in parts if isinstance(part, ToolUse)),
    )
    results = [Entry(role="tool", outputs=outputs)] if outputs else []
    return results + ([said] if len(outputs) < len(parts) or not outputs else [])


def _read_block(block: Json, role: str, where: str) -> list[_Piece]:
    """What one block holds; nothing for a kind without meaning here."""
    match block.get("type"):
        case "text":
            return [a_text(block.get("text"), f"{where}.text", is_required=True)]
        case "image":
            return [*_picture(block, where)]
        case "tool_use" if role == "assistant":
            return [_tool_use(block, where)]
        case "tool_result" if role == "user":
            return [_tool_result(block, where)]
        case kind if kind in _IGNORED_BLOCKS:
            return []
        case kind:
            text = f"{where}: Input tag {kind!r:.80} does not match any of the expected tags"
            raise ApiError(text, param=where)


def _tool_use(block: Json, where: str) -> ToolUse:
    is_member = block.get("toolset_name") == "computer"
    name = a_text(block.get("name"), f"{where}.name", is_required=True)
    return ToolUse(
        call_id=a_text(block.get("id"), f"{where}.id", is_required=True),
        name="computer" if is_member else name,
        arguments=an_object(block.get("input"), f"{where}.input"),
    )


def _tool_result(block: Json, where: str) -> ToolOutput:
    content = block.get("content") or []
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    texts: list[str] = []
    pictures: list[Picture] = []
    for index, item in enumerate(a_list(content, f"{where}.content")):
        spot = f"{where}.content.{index}"
        inner = an_object(item, spot)
        if inner.get("type") == "text":
            texts.append(a_text(inner.get("text"), f"{spot}.text"))
        elif inner.get("type") == "image":
            pictures.extend(_picture(inner, spot))
    return ToolOutput(
        call_id=a_text(block.get("tool_use_id"), f"{where}.tool_use_id", is_required=True),
        text="\n".join(texts),
        pictures=tuple(pictures),
        is_error=a_bool(block.get("is_error"), f"{where}.is_error"),
    )


def _picture(block: Json, where: str) -> list[Picture]:
    source = an_object(block.get("source"), f"{where}.source")
    if source.get("type") != "base64":
        return []
    media_type = a_text(source.get("media_type"), f"{where}.source.media_type", is_required=True)
    return [Picture(media_type=media_type, data=a_text(source.get("data"), f"{where}.source.data"))]


def _message(conversation: Conversation, stamp: Stamp) -> Json:
    return {
        "id": f"msg_{stamp.nonce}",
        "type": "message",
        "role": "assistant",
        "model": conversation.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _usage(input_tokens: int, output_tokens: int) -> Json:
    return {
        "input_tokens": input_tokens,
        "output_tokens": output_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "service_tier": "standard",
    }


def _tool_blocks(conversation: Conversation, reply: Reply, stamp: Stamp) -> list[Json]:
    blocks: list[Json] = []
    for call in reply.calls:
        for block in _call_blocks(call, conversation.computer):
            number = len(blocks)
            call_id = "_".join(filter(None, ["toolu", call.marker, f"{stamp.nonce}{number}"]))
            blocks.append({"type": "tool_use", "id": call_id, "caller": {"type": "direct"}, **block})
    return blocks


def _call_blocks(call: Call, form: ComputerForm | None) -> list[Json]:
    if not call.actions:
        return [{"name": call.name, "input": call.arguments}]
    if form is ComputerForm.FUNCTION:
        actions = [action.model_dump(mode="json", exclude_none=True) for action in call.actions]
        return [{"name": "computer", "input": {"actions": actions}}]
    if form is ComputerForm.ANTHROPIC_TOOLSET:
        return [
            {"name": action.action, "input": _action_input(action), "toolset_name": "computer"}
            for action in call.actions
        ]
    return [
        {"name": "computer", "input": {"action": action.action, **_action_input(action)}}
        for action in call.actions
    ]


def _action_input(action: Action) -> Json:
    values: dict[str, Any] = action.model_dump(mode="json", exclude_none=True, exclude={"action"})
    if "duration_ms" in values:
        values["duration"] = math.ceil(values.pop("duration_ms") / 1_000)
    if "modifiers" in values:
        values["text"] = values.pop("modifiers")
    return values


def _search_blocks(reply: Reply, stamp: Stamp) -> list[Json]:
    """Each search and, right behind it, what it found."""
    blocks: list[Json] = []
    for number, search in enumerate(reply.searches):
        call_id = f"srvtoolu_{stamp.nonce}{number}"
        found = [
            {
                "type": "web_search_result",
                "url": page.url,
                "title": page.title,
                "encrypted_content": page.seal,
                "page_age": None,
            }
            for page in search.pages
        ]
        direct = {"type": "direct"}
        call = {"type": "server_tool_use", "id": call_id, "name": "web_search", "caller": direct}
        blocks.append({**call, "input": {"query": search.query}})
        blocks.append(
            {"type": "web_search_tool_result", "tool_use_id": call_id, "caller": direct, "content": found}
        )
    return blocks


def _search_events(index: int, block: Json) -> Iterator[Event]:
    if block["type"] == "server_tool_use":
        yield from _tool_events(index, block)
        return
    yield _event({"type": "content_block_start", "index": index, "content_block": block})
    yield _event({"type": "content_block_stop", "index": index})


def _citations(reply: Reply) -> list[Json] | None:
    return [
        {
            "type": "web_search_result_location",
            "url": page.url,
            "title": page.title,
            "cited_text": page.title,
            "encrypted_index": page.seal,
        }
        for page in reply.pages
    ] or None


def _text_events(index: int, reply: Reply) -> Iterator[Event]:
    citations = _citations(reply)
    block: Json = {"type": "text", "text": "", "citations": [] if citations else None}
    yield _event({"type": "content_block_start", "index": index, "content_block": block})
    for chunk in reply.chunks:
        delta: Json = {"type": "text_delta", "text": chunk.text}
        yield _event({"type": "content_block_delta", "index": index, "delta": delta}, chunk.delay_ms)
    for citation in citations or ():
        delta = {"type": "citations_delta", "citation": citation}
        yield _event({"type": "content_block_delta", "index": index, "delta": delta})
    yield _event({"type": "content_block_stop", "index": index})


def _tool_events(index: int, block: Json) -> Iterator[Event]:
    yield _event({"type": "content_block_start", "index": index, "content_block": {**block, "input": {}}})
    for piece in ["", *pieces(json.dumps(block["input"]))]:
        delta = {"type": "input_json_delta", "partial_json": piece}
        yield _event({"type": "content_block_delta", "index": index, "delta": delta})
    yield _event({"type": "content_block_stop", "index": index})


def _event(data: Json, delay_ms: int = 0) -> Event:
    return Event(name=data["type"], data=data, delay_ms=delay_ms)
