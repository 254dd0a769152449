"""
Anthropic, over the Messages API.

Owns the HTTP client. Prompts are built in ``anthropic_prompt``, events read in
``anthropic_stream``.
"""

from collections.abc import AsyncGenerator
from typing import Any

from anthropic import AsyncAnthropic, Timeout, omit

from chatd.faults import StreamCut
from chatd.provider import anthropic_prompt
from chatd.provider.anthropic_prompt import ComputerForm
from chatd.provider.anthropic_stream import AnthropicReader
from chatd.provider.protocol import ModelRequest, ProviderEvent
from chatd.provider.session import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, USER_AGENT, vendor_faults

__all__ = ["DEFAULT_BASE_URL", "AnthropicProvider"]

DEFAULT_BASE_URL = "https://api.anthropic.com"
# The single tool is still a beta and needs its header.
_SINGLE_TOOL_BETA = "computer-use-2025-11-24"


class AnthropicProvider:
    """
    Implements ``Provider``.

    Args:
        api_key: the account's key.
        base_url: without ``/v1``; None for the vendor's own.
        computer_form: ``toolset`` for ``computer_toolset_20260801``, ``single`` for the
            beta tool ``computer_20251124`` that older models know.
    """

    name = "anthropic"

    def __init__(
        self, *, api_key: str, base_url: str | None = None, computer_form: ComputerForm = "toolset"
    ) -> None:
        self._computer_form = computer_form
        self._client = AsyncAnthropic(
            api_key=api_key,
            base_url=base_url or DEFAULT_BASE_URL,
            max_retries=0,
            timeout=Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            default_headers={"User-Agent": USER_AGENT},
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Stream one model call; see ``Provider.stream``."""
        size = request.computer.model_size if request.computer else None
        reader = AnthropicReader(size)
        parameters = self._parameters(request)
        with vendor_faults(self.name):
            async with await self._open(parameters) as events:
                async for event in events:
                    for neutral in reader.feed(event):
                        yield neutral
                    if reader.is_finished:
                        return
            raise StreamCut(self.name)

    async def close(self) -> None:
        """Close the HTTP client."""
        await self._client.close()

    def _parameters(self, request: ModelRequest) -> dict[str, Any]:
        system = anthropic_prompt.build_system(request.system)
        tools = anthropic_prompt.build_tools(request, self._computer_form)
        parameters = {
            "model": request.model,
            "max_tokens": request.max_output_tokens,
            "system": system or omit,
            "messages": anthropic_prompt.build_messages(request, self._computer_form),
            "tools": tools or omit,
        }
        if request.computer is not None and self._computer_form == "single":
            parameters["betas"] = [_SINGLE_TOOL_BETA]
        return parameters

    async def _open(self, parameters: dict[str, Any]) -> Any:  # noqa: ANN401 - one of two stream classes
        if "betas" in parameters:
            return await self._client.beta.messages.create(**parameters, stream=True)
        return await self._client.messages.create(**parameters, stream=True)
