"""What a model call leaves behind when it is over: nothing that the garbage collector would have to end."""

import asyncio
import gc
import sys
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress
from typing import Any

import pytest

from chatd.errors import ProviderFault
from chatd.provider.protocol import Provider
from tests.contract.provider.conftest import VendorServer
from tests.contract.provider.test_provider_contract import REQUEST, collect


@contextmanager
def dropped_generators() -> Iterator[list[str]]:
    """Names of the asynchronous generators begun in this block that are dropped before their end."""
    names: list[str] = []
    before = sys.get_asyncgen_hooks()

    def note(generator: Any) -> None:
        names.append(generator.__qualname__)
        before.finalizer(generator)

    sys.set_asyncgen_hooks(finalizer=note)
    try:
        yield names
        gc.collect()
    finally:
        sys.set_asyncgen_hooks(*before)


async def test_a_whole_answer_leaves_no_generator(provider: Provider, vendor: VendorServer) -> None:
    """Not even where the last event is not the end of the response."""
    vendor.play("text")

    with dropped_generators() as dropped:
        await collect(provider)

    # OpenAI's SDK drops this one itself at "[DONE]", once it has read the response to its end.
    assert [name for name in dropped if name != "AsyncStream._iter_events"] == []


@pytest.mark.parametrize("count", range(1, 5))
async def test_a_call_that_is_given_up_between_two_events_leaves_no_generator(
    provider: Provider, vendor: VendorServer, count: int
) -> None:
    """A turn is mostly stopped while it stores what it read, not while it reads."""
    vendor.play("text")
    vendor.ending = "hang"

    with dropped_generators() as dropped:
        async with aclosing(provider.stream(REQUEST)) as events:
            for _ in range(count):
                await anext(events)

    assert dropped == []
    await asyncio.wait_for(vendor.client_gone.wait(), 30)


async def _fails(provider: Provider) -> bool:
    """Whether a call fails; nobody keeps the failure."""
    try:
        await collect(provider)
    except ProviderFault:
        return True
    return False


@pytest.mark.parametrize("ending", ["broken", "abort", "eof"])
async def test_a_call_that_fails_leaves_no_generator(
    provider: Provider, vendor: VendorServer, ending: str
) -> None:
    """
    An event that can't be read ends one generator; those below it wait, held by the failure's traceback.

    That is a circle: the cyclic collector would end them in whatever thread it runs, while the event loop
    may be in one of them.
    """
    vendor.play("text")
    vendor.events = vendor.events[:2]
    vendor.ending = ending
    with dropped_generators() as dropped:
        assert await _fails(provider)

    # Google's SDK fails between this one and its caller, so that it goes with its last reference.
    assert [name for name in dropped if name != "HttpResponse._aiter_response_stream"] == []


async def test_a_call_that_is_cancelled_while_it_reads_leaves_no_generator(
    provider: Provider, vendor: VendorServer
) -> None:
    """The reader is ended where it waits for the network, from the inside out."""
    vendor.ending = "hang"
    with dropped_generators() as dropped:
        reading = asyncio.get_running_loop().create_task(collect(provider))
        await asyncio.wait_for(vendor.is_asked.wait(), 30)
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading

    assert dropped == []
    await asyncio.wait_for(vendor.client_gone.wait(), 30)
