"""
Any server that speaks OpenAI's Chat Completions.

Owns the HTTP client. Prompts are built in ``openai_chat_prompt``, chunks read
in ``openai_chat_stream``.
"""

from collections.abc import AsyncGenerator
from typing import Any

from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout, omit

from chatd.faults import StreamCut
from chatd.guarded import Guard
from chatd.provider import openai_chat_prompt
from chatd.provider.openai_chat_stream import ChatReader
from chatd.provider.openai_responses import DEFAULT_BASE_URL
from chatd.provider.protocol import ModelRequest, ProviderEvent
from chatd.provider.session import (
    CONNECT_TIMEOUT_S,
    READ_TIMEOUT_S,
    USER_AGENT,
    or_alive,
    reading,
    vendor_faults,
)

__all__ = ["ChatProvider"]

# Local servers need no key, but the SDK insists on one.
_NO_KEY = "none"


class ChatProvider:
    """
    Implements ``Provider``.

    Args:
        api_key: may be empty for servers that ask for none.
        base_url: with ``/v1``; None for OpenAI's own.
    """

    name = "openai-compat"

    def __init__(self, *, api_key: str, base_url: str | None = None, guard: Guard | None = None) -> None:
        self._client = AsyncOpenAI(
            api_key=api_key or _NO_KEY,
            base_url=base_url or DEFAULT_BASE_URL,
            max_retries=0,
            timeout=Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            default_headers={"User-Agent": USER_AGENT},
            http_client=guard(DefaultAsyncHttpxClient()) if guard else None,
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Stream one model call; see ``Provider.stream``."""
        reader = ChatReader(request.computer.model_size if request.computer else None)
        parameters = _parameters(request)
        with vendor_faults(self.name):
            async with (
                await self._client.chat.completions.create(**parameters, stream=True) as stream,
                reading(stream) as chunks,
            ):
                async for chunk in chunks:
                    for neutral in or_alive(reader.feed(chunk)):
                        yield neutral
            if not reader.is_finished:
                raise StreamCut(self.name)
        for neutral in reader.finish():
            yield neutral

    async def close(self) -> None:
        """Close the HTTP client."""
        await self._client.close()


def _parameters(request: ModelRequest) -> dict[str, Any]:
    tools = openai_chat_prompt.build_tools(request)
    return {
        "model": request.model,
        "messages": [],
        # Past the SDK, which would spend more time on renaming nothing in them than all else takes.
        "extra_body": {"messages": openai_chat_prompt.build_messages(request)},
        "tools": tools or omit,
        "tool_choice": "none" if tools and not request.may_call else omit,
        # The older name: compatible servers know it, not always its successor.
        "max_tokens": request.max_output_tokens,
        "reasoning_effort": request.effort or omit,
        "stream_options": {"include_usage": True},
    }
