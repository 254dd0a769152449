"""
Listen to a model call, but not for ever.

A vendor has so long for its first sign of life and so long between two of them.
Opening the stream counts as silence.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from chatd.faults import FaultKind, TransportReset, classify, make_fault
from chatd.provider.protocol import Alive, ModelRequest, Provider, ProviderEvent

__all__ = ["Patience", "listen"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds until a vendor's first sign of life, and between two of them."""

    startup_s: float
    silence_s: float


async def listen(
    provider: Provider, request: ModelRequest, patience: Patience
) -> AsyncGenerator[ProviderEvent, None]:
    """
    Stream one model call; whatever only shows that the vendor lives is left out.

    Raises:
        ProviderFault: the vendor failed, fell silent, or gave the call up while we waited.

    Cancellation: the call is closed; the cancellation passes through.
    """
    limit_s, kind = patience.startup_s, FaultKind.STARTUP_TIMEOUT
    watch = _Watch()
    try:
        async with contextlib.aclosing(provider.stream(request)) as events:
            while True:
                watch.begin(limit_s)
                event = await _next(events, provider.name, watch, kind)
                if event is None:
                    return
                limit_s, kind = patience.silence_s, FaultKind.STREAM_SILENCE_TIMEOUT
                if not isinstance(event, Alive):
                    yield event
    finally:
        watch.close()


class _Watch:
    """
    Cancels the listening task when it waited too long for one event.

    One timer for a whole call, moved on only when it fires: vendors send a thousand events a second.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._task: asyncio.Task[object] | None = None
        self.has_fired = False

    def begin(self, limit_s: float) -> None:
        """The running task waits from now on."""
        self._task = asyncio.current_task()
        self._deadline = self._loop.time() + limit_s
        if self._timer is None or self._timer.when() > self._deadline:
            self.close()
            self._timer = self._loop.call_at(self._deadline, self._fire)

    def end(self) -> None:
        """It waits no longer; a cancellation that was ours is taken back."""
        if self.has_fired and self._task is not None:
            self._task.uncancel()
        self._task = None

    def close(self) -> None:
        """Never fire again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self._timer = None
        if self._task is None:
            return
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._fire)
            return
        self.has_fired = True
        self._task.cancel()


async def _next(
    events: AsyncGenerator[ProviderEvent, None], provider: str, watch: _Watch, kind: FaultKind
) -> ProviderEvent | None:
    """The next event, None at the end; whatever came of a call that we gave up, silence is the cause."""
    try:
        event = await anext(events, None)
    except asyncio.CancelledError:
        watch.end()
        if _is_ours():
            raise
        if not watch.has_fired:
            reset = TransportReset("the model call was canceled by the other side")
            raise classify(reset, provider) from reset
        event = None
    except Exception:
        watch.end()
        if not watch.has_fired:
            raise
        event = None
    else:
        watch.end()
    if watch.has_fired:
        raise make_fault(kind, provider, retryable=True)
    return event


def _is_ours() -> bool:
    """Whether somebody cancels this task: else the cancellation came out of the vendor's client."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0
