"""Whatever the store can hold, every vendor takes the prompt that is made of it."""

import base64
import io
import json
import uuid
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from chatd.loop.request import FileCache, build_prompt
from chatd.provider import anthropic_prompt, gemini_prompt, openai_chat_prompt, openai_responses_prompt
from chatd.provider.computer_forms import FORMS
from chatd.provider.protocol import ComputerSpec, FunctionTool, ModelRequest
from chatd.rehearsal.anthropic import AnthropicCodec
from chatd.rehearsal.codec import Codec
from chatd.rehearsal.completions import CompletionsCodec
from chatd.rehearsal.conversation import Page
from chatd.rehearsal.gemini import GeminiCodec
from chatd.rehearsal.responses import ResponsesCodec
from chatd.rehearsal.rules import Protocol, violations
from chatd.store.queries import StoredFile
from chatd.wire import (
    ContextFilePart,
    FilePart,
    FileReferencePart,
    Message,
    QuestionAnswerPart,
    ReasoningPart,
    SkillPart,
    SourcePart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)


def png(width: int, height: int) -> bytes:
    """A picture."""
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), "red").save(buffer, "PNG")
    return buffer.getvalue()


NOW = datetime(2026, 1, 1, tzinfo=UTC)
SMALL = png(4, 4)
# By file id: pictures that are and are not what they say, texts, nothing.
FILES: dict[UUID, StoredFile] = {
    UUID(int=1): StoredFile("image/png", SMALL),
    UUID(int=2): StoredFile("image/jpeg", SMALL),
    UUID(int=3): StoredFile("image/png", b"\x89PNG broken"),
    UUID(int=4): StoredFile("image/png", b""),
    UUID(int=5): StoredFile("image/png", png(9_000, 2)),
    UUID(int=6): StoredFile("text/plain", b"hi \xff\x00"),
    UUID(int=7): StoredFile("application/pdf", b"%PDF-1.7"),
    UUID(int=8): StoredFile("text/plain", b""),
    UUID(int=9): StoredFile("video/mp4", b"film"),
}
FILE_IDS = st.sampled_from([str(file_id) for file_id in [*FILES, UUID(int=99)]])
TEXTS = st.sampled_from(["", " ", "\n", "a", "[x", "é\x00", "x" * 50])
IDS = st.sampled_from(["a", "b", "a b", "", "0", "x" * 90, "call_é"])
NAMES = st.sampled_from(["t", "computer", "x.y", "", "é", "n" * 90])
MEDIA_TYPES = st.sampled_from(["image/png", "image/jpeg", "text/plain", "application/pdf", "", "video/mp4"])
METADATA = st.sampled_from(
    [
        None,
        {"anthropic": {"signature": "s"}},
        {"anthropic": {"data": "d"}},
        {"google": {"signature": "c2ln"}},
        {"openai": {"type": "reasoning", "id": "rs_1", "encrypted_content": "e", "summary": []}},
        {"openai": {}},
    ]
)
ARGS = st.sampled_from(
    [
        None,
        {},
        {"x": [1, "y\x00"]},
        {"actions": [{"action": "left_click", "coordinate": [1, 2]}]},
        {"actions": [{"action": "key", "text": "a"}, {"action": "screenshot"}]},
        {"actions": []},
    ]
)
MEDIA = st.builds(
    lambda file_id, text: {"file_id": file_id, "mime_type": "image/png", "text": text}, FILE_IDS, TEXTS
)
RESULTS = st.one_of(
    st.sampled_from([None, {}, [], 5, "text", {"output": ""}, {"output": " "}, {"error": ""}, {"a": 1}]),
    MEDIA,
)
# What the readers keep of each vendor's own shapes; few ids, so that histories hold the same one twice.
FEW = st.sampled_from(["1", "2"])
PAGE = {"type": "web_search_result", "url": "https://a.example", "title": "A"}
SEALED = PAGE | {"encrypted_content": Page(url="https://a.example", title="").seal}
CITATIONS = [{"type": "web_search_result_location", "url": "https://a.example", "encrypted_index": "i"}]
TEXT_METADATA = st.one_of(
    st.sampled_from([None, {"anthropic": {"citations": CITATIONS}}, {"google": {"signature": "c2ln"}}]),
    st.builds(lambda n: {"openai": {"id": f"msg_{n}", "phase": "commentary"}}, FEW),
)
CALL_METADATA = st.one_of(
    st.sampled_from([None, {"google": {"signature": "c2ln"}}]),
    st.builds(lambda n: {"openai": {"id": f"fc_{n}"}}, FEW),
)
SINGLE_ACTION = {"action": "left_click", "coordinate": [1, 2]}
OPENAI_CALL = {"type": "computer_call", "call_id": "call_1", "status": "completed"}
OPENAI_ACTIONS = [{"type": "click", "button": "left", "x": 1, "y": 2}, {"type": "screenshot"}]
COMPUTER_METADATA = st.one_of(
    st.sampled_from(
        [
            {
                "anthropic": {
                    "name": "left_click",
                    "toolset_name": "computer",
                    "input": {"coordinate": [1, 2]},
                }
            },
            {"anthropic": {"name": "computer", "input": SINGLE_ACTION}},
            {"anthropic": {"name": "computer", "input": {"action": "zoom", "region": [0, 0, 4, 4]}}},
            {"google": {"call": {"name": "click", "args": {"x": 1, "y": 2}}, "signature": "c2ln"}},
        ]
    ),
    st.builds(
        lambda n, checks, shape: {
            "openai": OPENAI_CALL | {"id": f"cu_{n}", "pending_safety_checks": checks} | shape
        },
        FEW,
        st.sampled_from([[], [{"id": "sc_1", "code": "c", "message": "m"}]]),
        st.sampled_from([{"actions": OPENAI_ACTIONS}, {"action": OPENAI_ACTIONS[0]}]),
    ),
)


def searched(vendor: str, number: str, status: str) -> tuple[ToolCallPart, ToolResultPart]:
    """A search that a vendor ran, as its reader keeps it: the call and what came of it."""
    asked, found = VENDOR_BLOCKS[vendor](number, status)
    call_id, metadata = f"srv_{number}", {"anthropic": "block", "openai": "", "google": "part"}[vendor]
    call = ToolCallPart(
        tool_call_id=call_id,
        tool_name="web_search",
        args={},
        provider_executed=True,
        provider_metadata={vendor: {metadata: asked} if metadata else asked},
    )
    result = ToolResultPart(
        tool_call_id=call_id,
        tool_name="web_search",
        result={"results": []},
        provider_executed=True,
        provider_metadata={vendor: {metadata: found}} if metadata else None,
    )
    return call, result


VENDOR_BLOCKS: dict[str, Any] = {
    "anthropic": lambda number, _: (
        {"type": "server_tool_use", "id": f"srv_{number}", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": f"srv_{number}", "content": [SEALED]},
    ),
    "openai": lambda number, status: (
        {"type": "web_search_call", "id": f"ws_{number}", "status": status, "action": {"type": "search"}},
        None,
    ),
    "google": lambda number, _: (
        {"toolCall": {"id": f"srv_{number}", "toolType": "GOOGLE_SEARCH_WEB", "args": {}}},
        {"toolResponse": {"id": f"srv_{number}", "toolType": "GOOGLE_SEARCH_WEB", "response": {}}},
    ),
}
SEARCHES = st.builds(
    searched, st.sampled_from(list(VENDOR_BLOCKS)), FEW, st.sampled_from(["completed", "failed"])
)
PARTS = st.one_of(
    st.builds(TextPart, text=TEXTS, provider_metadata=TEXT_METADATA),
    st.builds(ReasoningPart, text=TEXTS, provider_metadata=METADATA),
    st.builds(
        ToolCallPart,
        tool_call_id=IDS,
        tool_name=NAMES,
        args=ARGS,
        provider_executed=st.booleans(),
        provider_metadata=CALL_METADATA,
    ),
    st.builds(
        ToolCallPart,
        tool_call_id=IDS,
        tool_name=st.just("computer"),
        args=ARGS,
        approved=st.sampled_from([None, True]),
        provider_metadata=COMPUTER_METADATA,
    ),
    SEARCHES.map(lambda pair: pair[0]),
    SEARCHES.map(lambda pair: pair[1]),
    st.builds(
        ToolResultPart,
        tool_call_id=IDS,
        tool_name=NAMES,
        result=RESULTS,
        is_error=st.booleans(),
        is_media=st.booleans(),
        provider_executed=st.booleans(),
    ),
    st.builds(FilePart, media_type=MEDIA_TYPES, file_id=st.none() | FILE_IDS, name=st.none() | TEXTS),
    st.builds(
        FilePart,
        media_type=MEDIA_TYPES,
        data=st.sampled_from(["", "%%", "aGk=", base64.b64encode(SMALL).decode()]),
    ),
    st.builds(FileReferencePart, file_name=st.just("f"), content=TEXTS),
    st.builds(QuestionAnswerPart, question_id=st.uuids(), text=TEXTS.filter(bool)),
    st.builds(SourcePart, url=st.just("http://a")),
    st.builds(ContextFilePart, context_file_path=st.just("/a")),
    st.builds(SkillPart, skill_name=st.just("s")),
)
ROWS = st.lists(
    st.builds(
        lambda role, parts: Message(
            id=1, chat_id=uuid.UUID(int=1), role=role, content=tuple(parts), created_at=NOW
        ),
        st.sampled_from(["system", "user", "assistant", "tool"]),
        st.lists(st.one_of(PARTS.map(lambda part: (part,)), SEARCHES), max_size=4).map(
            lambda groups: [part for group in groups for part in group]
        ),
    ),
    max_size=7,
)
# Whom a history is sent to: models and forms that differ in what of it they take.
MODELS: dict[Protocol, list[str]] = {
    "anthropic": ["m"],
    "responses": ["m", "computer-use-preview"],
    "completions": ["m"],
    "gemini": ["gemini-3.5-flash", "gemini-2.5-flash"],
}
COMPUTER = ComputerSpec(model_size=(1280, 800), description="d", input_schema={"type": "object"})
TOOLS = (FunctionTool(name="t", description="d", input_schema={"type": "object"}),)


class Files:
    """A store that has only files."""

    async def read(self, run: Any, wanted: list[UUID]) -> dict[UUID, Any]:
        """Answer ``file_sizes`` and ``files_by_id``."""
        found = {file_id: FILES[file_id] for file_id in wanted if file_id in FILES}
        is_size = run.__name__ == "file_sizes"
        return {name: len(file.data) if is_size else file for name, file in found.items()}


def body_of(protocol: Protocol, request: ModelRequest, form: Any = "toolset") -> dict[str, Any]:
    """The request's body, as far as it depends on the history."""
    match protocol:
        case "anthropic":
            return {
                "model": "m",
                "max_tokens": 9,
                "system": anthropic_prompt.build_system(request.system),
                "messages": anthropic_prompt.build_messages(request, form),
                "tools": anthropic_prompt.build_tools(request, form),
            }
        case "responses":
            return {
                "model": "m",
                "input": openai_responses_prompt.build_input(request),
                "tools": openai_responses_prompt.build_tools(request),
            }
        case "completions":
            return {
                "model": "m",
                "messages": openai_chat_prompt.build_messages(request),
                "tools": openai_chat_prompt.build_tools(request),
            }
        case "gemini":
            return {
                "model": request.model,
                "contents": gemini_prompt.build_contents(request),
                "tools": gemini_prompt.build_tools(request),
            }


VENDORS: dict[Protocol, tuple[str, Codec]] = {
    "anthropic": ("anthropic", AnthropicCodec()),
    "responses": ("openai", ResponsesCodec()),
    "completions": ("openai-compat", CompletionsCodec()),
    "gemini": ("google", GeminiCodec()),
}


@pytest.mark.parametrize("protocol", list(VENDORS))
@settings(max_examples=150, deadline=None)
@given(rows=ROWS, has_computer=st.booleans(), form=st.sampled_from(list(FORMS)), data=st.data())
async def test_every_stored_history_makes_a_valid_request(
    protocol: Protocol, rows: list[Message], has_computer: bool, form: Any, data: st.DataObject
) -> None:
    """Issue: every call answered, no orphans, roles alternate, no empty text, ids legal, pictures whole."""
    provider, codec = VENDORS[protocol]
    messages = await build_prompt(Files(), rows, provider=provider, cache=FileCache())  # type: ignore[arg-type]
    request = ModelRequest(
        model=data.draw(st.sampled_from(MODELS[protocol])),
        system="s",
        messages=messages,
        tools=TOOLS,
        computer=COMPUTER if has_computer else None,
    )
    body = json.loads(json.dumps(body_of(protocol, request, form)))

    codec.decode(body)
    assert violations(protocol, body) == []


TEXT = {"type": "text", "text": "x"}
USER = {"role": "user", "content": [TEXT]}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "/9j/"}}
USE = {"type": "tool_use", "id": "a", "name": "t", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": []}
BROKEN: list[tuple[Protocol, dict[str, Any], str]] = [
    ("anthropic", {"messages": [{"role": "assistant", "content": "x"}, USER]}, "first message"),
    ("anthropic", {"messages": [USER, {"role": "assistant", "content": "x"}]}, "prefill"),
    ("anthropic", {"messages": [USER, USER]}, "alternate"),
    ("anthropic", {"messages": [{"role": "user", "content": []}]}, "must not be empty"),
    ("anthropic", {"messages": [{"role": "user", "content": " "}]}, "non-whitespace"),
    ("anthropic", {"messages": [{"role": "user", "content": [IMAGE]}]}, "does not look like"),
    ("anthropic", {"messages": [{"role": "user", "content": [TEXT, RESULT]}]}, "come before"),
    ("anthropic", {"messages": [{"role": "user", "content": [RESULT]}]}, "must define tools"),
    ("anthropic", {"messages": [USER], "system": [{"type": "text", "text": " "}]}, "system"),
    ("anthropic", {"messages": [{"role": "user", "content": [TEXT | {"cache_control": {}}] * 5}]}, "cache"),
    ("anthropic", {"messages": [USER, {"role": "assistant", "content": [USE, USE]}, USER]}, "unique: a"),
    ("anthropic", {"messages": [USER, {"role": "assistant", "content": [USE | {"id": "a b"}]}]}, ".id"),
    ("anthropic", {"messages": [{"role": "user", "content": [IMAGE] * 101}]}, "at most 100"),
    ("responses", {"input": [{"type": "reasoning", "id": "r"}]}, "required following item"),
    ("responses", {"input": [{"type": "function_call", "call_id": "a", "name": "x.y"}]}, "name"),
    ("responses", {"input": [{"type": "function_call", "call_id": "a" * 65, "name": "x"}]}, "call_id"),
    ("responses", {"input": [{"type": "message", "role": "user", "content": []}]}, "empty"),
    ("responses", {"input": [{"type": "message", "role": "user", "content": "x", "id": "m"}] * 2}, "item id"),
    ("completions", {"messages": [{"role": "user", "content": ""}]}, "empty"),
    ("completions", {"messages": [{"role": "assistant", "content": None}]}, "empty"),
    ("completions", {"messages": [{"role": "tool", "tool_call_id": "a", "content": None}]}, "be given"),
    (
        "completions",
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "data:image/bmp;base64,AA"}}],
                }
            ]
        },
        "supported",
    ),
    ("gemini", {"contents": [{"role": "model", "parts": [{"text": "x"}]}]}, "start with a user"),
    ("gemini", {"contents": [{"role": "user", "parts": [{"text": " "}]}]}, "text must not be empty"),
    ("gemini", {"contents": [{"role": "user", "parts": [{"functionResponse": {"name": "1"}}]}]}, "name"),
]


@pytest.mark.parametrize(("protocol", "body", "text"), BROKEN, ids=[f"{row[0]} {row[2]}" for row in BROKEN])
def test_a_broken_rule_is_found(protocol: Protocol, body: dict[str, Any], text: str) -> None:
    """Ours: a checker that finds nothing proves nothing."""
    assert any(text in found for found in violations(protocol, body))
