"""
OpenAI, over the Responses API.

Owns the HTTP client. Prompts are built in ``openai_responses_prompt``, events
read in ``openai_responses_stream``.
"""

from collections.abc import AsyncGenerator
from typing import Any

from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout, omit

from chatd.faults import StreamCut
from chatd.guarded import Guard
from chatd.provider import openai_responses_prompt
from chatd.provider.computer_forms import is_preview_model
from chatd.provider.openai_responses_stream import ResponsesReader
from chatd.provider.protocol import ModelRequest, ProviderEvent
from chatd.provider.session import (
    CONNECT_TIMEOUT_S,
    READ_TIMEOUT_S,
    USER_AGENT,
    or_alive,
    reading,
    vendor_faults,
)

__all__ = ["DEFAULT_BASE_URL", "ResponsesProvider"]

DEFAULT_BASE_URL = "https://api.openai.com/v1"
# Without a computer there are no coordinates to frame.
_NO_SIZE = (1, 1)


class ResponsesProvider:
    """
    Implements ``Provider``.

    Args:
        api_key: the account's key.
        base_url: with ``/v1``; None for the vendor's own.
    """

    name = "openai"

    def __init__(self, *, api_key: str, base_url: str | None = None, guard: Guard | None = None) -> None:
        self._client = AsyncOpenAI(
            api_key=api_key,
            base_url=base_url or DEFAULT_BASE_URL,
            max_retries=0,
            timeout=Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            default_headers={"User-Agent": USER_AGENT},
            http_client=guard(DefaultAsyncHttpxClient()) if guard else None,
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Stream one model call; see ``Provider.stream``."""
        reader = ResponsesReader(request.computer.model_size if request.computer else _NO_SIZE)
        parameters = _parameters(request)
        with vendor_faults(self.name):
            async with (
                await self._client.responses.create(**parameters, stream=True) as stream,
                reading(stream) as events,
            ):
                async for event in events:
                    for neutral in or_alive(reader.feed(event)):
                        yield neutral
                    if reader.is_finished:
                        return
            raise StreamCut(self.name)

    async def close(self) -> None:
        """Close the HTTP client."""
        await self._client.close()


def _parameters(request: ModelRequest) -> dict[str, Any]:
    tools = openai_responses_prompt.build_tools(request)
    return {
        "model": request.model,
        "instructions": request.system.strip() or omit,
        "input": [],
        # Past the SDK, which would spend more time on renaming nothing in it than all else takes.
        "extra_body": {"input": openai_responses_prompt.build_input(request)},
        "tools": tools or omit,
        "tool_choice": "none" if tools and not request.may_call else omit,
        "max_output_tokens": request.max_output_tokens,
        "reasoning": {"effort": request.effort} if request.effort else omit,
        "include": openai_responses_prompt.build_include(
            request.model, has_search=request.web_search is not None
        )
        or omit,
        # Nothing is kept at the vendor: the history lives here and is sent whole.
        "store": False,
        # The preview is refused without.
        "truncation": "auto" if is_preview_model(request.model) else omit,
    }
