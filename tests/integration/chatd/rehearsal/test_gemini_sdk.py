"""The server as the vendor's own SDK sees it: Gemini."""

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from google import genai
from google.genai import errors, types
from google.genai.models import AsyncModels
from PIL import Image

from chatd.rehearsal import RehearsalServer

DESKTOP = types.Tool(
    computer_use=types.ComputerUse(environment=types.Environment.ENVIRONMENT_DESKTOP),
)


@asynccontextmanager
async def models_of(base_url: str, key: str = "rehearsal") -> AsyncIterator[AsyncModels]:
    """The SDK, pointed at a server."""
    async with httpx2.AsyncClient() as http:
        options = types.HttpOptions(base_url=f"{base_url}/google", httpx_async_client=http)
        yield genai.Client(api_key=key, vertexai=False, http_options=options).aio.models


@pytest.fixture
async def base_url() -> AsyncIterator[str]:
    """A running server without a scenario."""
    server = RehearsalServer()
    yield await server.start()
    await server.stop()


@pytest.fixture
async def models(base_url: str) -> AsyncIterator[AsyncModels]:
    """The SDK with a key that is taken."""
    async with models_of(base_url) as models:
        yield models


def user(*parts: Any) -> types.Content:
    """What a person, or a tool, says."""
    return types.Content(role="user", parts=list(parts))


async def test_text_is_answered_whole_and_in_pieces(models: AsyncModels) -> None:
    """Vendor: the same words either way, a finish reason, usage."""
    whole = await models.generate_content(model="rehearsal", contents="What is this?")
    stream = await models.generate_content_stream(model="rehearsal", contents="What is this?")
    chunks = [chunk async for chunk in stream]

    assert "rehearsal model" in (whole.text or "")
    assert "".join(chunk.text or "" for chunk in chunks) == whole.text
    assert len(chunks) > 3
    assert chunks[-1].candidates is not None
    assert chunks[-1].candidates[0].finish_reason is types.FinishReason.STOP
    assert whole.usage_metadata is not None
    assert whole.usage_metadata.total_token_count


async def test_the_desktop_is_driven_by_the_vendors_functions(models: AsyncModels) -> None:
    """Vendor: a look, its picture in a function response, then the click in thousandths."""
    buffer = io.BytesIO()
    Image.new("RGB", (1280, 800), "#333333").save(buffer, "PNG")
    config = types.GenerateContentConfig(tools=[DESKTOP])
    contents = [user(types.Part(text="click 640 400"))]

    first = await models.generate_content(model="rehearsal", contents=list(contents), config=config)
    assert first.function_calls is not None
    look = first.function_calls[0]
    picture = types.FunctionResponsePart(
        inline_data=types.FunctionResponseBlob(mime_type="image/png", data=buffer.getvalue())
    )
    answer = types.FunctionResponse(id=look.id, name=look.name, response={"output": ""}, parts=[picture])
    assert first.candidates is not None
    assert first.candidates[0].content is not None
    contents += [first.candidates[0].content, user(types.Part(function_response=answer))]
    second = await models.generate_content(model="rehearsal", contents=list(contents), config=config)

    assert look.name == "take_screenshot"
    assert second.function_calls is not None
    (click,) = second.function_calls
    assert click.args is not None
    assert (click.name, click.args) == ("click", {"x": 500, "y": 500, "intent": "click"})


@pytest.mark.parametrize(
    ("key", "model", "status", "word"),
    [("invalid", "m", 401, "UNAUTHENTICATED"), ("k", "missing", 404, "NOT_FOUND")],
)
async def test_errors_have_the_vendors_shape(
    base_url: str, key: str, model: str, status: int, word: str
) -> None:
    """Vendor: code, status word and message."""
    async with models_of(base_url, key) as models:
        with pytest.raises(errors.ClientError) as caught:
            await models.generate_content(model=model, contents="x")

    assert (caught.value.code, caught.value.status) == (status, word)
    assert caught.value.message


async def test_a_call_without_its_response_is_refused(models: AsyncModels) -> None:
    """Vendor: the history must be whole."""
    call = types.Part(function_call=types.FunctionCall(id="t1", name="f", args={}))
    contents = [user(types.Part(text="x")), types.Content(role="model", parts=[call])]

    with pytest.raises(errors.ClientError, match="t1"):
        await models.generate_content(model="m", contents=list(contents))
