"""Random calls of the real HTTP API, beside a small model of what they set: rows stay whole, none fails."""

import asyncio
import itertools
import os
import tempfile
import uuid
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from chatd import client
from chatd.client import ChatClient
from chatd.rehearsal.codec import ApiError
from chatd.rehearsal.conversation import Chunk, Conversation, Reply
from chatd.wire import Chat
from tests.databases import NewDatabase
from tests.integration.chatd.http.site import LIMIT_S, Site, serving
from tests.support.checker import request_problems, row_problems
from tests.support.model_server import model_server

# Calls on each database; a nightly run takes CHATD_API_STEPS=5000.
STEPS = int(os.environ.get("CHATD_API_STEPS", "120"))
STEPS_IN_A_ROW = 40
# What a call may be answered that makes no sense at this moment.
REFUSALS = {400, 404, 409, 429}
# Seconds between two words of the model's.
PAUSE_S = 0.04
WHICH = st.integers(0, 5)
BusyBehavior = Literal["queue", "interrupt", "steer"]
HOW: st.SearchStrategy[BusyBehavior] = st.sampled_from(get_args(BusyBehavior))
T = TypeVar("T")


def check_refusal(error: client.ApiError) -> None:
    """No failure of ours, and told as every error is."""
    assert error.status in REFUSALS, (error.status, error.body)
    assert error.body is not None
    assert error.body["code"]


class Model:
    """Says again what it was told last, a word at a time."""

    def __init__(self) -> None:
        self.requests = itertools.count(1)

    def answer(self, conversation: Conversation) -> Reply:
        """The words; now and then none."""
        if next(self.requests) % 7 == 0:
            raise ApiError("no such key", status=401)
        words = conversation.entries[-1].text.split()[:8] if conversation.entries else []
        return Reply(chunks=tuple(Chunk(text=f"{word} ") for word in words or ["yes"]))


class ApiMachine(RuleBasedStateMachine):
    """
    Some chats of one user.

    The rehearsal model's wire, at a pace at which calls meet it at work; each seventh answer is a failure.
    """

    new_database: NewDatabase

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.site: Site
        self.client: ChatClient
        self.count = 0
        # What people said and nobody took back, and what was set, by chat.
        self.sent: dict[UUID, list[str]] = {}
        self.set: dict[UUID, dict[str, Any]] = {}

    @initialize()
    def start(self) -> None:
        """A control plane, and a first chat."""
        self.loop.run(self._start())
        self.create()

    async def _start(self) -> None:
        folder = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="api-"))
        url, self.bodies = await self.stack.enter_async_context(model_server(Model().answer, pause_s=PAUSE_S))
        database = self.new_database()
        given = {"database": database} if database.startswith("postgresql") else {}
        plane = serving(Path(folder), rehearsal="auto", compat_base_url=url, auto_titles=False, **given)
        self.site = await self.stack.enter_async_context(plane)
        client = ChatClient(self.site.plane.url, self.site.tokens["me"])
        self.client = await self.stack.enter_async_context(client)

    def teardown(self) -> None:
        """Every chat comes to rest, whole; then all is closed."""
        try:
            if self.set:
                self.loop.run(self._rest())
        finally:
            self.loop.run(self.stack.aclose())
            self.loop.close()

    async def _rest(self) -> None:
        for chat_id in self.set:
            await self.site.until(str(chat_id), "waiting", "error")
        problems = await self.site.store.read(row_problems, self.sent, asks_for_summaries=True)
        assert problems == []
        assert [problem for body in self.bodies for problem in request_problems(body)] == []

    # -- calls -------------------------------------------------------------------

    def ask(self, call: Awaitable[T]) -> T | None:
        """Make a call; None if it was refused, which must be for a reason."""

        async def run() -> T | None:
            try:
                async with asyncio.timeout(LIMIT_S):
                    return await call
            except client.ApiError as error:
                check_refusal(error)
                return None

        return self.loop.run(run())

    def words(self) -> str:
        """A message that was never said before, and that takes a while to answer."""
        self.count += 1
        return f"message {self.count} {'and so on ' * (self.count % 3)}".strip()

    def pick(self, which: int) -> UUID:
        """One of the chats."""
        return list(self.set)[which % len(self.set)]

    @rule()
    def create(self) -> None:
        """A new chat."""
        said = self.words()
        chat = self.ask(self.client.create_chat(said, key=str(uuid.uuid4())))
        assert chat is not None
        self.sent[chat.id] = [said]
        self.set[chat.id] = {"title": chat.title, "labels": {}, "pin_order": 0, "archived": False}

    @rule(which=WHICH, how=st.lists(HOW, min_size=1, max_size=4), is_repeated=st.booleans())
    def send(self, which: int, how: list[BusyBehavior], is_repeated: bool) -> None:
        """
        Messages, one after another; those behind the first meet it at work.

        The last is said again with its key, as a client does that heard no answer: it is there once.
        """
        chat_id = self.pick(which)
        for behavior in how:
            said, key = self.words(), str(uuid.uuid4())
            sent = self.ask(self.client.send(chat_id, said, key=key, busy_behavior=behavior))
            if sent is None:
                return
            self.sent[chat_id].append(said)
        if is_repeated:
            assert self.ask(self.client.send(chat_id, said, key=key, busy_behavior=behavior)) == sent

    @rule(which=WHICH, place=st.integers(0, 9))
    def edit(self, which: int, place: int) -> None:
        """Some message of the chat, whoever it is of, says something else."""
        chat_id, said = self.pick(which), self.words()
        page = self.ask(self.client.list_messages(chat_id))
        assert page is not None
        message = page.messages[place % len(page.messages)]
        edited = self.ask(self.client.edit(chat_id, message.id, said))
        if edited is not None:
            assert message.role == "user"
            # It takes what waits out of the queue, unless that went in meanwhile.
            waited = {queued.content[0].text for queued in page.queued_messages}  # type: ignore[union-attr]
            self.sent[chat_id] = [*(text for text in self.sent[chat_id] if text not in waited), said]

    @rule(which=WHICH)
    def interrupt(self, which: int) -> None:
        """Stop the turn."""
        self.ask(self.client.interrupt(self.pick(which)))

    @rule(which=WHICH, place=st.integers(0, 3), is_promoted=st.booleans())
    def change_queue(self, which: int, place: int, is_promoted: bool) -> None:
        """A message that waits, if any does, is taken back or goes first."""
        chat_id = self.pick(which)
        page = self.ask(self.client.list_messages(chat_id))
        assert page is not None
        if not page.queued_messages:
            return
        queued = page.queued_messages[place % len(page.queued_messages)]
        if is_promoted:
            self.ask(self.client.promote_queued(chat_id, queued.id))
            return
        self.loop.run(self._take_back(chat_id, queued.id, queued.content[0].text))  # type: ignore[union-attr]

    async def _take_back(self, chat_id: UUID, queued_id: int, said: str) -> None:
        try:
            await self.client.delete_queued(chat_id, queued_id)
        except client.ApiError as error:
            check_refusal(error)
        else:
            self.sent[chat_id].remove(said)

    @rule(which=WHICH, title=st.text(min_size=1, max_size=20), value=st.text(min_size=1, max_size=20))
    def rename(self, which: int, title: str, value: str) -> None:
        """Another title and label, which may be refused for what is in them."""
        self.change(which, title=title.strip(), labels={"of": value})

    @rule(which=WHICH, pin_order=st.integers(0, 3))
    def pin(self, which: int, pin_order: int) -> None:
        """Pin it, or no longer."""
        self.change(which, pin_order=pin_order)

    @rule(which=WHICH, archived=st.booleans())
    def archive(self, which: int, archived: bool) -> None:
        """Put it away, or take it out again."""
        self.change(which, archived=archived)

    def change(self, which: int, **fields: Any) -> None:
        """What is answered by 2xx holds; what is refused changes nothing."""
        chat_id = self.pick(which)

        async def run() -> bool:
            await self.client.change_chat(chat_id, **fields)
            return True

        if self.ask(run()):
            self.set[chat_id] |= fields
            if fields.get("archived"):
                self.set[chat_id]["pin_order"] = 0

    @rule(which=WHICH, name=st.sampled_from(["clear", "compact", "reconcile", "refresh_context"]))
    def begin_anew(self, which: int, name: str) -> None:
        """What else may be asked of a chat."""
        self.ask(getattr(self.client, name)(self.pick(which)))

    @rule(which=WHICH, name=st.sampled_from(["why", "cost", "prompts", "acl", "questions", "context_diff"]))
    def look(self, which: int, name: str) -> None:
        """What may be read of one."""
        self.ask(getattr(self.client, name)(self.pick(which)))

    @rule(which=WHICH)
    def wait(self, which: int) -> None:
        """Let a turn end."""
        self.loop.run(self.site.until(str(self.pick(which)), "waiting", "error"))

    # -- what must hold ----------------------------------------------------------

    @invariant()
    def is_whole(self) -> None:
        """Rows, histories and acknowledged messages; what was set is what is told."""
        if self.set:
            self.loop.run(self._check())

    async def _check(self) -> None:
        problems = await self.site.store.read(
            row_problems, self.sent, are_over=False, asks_for_summaries=True
        )
        assert problems == []
        pinned = []
        for chat_id, expected in self.set.items():
            chat: Chat = await self.client.get_chat(chat_id)
            assert {name: getattr(chat, name) for name in expected if name != "pin_order"} == {
                name: value for name, value in expected.items() if name != "pin_order"
            }
            # A pin is put among the others, as far down as there are any.
            assert bool(chat.pin_order) == bool(expected["pin_order"])
            pinned += [chat.pin_order] if chat.pin_order else []
        # What is archived leaves its place empty until the next pin.
        assert len(pinned) == len(set(pinned))


@pytest.mark.slow
@pytest.mark.timeout(120 + STEPS)
def test_any_calls_of_the_api_leave_chats_whole(new_database: NewDatabase) -> None:
    """Issue: random API calls; the rows' checker after each, no answer is a failure of ours."""
    ApiMachine.new_database = staticmethod(new_database)
    run_state_machine_as_test(
        ApiMachine,
        settings=settings(
            max_examples=max(1, STEPS // STEPS_IN_A_ROW),
            stateful_step_count=STEPS_IN_A_ROW,
            deadline=None,
            # Chats work meanwhile, so no run is like another: there is nothing to shrink.
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )
