"""
What the vendors send, event by event; data only.

Shapes follow the vendors' API references and are checked against the SDKs' own
models by ``test_transcripts.py``. Every provider has the same scenarios.
"""

from typing import Any

Event = dict[str, Any]


def anthropic_message(blocks: list[tuple[Event, list[Event]]], stop_reason: str) -> list[Event]:
    events: list[Event] = [
        {
            "type": "message_start",
            "message": {
                "id": "msg_01",
                "type": "message",
                "role": "assistant",
                "model": "claude-test",
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {
                    "input_tokens": 7,
                    "output_tokens": 1,
                    "cache_creation_input_tokens": 20,
                    "cache_read_input_tokens": 100,
                },
            },
        }
    ]
    for index, (start, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events.extend({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    usage = {"output_tokens": 5, "output_tokens_details": {"thinking_tokens": 2}}
    events.append({"type": "message_delta", "delta": delta, "usage": usage})
    events.append({"type": "message_stop"})
    return events


def _anthropic_text(*pieces: str) -> tuple[Event, list[Event]]:
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return {"type": "text", "text": "", "citations": None}, deltas


def _anthropic_call(*pieces: str, **start: str) -> tuple[Event, list[Event]]:
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return {"type": "tool_use", "input": {}, "caller": {"type": "direct"}, **start}, deltas


ANTHROPIC: dict[str, list[Event]] = {
    "text": anthropic_message([_anthropic_text("Hel", "lo")], "end_turn"),
    "length": anthropic_message([_anthropic_text("Hel", "lo")], "max_tokens"),
    "filter": anthropic_message([_anthropic_text("Hel", "lo")], "refusal"),
    "call": anthropic_message(
        [_anthropic_text("Hello"), _anthropic_call('{"pa', 'th":"/a"}', id="call_1", name="read_file")],
        "tool_use",
    ),
    "computer": anthropic_message(
        [
            _anthropic_call(
                '{"coordinate":[0,0]',
                ',"text":"ctrl"}',
                id="call_1",
                name="left_click",
                toolset_name="computer",
            )
        ],
        "tool_use",
    ),
    "reasoning": anthropic_message(
        [
            (
                {"type": "thinking", "thinking": "", "signature": ""},
                [
                    {"type": "thinking_delta", "thinking": "Let me "},
                    {"type": "thinking_delta", "thinking": "see"},
                    {"type": "signature_delta", "signature": "c2ln"},
                ],
            ),
            ({"type": "redacted_thinking", "data": "b3BhcXVl"}, []),
            _anthropic_text("Hello"),
        ],
        "end_turn",
    ),
}


def _response(status: str, **more: Any) -> Event:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1.0,
        "model": "gpt-test",
        "status": status,
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        **more,
    }


_RESPONSES_USAGE = {
    "input_tokens": 127,
    "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 0},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 132,
}


def _responses(body: list[Event], status: str = "completed", **more: Any) -> list[Event]:
    final = _response(status, usage=_RESPONSES_USAGE, **more)
    events = [
        {"type": "response.created", "response": _response("in_progress")},
        *body,
        {"type": f"response.{status}", "response": final},
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def _responses_item(index: int, item: Event, deltas: list[Event]) -> list[Event]:
    place = {"item_id": item["id"], "output_index": index}
    return [
        {"type": "response.output_item.added", "output_index": index, "item": item},
        *({**place, **delta} for delta in deltas),
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _responses_text(index: int, *pieces: str) -> list[Event]:
    content = [{"type": "output_text", "text": "".join(pieces), "annotations": []}]
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}
    deltas = [
        {"type": "response.output_text.delta", "content_index": 0, "delta": piece, "logprobs": []}
        for piece in pieces
    ]
    return _responses_item(index, item, deltas)


_FUNCTION_CALL = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_1",
    "name": "read_file",
    "arguments": '{"path":"/a"}',
    "status": "completed",
}
COMPUTER_CALL: Event = {
    "id": "cu_1",
    "type": "computer_call",
    "call_id": "call_1",
    "actions": [{"type": "click", "button": "left", "x": 0, "y": 0, "keys": ["CTRL"]}],
    "pending_safety_checks": [],
    "status": "completed",
}
REASONING_ITEM: Event = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "Let me see"}],
    "encrypted_content": "b3BhcXVl",
}

RESPONSES: dict[str, list[Event]] = {
    "text": _responses(_responses_text(0, "Hel", "lo")),
    "length": _responses(
        _responses_text(0, "Hel", "lo"), "incomplete", incomplete_details={"reason": "max_output_tokens"}
    ),
    "filter": _responses(
        _responses_text(0, "Hel", "lo"), "incomplete", incomplete_details={"reason": "content_filter"}
    ),
    "call": _responses(
        [
            *_responses_text(0, "Hello"),
            *_responses_item(
                1,
                _FUNCTION_CALL,
                [
                    {"type": "response.function_call_arguments.delta", "delta": '{"pa'},
                    {"type": "response.function_call_arguments.delta", "delta": 'th":"/a"}'},
                ],
            ),
        ]
    ),
    "computer": _responses(_responses_item(0, COMPUTER_CALL, [])),
    "unapproved": _responses(
        _responses_item(
            0,
            COMPUTER_CALL
            | {"pending_safety_checks": [{"id": "sc_1", "code": "sensitive_domain", "message": "A bank"}]},
            [],
        )
    ),
    "failed": _responses(
        [], "failed", error={"code": "server_error", "message": "The model could not be reached."}
    ),
    "reasoning": _responses(
        [
            *_responses_item(
                0,
                REASONING_ITEM,
                [
                    {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": "Let me "},
                    {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": "see"},
                ],
            ),
            *_responses_text(1, "Hello"),
        ]
    ),
}

_CHUNK = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "local-test"}
_CHAT_USAGE = {
    "prompt_tokens": 127,
    "completion_tokens": 5,
    "total_tokens": 132,
    "prompt_tokens_details": {"cached_tokens": 100},
    "completion_tokens_details": {"reasoning_tokens": 2},
}


def _chat(deltas: list[Event], finish_reason: str) -> list[Event]:
    choices: list[Event] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish_reason})
    chunks: list[Event] = [{**_CHUNK, "choices": [choice]} for choice in choices]
    return [*chunks, {**_CHUNK, "choices": [], "usage": _CHAT_USAGE}]


def _chat_call(name: str, *pieces: str) -> list[Event]:
    first: Event = {
        "index": 0,
        "id": "call_1",
        "type": "function",
        "function": {"name": name, "arguments": ""},
    }
    rest: list[Event] = [{"index": 0, "function": {"arguments": piece}} for piece in pieces]
    return [{"tool_calls": [piece]} for piece in (first, *rest)]


CHAT: dict[str, list[Event]] = {
    "text": _chat([{"role": "assistant", "content": ""}, {"content": "Hel"}, {"content": "lo"}], "stop"),
    "length": _chat([{"content": "Hel"}, {"content": "lo"}], "length"),
    "filter": _chat([{"content": "Hel"}, {"content": "lo"}], "content_filter"),
    "call": _chat([{"content": "Hello"}, *_chat_call("read_file", '{"pa', 'th":"/a"}')], "tool_calls"),
    "computer": _chat(
        _chat_call(
            "computer", '{"actions":[{"action":"left_click",', '"coordinate":[0,0],"modifiers":"ctrl"}]}'
        ),
        "tool_calls",
    ),
}

_GEMINI_USAGE = {
    "promptTokenCount": 127,
    "cachedContentTokenCount": 100,
    "candidatesTokenCount": 3,
    "thoughtsTokenCount": 2,
    "totalTokenCount": 132,
}


def _gemini(parts: list[Event], finish_reason: str = "STOP") -> list[Event]:
    chunks: list[Event] = [
        {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]} for part in parts
    ]
    last: Event = {
        "candidates": [{"content": {"role": "model", "parts": []}, "finishReason": finish_reason, "index": 0}]
    }
    head: Event = {"modelVersion": "gemini-test", "responseId": "r_1", "usageMetadata": _GEMINI_USAGE}
    return [{**chunk, **head} for chunk in ({}, *chunks, last)]


def _gemini_call(name: str, args: Event, **more: str) -> Event:
    return {"functionCall": {"id": "call_1", "name": name, "args": args}, **more}


GEMINI: dict[str, list[Event]] = {
    "text": _gemini([{"text": "Hel"}, {"text": "lo"}]),
    "length": _gemini([{"text": "Hel"}, {"text": "lo"}], "MAX_TOKENS"),
    "filter": _gemini([{"text": "Hel"}, {"text": "lo"}], "SAFETY"),
    "call": _gemini([{"text": "Hello"}, _gemini_call("read_file", {"path": "/a"})]),
    "computer": _gemini(
        [
            _gemini_call(
                "computer",
                {"actions": [{"action": "left_click", "coordinate": [0, 0], "modifiers": "ctrl"}]},
            )
        ]
    ),
    "native": _gemini(
        [_gemini_call("click", {"x": 500, "y": 999, "intent": "Send it"}, thoughtSignature="c2ln")]
    ),
    "unapproved": _gemini(
        [
            _gemini_call(
                "click",
                {
                    "x": 1,
                    "y": 1,
                    "safety_decision": {"decision": "require_confirmation", "explanation": "A bank"},
                },
            )
        ]
    ),
    "reasoning": _gemini(
        [
            {"text": "Let me ", "thought": True},
            {"text": "see", "thought": True},
            {"text": "Hel"},
            {"text": "lo", "thoughtSignature": "c2ln"},
        ]
    ),
}

ALL: dict[str, dict[str, list[Event]]] = {
    "anthropic": ANTHROPIC,
    "google": GEMINI,
    "openai": RESPONSES,
    "openai-compat": CHAT,
}
# Error bodies by provider: how each vendor words an HTTP error.
ERROR_BODIES: dict[str, Any] = {
    "anthropic": lambda message, kind: {"type": "error", "error": {"type": kind, "message": message}},
    "google": lambda message, kind: {"error": {"status": kind, "message": message}},
    "openai": lambda message, kind: {"error": {"type": kind, "code": kind, "message": message}},
    "openai-compat": lambda message, kind: {"error": {"type": kind, "code": kind, "message": message}},
}
