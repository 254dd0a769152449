"""What only one vendor does."""

from dataclasses import replace
from typing import Any

import pytest

from chatd.errors import ProviderFault
from chatd.provider.anthropic import AnthropicProvider
from chatd.provider.protocol import Finished, PartDone, PromptMessage, Provider, ReasoningDelta
from chatd.wire import ReasoningPart, ToolCallPart, ToolResultPart
from tests.contract.provider import transcripts
from tests.contract.provider.conftest import VendorServer
from tests.contract.provider.test_provider_contract import REQUEST, collect, parts_of

only_anthropic = pytest.mark.parametrize("provider_name", ["anthropic"], indirect=True)
only_google = pytest.mark.parametrize("provider_name", ["google"], indirect=True)
only_openai = pytest.mark.parametrize("provider_name", ["openai"], indirect=True)
only_compatible = pytest.mark.parametrize("provider_name", ["openai-compat"], indirect=True)
reasoners = pytest.mark.parametrize("provider_name", ["anthropic", "google", "openai"], indirect=True)


def following(answer: list[Any], *results: ToolResultPart) -> Any:
    """Return the request that continues REQUEST after *answer*."""
    turn = [PromptMessage(role="assistant", content=tuple(answer))]
    if results:
        turn.append(PromptMessage(role="tool", content=results))
    return replace(REQUEST, messages=REQUEST.messages + tuple(turn))


def picture_for(call: ToolCallPart) -> ToolResultPart:
    """Return a screenshot as a call's result."""
    result = {"data": "iVBORw0K", "mime_type": "image/png", "text": ""}
    return ToolResultPart(
        tool_call_id=call.tool_call_id, tool_name=call.tool_name, result=result, is_media=True
    )


@reasoners
async def test_reasoning_streams_and_returns_unchanged(provider: Provider, vendor: VendorServer) -> None:
    """Signatures and encrypted items survive the round trip, in order."""
    vendor.play("reasoning")
    events = await collect(provider)
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == "Let me see"
    parts = parts_of(events)
    assert isinstance(parts[0], ReasoningPart)
    assert parts[0].text == "Let me see"
    await collect(provider, following(parts))
    if vendor.provider == "google":
        signed = {"text": "Hello", "thoughtSignature": "c2ln"}
        assert vendor.requests[1]["contents"][1]["parts"] == [signed]
        return
    if vendor.provider == "openai":
        assert vendor.requests[1]["input"][1] == transcripts.REASONING_ITEM
        return
    assert vendor.requests[1]["messages"][1]["content"][:2] == [
        {"type": "thinking", "thinking": "Let me see", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
    ]


@only_anthropic
async def test_anthropic_computer_round_trip_is_verbatim(provider: Provider, vendor: VendorServer) -> None:
    """The block goes back as it came, cache marks aside, and the picture is an image."""
    vendor.play("computer")
    (call,) = parts_of(await collect(provider))
    await collect(provider, following([call], picture_for(call)))
    body = vendor.requests[1]
    sent, result = body["messages"][1]["content"][0], body["messages"][2]["content"][0]
    sent.pop("cache_control")
    start = vendor.events[1]["content_block"]
    assert sent == start | {"input": {"coordinate": [0, 0], "text": "ctrl"}}
    assert (result["toolset_name"], result["content"][0]["type"]) == ("computer", "image")
    assert body["tools"][-1] == {"type": "computer_toolset_20260801"}
    assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}


@only_anthropic
async def test_anthropic_single_tool_uses_the_beta(vendor: VendorServer) -> None:
    """Older models know the computer only by the beta's header."""
    vendor.play("text")
    built = AnthropicProvider(api_key="k", base_url=vendor.url, computer_form="single")
    await collect(built)
    await built.close()
    assert vendor.headers[0]["anthropic-beta"] == "computer-use-2025-11-24"
    assert vendor.requests[0]["tools"][-1]["display_width_px"] == 1280


@only_anthropic
async def test_anthropic_error_event_inside_the_stream_is_classified(
    provider: Provider, vendor: VendorServer
) -> None:
    """The response began with 200; the event says what happened."""
    vendor.play("text")
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    vendor.events = [*vendor.events[:3], error]
    with pytest.raises(ProviderFault) as caught:
        await collect(provider)
    fault = caught.value
    assert (fault.kind, fault.retryable, fault.status_code, fault.detail) == (
        "overloaded",
        True,
        None,
        "Overloaded",
    )


@only_anthropic
async def test_anthropic_cut_off_arguments_are_not_run(provider: Provider, vendor: VendorServer) -> None:
    """A call whose JSON ends early is kept, marked invalid and empty."""
    vendor.play("call")
    vendor.events = [
        event for event in vendor.events if event.get("delta", {}).get("partial_json") != 'th":"/a"}'
    ]
    call = parts_of(await collect(provider))[-1]
    assert call.args == {}
    assert "not valid JSON" in call.invalid


@only_openai
async def test_openai_unapproved_safety_checks_stop_the_call(
    provider: Provider, vendor: VendorServer
) -> None:
    """The checks are kept and a person is asked for; nothing runs before she allowed it."""
    vendor.play("unapproved")
    (call,) = parts_of(await collect(provider))
    assert (call.needs_approval, call.waits_for_approval, call.invalid) == (("A bank",), True, None)
    assert call.provider_metadata["openai"]["pending_safety_checks"][0]["id"] == "sc_1"


@only_openai
async def test_openai_reported_failure_is_a_retryable_fault(provider: Provider, vendor: VendorServer) -> None:
    """A failed response is an error, not an empty answer."""
    vendor.play("failed")
    with pytest.raises(ProviderFault) as caught:
        await collect(provider)
    assert (caught.value.retryable, caught.value.detail) == (True, "The model could not be reached.")


@only_openai
async def test_openai_keeps_nothing_at_the_vendor(provider: Provider, vendor: VendorServer) -> None:
    """The whole history goes each time; calls return verbatim with their picture."""
    vendor.play("computer")
    (call,) = parts_of(await collect(provider))
    await collect(provider, following([call], picture_for(call)))
    body = vendor.requests[1]
    assert (body["store"], "previous_response_id" in body) == (False, False)
    assert body["include"] == ["reasoning.encrypted_content"]
    assert body["input"][1] == transcripts.COMPUTER_CALL
    assert body["input"][2]["output"]["image_url"].startswith("data:image/png;base64,")
    assert body["tools"][-1] == {"type": "computer"}


@only_compatible
async def test_compatible_servers_may_be_sloppy(provider: Provider, vendor: VendorServer) -> None:
    """No ids, one index for two calls, reasoning in a field of its own, "stop" behind calls, no usage."""
    vendor.play("call")
    head = vendor.events[0] | {"choices": []}

    def chunk(finish: str | None = None, **delta: Any) -> dict[str, Any]:
        return head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    first = {"index": 0, "function": {"name": "f", "arguments": ""}}
    second = {"index": 0, "id": "x", "function": {"name": "g", "arguments": "{}"}}
    vendor.events = [
        chunk(reasoning_content="Hm"),
        chunk(tool_calls=[first]),
        chunk(tool_calls=[second]),
        chunk("stop"),
    ]
    events = await collect(provider)
    thought, one, other = parts_of(events)
    assert (thought.text, one.tool_name, other.tool_name, other.tool_call_id) == ("Hm", "f", "g", "x")
    assert one.tool_call_id.startswith("call_")
    assert isinstance(events[-1], Finished)
    assert (events[-1].reason, events[-1].usage.total_tokens) == ("tool-calls", None)


@only_compatible
async def test_compatible_computer_arguments_are_checked(provider: Provider, vendor: VendorServer) -> None:
    """A function's arguments are the model's own; malformed ones are not run."""
    vendor.play("computer")
    vendor.events = [event for event in vendor.events if "ctrl" not in str(event)]
    (call,) = parts_of(await collect(provider))
    assert (call.args, bool(call.invalid)) == ({}, True)


NATIVE = replace(REQUEST, model="gemini-3.5-flash")


@only_google
async def test_google_desktop_actions_round_trip(provider: Provider, vendor: VendorServer) -> None:
    """Thousandths become pixels; the call goes back as it came, with its picture."""
    vendor.play("native")
    (call,) = parts_of(await collect(provider, NATIVE))
    assert call.args["actions"] == [{"action": "left_click", "coordinate": [640, 799]}]
    await collect(provider, replace(following([call], picture_for(call)), model=NATIVE.model))
    body = vendor.requests[1]
    assert {"computerUse": {"environment": "ENVIRONMENT_DESKTOP"}} in body["tools"]
    asked, answered = (content["parts"][0] for content in body["contents"][1:])
    assert asked == {
        "functionCall": {
            "id": "call_1",
            "name": "click",
            "args": {"x": 500, "y": 999, "intent": "Send it"},
        },
        "thoughtSignature": "c2ln",
    }
    response = answered["functionResponse"]
    assert (response["id"], response["name"]) == ("call_1", "click")
    assert response["parts"][0]["inline_data"]["mime_type"] == "image/png"


@only_google
async def test_google_unapproved_action_is_not_done(provider: Provider, vendor: VendorServer) -> None:
    """The vendor wants a person to decide; nothing is injected."""
    vendor.play("unapproved")
    (call,) = parts_of(await collect(provider, NATIVE))
    assert call.args == {}
    assert "a person must approve" in call.invalid
    assert "A bank" in call.invalid


@only_google
async def test_google_refused_prompt_is_filtered(provider: Provider, vendor: VendorServer) -> None:
    """A prompt that is blocked has no candidate at all."""
    vendor.events = [{"promptFeedback": {"blockReason": "SAFETY"}}]
    last = (await collect(provider))[-1]
    assert isinstance(last, Finished)
    assert last.reason == "content-filter"


@only_anthropic
async def test_anthropic_is_asked_to_go_on_where_it_paused(provider: Provider, vendor: VendorServer) -> None:
    """A pause is no end: the open search goes back, the answer is one, its tokens are summed up."""
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    vendor.events = transcripts.anthropic_message([(search, [])], "pause_turn")
    events = []
    async for event in provider.stream(REQUEST):
        events.append(event)
        if isinstance(event, PartDone):
            vendor.play("text")

    finished = [event for event in events if isinstance(event, Finished)]
    assert [part.type for part in parts_of(events)] == ["tool-call", "text"]
    assert [(one.reason, one.usage.output_tokens) for one in finished] == [("stop", 10)]
    first, second = vendor.requests
    assert second["messages"][:-1] == first["messages"]
    (block,) = second["messages"][-1]["content"]
    assert (block["type"], block["id"]) == ("server_tool_use", "srvtoolu_1")


@only_anthropic
async def test_anthropic_that_pauses_for_ever_is_asked_ten_times(
    provider: Provider, vendor: VendorServer
) -> None:
    """BUGS 11: resubmitted with a cap; the end is no ordinary one."""
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    vendor.events = transcripts.anthropic_message([(search, [])], "pause_turn")
    last = (await collect(provider))[-1]

    assert isinstance(last, Finished)
    assert (last.reason, last.usage.output_tokens, len(vendor.requests)) == ("paused", 50, 10)


@only_anthropic
async def test_anthropic_full_window_is_no_full_answer(provider: Provider, vendor: VendorServer) -> None:
    """BUGS 16: the model's window, not the answer's own limit."""
    vendor.events = transcripts.anthropic_message([], "model_context_window_exceeded")
    last = (await collect(provider))[-1]

    assert isinstance(last, Finished)
    assert last.reason == "context-exceeded"


EFFORT_FIELDS: dict[str, dict[str, Any]] = {
    "anthropic": {
        "output_config": {"effort": "low"},
        "thinking": {"type": "adaptive", "display": "summarized"},
    },
    "google": {"generationConfig": {"thinkingConfig": {"include_thoughts": True, "thinking_level": "LOW"}}},
    "openai": {"reasoning": {"effort": "low"}},
    "openai-compat": {"reasoning_effort": "low"},
}


@pytest.mark.parametrize("is_beta", [False, True])
async def test_a_chosen_effort_is_in_the_request(
    provider: Provider, vendor: VendorServer, *, is_beta: bool
) -> None:
    """Vendors: each by its own fields; without one nothing but what was sent before."""
    vendor.play("text")
    request = REQUEST if is_beta else replace(REQUEST, computer=None)
    await collect(provider, replace(request, effort="low"))
    await collect(provider, request)
    chosen, usual = vendor.requests

    expected = EFFORT_FIELDS[vendor.provider]
    for name, value in expected.items():
        if name == "generationConfig":
            assert chosen[name]["thinkingConfig"] == value["thinkingConfig"]
            assert usual[name]["thinkingConfig"] == {"include_thoughts": True}
        else:
            assert chosen[name] == value
            assert name not in usual
