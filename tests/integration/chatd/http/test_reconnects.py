"""A client that reconnects at random ends with exactly the database's text."""

import asyncio
import json
import os
import random
import uuid
from collections.abc import Callable, Mapping
from functools import partial

import pytest

from chatd.store import queries
from chatd.store.machine import ChatTx
from chatd.store.rows import NewMessage, public_message
from chatd.store.store import NewChat
from chatd.wire import Message, Part, StreamEvent, TextPart, stream_event_adapter
from tests.integration.chatd.http.site import API, LIMIT_S, Site, bearer

# Clients of one chat, and connections that each makes: together a thousand; CHATD_RECONNECTS=1000 for each.
CLIENTS = 8
RECONNECTS = int(os.environ.get("CHATD_RECONNECTS", "125"))


# One try at one step: history version and attempt.
EpisodeKey = tuple[int, int]


class Reader:
    """
    What a client shows: messages by id, and the answer under way.

    Args:
        written: the text of each episode so far; what is shown of one begins it, letter by letter.
    """

    def __init__(self, written: Mapping[EpisodeKey, str]) -> None:
        self.written = written
        self.messages: dict[int, Message] = {}
        self.preview = ""
        self.fragments = 0
        self.status = ""
        self.connections = 0

    def open(self) -> None:
        """A new connection: the preview begins anew (spec 5.6)."""
        self.connections += 1
        self.preview = ""

    def take(self, event: StreamEvent) -> None:
        """Reduce one event; no message may come out of order, doubled within a connection or lost."""
        match event.type:
            case "history_reset":
                self.messages = {}
            case "message":
                assert event.message.id > max(self.messages, default=0)
                self.messages[event.message.id] = event.message
            case "preview_reset":
                self.preview = ""
            case "message_part":
                self.preview += getattr(event.part, "text", "")
                self.fragments += 1
                episode = (event.history_version, event.generation_attempt)
                assert self.written[episode].startswith(self.preview), f"doubled, or a hole: {self.preview}"
            case "status":
                self.status = event.status

    @property
    def newest(self) -> int:
        """Where to resume."""
        return max(self.messages, default=0)


async def follow(
    site: Site, chat_id: str, reader: Reader, rng: random.Random, *, is_over: Callable[[], bool]
) -> None:
    """Connect, read a random number of events, drop the connection in the middle of whatever comes."""
    reader.open()
    path = f"{API}/chats/{chat_id}/stream?after_id={reader.newest}"
    left = rng.randint(1, 8)
    async with site.http.ws_connect(path, headers=bearer(site.tokens["me"])) as socket:
        async with asyncio.timeout(LIMIT_S):
            async for frame in socket:
                for event in json.loads(frame.data):
                    reader.take(stream_event_adapter.validate_python(event))
                    left -= 1
                    if left == 0 or is_over():
                        return


class Author:
    """Writes a chat as a worker would, with edits in between: fragments, then the message they become."""

    def __init__(self, site: Site, chat_id: uuid.UUID, rng: random.Random) -> None:
        self.site, self.chat_id, self.rng, self.number = site, chat_id, rng, 0
        self.written: dict[EpisodeKey, str] = {}

    async def write(self) -> None:
        """One step: an attempt, some fragments, the commit; sometimes an edit or a retry."""
        store, buffer = self.site.store, self.site.plane.services.buffer
        row = await store.read(queries.read_row, self.chat_id)
        attempt = await store.transition(self.chat_id, lambda tx: tx.record_attempt())
        episode = buffer.open(self.chat_id, history_version=row["history_version"], attempt=attempt)
        text, key = "", (episode.history_version, episode.attempt)
        for _ in range(self.rng.randint(1, 5)):
            self.number += 1
            piece = f"[{self.number}]"
            text += piece
            self.written[key] = text
            buffer.add(episode, "assistant", TextPart(text=piece))
            await asyncio.sleep(0)
        if self.rng.random() < 0.2:
            # The vendor failed: the fragments are forgotten and the step tried again.
            return
        await store.transition(self.chat_id, lambda tx: self._commit(tx, text))
        if self.rng.random() < 0.1:
            await self._edit()

    def _commit(self, tx: ChatTx, text: str) -> None:
        content: tuple[Part, ...] = (TextPart(text=text),)
        tx.commit_step([NewMessage(role="assistant", content=content)])

    async def _edit(self) -> None:
        self.number += 1
        messages = await self.site.store.read(queries.prompt_messages, self.chat_id)
        users = [message.id for message in messages if message.role == "user"]
        target, value = self.rng.choice(users), TextPart(text=f"edit {self.number}")

        def edit(tx: ChatTx) -> None:
            tx.edit(target, (value,))
            tx.acquire(worker_id=uuid.uuid4(), runner_id=uuid.uuid4())

        await self.site.store.transition(self.chat_id, edit)


async def new_chat(site: Site) -> uuid.UUID:
    """A running chat that no worker takes: it has an owner that lives."""
    config = site.plane.services.catalog.default_id
    new = NewChat(owner_id=site.ids["me"], model_config_id=config, content=(TextPart(text="go"),), title="t")
    # Owned from its first moment, before any worker looks.
    site.store.claim = own
    try:
        return (await site.store.create_chat(new)).id
    finally:
        site.store.claim = None


def own(tx: ChatTx) -> None:
    """Own the chat; nobody here drives it."""
    tx.acquire(worker_id=uuid.uuid4(), runner_id=uuid.uuid4())


@pytest.mark.slow
@pytest.mark.timeout(60 + RECONNECTS)
@pytest.mark.past_bug(6)
async def test_a_client_that_reconnects_at_random_ends_with_the_database_s_text(site: Site) -> None:
    """Spec 5.6, 9.6: nothing lost, doubled or out of order at any moment, whenever the connection broke."""
    seed = random.randrange(10**6)  # noqa: S311 -- a schedule, no secret
    rng = random.Random(seed)  # noqa: S311
    chat_id = await new_chat(site)
    author = Author(site, chat_id, rng)
    readers = [Reader(author.written) for _ in range(CLIENTS)]
    is_over = False

    async def write() -> None:
        while not is_over:
            await author.write()
            await asyncio.sleep(rng.random() / 100)

    async def read(reader: Reader) -> None:
        while reader.connections < RECONNECTS and not writing.done():
            await follow(site, str(chat_id), reader, rng, is_over=writing.done)

    writing = asyncio.get_running_loop().create_task(write())
    try:
        await asyncio.gather(*map(read, readers))
    finally:
        is_over = True
        await writing
    await site.store.transition(chat_id, lambda tx: tx.finish_turn())
    expected = await read_all(site, chat_id)

    def is_done(reader: Reader) -> bool:
        return reader.status == "waiting" and reader.messages.keys() == {row.id for row in expected}

    # No more events come than are there: the one that completes the picture is the last to wait for.
    for reader in readers:
        while not is_done(reader):
            assert reader.connections < 2 * RECONNECTS, f"seed {seed}: the reader does not get on"
            await follow(site, str(chat_id), reader, rng, is_over=partial(is_done, reader))

    assert [list(reader.messages.values()) for reader in readers] == [expected] * CLIENTS, f"seed {seed}"
    assert all(reader.fragments for reader in readers), "no answer was seen under way"


async def read_all(site: Site, chat_id: uuid.UUID) -> list[Message]:
    """The database's history, as people see it."""
    page = await site.store.read(queries.list_messages, chat_id, limit=100_000)
    return [public_message(message) for message in page.messages]


async def test_sse_resumes_behind_the_last_event_id_and_hears_of_edits(site: Site) -> None:
    """Spec 5.3: a client that shows deleted messages gets a reset first, by header as by query."""
    chat_id = await site.quiet_chat()
    page = await site.ask("GET", f"/chats/{chat_id}/messages")
    asked, answered = page["messages"]
    body = {"content": [{"type": "text", "text": "say other"}]}
    await site.ask("PATCH", f"/chats/{chat_id}/messages/{asked['id']}", json=body)
    await site.until(chat_id, "waiting")
    for headers, query in (({"Last-Event-ID": str(answered["id"])}, ""), ({}, f"?after_id={answered['id']}")):
        path = f"{API}/chats/{chat_id}/stream{query}"
        async with site.http.get(path, headers=bearer(site.tokens["me"]) | headers) as answer:
            async with asyncio.timeout(LIMIT_S):
                records = [(await answer.content.readuntil(b"\n\n")).decode() for _ in range(3)]
        kinds = [
            line.partition(": ")[2] for text in records for line in text.splitlines() if "event: " in line
        ]

        assert kinds == ["history_reset", "message", "message"]
