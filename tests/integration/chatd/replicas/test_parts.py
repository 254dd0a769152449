"""Fragments of an answer that another replica writes: the same, in the same order, each once."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from chatd.wire import MessagePartEvent, StreamEvent, TextPart, stream_event_adapter
from tests.integration.chatd.http.site import API, LIMIT_S, Site, Story, bearer
from tests.integration.chatd.replicas.conftest import NewReplica
from tests.integration.chatd.replicas.test_registry import together, until_true
from tests.support.gated_vendor import GatedVendor, gated_vendor


class Watcher:
    """One watcher: its story, and that fragments are contiguous within their episode."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self.story = Story()
        self._at: tuple[int, int] | None = None
        self._seq = 0

    async def until(self, preview: str) -> None:
        """Read until the answer under way is *preview*."""
        async with asyncio.timeout(LIMIT_S):
            while self.story.preview != preview:
                await self._read()

    async def until_over(self) -> Story:
        """Read until the turn is over."""
        async with asyncio.timeout(LIMIT_S):
            while not self.story.is_over() or self.story.preview:
                await self._read()
        return self.story

    async def _read(self) -> None:
        for event in json.loads(await self._socket.receive_str()):
            self._take(stream_event_adapter.validate_python(event))

    def _take(self, event: StreamEvent) -> None:
        if isinstance(event, MessagePartEvent):
            at = (event.history_version, event.generation_attempt)
            if at != self._at:
                assert self.story.preview == "", "no reset before another episode"
                self._at, self._seq = at, 0
            assert event.seq == self._seq + 1
            self._seq = event.seq
        self.story.take(event)


@asynccontextmanager
async def watching(site: Site, chat_id: str) -> AsyncIterator[Watcher]:
    """Watch a chat at one replica, over a WebSocket."""
    path = f"{API}/chats/{chat_id}/stream"
    async with site.http.ws_connect(site.plane.url + path, headers=bearer(site.tokens["me"])) as socket:
        yield Watcher(socket)


async def asked(vendor: GatedVendor) -> None:
    """Until a model call began."""
    async with asyncio.timeout(LIMIT_S):
        await vendor.asked.get()


async def test_a_watcher_elsewhere_sees_the_same(new_replica: NewReplica) -> None:
    """Spec 5.5: parts by episode; two watchers there share one copy, a late one gets all of it."""
    async with gated_vendor() as vendor:
        sites = [await new_replica(rehearsal="auto", compat_base_url=vendor.url) for _ in range(2)]
        chat_id = await sites[0].new_chat()
        await asked(vendor)
        async with watching(sites[0], chat_id) as here, watching(sites[1], chat_id) as there:
            for word in ("one ", "two "):
                vendor.say(word)
            await here.until("one two ")
            await there.until("one two ")
            async with watching(sites[1], chat_id) as late:
                await late.until("one two ")
                vendor.say("three")
                for watcher in (here, there, late):
                    await watcher.until("one two three")
                vendor.end()
                stories = [await watcher.until_over() for watcher in (here, there, late)]
        relay = together(sites[1]).parts
        await until_true(lambda: not any(feed.chats for feed in relay._feeds.values()))

    assert {tuple(story.durable) for story in stories} == {tuple(stories[0].durable)}
    assert len({tuple(str(m) for m in story.messages.values()) for story in stories}) == 1
    assert sites[1].plane.services.buffer.get(next(iter(stories[0].messages.values())).chat_id) is None


async def test_a_relay_that_is_cut_goes_on_where_it_was(new_replica: NewReplica) -> None:
    """Ours: a cut connection is made again; nothing is shown twice, nothing is missing."""
    async with gated_vendor() as vendor:
        sites = [await new_replica(rehearsal="auto", compat_base_url=vendor.url) for _ in range(2)]
        chat_id = await sites[0].new_chat()
        await asked(vendor)
        async with watching(sites[1], chat_id) as there:
            said = ""
            for number in range(5):
                vendor.say(f"{number} ")
                said += f"{number} "
                await there.until(said)
                session = together(sites[1]).parts._session
                assert session is not None
                assert session.connector is not None
                for connection in list(session.connector._acquired):  # type: ignore[attr-defined]
                    connection.transport.abort()
            vendor.end()
            story = await there.until_over()

    assert [m.content[0].text for m in story.messages.values() if m.role == "assistant"] == [said]  # type: ignore[union-attr]


async def test_when_the_driver_dies_the_next_one_s_parts_are_seen(new_replica: NewReplica) -> None:
    """Spec 5.5: another worker, another episode; the watcher sees a reset between them."""
    async with gated_vendor() as vendor:
        make = {"rehearsal": "auto", "compat_base_url": vendor.url}
        watched, second, driver = [await new_replica(**make) for _ in range(3)]
        # Only the second one may take it over.
        chat_id = await driver.new_chat()
        await asked(vendor)
        for site, room in ((watched, 0), (second, 1)):
            site.plane.services.settings.__dict__["max_running_chats"] = room
        async with watching(watched, chat_id) as watcher:
            vendor.say("from the first")
            await watcher.until("from the first")
            # As a kill leaves it: no more beats, nothing given back, every socket gone.
            await _kill(driver)
            await asked(vendor)
            vendor.say("from the second")
            await watcher.until("from the second")
            vendor.end()
            story = await watcher.until_over()

    answers = [m for m in story.messages.values() if m.role == "assistant"]
    assert [part.text for m in answers for part in m.content if isinstance(part, TextPart)] == [
        "from the second"
    ]


async def _kill(site: Site) -> None:
    plane = site.plane
    for name in ("replicas", "worker"):
        task = next(task for task in asyncio.all_tasks() if task.get_name() == name and _is_of(task, plane))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _is_of(task: "asyncio.Task[object]", plane: object) -> bool:
    owner = task.get_coro().cr_frame.f_locals["self"]  # type: ignore[union-attr]
    services = plane.services  # type: ignore[attr-defined]
    return owner is services.together or getattr(owner, "_services", None) is services
