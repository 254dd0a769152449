"""A watcher's loop over a real store: lost hints, long answers, and its end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from chatd.provider.protocol import TextDelta
from chatd.stream.sync import MAX_BATCH, chat_events
from chatd.wire import StreamEvent
from tests.contract.store.bench import answer
from tests.integration.chatd.core.world import LIMIT_S, Gate, World, say


def listeners(world: World, chat_id: UUID) -> int:
    """How many listen to the chat."""
    return len(world.hub._by_chat.get(chat_id, ()))


@contextlib.asynccontextmanager
async def watching(world: World, chat_id: UUID) -> AsyncIterator[AsyncIterator[list[StreamEvent]]]:
    """A watcher of the chat; at its end it listens no more."""
    services, before = world.services, listeners(world, chat_id)
    events = chat_events(services.store, services.hub, services.buffer, chat_id)
    async with asyncio.timeout(LIMIT_S), contextlib.aclosing(events):
        yield events
    assert listeners(world, chat_id) <= before


async def test_a_lost_hint_costs_time_only(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spec 5.3: the versions are read again now and then, whatever was told."""
    monkeypatch.setattr("chatd.stream.sync.POLL_S", 0.01)
    await world.stop()
    chat = await world.chat([])
    seen: list[str] = []
    async with watching(world, chat.id) as events:
        assert next(event.type for event in await anext(events)) == "message"
        assert await anext(events) == []
        monkeypatch.setattr(world.store, "_publish", lambda _: None)
        await world.commit(chat.id, answer("unheard"))
        while "message" not in seen:
            seen = [event.type for event in await anext(events)]

    assert seen == ["message", "preview_reset"]


async def test_a_long_answer_comes_whole_in_bounded_batches(world: World) -> None:
    """Spec 8: at most 256 events a frame; seq has no gap."""
    gate, number = Gate(), 2 * MAX_BATCH + 50
    chat = await world.chat([[*(TextDelta(f"{n} ") for n in range(number)), gate, *say("end")[1:]]])
    await gate.wait_reached()
    seqs: list[int] = []
    async with watching(world, chat.id) as events:
        while len(seqs) < number:
            batch = await anext(events)
            assert len(batch) <= MAX_BATCH
            seqs += [event.seq for event in batch if event.type == "message_part"]
    gate.opened.set()
    await world.until_rest(chat.id)

    assert seqs == list(range(1, number + 1))
