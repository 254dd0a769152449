"""
Finish what must not be left half done, even while the caller is being cancelled.

Owns one function. Knows nothing of desktops.
"""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

__all__ = ["finish"]

T = TypeVar("T")


async def finish(work: Coroutine[object, object, T]) -> T:
    """
    Run *work* to its end, however often the caller is cancelled meanwhile.

    *work* must bound itself in time.

    Cancellation:
        is delivered after *work* has ended, and then replaces its outcome.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as exc:
            cancelled = exc
    if cancelled is not None:
        if not task.cancelled():
            task.exception()
        raise cancelled
    return task.result()
