"""
Google's Gemini API (``generateContent``, streamed).

Owns the HTTP client. Prompts are built in ``gemini_prompt``, chunks read in ``gemini_stream``.
"""

from collections.abc import AsyncGenerator
from typing import Any

import httpx2
from google import genai
from google.genai.types import (
    AutomaticFunctionCallingConfig,
    Content,
    FunctionCallingConfig,
    FunctionCallingConfigMode,
    GenerateContentConfig,
    HttpOptions,
    ThinkingConfig,
    Tool,
    ToolConfig,
)

from chatd.faults import StreamCut
from chatd.guarded import Guard
from chatd.provider.efforts import gemini_thinking
from chatd.provider.gemini_prompt import build_contents, build_tools, combines_tools, has_computer_tool
from chatd.provider.gemini_stream import GeminiReader
from chatd.provider.protocol import ModelRequest, ProviderEvent
from chatd.provider.session import (
    CONNECT_TIMEOUT_S,
    READ_TIMEOUT_S,
    USER_AGENT,
    or_alive,
    reading,
    vendor_faults,
)

__all__ = ["GeminiProvider"]

_NO_CALLS = ToolConfig(function_calling_config=FunctionCallingConfig(mode=FunctionCallingConfigMode.NONE))


class LimitedClient(httpx2.AsyncClient):
    """Keeps to its own limits: the SDK asks for none at each request."""

    def build_request(
        self,
        *args: Any,  # noqa: ANN401 -- its base's own
        timeout: object = None,  # noqa: ARG002
        **kwargs: Any,  # noqa: ANN401
    ) -> httpx2.Request:
        """As its base does, with the client's own limits."""
        return super().build_request(*args, **kwargs)


class GeminiProvider:
    """
    Implements ``Provider``.

    Args:
        api_key: the account's key.
        base_url: without a version; None for Google's own.
    """

    name = "google"

    def __init__(self, *, api_key: str, base_url: str | None = None, guard: Guard | None = None) -> None:
        # The SDK prefers aiohttp and then repeats a failed connection by itself, after up to ten seconds.
        self._http = LimitedClient(timeout=httpx2.Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S))
        if guard is not None:
            guard(self._http)
        self._client = genai.Client(
            api_key=api_key,
            vertexai=False,
            http_options=HttpOptions(
                base_url=base_url,
                headers={"User-Agent": USER_AGENT},
                httpx_async_client=self._http,
            ),
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Stream one model call; see ``Provider.stream``."""
        is_native = has_computer_tool(request.model)
        reader = GeminiReader(request.computer.model_size if request.computer else None, is_native=is_native)
        with vendor_faults(self.name):
            stream = await self._client.aio.models.generate_content_stream(
                model=request.model,
                contents=[Content.model_validate(content) for content in build_contents(request)],
                config=_config(request),
            )
            async with reading(stream) as chunks:
                async for chunk in chunks:
                    for neutral in or_alive(reader.feed(chunk)):
                        yield neutral
            if not reader.is_finished:
                raise StreamCut(self.name)
        for neutral in reader.finish():
            yield neutral

    async def close(self) -> None:
        """Close the HTTP client."""
        await self._http.aclose()


def _tool_config(request: ModelRequest) -> ToolConfig | None:
    if not request.may_call:
        return _NO_CALLS
    if request.web_search is not None and combines_tools(request.model):
        # Searches beside functions are told as parts, and want to be sent back.
        return ToolConfig(include_server_side_tool_invocations=True)
    return None


def _config(request: ModelRequest) -> GenerateContentConfig:
    tools = [Tool.model_validate(tool) for tool in build_tools(request)]
    return GenerateContentConfig(
        system_instruction=request.system if request.system.strip() else None,
        tools=list(tools) or None,
        tool_config=_tool_config(request) if tools else None,
        max_output_tokens=request.max_output_tokens,
        thinking_config=ThinkingConfig(
            include_thoughts=True, **gemini_thinking(request.model, request.effort)
        ),
        automatic_function_calling=AutomaticFunctionCallingConfig(disable=True),
        automatic_continuation=False,
    )
