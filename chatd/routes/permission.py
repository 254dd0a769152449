"""A long stream goes on only while its caller may have it: looked at anew while it runs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

import structlog

from chatd.errors import ChatdError, Unauthorised

__all__ = ["RECHECK_S", "STALE_S", "while_permitted"]

# Seconds between two looks whether somebody still may.
RECHECK_S = 10.0
# Seconds that a look may be old which another stream of the same token has made.
STALE_S = 2.0

log = structlog.get_logger("chatd.permission")


@contextlib.asynccontextmanager
async def while_permitted(still_may: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """
    Run the block until *still_may* raises a ChatdError.

    Raises:
        Unauthorised: it did; the block was cancelled.
    """
    loop = asyncio.get_running_loop()
    limit = asyncio.timeout(None)

    async def watch() -> None:
        while True:
            await asyncio.sleep(RECHECK_S)
            try:
                await still_may()
            except ChatdError as exc:
                log.info("stream ended: its caller may not have it any more", action="revoked", code=exc.code)
                limit.reschedule(loop.time())
                return

    try:
        async with limit:
            watching = loop.create_task(watch())
            try:
                yield
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
    except TimeoutError:
        if not limit.expired():
            raise
        raise Unauthorised("this token is not valid any more") from None
