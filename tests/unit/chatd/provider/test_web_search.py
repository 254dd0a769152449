"""The vendors' own web search, as it is asked for and as it goes back; by table."""

import re
from dataclasses import replace
from typing import Any

import anthropic.types
import pytest
from anthropic.types import RawMessageStreamEvent
from google.genai.types import GenerateContentResponse
from pydantic import TypeAdapter

from chatd.provider import anthropic_prompt, gemini_prompt, openai_responses_prompt
from chatd.provider.anthropic_stream import AnthropicReader
from chatd.provider.gemini_stream import GeminiReader
from chatd.provider.protocol import FunctionTool, ModelRequest, PartDone, PromptMessage, WebSearch
from chatd.wire import Part, SourcePart, TextPart, ToolCallPart, ToolResultPart

ANTHROPIC: TypeAdapter[RawMessageStreamEvent] = TypeAdapter(RawMessageStreamEvent)
READ = FunctionTool(name="read_file", description="", input_schema={"type": "object"})
CALL = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
FOUND = {
    "type": "web_search_result",
    "url": "https://a.example",
    "title": "A",
    "encrypted_content": "secret",
}
GROUND = {"uri": "https://a.example", "title": "A"}
RESULT = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [FOUND]}
CITED = {
    "type": "web_search_result_location",
    "url": "https://a.example",
    "title": "A",
    "cited_text": "x",
    "encrypted_index": "i",
}


def request(*content: Part, search: WebSearch | None = None, model: str = "claude-opus-5-5") -> ModelRequest:
    """A question, an answer of *content*, and another question."""
    asked = PromptMessage(role="user", content=(TextPart(text="?"),))
    answer = PromptMessage(role="assistant", content=content)
    return ModelRequest(
        model=model, system="", messages=(asked, answer, asked), tools=(READ,), web_search=search
    )


def call(**metadata: Any) -> ToolCallPart:
    """A search that a vendor ran."""
    return ToolCallPart(
        tool_call_id="srvtoolu_1", tool_name="web_search", provider_executed=True, provider_metadata=metadata
    )


def result(**metadata: Any) -> ToolResultPart:
    """What it found."""
    return ToolResultPart(
        tool_call_id="srvtoolu_1", tool_name="web_search", provider_executed=True, provider_metadata=metadata
    )


ANTHROPIC_CALL = call(anthropic={"block": CALL})
ANTHROPIC_RESULT = result(anthropic={"block": RESULT})


@pytest.mark.parametrize(
    ("model", "version"),
    [
        ("claude-3-7-sonnet-20250219", "20250305"),
        ("claude-sonnet-4-20250514", "20250305"),
        ("claude-haiku-4-5-20251001", "20250305"),
        ("claude-opus-4-6", "20260318"),
        ("claude-opus-5-5", "20260318"),
        ("rehearsal", "20260318"),
    ],
)
def test_the_newest_version_that_the_model_takes(model: str, version: str) -> None:
    """Issue: newest tool version."""
    assert anthropic_prompt.web_search_version(model) == f"web_search_{version}"


def test_the_newest_version_is_the_installed_sdk_s() -> None:
    """A new version of the SDK that adds one fails here."""
    known = [name for name in dir(anthropic.types) if re.fullmatch(r"WebSearchTool\d+Param", name)]
    newest = max(re.sub(r"\D", "", name) for name in known)

    assert f"web_search_{newest}" == anthropic_prompt.NEWEST_SEARCH


@pytest.mark.parametrize(
    ("search", "anthropic_tool", "openai_tool"),
    [
        (WebSearch(), {}, {}),
        (
            WebSearch(allowed_domains=("a.example",), context_size="high"),
            {"allowed_domains": ["a.example"]},
            {"search_context_size": "high", "filters": {"allowed_domains": ["a.example"]}},
        ),
        (WebSearch(blocked_domains=("b.example",)), {"blocked_domains": ["b.example"]}, {}),
    ],
)
def test_each_vendor_is_told_what_it_has_a_word_for(
    search: WebSearch, anthropic_tool: dict[str, Any], openai_tool: dict[str, Any]
) -> None:
    """Spec 7: the tool stands behind the functions."""
    asked = request(search=search)
    own = {"type": "web_search_20260318", "name": "web_search", "allowed_callers": ["direct"]}

    assert anthropic_prompt.build_tools(asked, "toolset")[1:] == [own | anthropic_tool]
    assert openai_responses_prompt.build_tools(asked)[1:] == [{"type": "web_search"} | openai_tool]
    assert gemini_prompt.build_tools(replace(asked, model="gemini-3.5-flash"))[1:] == [{"googleSearch": {}}]
    # Older ones take functions or a search.
    assert len(gemini_prompt.build_tools(replace(asked, model="gemini-2.5-flash"))) == 1
    assert openai_responses_prompt.build_include("gpt-4o", has_search=True) == [
        "web_search_call.action.sources"
    ]


def anthropic_blocks(*content: Part) -> list[str]:
    """Types of the blocks of the answer."""
    built = anthropic_prompt.build_messages(request(*content), "toolset")
    (answer,) = [message for message in built if message["role"] == "assistant"]
    return [block["type"] for block in answer["content"]]


def test_anthropic_gets_its_search_back_in_its_place() -> None:
    """Vector 64: encrypted content and citations intact."""
    text = TextPart(text="So.", provider_metadata={"anthropic": {"citations": [CITED]}})
    built = anthropic_prompt.build_messages(request(ANTHROPIC_CALL, ANTHROPIC_RESULT, text), "toolset")
    first, second, third = built[1]["content"]

    assert (first, second) == (CALL, RESULT)
    assert (third["text"], third["citations"]) == ("So.", [CITED])


@pytest.mark.parametrize(
    "content",
    [
        (ANTHROPIC_CALL,),
        (ANTHROPIC_RESULT,),
        (ANTHROPIC_RESULT, ANTHROPIC_CALL),
        (call(openai={"type": "web_search_call"}), result()),
    ],
    ids=["cut off", "without its call", "the wrong way round", "another vendor's"],
)
def test_anthropic_gets_no_half_of_a_search(content: tuple[Part, ...]) -> None:
    """Spec 1.6: it can't be made up, and either half alone is refused."""
    assert anthropic_blocks(*content, TextPart(text="So.")) == ["text"]


def test_openai_gets_its_search_back_and_nobody_else_s() -> None:
    """Spec 7: an item as it came; its results are within."""
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}
    own = openai_responses_prompt.build_input(request(call(openai=item), result(), TextPart(text="So.")))
    other = openai_responses_prompt.build_input(
        request(ANTHROPIC_CALL, ANTHROPIC_RESULT, TextPart(text="So."))
    )

    assert own[1] == item
    assert [one["type"] for one in other] == ["message", "message", "message"]


def parts_of(events: list[dict[str, Any]]) -> list[Part]:
    """What a message of these events holds."""
    reader = AnthropicReader(None)
    found = [neutral for event in events for neutral in reader.feed(ANTHROPIC.validate_python(event))]
    return [neutral.part for neutral in found if isinstance(neutral, PartDone)]


def test_anthropic_searches_are_read_as_they_arrive() -> None:
    """Requirement 000: call, result, text, then what it cites, once; a failed search is an error."""
    start = {"type": "content_block_start"}
    delta = {"type": "content_block_delta", "index": 2}
    query = {"type": "input_json_delta", "partial_json": '{"query": "q"}'}
    failed = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
    parts = parts_of(
        [
            {**start, "index": 0, "content_block": {**CALL, "input": {}}},
            {"type": "content_block_delta", "index": 0, "delta": query},
            {"type": "content_block_stop", "index": 0},
            {**start, "index": 1, "content_block": RESULT},
            {"type": "content_block_stop", "index": 1},
            {**start, "index": 2, "content_block": {"type": "text", "text": "", "citations": []}},
            {**delta, "delta": {"type": "text_delta", "text": "So."}},
            {**delta, "delta": {"type": "citations_delta", "citation": CITED}},
            {**delta, "delta": {"type": "citations_delta", "citation": CITED}},
            {"type": "content_block_stop", "index": 2},
            {**start, "index": 3, "content_block": {**RESULT, "content": failed}},
            {"type": "content_block_stop", "index": 3},
        ]
    )
    asked, found, text, source, error = parts

    assert isinstance(asked, ToolCallPart)
    assert isinstance(found, ToolResultPart)
    assert isinstance(text, TextPart)
    assert isinstance(error, ToolResultPart)
    assert (asked.args, asked.provider_executed) == ({"query": "q"}, True)
    assert found.result == {"results": [{"title": "A", "url": "https://a.example"}]}
    assert (text.text, source) == ("So.", SourcePart(url="https://a.example", title="A"))
    assert (error.result, error.is_error) == ({"error": "unavailable"}, True)
    assert anthropic_blocks(asked, found, text) == ["server_tool_use", "web_search_tool_result", "text"]


def test_gemini_searches_are_told_and_go_back() -> None:
    """Parts that the vendor ran stand where they arrived; what grounds the answer is its sources."""
    tool = {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB"}
    chunk = {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [
                        {"toolCall": {**tool, "args": {"queries": ["q"]}}},
                        {"toolResponse": {**tool, "response": {"x": 1}}},
                        {"text": "So."},
                    ],
                },
                "groundingMetadata": {
                    "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}]
                },
                "finishReason": "STOP",
            }
        ]
    }
    reader = GeminiReader(None, is_native=False)
    events = [*reader.feed(GenerateContentResponse.model_validate(chunk)), *reader.finish()]
    asked, found, text, source = [event.part for event in events if isinstance(event, PartDone)]
    sent = gemini_prompt.build_contents(request(asked, found, text, model="gemini-3.5-flash"))[1]["parts"]

    assert isinstance(asked, ToolCallPart)
    assert (asked.tool_name, asked.args, asked.provider_executed) == ("web_search", {"queries": ["q"]}, True)
    assert source == SourcePart(url="https://a.example", title="A")
    assert [next(iter(part)) for part in sent] == ["toolCall", "toolResponse", "text"]
