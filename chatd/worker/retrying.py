"""Model calls that fail: how that is told, and the way to try again for those with nobody to tell it to."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import TypeVar

import structlog

from chatd.errors import ProviderFault
from chatd.faults import FaultKind, effective_delay_s, spread_delay_s
from chatd.wire import ChatError, RetryPayload

__all__ = ["error_of", "retried", "retry_payload"]

T = TypeVar("T")
log = structlog.get_logger("chatd.retry")


def retry_payload(
    fault: ProviderFault, *, attempt: int, delay_ms: int, banner: str, now: datetime
) -> RetryPayload:
    """What clients are told of a try that failed, and of the next one."""
    return RetryPayload(
        attempt=attempt,
        delay_ms=delay_ms,
        error=banner,
        kind=FaultKind(fault.kind),
        provider=fault.provider or None,
        status_code=fault.status_code,
        retrying_at=now + timedelta(milliseconds=delay_ms),
    )


def error_of(fault: ProviderFault) -> ChatError:
    """A fault as clients see it."""
    return ChatError(
        message=str(fault),
        detail=fault.detail,
        kind=FaultKind(fault.kind),
        provider=fault.provider or None,
        retryable=fault.retryable,
        status_code=fault.status_code,
    )


async def retried(
    attempt: Callable[[], Awaitable[T]],
    *,
    max_attempts: int,
    chance: Callable[[], float],
    deadline: float | None = None,
) -> T:
    """
    Call until it succeeds; between two tries wait as a turn does.

    Args:
        attempt: one model call.
        max_attempts: tries in total.
        chance: from 0 to 1, by which a wait is longer.
        deadline: of the event loop's clock; a wait that would pass it is not begun.

    Raises:
        ProviderFault: the last failure.

    Cancellation: no further try is made.
    """
    tries = 0
    while True:
        try:
            return await attempt()
        except ProviderFault as fault:
            delay_s = spread_delay_s(effective_delay_s(tries, fault.retry_after_s), chance())
            tries += 1
            is_late = deadline is not None and asyncio.get_running_loop().time() + delay_s >= deadline
            if not fault.retryable or tries >= max_attempts or is_late:
                raise
            log.info("retry", action="side_call_retry", attempt=tries, delay_s=delay_s, kind=fault.kind)
        await asyncio.sleep(delay_s)
