"""
Anthropic, over the Messages API.

Owns the HTTP client. Prompts are built in ``anthropic_prompt``, events read in
``anthropic_stream``.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient, Timeout, omit

from chatd.faults import StreamCut
from chatd.guarded import Guard
from chatd.provider import anthropic_prompt
from chatd.provider.anthropic_stream import AnthropicReader
from chatd.provider.computer_forms import FORMS, ComputerForm, anthropic_form
from chatd.provider.efforts import anthropic_thinking
from chatd.provider.protocol import (
    MAX_PAUSES,
    Finished,
    ModelRequest,
    PartDone,
    PromptMessage,
    ProviderEvent,
)
from chatd.provider.session import (
    CONNECT_TIMEOUT_S,
    READ_TIMEOUT_S,
    USER_AGENT,
    or_alive,
    reading,
    vendor_faults,
)
from chatd.wire import Part, Usage

__all__ = ["DEFAULT_BASE_URL", "AnthropicProvider"]

DEFAULT_BASE_URL = "https://api.anthropic.com"


class AnthropicProvider:
    """
    Implements ``Provider``.

    Args:
        api_key: the account's key.
        base_url: without ``/v1``; None for the vendor's own.
        computer_form: None for the one that each model takes; see ``computer_forms``.
    """

    name = "anthropic"

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str | None = None,
        computer_form: ComputerForm | None = None,
        guard: Guard | None = None,
    ) -> None:
        self._computer_form = computer_form
        self._client = AsyncAnthropic(
            api_key=api_key,
            base_url=base_url or DEFAULT_BASE_URL,
            max_retries=0,
            timeout=Timeout(READ_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            default_headers={"User-Agent": USER_AGENT},
            http_client=guard(DefaultAsyncHttpxClient()) if guard else None,
        )

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Stream one model call; see ``Provider.stream``."""
        size = request.computer.model_size if request.computer else None
        parts: list[Part] = []
        usage = Usage()
        for _ in range(MAX_PAUSES):
            reader = AnthropicReader(size, usage)
            async with aclosing(self._message(request, parts, reader)) as events:
                async for event in events:
                    if isinstance(event, PartDone):
                        parts.append(event.part)
                    yield event
            if not reader.is_paused:
                return
            usage = reader.usage
        yield Finished(reason="paused", usage=usage)

    async def _message(
        self, request: ModelRequest, parts: list[Part], reader: AnthropicReader
    ) -> AsyncGenerator[ProviderEvent, None]:
        """One message, behind what the vendor said of it before it paused."""
        if parts:
            said = PromptMessage(role="assistant", content=tuple(parts))
            request = replace(request, messages=(*request.messages, said))
        parameters = self._parameters(request)
        with vendor_faults(self.name):
            async with await self._open(parameters) as stream, reading(stream) as events:
                async for event in events:
                    for neutral in or_alive(reader.feed(event)):
                        yield neutral
                    if reader.is_finished:
                        return
            raise StreamCut(self.name)

    async def close(self) -> None:
        """Close the HTTP client."""
        await self._client.close()

    def _parameters(self, request: ModelRequest) -> dict[str, Any]:
        form = self._computer_form or anthropic_form(request.model)
        system = anthropic_prompt.build_system(request.system)
        tools = anthropic_prompt.build_tools(request, form)
        messages = anthropic_prompt.build_messages(request, form)
        parameters = {
            "model": request.model,
            "max_tokens": request.max_output_tokens,
            "system": system or omit,
            "messages": [],
            # Past the SDK, which would spend more time on renaming nothing in them than all else takes.
            "extra_body": {"messages": messages},
            "tools": tools or omit,
            "tool_choice": {"type": "none"} if tools and not request.may_call else omit,
            **anthropic_thinking(
                request.model, request.effort, goes_on=anthropic_prompt.goes_on_unthought(messages)
            ),
        }
        beta = FORMS[form].beta
        if request.computer is not None and beta is not None:
            parameters["betas"] = [beta]
        return parameters

    async def _open(self, parameters: dict[str, Any]) -> Any:  # noqa: ANN401 - one of two stream classes
        if "betas" in parameters:
            return await self._client.beta.messages.create(**parameters, stream=True)
        return await self._client.messages.create(**parameters, stream=True)
