"""What we send satisfies the SDKs' own parameter types."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from anthropic.types import MessageParam, ToolUnionParam
from anthropic.types.beta import BetaMessageParam, BetaToolUnionParam
from google.genai.types import Content, Tool
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolUnionParam
from openai.types.responses import ResponseInputItemParam, ToolParam
from pydantic import TypeAdapter

from chatd.provider import anthropic_prompt, gemini_prompt, openai_chat_prompt, openai_responses_prompt
from chatd.provider.protocol import ModelRequest, PromptMessage
from chatd.wire import FilePart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from tests.contract.provider import transcripts
from tests.contract.provider.test_provider_contract import REQUEST

MEDIA = {"data": "iVBORw0K", "mime_type": "image/png", "text": "t"}
RAW_ANTHROPIC = {"name": "left_click", "toolset_name": "computer", "input": {}, "caller": {"type": "direct"}}


def computer(call_id: str, *actions: dict[str, Any], **metadata: Any) -> ToolCallPart:
    """Return a computer call of the vendor in *metadata*."""
    args = {"actions": list(actions)}
    return ToolCallPart(
        tool_call_id=call_id, tool_name="computer", args=args, provider_metadata=metadata or None
    )


HISTORY = replace(
    REQUEST,
    messages=(
        PromptMessage(
            role="user",
            content=(
                TextPart(text="Look"),
                FilePart(media_type="image/png", data="iVBORw0K"),
                FilePart(media_type="application/pdf", data="iVBORw0K"),
                FilePart(media_type="text/plain", data="aGk="),
            ),
        ),
        PromptMessage(
            role="assistant",
            content=(
                ReasoningPart(text="t", provider_metadata={"anthropic": {"signature": "s"}}),
                ReasoningPart(provider_metadata={"anthropic": {"data": "d"}}),
                ReasoningPart(text="t", provider_metadata={"google": {"signature": "c2ln"}}),
                ReasoningPart(text="t", provider_metadata={"openai": transcripts.REASONING_ITEM}),
                TextPart(text="a", provider_metadata={"openai": {"id": "msg_1", "phase": "commentary"}}),
                TextPart(text="b"),
                ToolCallPart(tool_call_id="f", tool_name="read_file", args={"path": "/a"}),
                computer("x", {"action": "wait"}, openai=transcripts.COMPUTER_CALL | {"call_id": "x"}),
                computer("y", {"action": "zoom", "region": [0, 0, 9, 9]}, anthropic=RAW_ANTHROPIC),
                computer("z", {"action": "double_click", "coordinate": [1, 2]}),
            ),
        ),
        PromptMessage(
            role="tool",
            content=tuple(
                ToolResultPart(tool_call_id=name, tool_name="t", result=MEDIA, is_media=True)
                for name in "xyz"
            ),
        ),
        PromptMessage(
            role="tool",
            content=(
                ToolResultPart(
                    tool_call_id="f", tool_name="read_file", result={"error": "no"}, is_error=True
                ),
            ),
        ),
    ),
)

Builder = Callable[[ModelRequest], list[dict[str, Any]]]
CASES: dict[str, tuple[Builder, Any]] = {
    "anthropic messages": (lambda asked: anthropic_prompt.build_messages(asked, "toolset"), MessageParam),
    "anthropic tools": (lambda asked: anthropic_prompt.build_tools(asked, "toolset"), ToolUnionParam),
    "beta messages": (lambda asked: anthropic_prompt.build_messages(asked, "single"), BetaMessageParam),
    "beta tools": (lambda asked: anthropic_prompt.build_tools(asked, "single"), BetaToolUnionParam),
    "responses input": (openai_responses_prompt.build_input, ResponseInputItemParam),
    "responses tools": (openai_responses_prompt.build_tools, ToolParam),
    "gemini contents": (gemini_prompt.build_contents, Content),
    "gemini tools": (gemini_prompt.build_tools, Tool),
    "chat messages": (openai_chat_prompt.build_messages, ChatCompletionMessageParam),
    "chat tools": (openai_chat_prompt.build_tools, ChatCompletionToolUnionParam),
}


@pytest.mark.parametrize("case", CASES)
def test_each_item_satisfies_the_sdks_parameter_type(case: str) -> None:
    """A history with everything in it is accepted, item by item."""
    build, wanted = CASES[case]
    adapter = TypeAdapter(wanted)
    items = build(HISTORY)
    assert items
    for item in items:
        # Iterables are checked lazily; dumping walks them.
        adapter.dump_python(adapter.validate_python(item), warnings="error")
