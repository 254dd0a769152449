"""Histories as each vendor wants to see them."""

from dataclasses import replace
from typing import Any

import pytest

from chatd.provider import anthropic_prompt, openai_chat_prompt, openai_responses_prompt
from chatd.provider.protocol import ComputerSpec, FunctionTool, ModelRequest, PromptMessage
from chatd.wire import FilePart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

PICTURE = "iVBORw0K"
SPEC = ComputerSpec(model_size=(1280, 800), description="d", input_schema={"type": "object"})
TOOL = FunctionTool(name="f", description="d", input_schema={"type": "object"})
CLICK = {"actions": [{"action": "left_click", "coordinate": [0, 0]}]}
MARK = {"cache_control": {"type": "ephemeral"}}


def message(role: Any, *content: Part) -> PromptMessage:
    """Return one message."""
    return PromptMessage(role=role, content=content)


def request(*messages: PromptMessage) -> ModelRequest:
    """Return a request with one function and the computer."""
    return ModelRequest(model="m", system="s", messages=messages, tools=(TOOL,), computer=SPEC)


def call(call_id: str, args: dict[str, Any] | None = None, **fields: Any) -> ToolCallPart:
    """Return a function call; the computer's with ``tool_name``."""
    return ToolCallPart(tool_call_id=call_id, args=args or {}, **{"tool_name": "f", **fields})


def click(call_id: str = "c", **metadata: Any) -> ToolCallPart:
    """Return a canonical click, made by the vendor in *metadata*."""
    return call(call_id, CLICK, tool_name="computer", provider_metadata=metadata or None)


def answer(call_id: str, text: str = "ok", *, picture: bool = False, **fields: Any) -> ToolResultPart:
    """Return a result, with a picture on demand."""
    result: dict[str, Any] = {"output": text}
    if picture:
        result = {"data": PICTURE, "mime_type": "image/png", "text": text}
    return ToolResultPart(tool_call_id=call_id, tool_name="t", result=result, is_media=picture, **fields)


USER = message("user", TextPart(text="hi"))


def anthropic_messages(*messages: PromptMessage, form: Any = "toolset") -> list[dict[str, Any]]:
    """Return Anthropic's messages without cache marks."""
    built = anthropic_prompt.build_messages(request(*messages), form)
    for one in built:
        for block in one["content"]:
            block.pop("cache_control", None)
    return built


def test_anthropic_marks_the_system_prompt_and_the_last_two_messages() -> None:
    """The mark stands on the last block that may carry it; thinking may not."""
    thinking = ReasoningPart(text="t", provider_metadata={"anthropic": {"signature": "s"}})
    built = anthropic_prompt.build_messages(
        request(USER, message("assistant", TextPart(text="a"), thinking), USER), "toolset"
    )
    marked = [[block["type"] for block in one["content"] if "cache_control" in block] for one in built]
    assert marked == [[], ["text"], ["text"]]
    assert anthropic_prompt.build_system("s") == [{"type": "text", "text": "s", **MARK}]
    assert anthropic_prompt.build_system("  ") == []


def test_anthropic_thinking_is_replayed_exactly_and_only_its_own() -> None:
    """Signed and redacted blocks return unchanged; another vendor's reasoning stays away."""
    content = (
        ReasoningPart(text="t", provider_metadata={"anthropic": {"signature": "s"}}),
        ReasoningPart(provider_metadata={"anthropic": {"data": "d"}}),
        ReasoningPart(text="theirs", provider_metadata={"openai": {"id": "rs"}}),
        TextPart(text=" "),
        TextPart(text="a"),
    )
    assert anthropic_messages(USER, message("assistant", *content))[1]["content"] == [
        {"type": "thinking", "thinking": "t", "signature": "s"},
        {"type": "redacted_thinking", "data": "d"},
        {"type": "text", "text": "a"},
    ]


def test_anthropic_results_of_a_turn_are_one_message_with_results_first() -> None:
    """Separate tool rows and the next user message are one user turn to Anthropic."""
    built = anthropic_messages(
        message("assistant", call("a.1"), call("b")),
        message("tool", answer("a.1")),
        message("tool", answer("b", "no", is_error=True)),
        USER,
    )
    assert [one["role"] for one in built] == ["assistant", "user"]
    assert built[1]["content"] == [
        {"type": "tool_result", "tool_use_id": "a_1", "content": [{"type": "text", "text": "ok"}]},
        {
            "type": "tool_result",
            "tool_use_id": "b",
            "content": [{"type": "text", "text": "no"}],
            "is_error": True,
        },
        {"type": "text", "text": "hi"},
    ]
    assert built[0]["content"][0]["id"] == "a_1"


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}


@pytest.mark.parametrize(
    ("form", "is_replayed"), [("single", True), ("20250124", False), ("20241022", False)]
)
def test_anthropic_call_of_a_newer_version_is_not_replayed_to_an_older(form: Any, is_replayed: bool) -> None:
    """Ours: a chat's model may change; a version that has no zoom is told in words."""
    raw = {"name": "computer", "input": {"action": "zoom", "region": [0, 0, 4, 4]}}
    zoom = {"actions": [{"action": "zoom", "region": [0, 0, 4, 4]}]}
    part = call("a", zoom, tool_name="computer", provider_metadata={"anthropic": raw})
    (written,) = anthropic_messages(message("assistant", part), form=form)
    (block,) = written["content"]

    assert (block["type"] == "tool_use") == is_replayed


def test_anthropic_search_goes_back_only_with_its_own_answer() -> None:
    """Issue: a server that counts its ids anew gives one twice; at a pause the open one stays."""

    def block(part: type[ToolCallPart | ToolResultPart], **raw: str) -> ToolCallPart | ToolResultPart:
        return part(
            tool_call_id="s",
            tool_name="web_search",
            provider_executed=True,
            provider_metadata={"anthropic": {"block": raw}},
        )

    first = block(ToolCallPart, type="server_tool_use", id="s", name="lost")
    second = block(ToolCallPart, type="server_tool_use", id="s", name="web_search")
    found = block(ToolResultPart, type="web_search_tool_result", tool_use_id="s")
    foreign = ToolCallPart(tool_call_id="s", tool_name="web_search", provider_executed=True)

    def sent(*parts: Any, then: tuple[Any, ...] = ()) -> list[str]:
        (written, *_) = anthropic_messages(message("assistant", *parts), *then)
        return [one.get("name", one["type"]) for one in written["content"]]

    user = (USER,)

    assert sent(first, second, found, foreign, then=user) == ["web_search", "web_search_tool_result"]
    assert sent(first, found, second) == ["lost", "web_search_tool_result", "web_search"]
    assert sent(TextPart(text="x"), second, then=user) == ["text"]


def test_openai_item_that_comes_twice_goes_back_once() -> None:
    """Issue: `duplicate item id`; words and calls stay, a search and the thought before it go."""
    thought = ReasoningPart(
        provider_metadata={"openai": {"type": "reasoning", "id": "rs_1", "encrypted_content": "e"}}
    )
    search = ToolCallPart(
        tool_call_id="ws_1",
        tool_name="web_search",
        provider_executed=True,
        provider_metadata={"openai": {"type": "web_search_call", "id": "ws_1", "status": "completed"}},
    )
    said = TextPart(text="x", provider_metadata={"openai": {"id": "msg_1"}})
    one = call("c", provider_metadata={"openai": {"id": "fc_1"}})
    other = one.model_copy(update={"tool_call_id": "d"})
    items = openai_responses_prompt.build_input(
        request(message("assistant", thought, search, said, one), message("assistant", search, said, other))
    )

    assert [(item["type"], item.get("id")) for item in items] == [
        ("reasoning", "rs_1"),
        ("web_search_call", "ws_1"),
        ("message", "msg_1"),
        ("function_call", "fc_1"),
        ("message", None),
        ("function_call", None),
    ]


RAW = {"name": "left_click", "toolset_name": "computer", "caller": {"type": "direct"}, "input": {"text": ""}}


def test_anthropic_computer_call_is_replayed_verbatim_with_its_picture() -> None:
    """The vendor's own block comes back as it was, and the result names the family."""
    built = anthropic_messages(
        message("assistant", click(anthropic=RAW)), message("tool", answer("c", picture=True))
    )
    assert built[0]["content"] == [{"type": "tool_use", "id": "c", **RAW}]
    assert built[1]["content"] == [
        {
            "type": "tool_result",
            "tool_use_id": "c",
            "content": [{"type": "text", "text": "ok"}, IMAGE],
            "toolset_name": "computer",
        }
    ]


@pytest.mark.parametrize(
    ("form", "shape"),
    [
        ("toolset", {"name": "left_click", "toolset_name": "computer", "input": {"coordinate": [0, 0]}}),
        ("single", {"name": "computer", "input": {"action": "left_click", "coordinate": [0, 0]}}),
    ],
)
def test_anthropic_translates_other_vendors_computer_calls(form: str, shape: dict[str, Any]) -> None:
    """A chat may change its model; a block of the other form is translated, too."""
    other = {"name": "computer", "input": {}} if form == "toolset" else RAW
    for part in (click(openai={"type": "computer_call"}), click(anthropic=other)):
        built = anthropic_messages(message("assistant", part), form=form)
        assert built[0]["content"] == [{"type": "tool_use", "id": "c", **shape}]


def test_anthropic_tells_untranslatable_calls_in_prose() -> None:
    """A batch has no block of its own; its result follows as text and picture."""
    batch = call("c", {"actions": [{"action": "wait"}, *CLICK["actions"]]}, tool_name="computer")
    built = anthropic_messages(message("assistant", batch), message("tool", answer("c", picture=True)))
    assert built[0]["content"][0]["text"].startswith("[earlier tool call: computer")
    assert [block["type"] for block in built[1]["content"]] == ["text", "image"]


def test_anthropic_prompt_without_tools_holds_no_calls() -> None:
    """It would be refused; a summary request offers no tools."""
    bare = replace(
        request(message("assistant", call("a")), message("tool", answer("a"))), tools=(), computer=None
    )
    built = anthropic_prompt.build_messages(bare, "toolset")
    assert [block["type"] for one in built for block in one["content"]] == ["text", "text"]
    assert anthropic_prompt.build_tools(bare, "toolset") == []


def test_anthropic_error_with_picture_keeps_the_picture() -> None:
    """Error results may hold text only, so the flag yields to the screenshot."""
    part = answer("a", "failed", picture=True, is_error=True)
    built = anthropic_messages(message("assistant", call("a")), message("tool", part))
    (block,) = built[1]["content"]
    assert "is_error" not in block
    assert [inner["type"] for inner in block["content"]] == ["text", "image"]


def test_anthropic_tools_end_with_the_computer_in_either_form() -> None:
    """The single tool declares its frame; the toolset reads it from the pictures."""
    assert anthropic_prompt.build_tools(request(), "toolset")[-1] == {"type": "computer_toolset_20260801"}
    single = anthropic_prompt.build_tools(request(), "single")[-1]
    assert (single["type"], single["display_width_px"], single["display_height_px"]) == (
        "computer_20251124",
        1280,
        800,
    )


def reasoning(item_id: str) -> ReasoningPart:
    """Return a thought of OpenAI's."""
    raw = {"type": "reasoning", "id": item_id, "summary": [], "encrypted_content": "e"}
    return ReasoningPart(provider_metadata={"openai": raw})


REASONING = reasoning("rs")
ITEM = {
    "type": "computer_call",
    "id": "cu",
    "call_id": "c.1",
    "actions": [{"type": "screenshot"}],
    "pending_safety_checks": [],
    "status": "completed",
}


def types_of(*messages: PromptMessage) -> list[str]:
    """Return the input items' types."""
    return [item["type"] for item in openai_responses_prompt.build_input(request(*messages))]


def test_responses_items_keep_their_order_and_outputs_follow_the_turn() -> None:
    """Reasoning stands before the item it led to; every call is answered behind the turn."""
    first, second, third = map(reasoning, ("rs_1", "rs_2", "rs_3"))
    content = (first, TextPart(text="a"), second, call("f"), third, click("c.1", openai=ITEM))
    results = (answer("f", picture=True), answer("c.1", "", picture=True))
    items = openai_responses_prompt.build_input(
        request(USER, message("assistant", *content), message("tool", *results))
    )
    assert [item["type"] for item in items] == [
        *("message", "reasoning", "message", "reasoning", "function_call"),
        *("reasoning", "computer_call", "function_call_output", "computer_call_output"),
    ]
    assert items[6] == ITEM | {"call_id": "c_1"}
    assert [block["type"] for block in items[7]["output"]] == ["input_text", "input_image"]
    picture = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{PICTURE}"}
    assert items[8] == {"type": "computer_call_output", "call_id": "c_1", "output": picture}


def test_responses_words_of_a_computer_result_follow_its_picture() -> None:
    """The output has room for a picture only; a warning must not be lost."""
    items = openai_responses_prompt.build_input(
        request(
            message("assistant", click(openai=ITEM)), message("tool", answer("c", "watch out", picture=True))
        )
    )
    assert items[-1] == {"type": "message", "role": "user", "content": "[computer] watch out"}


@pytest.mark.parametrize(
    ("part", "result"),
    [
        (click(openai=ITEM), answer("c", "failed", is_error=True)),
        (click(openai=ITEM | {"pending_safety_checks": [{"id": "s"}]}), answer("c", picture=True)),
        (
            call("c", {"actions": [{"action": "zoom", "region": [0, 0, 1, 1]}]}, tool_name="computer"),
            answer("c"),
        ),
    ],
    ids=["no picture", "unapproved checks", "untranslatable"],
)
def test_responses_tells_other_computer_calls_in_prose(part: ToolCallPart, result: ToolResultPart) -> None:
    """And the reasoning that led to them stays away, for it would be refused alone."""
    assert types_of(message("assistant", REASONING, part), message("tool", result)) == ["message", "message"]


def test_responses_translates_other_vendors_computer_calls() -> None:
    """Answered with a picture, they are ordinary computer calls."""
    items = openai_responses_prompt.build_input(
        request(message("assistant", click()), message("tool", answer("c", "", picture=True)))
    )
    assert items[0]["actions"] == [{"type": "click", "button": "left", "x": 0, "y": 0}]
    assert (items[0]["call_id"], items[1]["call_id"]) == ("c", "c")


def test_responses_text_keeps_its_id_and_phase() -> None:
    """Dropping the phase degrades answers."""
    part = TextPart(text="a", provider_metadata={"openai": {"id": "msg_1", "phase": "commentary"}})
    (item,) = openai_responses_prompt.build_input(request(message("assistant", part)))
    assert (item["id"], item["phase"], item["content"][0]["text"]) == ("msg_1", "commentary", "a")


def test_responses_reasoning_without_its_encrypted_form_or_its_item_is_left_out() -> None:
    """The vendor stores nothing, so it could not be looked up."""
    bare = ReasoningPart(provider_metadata={"openai": {"type": "reasoning", "id": "rs", "summary": []}})
    assert types_of(message("assistant", bare, TextPart(text="a"), REASONING)) == ["message"]


@pytest.mark.parametrize(("model", "count"), [("gpt-5.2", 1), ("o3", 1), ("gpt-4o", 0), ("gpt-4.1-mini", 0)])
def test_responses_asks_reasoning_models_for_encrypted_reasoning(model: str, count: int) -> None:
    """The others refuse the question."""
    assert len(openai_responses_prompt.build_include(model)) == count


def test_chat_pictures_follow_all_tool_messages_of_the_turn_in_one_user_message() -> None:
    """Tool messages hold text only, and nothing may stand between them."""
    built = openai_chat_prompt.build_messages(
        request(
            message("assistant", call("a"), click("b")),
            message("tool", answer("a", picture=True)),
            message("tool", answer("b", "seen", picture=True)),
            USER,
        )
    )
    assert [one["role"] for one in built] == ["system", "assistant", "tool", "tool", "user", "user"]
    assert built[3]["content"] == "seen\n[the picture follows in the next user message]"
    assert [block["type"] for block in built[4]["content"]] == ["text", "image_url", "image_url"]


def test_chat_calls_carry_their_arguments_as_text() -> None:
    """The computer is a function like any other."""
    built = openai_chat_prompt.build_messages(
        request(message("assistant", TextPart(text="t"), call("a", {"k": 1})))
    )
    assert built[1]["content"] == "t"
    assert built[1]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"k": 1}'}
    assert [tool["function"]["name"] for tool in openai_chat_prompt.build_tools(request())] == [
        "f",
        "computer",
    ]


def test_chat_leaves_out_what_another_vendor_ran_itself() -> None:
    """A call without its result is refused; a chat that had searched could not go on here."""
    searched = call("ws", tool_name="web_search", provider_executed=True)
    found = answer("ws", provider_executed=True)
    built = openai_chat_prompt.build_messages(
        request(USER, message("assistant", searched, found, TextPart(text="so"), call("a")))
    )

    assert [one["id"] for one in built[-1]["tool_calls"]] == ["a"]
    assert built[-1]["content"] == "so"


def test_user_files_reach_every_vendor() -> None:
    """A picture beside text is a picture to all three."""
    asked = request(message("user", TextPart(text="look"), FilePart(media_type="image/png", data=PICTURE)))
    (anthropic,) = anthropic_prompt.build_messages(asked, "toolset")
    (responses,) = openai_responses_prompt.build_input(asked)
    chat = openai_chat_prompt.build_messages(asked)[1]
    kinds = [[block["type"] for block in built["content"]] for built in (anthropic, responses, chat)]
    assert kinds == [["text", "image"], ["input_text", "input_image"], ["text", "image_url"]]


def test_blank_messages_vanish() -> None:
    """Empty content is refused by every vendor."""
    asked = request(message("user", TextPart(text=" ")), message("assistant", TextPart(text="\n")))
    assert anthropic_prompt.build_messages(asked, "toolset") == []
    assert openai_responses_prompt.build_input(asked) == []
    assert len(openai_chat_prompt.build_messages(asked)) == 1
