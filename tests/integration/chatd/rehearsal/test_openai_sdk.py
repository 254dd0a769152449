"""The server as the vendor's own SDK sees it: OpenAI Responses and Chat Completions."""

import base64
import io
import json
from collections.abc import AsyncIterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from PIL import Image

from chatd.rehearsal import RehearsalServer, Scenario

SPAWN = {
    "type": "function",
    "name": "spawn_computer_use_agent",
    "parameters": {"type": "object"},
    "strict": False,
}
CHAT_COMPUTER = {"type": "function", "function": {"name": "computer", "parameters": {"type": "object"}}}
CHAT_SPAWN = {
    "type": "function",
    "function": {"name": "spawn_computer_use_agent", "parameters": {"type": "object"}},
}


@pytest.fixture
async def base_url() -> AsyncIterator[str]:
    """A running server without a scenario."""
    server = RehearsalServer()
    yield await server.start()
    await server.stop()


@pytest.fixture
async def client(base_url: str) -> AsyncIterator[AsyncOpenAI]:
    """The SDK, pointed at the server."""
    async with AsyncOpenAI(base_url=f"{base_url}/openai/v1", api_key="rehearsal", max_retries=0) as client:
        yield client


def _picture_url() -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (1280, 800), "#333333").save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


async def test_a_response_is_answered_whole(client: AsyncOpenAI) -> None:
    """Vendor: output text, status and usage."""
    response = await client.responses.create(model="rehearsal", input="say hello", instructions="be brief")

    assert (response.output_text, response.status, response.model) == ("hello", "completed", "rehearsal")
    assert response.usage.total_tokens == response.usage.input_tokens + response.usage.output_tokens
    assert response._request_id


async def test_a_response_is_streamed_in_numbered_events(client: AsyncOpenAI) -> None:
    """Vendor: created first, completed last, deltas between that join to the text."""
    stream = await client.responses.create(model="m", input="What is this?", stream=True)
    events = [event async for event in stream]

    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    final = events[-1].response
    assert (events[0].type, events[-1].type) == ("response.created", "response.completed")
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert len(deltas) > 3
    assert "".join(deltas) == final.output_text
    assert final.usage.output_tokens > 50


async def test_the_sdks_stream_helper_accepts_a_function_call(client: AsyncOpenAI) -> None:
    """Vendor: the helper checks the order of events and accumulates the arguments."""
    async with client.responses.stream(model="m", input="open a terminal", tools=[SPAWN]) as stream:
        async for _ in stream:
            pass
        response = await stream.get_final_response()

    message, call = response.output
    assert message.content[0].text == "I'll do that on the desktop."
    assert (call.type, call.name) == ("function_call", "spawn_computer_use_agent")
    assert json.loads(call.arguments) == {"prompt": "open a terminal", "title": "open a terminal"}


@pytest.mark.parametrize("is_streaming", [True, False])
async def test_computer_calls_batch_actions(client: AsyncOpenAI, is_streaming: bool) -> None:
    """Vendor: a call holds several actions, its output is a screenshot."""
    items: list[Any] = [{"role": "user", "content": "press ctrl+l; click 3 4; scroll down 1"}]
    batches: list[list[str]] = []
    response: Any = None
    for _ in range(3):
        arguments: dict[str, Any] = {"model": "m", "input": items, "tools": [{"type": "computer"}]}
        if is_streaming:
            events = [event async for event in await client.responses.create(**arguments, stream=True)]
            response = events[-1].response
        else:
            response = await client.responses.create(**arguments)
        for item in response.output:
            items.append(item.model_dump(exclude_none=True))
            if item.type == "computer_call":
                batches.append([action.type for action in item.actions])
                output = {"type": "computer_screenshot", "image_url": _picture_url()}
                items.append({"type": "computer_call_output", "call_id": item.call_id, "output": output})

    assert batches == [["screenshot"], ["keypress", "click", "scroll"]]
    assert response.output_text == "Done: pressed ctrl+l, left-clicked at 3 4, scrolled down 1."


async def test_a_long_response_is_incomplete(client: AsyncOpenAI) -> None:
    """Vendor: the status and its reason say that the limit cut it; the stream ends likewise."""
    response = await client.responses.create(model="m", input="hi", max_output_tokens=5)
    events = [
        e
        async for e in await client.responses.create(model="m", input="hi", max_output_tokens=5, stream=True)
    ]

    assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert events[-1].type == "response.incomplete"


async def test_a_completion_is_answered_whole(client: AsyncOpenAI) -> None:
    """Vendor: content, finish reason and usage."""
    completion = await client.chat.completions.create(
        model="rehearsal",
        messages=[{"role": "system", "content": "x"}, {"role": "user", "content": "say hello"}],
    )

    choice = completion.choices[0]
    assert (choice.message.content, choice.finish_reason) == ("hello", "stop")
    assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (3, 2)


async def test_a_completion_is_streamed_with_usage_at_the_end(client: AsyncOpenAI) -> None:
    """Vendor: the usage chunk has no choices and comes only when asked for."""
    messages: Any = [{"role": "user", "content": "What is this?"}]
    plain = [c async for c in await client.chat.completions.create(model="m", messages=messages, stream=True)]
    counted = [
        chunk
        async for chunk in await client.chat.completions.create(
            model="m", messages=messages, stream=True, stream_options={"include_usage": True}
        )
    ]

    assert all(chunk.choices and chunk.usage is None for chunk in plain)
    assert plain[-1].choices[0].finish_reason == "stop"
    assert (counted[-1].choices, counted[-1].usage.completion_tokens > 50) == ([], True)


async def test_the_sdks_completion_helper_accumulates_a_tool_call(client: AsyncOpenAI) -> None:
    """Vendor: the arguments arrive in pieces under the call's index."""
    async with client.chat.completions.stream(
        model="m", messages=[{"role": "user", "content": "open a terminal"}], tools=[CHAT_SPAWN]
    ) as stream:
        completion = await stream.get_final_completion()

    choice = completion.choices[0]
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", "I'll do that on the desktop.")
    (call,) = choice.message.tool_calls
    assert json.loads(call.function.arguments)["prompt"] == "open a terminal"


async def test_the_computer_as_a_function_gets_its_pictures_from_the_user(client: AsyncOpenAI) -> None:
    """Ours: canonical actions go out, a user's message with the picture comes back."""
    messages: list[Any] = [{"role": "user", "content": "press ctrl+l; click 0 0"}]
    batches: list[Any] = []
    for _ in range(2):
        completion = await client.chat.completions.create(model="m", messages=messages, tools=[CHAT_COMPUTER])
        message = completion.choices[0].message
        (call,) = message.tool_calls
        batches.append(json.loads(call.function.arguments)["actions"])
        picture = {"type": "image_url", "image_url": {"url": _picture_url()}}
        messages += [
            message.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": call.id, "content": "ok"},
            {"role": "user", "content": [{"type": "text", "text": "The screen now."}, picture]},
        ]
    last = await client.chat.completions.create(model="m", messages=messages, tools=[CHAT_COMPUTER])

    assert batches == [
        [{"action": "screenshot"}],
        [{"action": "key", "text": "ctrl+l"}, {"action": "left_click", "coordinate": [0, 0]}],
    ]
    assert last.choices[0].message.content == "Done: pressed ctrl+l, left-clicked at 0 0."


async def test_models_are_listed(client: AsyncOpenAI) -> None:
    """Vendor: the list of models."""
    assert [model.id async for model in client.models.list()] == ["rehearsal"]


@pytest.mark.parametrize(
    ("key", "model", "text", "expected"),
    [
        ("invalid", "m", "x", (openai.AuthenticationError, "invalid_api_key")),
        ("k", "missing", "x", (openai.NotFoundError, "model_not_found")),
        ("k", "m", 7, (openai.BadRequestError, None)),
    ],
)
async def test_refusals_have_the_vendors_shape(
    base_url: str, key: str, model: str, text: Any, expected: tuple[type[openai.APIStatusError], str | None]
) -> None:
    """Vendor: the SDK raises its own classes, with code and request id, for both APIs."""
    error, code = expected
    async with AsyncOpenAI(base_url=f"{base_url}/openai/v1", api_key=key, max_retries=0) as client:
        with pytest.raises(error) as first:
            await client.responses.create(model=model, input=text)
        with pytest.raises(error) as second:
            await client.chat.completions.create(model=model, messages=[{"role": "user", "content": text}])

    assert (first.value.code, second.value.code) == (code, code)
    assert first.value.request_id


async def test_scripted_faults_arrive_as_the_vendors_errors() -> None:
    """Vendor: the status decides the class; a body of one's own is passed as it is."""
    turns = [
        {"fault": {"kind": "http", "status": 429, "headers": {"retry-after": "7"}}},
        {"fault": {"kind": "http", "status": 503, "body": "<html>busy</html>"}},
    ]
    server = RehearsalServer()
    base_url = await server.start(scenario=Scenario.model_validate({"turns": turns}))
    async with AsyncOpenAI(base_url=f"{base_url}/openai/v1", api_key="k", max_retries=0) as client:
        with pytest.raises(openai.RateLimitError) as limited:
            await client.responses.create(model="m", input="x")
        with pytest.raises(openai.InternalServerError) as busy:
            await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
    await server.stop()

    assert (limited.value.code, limited.value.response.headers["retry-after"]) == ("rate_limit_exceeded", "7")
    assert busy.value.response.text == "<html>busy</html>"
