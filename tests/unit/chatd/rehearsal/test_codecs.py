"""The four codecs on hostile and on wrong requests; right ones are tested through the SDKs."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.rehearsal.anthropic import AnthropicCodec
from chatd.rehearsal.brain import decide
from chatd.rehearsal.codec import ApiError, Codec, Stamp
from chatd.rehearsal.completions import CompletionsCodec
from chatd.rehearsal.conversation import Call, ComputerForm, Conversation, Reply
from chatd.rehearsal.gemini import GeminiCodec
from chatd.rehearsal.responses import ResponsesCodec
from chatd.rehearsal.responses_stream import openai_actions
from computer.wire import action_adapter

CODECS: list[Codec] = [AnthropicCodec(), ResponsesCodec(), CompletionsCodec(), GeminiCodec()]
STAMP = Stamp(nonce="n", created=1)

_leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.builds(list)
    | st.builds(dict)
    | st.sampled_from(
        ["", "user", "assistant", "tool", "text", "message", "rehearsal", "run ls", "\ud800", "computer"]
    )
)
_KEYS = """
model max_tokens messages input role content type text id call_id tool_use_id name arguments tools source data
contents parts functionCall functionResponse function_call response args inlineData mimeType computerUse
environment functionDeclarations generationConfig maxOutputTokens systemInstruction
function tool_calls tool_call_id output image_url url stream system instructions actions stream_options
"""
_KINDS = """
text image tool_use tool_result function_call function_call_output computer_call computer_call_output message
"""
_keys = st.sampled_from(_KEYS.split())
_values = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=6),
    max_leaves=25,
)
_items = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(_KINDS.split()) | _leaves,
        "role": st.sampled_from(["user", "assistant", "tool", "system"]) | _leaves,
        "content": st.lists(st.dictionaries(_keys, _values, max_size=4), max_size=2) | _leaves,
        "call_id": _leaves,
        "id": _leaves,
        "name": _leaves,
        "arguments": st.sampled_from(["{}", "[]", "{", "[" * 99_999]) | _leaves,
        "input": _values,
        "output": _values,
        "tool_calls": _values,
    },
)
_bodies = st.dictionaries(_keys, _values, max_size=6) | st.fixed_dictionaries(
    {"model": st.just("rehearsal"), "max_tokens": st.just(9)},
    optional={
        "messages": st.lists(_items, max_size=4),
        "contents": st.lists(st.dictionaries(_keys, _values, max_size=3), max_size=3),
        "input": st.lists(_items, max_size=4),
        "tools": st.lists(_items, max_size=2),
        "stream": st.booleans() | _leaves,
    },
)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: type(codec).__name__)
@given(body=_bodies)
def test_any_body_is_answered_or_refused(codec: Codec, body: dict[str, Any]) -> None:
    """Ours: nothing but the vendor's 400 or an answer comes out."""
    conversation = refusal = None
    try:
        conversation = codec.decode(body)
    except ApiError as error:
        refusal = error

    if conversation is None:
        assert refusal
        assert refusal.status == 400
        assert "error" in json.dumps(codec.error(refusal, "req_1"))
    else:
        reply = decide(conversation)
        json.dumps(codec.encode(conversation, reply, STAMP))
        assert list(codec.events(conversation, reply, STAMP))


def _anthropic(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": list(messages)}


_USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}]}
_RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]}
_CALLS = {
    "role": "assistant",
    "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}


_GEMINI_CALL = {"role": "model", "parts": [{"functionCall": {"id": "t1", "name": "f", "args": {}}}]}


@pytest.mark.parametrize(
    ("codec", "body", "named"),
    [
        (CODECS[0], _anthropic({"role": "user", "content": "x"}, _USE), "t1"),
        (CODECS[0], _anthropic(_RESULT), "t1"),
        (CODECS[0], _anthropic({"role": "user", "content": ""}), "messages.0.content.0.text"),
        (CODECS[0], _anthropic(), "messages"),
        (CODECS[0], _anthropic({"role": [], "content": "x"}), "messages.0.role"),
        (CODECS[0], _anthropic({"role": "user", "content": [{"type": []}]}), "messages.0.content.0"),
        (CODECS[0], _anthropic({"role": "user", "content": [{"type": "tool_use"}]}), "messages.0.content.0"),
        (CODECS[1], {"model": "m", "input": [{"role": [], "content": "x"}]}, "[]"),
        (CODECS[1], {"model": "m", "input": [{"role": "user", "content": [{"type": {}}]}]}, "{}"),
        (CODECS[2], {"model": "m", "messages": [{"role": {}, "content": "x"}]}, "messages[0].role"),
        (CODECS[2], {"model": "m", "messages": [{"role": "user", "content": [{"type": []}]}]}, "messages[0]"),
        (CODECS[0], {"model": "m", "messages": [{"role": "user", "content": "x"}]}, "max_tokens"),
        (
            CODECS[1],
            {"model": "m", "input": [{"type": "function_call_output", "call_id": "t1", "output": ""}]},
            "t1",
        ),
        (
            CODECS[1],
            {
                "model": "m",
                "input": [{"type": "function_call", "call_id": "t1", "name": "f", "arguments": "{}"}],
            },
            "t1",
        ),
        (CODECS[1], {"model": "m", "input": "x", "previous_response_id": "resp_1"}, "resp_1"),
        (CODECS[2], {"model": "m", "messages": [_CALLS, {"role": "user", "content": "x"}]}, "t1"),
        (
            CODECS[2],
            {"model": "m", "messages": [{"role": "tool", "tool_call_id": "t1", "content": "x"}]},
            "t1",
        ),
        (CODECS[3], {"model": "m", "contents": []}, "contents"),
        (CODECS[3], {"model": "m", "contents": [{"role": "tool", "parts": [{"text": "x"}]}]}, "valid role"),
        (CODECS[3], {"model": "m", "contents": [{"role": "user", "parts": []}]}, "contents[0].parts"),
        (CODECS[3], {"model": "m", "contents": [_GEMINI_CALL]}, "t1"),
        (
            CODECS[3],
            {"model": "m", "contents": [{"parts": [{"functionResponse": {"id": "t1", "name": "f"}}]}]},
            "t1",
        ),
    ],
)
def test_what_vendors_refuse_is_refused(codec: Codec, body: dict[str, Any], named: str) -> None:
    """Vendors: a call without its result, and the reverse, are errors that name the id."""
    with pytest.raises(ApiError) as caught:
        codec.decode(body)

    assert (caught.value.status, named in caught.value.user_text) == (400, True)


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        (
            {"action": "left_click", "coordinate": (0, 0)},
            [{"type": "click", "button": "left", "x": 0, "y": 0}],
        ),
        (
            {"action": "middle_click", "coordinate": (1, 2)},
            [{"type": "click", "button": "wheel", "x": 1, "y": 2}],
        ),
        ({"action": "double_click", "coordinate": (1, 2)}, [{"type": "double_click", "x": 1, "y": 2}]),
        ({"action": "key", "text": "ctrl+l"}, [{"type": "keypress", "keys": ["CTRL", "L"]}]),
        ({"action": "mouse_move", "coordinate": (3, 4)}, [{"type": "move", "x": 3, "y": 4}]),
        (
            {"action": "scroll", "scroll_direction": "up", "scroll_amount": 2, "coordinate": (5, 6)},
            [{"type": "scroll", "x": 5, "y": 6, "scroll_x": 0, "scroll_y": -200}],
        ),
        (
            {"action": "left_click_drag", "start_coordinate": (1, 1), "coordinate": (2, 2)},
            [{"type": "drag", "path": [{"x": 1, "y": 1}, {"x": 2, "y": 2}]}],
        ),
        ({"action": "zoom", "region": (0, 0, 1, 1)}, [{"type": "screenshot"}]),
    ],
)
def test_canonical_actions_in_openai_words(action: dict[str, Any], expected: list[dict[str, Any]]) -> None:
    """Source: the action types of the vendor's SDK."""
    assert openai_actions(action_adapter.validate_python(action)) == expected


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (ComputerForm.ANTHROPIC_TOOL, ("computer", {"action": "wait", "duration": 2})),
        (ComputerForm.ANTHROPIC_TOOLSET, ("wait", {"duration": 2})),
        (ComputerForm.FUNCTION, ("computer", {"actions": [{"action": "wait", "duration_ms": 1500}]})),
    ],
)
def test_canonical_actions_in_anthropic_words(
    form: ComputerForm, expected: tuple[str, dict[str, Any]]
) -> None:
    """Source: the input types of the vendor's SDK; durations are whole seconds there."""
    action = action_adapter.validate_python({"action": "wait", "duration_ms": 1_500})
    reply = Reply(calls=(Call(name="computer", actions=(action,)),), finish="tool-calls")

    (block,) = CODECS[0].encode(Conversation(model="m", computer=form), reply, STAMP)["content"]

    assert (block["name"], block["input"]) == expected


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ({"action": "left_click", "coordinate": (640, 400)}, ("click", {"x": 500, "y": 500})),
        ({"action": "left_click", "coordinate": (1279, 799)}, ("click", {"x": 999, "y": 999})),
        ({"action": "mouse_move", "coordinate": (0, 0)}, ("move", {"x": 0, "y": 0})),
        ({"action": "key", "text": "ctrl+l"}, ("hotkey", {"keys": ["ctrl", "l"]})),
        ({"action": "wait", "duration_ms": 1_500}, ("wait", {"seconds": 2})),
        (
            {"action": "scroll", "scroll_direction": "up", "scroll_amount": 2, "coordinate": (128, 8)},
            ("scroll", {"direction": "up", "magnitude_in_pixels": 200, "x": 100, "y": 10}),
        ),
        ({"action": "zoom", "region": (0, 0, 1, 1)}, ("take_screenshot", {})),
    ],
)
def test_canonical_actions_in_google_words(action: dict[str, Any], expected: tuple[str, Any]) -> None:
    """Source: the vendor's table of desktop actions; thousandths of the screen, and an intent."""
    reply = Reply(calls=(Call(name="computer", actions=(action_adapter.validate_python(action),)),))
    conversation = Conversation(model="m", computer=ComputerForm.GOOGLE_TOOL)

    (part,) = CODECS[3].encode(conversation, reply, STAMP)["candidates"][0]["content"]["parts"]

    call = part["functionCall"]
    assert call["args"].pop("intent")
    assert (call["name"], call["args"]) == expected
