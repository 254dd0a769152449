"""The server as the vendor's own SDK sees it: Anthropic Messages."""

import base64
import io
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import pytest
from anthropic import AsyncAnthropic
from PIL import Image

from chatd.rehearsal import RehearsalServer, Scenario

TOOLSET = {"type": "computer_toolset_20260801"}
TOOL = {"type": "computer_20251124", "name": "computer", "display_width_px": 1280, "display_height_px": 800}
SPAWN = {"name": "spawn_computer_use_agent", "input_schema": {"type": "object"}}
WAIT = {"name": "wait_agent", "input_schema": {"type": "object"}}


@pytest.fixture
async def base_url() -> AsyncIterator[str]:
    """A running server without a scenario."""
    server = RehearsalServer()
    yield await server.start()
    await server.stop()


@pytest.fixture
async def client(base_url: str) -> AsyncIterator[AsyncAnthropic]:
    """The SDK, pointed at the server."""
    async with AsyncAnthropic(base_url=f"{base_url}/anthropic", api_key="rehearsal", max_retries=0) as client:
        yield client


def _picture() -> dict[str, Any]:
    buffer = io.BytesIO()
    Image.new("RGB", (1280, 800), "#333333").save(buffer, "PNG")
    data = base64.b64encode(buffer.getvalue()).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}


async def test_text_is_answered_whole(client: AsyncAnthropic) -> None:
    """Vendor: a message with text, a stop reason and usage."""
    message = await client.messages.create(
        model="rehearsal", max_tokens=500, messages=[{"role": "user", "content": "say hello"}]
    )

    assert [(block.type, block.text) for block in message.content] == [("text", "hello")]
    assert (message.stop_reason, message.role, message.model) == ("end_turn", "assistant", "rehearsal")
    assert (message.usage.input_tokens, message.usage.output_tokens) == (3, 2)
    assert message._request_id is not None


async def test_text_is_streamed_in_pieces(client: AsyncAnthropic) -> None:
    """Vendor: the SDK's accumulated message equals the whole one."""
    messages = [{"role": "user", "content": "What is this?"}]
    async with client.messages.stream(model="any-model", max_tokens=500, messages=messages) as stream:
        pieces = [piece async for piece in stream.text_stream]
        final = await stream.get_final_message()

    assert len(pieces) > 3
    assert "".join(pieces) == final.content[0].text
    assert "rehearsal model" in final.content[0].text
    assert final.stop_reason == "end_turn"
    assert final.usage.output_tokens > 50


async def test_an_errand_is_delegated_waited_for_and_reported(client: AsyncAnthropic) -> None:
    """Ours: the root chat's three steps over the wire, streaming."""
    messages: list[Any] = [{"role": "user", "content": "open a terminal"}]
    results = [
        '{"output": "{\\"chat_id\\": \\"c1\\"}"}',
        '{"chat_id": "c1", "report": "done", "status": "waiting"}',
    ]
    called: list[str] = []
    for result in results:
        async with client.messages.stream(
            model="m", max_tokens=500, messages=messages, tools=[SPAWN, WAIT]
        ) as stream:
            reply = await stream.get_final_message()
        use = reply.content[-1]
        called.append(f"{use.name} {use.input}")
        assert reply.stop_reason == "tool_use"
        answer = {"type": "tool_result", "tool_use_id": use.id, "content": result}
        messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": [answer]}]
    last = await client.messages.create(model="m", max_tokens=500, messages=messages, tools=[SPAWN, WAIT])

    assert called == [
        "spawn_computer_use_agent {'prompt': 'open a terminal', 'title': 'open a terminal'}",
        "wait_agent {'chat_id': 'c1'}",
    ]
    assert last.content[0].text == "The agent at the desktop reports:\n\ndone"


@pytest.mark.parametrize(
    ("tool", "betas", "expected"),
    [
        (TOOL, ["computer-use-2025-11-24"], [("computer", {"action": "screenshot"}, None)]),
        (TOOLSET, [], [("screenshot", {}, "computer")]),
    ],
)
async def test_the_computer_is_used_in_both_forms(
    client: AsyncAnthropic, tool: Any, betas: list[str], expected: list[Any]
) -> None:
    """Vendor: one tool with an action, or a toolset with a tool per action, streamed in the beta."""
    messages = [{"role": "user", "content": "press ctrl+l"}]
    async with client.beta.messages.stream(
        model="m", max_tokens=500, messages=messages, tools=[tool], betas=betas
    ) as stream:
        reply = await stream.get_final_message()

    uses = [block for block in reply.content if block.type == "tool_use"]
    assert expected == [(use.name, use.input, use.toolset_name) for use in uses]
    assert (reply.stop_reason, uses[0].caller.type) == ("tool_use", "direct")


async def test_the_next_action_follows_the_screenshot(client: AsyncAnthropic) -> None:
    """Ours: the key is pressed once a picture has come back, and then the answer is given."""
    messages: list[Any] = [{"role": "user", "content": "press ctrl+l"}]
    uses: list[tuple[str, Any]] = []
    for _ in range(2):
        reply = await client.beta.messages.create(
            model="m", max_tokens=500, messages=messages, tools=[TOOLSET]
        )
        use = reply.content[-1]
        uses.append((use.name, use.input))
        answer = {
            "type": "tool_result",
            "tool_use_id": use.id,
            "content": [_picture()],
            "toolset_name": "computer",
        }
        content = [block.model_dump(exclude_none=True) for block in reply.content]
        messages += [{"role": "assistant", "content": content}, {"role": "user", "content": [answer]}]
    last = await client.beta.messages.create(model="m", max_tokens=500, messages=messages, tools=[TOOLSET])

    assert uses == [("screenshot", {}), ("key", {"text": "ctrl+l"})]
    assert last.content[0].text == "Done: pressed ctrl+l."


async def test_a_long_answer_stops_at_max_tokens(client: AsyncAnthropic) -> None:
    """Vendor: the stop reason says so."""
    message = await client.messages.create(
        model="m", max_tokens=5, messages=[{"role": "user", "content": "hi"}]
    )

    assert (message.stop_reason, message.usage.output_tokens) == ("max_tokens", 5)


async def test_models_are_listed(client: AsyncAnthropic) -> None:
    """Vendor: the first page of the list."""
    page = await client.models.list()

    assert [model.id for model in page.data] == ["rehearsal"]


@pytest.mark.parametrize(
    ("key", "model", "content", "error"),
    [
        ("invalid", "m", "x", anthropic.AuthenticationError),
        ("k", "missing", "x", anthropic.NotFoundError),
        ("k", "m", "", anthropic.BadRequestError),
    ],
)
async def test_refusals_have_the_vendors_shape(
    base_url: str, key: str, model: str, content: str, error: type[anthropic.APIStatusError]
) -> None:
    """Vendor: the SDK raises its own classes, with the body's type and the request's id."""
    async with AsyncAnthropic(base_url=f"{base_url}/anthropic", api_key=key, max_retries=0) as client:
        with pytest.raises(error) as caught:
            await client.messages.create(
                model=model, max_tokens=5, messages=[{"role": "user", "content": content}]
            )

    assert caught.value.body["error"]["type"].endswith("_error")
    assert caught.value.request_id == caught.value.body["request_id"]


async def test_scripted_faults_arrive_as_the_vendors_errors() -> None:
    """Vendor: 429 with a hint, 500 and 529 are different classes; then the scenario is used up."""
    hint = {"retry-after": "7"}
    faults = [
        {"fault": {"kind": "http", "status": status, "headers": headers}}
        for status, headers in ((429, hint), (500, {}), (529, {}))
    ]
    server = RehearsalServer()
    base_url = await server.start(scenario=Scenario.model_validate({"turns": faults}))
    caught: list[Any] = []
    async with AsyncAnthropic(base_url=f"{base_url}/anthropic", api_key="k", max_retries=0) as client:
        for _ in range(4):
            try:
                await client.messages.create(
                    model="m", max_tokens=5, messages=[{"role": "user", "content": "x"}]
                )
            except anthropic.APIStatusError as error:
                caught.append(
                    (
                        error.status_code,
                        error.body["error"]["type"],
                        error.response.headers.get("retry-after"),
                    )
                )
    await server.stop()

    assert caught == [
        (429, "rate_limit_error", "7"),
        (500, "api_error", None),
        (529, "overloaded_error", None),
    ]
