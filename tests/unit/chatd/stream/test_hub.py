"""Hints may merge, never get lost."""

import asyncio
import uuid
from uuid import UUID

import pytest

from chatd.store.store import Notice
from chatd.stream.hub import Hub, Subscription

CHAT, OWNER = UUID(int=1), UUID(int=2)


def notice(chat_id: UUID = CHAT, owner_id: UUID = OWNER, *, is_runnable: bool = False) -> Notice:
    """A committed change."""
    return Notice(chat_id=chat_id, owner_id=owner_id, snapshot_version=1, is_runnable=is_runnable)


async def test_news_before_the_wait_is_found_by_it() -> None:
    """Ours: a subscriber that is busy when the hint comes is not put to sleep afterwards."""
    hub = Hub()
    with hub.watch_chat(CHAT) as subscription:
        hub.publish(notice())
        async with asyncio.timeout(30):
            changed = await subscription.wait()

    assert changed == {CHAT}


async def test_news_between_two_waits_is_not_lost() -> None:
    """Ours: each wait returns exactly what came since the one before."""
    subscription = Subscription()
    others = [uuid.uuid4() for _ in range(3)]
    subscription.notify(others[0])
    first = await subscription.wait()
    subscription.notify(others[1])
    subscription.notify(others[2])
    second = await subscription.wait()
    waiter = asyncio.ensure_future(subscription.wait())
    await asyncio.sleep(0)

    assert (first, second) == ({others[0]}, {others[1], others[2]})
    assert not waiter.done()
    waiter.cancel()


@pytest.mark.past_bug(18)
async def test_every_publish_is_seen_whatever_the_interleaving() -> None:
    """Ours: a listener that reads after each wait always ends with the newest value."""
    hub, latest, seen = Hub(), 0, -1

    async def listen() -> None:
        nonlocal seen
        while seen < 200:
            await subscription.wait()
            seen = latest
            await asyncio.sleep(0)

    with hub.watch_chat(CHAT) as subscription:
        listener = asyncio.ensure_future(listen())
        for number in range(1, 201):
            latest = number
            hub.publish(notice())
            if number % 3 == 0:
                await asyncio.sleep(0)
        async with asyncio.timeout(30):
            await listener

    assert seen == 200


async def test_a_thousand_hints_are_one_wake_up() -> None:
    """Ours: what a slow listener holds is bounded by the number of chats, not of hints."""
    hub = Hub()
    with hub.watch_owner(OWNER) as subscription:
        for _ in range(1000):
            hub.publish(notice())
            hub.publish(notice(chat_id=UUID(int=9)))
        changed = await subscription.wait()
        again = asyncio.ensure_future(subscription.wait())
        await asyncio.sleep(0)

    assert changed == {CHAT, UUID(int=9)}
    assert not again.done()
    again.cancel()


async def test_only_the_topic_s_own_listeners_are_told() -> None:
    """Ours: another chat, another owner: silence."""
    hub = Hub()
    with hub.watch_chat(CHAT) as chat, hub.watch_owner(OWNER) as owner:
        hub.publish(notice(chat_id=UUID(int=5), owner_id=UUID(int=6)))
        hub.touch(UUID(int=5))
        waits = [asyncio.ensure_future(chat.wait()), asyncio.ensure_future(owner.wait())]
        await asyncio.sleep(0)

        assert not any(wait.done() for wait in waits)
        for wait in waits:
            wait.cancel()


async def test_a_fragment_wakes_without_claiming_a_change() -> None:
    """Ours: a poke means "look at the buffer", not "read the row"."""
    hub = Hub()
    with hub.watch_chat(CHAT) as subscription:
        hub.touch(CHAT)
        assert await subscription.wait() == set()
        hub.touch(CHAT)
        hub.publish(notice())
        assert await subscription.wait() == {CHAT}


async def test_a_cancelled_wait_keeps_the_news() -> None:
    """Ours: cancellation before the news leaves the flag for the next wait."""
    subscription = Subscription()
    waiter = asyncio.ensure_future(subscription.wait())
    await asyncio.sleep(0)
    subscription.notify(CHAT)
    waiter.cancel()
    await asyncio.gather(waiter, return_exceptions=True)
    async with asyncio.timeout(30):
        changed = await subscription.wait()

    assert changed == {CHAT}


def test_topics_without_listeners_are_forgotten() -> None:
    """Ours: the hub holds nothing for chats that nobody watches."""
    hub = Hub()
    with hub.watch_chat(CHAT), hub.watch_chat(CHAT), hub.watch_owner(OWNER):
        hub.publish(notice())
    hub.publish(notice())

    assert (hub._by_chat, hub._by_owner) == ({}, {})


def test_a_runnable_chat_wakes_the_worker() -> None:
    """Ours: every path that makes a chat runnable wakes the worker (spec 9, complaint 5)."""
    hub, woken = Hub(), []
    hub.on_runnable = lambda _: woken.append(1)
    hub.publish(notice())
    hub.publish(notice(is_runnable=True))

    assert woken == [1]


def test_a_hint_reaches_every_listener_of_its_topic() -> None:
    """Ours: what others keep in memory is read again at once."""
    hub, heard = Hub(), []
    hub.hint("mcp_servers")
    hub.on_hint("mcp_servers", lambda: heard.append("a"))
    hub.on_hint("mcp_servers", lambda: heard.append("b"))
    hub.spread = lambda topic: heard.append(f"to others: {topic}")
    hub.hint("mcp_servers")
    # What came from others is not told again.
    hub.hear("mcp_servers")

    assert heard == ["a", "b", "to others: mcp_servers", "a", "b"]
