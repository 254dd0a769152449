"""What the loop may rely on, whoever the vendor is."""

import asyncio
from typing import Any

import pytest

from chatd.errors import ProviderFault
from chatd.provider.factory import create_provider
from chatd.provider.protocol import (
    ComputerSpec,
    Finished,
    FunctionTool,
    ModelRequest,
    PartDone,
    PromptMessage,
    Provider,
    ProviderEvent,
    TextDelta,
    ToolInputDelta,
)
from chatd.wire import TextPart, ToolCallPart, Usage
from computer.wire import ComputerCall
from tests.contract.provider.conftest import VendorServer

REQUEST = ModelRequest(
    model="model-for-tests",
    system="Be brief.",
    messages=(PromptMessage(role="user", content=(TextPart(text="Hello?"),)),),
    tools=(FunctionTool(name="read_file", description="Read.", input_schema={"type": "object"}),),
    computer=ComputerSpec(
        model_size=(1280, 800), description="Use it.", input_schema=ComputerCall.model_json_schema()
    ),
)


async def collect(provider: Provider, request: ModelRequest = REQUEST) -> list[ProviderEvent]:
    """Run one call to its end."""
    async with asyncio.timeout(30):
        return [event async for event in provider.stream(request)]


def parts_of(events: list[ProviderEvent]) -> list[Any]:
    """Return the whole parts, in order."""
    return [event.part for event in events if isinstance(event, PartDone)]


async def test_name_is_the_configured_provider(provider: Provider, vendor: VendorServer) -> None:
    """Faults and metrics carry this name."""
    assert provider.name == vendor.provider


async def test_text_arrives_as_deltas_then_as_one_part(provider: Provider, vendor: VendorServer) -> None:
    """The part replaces its deltas, and the terminal event comes last."""
    vendor.play("text")
    events = await collect(provider)
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["Hel", "lo"]
    assert [part.text for part in parts_of(events)] == ["Hello"]
    assert isinstance(events[-1], Finished)
    assert events[-1].reason == "stop"


async def test_usage_counts_the_prompt_once(provider: Provider, vendor: VendorServer) -> None:
    """Cached tokens stand beside the input tokens, whatever the vendor's own way of counting."""
    vendor.play("text")
    (finished,) = [event for event in await collect(provider) if isinstance(event, Finished)]
    usage = finished.usage
    prompt = (usage.input_tokens or 0) + (usage.cache_read_tokens or 0) + (usage.cache_creation_tokens or 0)
    assert (prompt, usage.total_tokens) == (127, 132)
    assert usage.model_copy(update={"input_tokens": 0, "cache_creation_tokens": None}) == Usage(
        input_tokens=0, output_tokens=5, total_tokens=132, reasoning_tokens=2, cache_read_tokens=100
    )


@pytest.mark.parametrize(("scenario", "reason"), [("length", "length"), ("filter", "content-filter")])
async def test_finish_reasons_are_neutral(
    provider: Provider, vendor: VendorServer, scenario: str, reason: str
) -> None:
    """The loop never sees a vendor's word."""
    vendor.play(scenario)
    last = (await collect(provider))[-1]
    assert isinstance(last, Finished)
    assert last.reason == reason


async def test_tool_call_is_announced_streamed_and_completed(
    provider: Provider, vendor: VendorServer
) -> None:
    """Fragments join to the arguments; the call itself is whole."""
    vendor.play("call")
    events = await collect(provider)
    pieces = [event for event in events if isinstance(event, ToolInputDelta)]
    assert {(piece.tool_call_id, piece.tool_name) for piece in pieces} == {("call_1", "read_file")}
    assert "".join(piece.args_delta for piece in pieces) == '{"path":"/a"}'
    text, call = parts_of(events)
    assert text.text == "Hello"
    assert (call.tool_call_id, call.tool_name, call.args, call.invalid) == (
        "call_1",
        "read_file",
        {"path": "/a"},
        None,
    )
    assert [event.reason for event in events if isinstance(event, Finished)] == ["tool-calls"]


async def test_computer_call_is_canonical(provider: Provider, vendor: VendorServer) -> None:
    """A ctrl-click at the origin is the same call from every vendor."""
    vendor.play("computer")
    events = await collect(provider)
    (call,) = parts_of(events)
    assert isinstance(call, ToolCallPart)
    assert (call.tool_name, call.invalid) == ("computer", None)
    assert call.args == {
        "actions": [{"action": "left_click", "coordinate": [0, 0], "modifiers": "ctrl"}],
        "model_size": [1280, 800],
        "screenshot": True,
    }
    assert isinstance(events[-1], Finished)
    assert events[-1].reason == "tool-calls"


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [(401, "auth", False), (429, "rate_limit", True), (500, "generic", True), (529, "overloaded", True)],
)
async def test_http_errors_are_classified_and_not_retried(
    provider: Provider, vendor: VendorServer, *, status: int, kind: str, retryable: bool
) -> None:
    """The fault carries status, hint and the vendor's words; the SDK's own retries are off."""
    vendor.fail(status, "Something about it", "some_error", Retry_After="7")
    with pytest.raises(ProviderFault) as caught:
        await collect(provider)
    fault = caught.value
    assert (fault.kind, fault.retryable, fault.status_code) == (kind, retryable, status)
    assert (fault.provider, fault.detail, fault.retry_after_s) == (vendor.provider, "Something about it", 7.0)
    assert len(vendor.requests) == 1


@pytest.mark.parametrize("ending", ["eof", "abort"])
async def test_stream_without_terminal_event_is_a_retryable_fault(
    provider: Provider, vendor: VendorServer, ending: str
) -> None:
    """Half an answer is never taken for a whole one, however the connection ended."""
    vendor.play("text")
    vendor.events, vendor.ending = vendor.events[:3], ending
    with pytest.raises(ProviderFault) as caught:
        await collect(provider)
    assert (caught.value.kind, caught.value.retryable) == ("timeout", True)
    assert ending == "abort" or "closed unexpectedly" in caught.value.user_text


async def test_nobody_listening_is_a_retryable_fault(provider: Provider, vendor: VendorServer) -> None:
    """A refused connection may heal."""
    lonely = create_provider(provider=vendor.provider, api_key="k", base_url="http://127.0.0.1:9/v1")
    with pytest.raises(ProviderFault) as caught:
        await collect(lonely)
    await lonely.close()
    assert (caught.value.kind, caught.value.retryable, caught.value.status_code) == ("timeout", True, None)


async def test_cancellation_passes_through_and_closes_the_connection(
    provider: Provider, vendor: VendorServer
) -> None:
    """A stopped turn leaves no response streaming at the vendor's cost."""
    vendor.play("text")
    vendor.events, vendor.ending = vendor.events[:3], "hang"
    started = asyncio.Event()

    async def consume() -> None:
        async for _ in provider.stream(REQUEST):
            started.set()

    task = asyncio.create_task(consume())
    async with asyncio.timeout(30):
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await vendor.client_gone.wait()


async def test_request_names_model_tools_and_user_agent(provider: Provider, vendor: VendorServer) -> None:
    """What was asked for reaches the vendor, with the key in a header and a user agent."""
    vendor.play("text")
    await collect(provider)
    (body,), (headers,) = vendor.requests, vendor.headers
    if vendor.provider == "google":
        assert vendor.paths[0].endswith("/models/model-for-tests:streamGenerateContent?alt=sse")
        assert len(body["tools"][0]["functionDeclarations"]) == 2
    else:
        assert (body["model"], body["stream"], len(body["tools"])) == ("model-for-tests", True, 2)
    assert headers["user-agent"].split()[-1] == "chatd"
    assert any("key-for-tests" in value for value in headers.values())
