"""Model calls beside the turn's own: a summary, a title. Text only, whole, bounded in time, booked."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from uuid import UUID

from chatd.faults import FaultKind, make_fault
from chatd.loop.silence import listen
from chatd.provider.catalog import ModelSource
from chatd.provider.prices import cost_micros
from chatd.provider.protocol import Finished, ModelRequest, PartDone, TextDelta
from chatd.store import side_calls
from chatd.store.side_calls import BookedCall, Purpose
from chatd.wire import TextPart, Usage
from chatd.worker.retrying import retried
from chatd.worker.services import Services

__all__ = ["SideCall", "collect_text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SideCall:
    """Which chat a call is for, what for, and by whose client; the request names the model."""

    chat_id: UUID
    purpose: Purpose
    source: ModelSource


def _unheard(_: str) -> None:
    """For nobody."""


async def collect_text(
    services: Services,
    call: SideCall,
    request: ModelRequest,
    *,
    timeout_s: float,
    hear: Callable[[str], None] = _unheard,
) -> str:
    """
    Ask a model and wait for all of its text; try again what may heal while there is time.

    What the call used is booked to the chat, whatever becomes of the text. *hear* is told what was
    said so far whenever it grows; another try begins anew.

    Returns:
        Its text blocks, trimmed and joined by spaces.

    Raises:
        ModelGone: the model's key is gone.
        ProviderFault: it failed, or took longer than *timeout_s*.

    Cancellation: the call is closed.
    """
    provider = await services.catalog.provider(call.source.id)

    async def ask() -> tuple[str, Usage | None]:
        texts: list[str] = []
        said, usage = "", None
        async with aclosing(listen(provider, request, services.patience)) as events:
            async for event in events:
                if isinstance(event, TextDelta):
                    said += event.text
                    hear(said)
                elif isinstance(event, PartDone) and isinstance(event.part, TextPart):
                    texts.append(event.part.text.strip())
                elif isinstance(event, Finished):
                    usage = event.usage
        return " ".join(text for text in texts if text), usage

    deadline = asyncio.get_running_loop().time() + timeout_s
    try:
        async with asyncio.timeout_at(deadline):
            text, usage = await retried(
                ask,
                max_attempts=services.settings.max_attempts,
                chance=services.chance,
                deadline=deadline,
            )
    except TimeoutError:
        raise make_fault(FaultKind.TIMEOUT, provider.name, retryable=False) from None
    await _book(services, call, request.model, usage)
    return text


async def _book(services: Services, call: SideCall, model: str, usage: Usage | None) -> None:
    if usage is None or usage == Usage():
        return
    booked = BookedCall(
        chat_id=call.chat_id,
        purpose=call.purpose,
        provider=call.source.provider,
        model=model,
        usage=usage,
        cost_micros=cost_micros(replace(call.source, model=model), usage),
    )
    await services.store.write(side_calls.book, booked, now=services.store.now())
