"""What the vendors' clients share: limits, headers, how a stream is left, where failures are classified."""

import traceback
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from types import AsyncGeneratorType
from typing import TypeVar

from anyio import CancelScope

from chatd.faults import classify
from chatd.provider.protocol import Alive, ProviderEvent

__all__ = ["CONNECT_TIMEOUT_S", "READ_TIMEOUT_S", "USER_AGENT", "or_alive", "reading", "vendor_faults"]

T = TypeVar("T")
# Seconds until a connection stands.
CONNECT_TIMEOUT_S = 10.0
# Seconds between two chunks. Above the loop's own limit on silence, which names the cause better.
READ_TIMEOUT_S = 660.0
USER_AGENT = "chatd"


def or_alive(events: Iterator[ProviderEvent]) -> Iterator[ProviderEvent]:
    """What one event of a vendor means; that the vendor lives, where it means nothing else."""
    is_empty = True
    for event in events:
        is_empty = False
        yield event
    if is_empty:
        yield Alive()


@asynccontextmanager
async def reading(stream: AsyncIterable[T]) -> AsyncIterator[AsyncIterator[T]]:
    """
    Iterate over what an SDK streams; when the block is left, so are all generators below it.

    An SDK stacks a dozen of them, from events down to the socket, and closing the outermost one leaves
    the others to the garbage collector, which ends them in any order, some while others run, and long
    after: the vendor would go on talking. So they are read on, cancelled: what is buffered is thrown
    away, the first wait for the network ends, and the cancellation takes them down from the inside out,
    in this task. A response that was read to its end by that leaves its connection for the next call.

    Cancellation: as on leaving.
    """
    iterator = aiter(stream)
    try:
        yield iterator
    except Exception as error:
        for generator in _waiting_below(error):
            await _unwind(generator)
        raise
    finally:
        await _unwind(iterator)


async def _unwind(iterator: AsyncIterator[object]) -> None:
    with CancelScope() as scope, suppress(Exception):
        scope.cancel()
        async for _ in iterator:
            pass


def _waiting_below(error: Exception) -> Iterator[AsyncGeneratorType[object, None]]:
    """
    What waits below the generator that *error* came from: an event that can't be read ends only that one.

    A failure is part of circles, so the rest would be left to the cyclic collector, which ends generators
    in whatever thread it runs, while the event loop may be in one of them.
    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        for local in tuple(frame.f_locals.values()):
            # Google's SDK keeps one in an object that stands for it.
            inner = vars(local).values() if hasattr(local, "__anext__") and hasattr(local, "__dict__") else ()
            for value in (local, *inner):
                if isinstance(value, AsyncGeneratorType) and value.ag_frame and not value.ag_running:
                    yield value


@contextmanager
def vendor_faults(provider: str) -> Iterator[None]:
    """
    Turn whatever a vendor's SDK raises into a ``ProviderFault``.

    Raises:
        ProviderFault: classified, from the original exception.

    Cancellation: passes through untouched, like every ``BaseException``.
    """
    try:
        yield
    except Exception as error:
        raise classify(error, provider) from error
