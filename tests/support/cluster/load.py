"""People who chat: each has a chat, follows it at any replica, writes again, stops it now and then."""

import asyncio
import contextlib
import itertools
import json
import random
import re
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import aiohttp

from chatd.rehearsal.conversation import Call, Chunk, Conversation, Reply
from chatd.wire import MessagePartEvent, StreamEvent, stream_event_adapter

__all__ = ["API", "Person", "Site", "answer_of", "tokens_of"]

API = "/api/experimental"
# Tool calls in a turn, one after the other.
ROUNDS = 2
_TOKEN = re.compile(r"chat-\d+ turn-\d+ round-\d+")


def answer_of(journal: str) -> Callable[[Conversation], Reply]:
    """A model: it writes into *journal* by a command, as often as ``ROUNDS``, then says what it did."""

    def answer(conversation: Conversation) -> Reply:
        text = next(entry.text for entry in reversed(conversation.entries) if entry.role == "user")
        said = conversation.entries[::-1]
        rounds = sum(
            entry.role == "assistant" for entry in itertools.takewhile(lambda one: one.role != "user", said)
        )
        if rounds >= ROUNDS:
            words = tuple(Chunk(text=f"word {n} ") for n in range(12))
            return Reply(chunks=(*words, Chunk(text=f"done with {text}")))
        command = f"echo '{text} round-{rounds}' >> {journal}"
        call = Call(name="execute", arguments={"command": command, "timeout": 20})
        return Reply(
            chunks=(Chunk(text="let "), Chunk(text="me "), Chunk(text="write")),
            calls=(call,),
            finish="tool-calls",
        )

    return answer


def tokens_of(text: str) -> list[str]:
    """What was written by the commands in *text*."""
    return _TOKEN.findall(text)


@dataclass
class Site:
    """What all people share: where the replicas are, their token, and what went wrong."""

    urls: list[str]
    headers: dict[str, str]
    http: aiohttp.ClientSession
    rng: random.Random
    sent: dict[UUID, list[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def any_url(self) -> str:
        """Some replica; a load balancer would not know better."""
        return self.rng.choice(self.urls)

    async def ask(self, method: str, path: str, *refusals: int, **request: Any) -> Any:
        """One request, said again, elsewhere, until it is answered; None: one of *refusals*."""
        headers = self.headers | request.pop("headers", {})
        while True:
            try:
                async with (
                    asyncio.timeout(20),
                    self.http.request(
                        method, self.any_url() + API + path, headers=headers, **request
                    ) as answer,
                ):
                    body = await answer.text()
                    if answer.status in refusals:
                        return None
                    if answer.status < 300:
                        return json.loads(body) if body else None
                    if answer.status < 500:
                        self.problems.append(f"{method} {path}: {answer.status} {body[:200]}")
                    self.counts[f"answers {answer.status}"] += 1
            except (aiohttp.ClientError, OSError, TimeoutError):
                self.counts["requests lost"] += 1
            await asyncio.sleep(self.rng.uniform(0.1, 0.5))


class Person:
    """One chat; *number* tells it from others, *workspace_id* is where it works."""

    def __init__(self, site: Site, number: int, workspace_id: UUID) -> None:
        self.site, self.number, self.workspace_id = site, number, workspace_id
        self.rng = random.Random(f"{number}")  # noqa: S311 -- a schedule
        self.turns = itertools.count()
        self.chat_id = ""
        # What was seen: messages by id, state of the newest turn, and where in which episode.
        self.messages: dict[int, str] = {}
        self.status = ""
        self.news = asyncio.Event()
        self._at: tuple[int, int] | None = None
        self._seq = 0

    async def live(self, is_over: asyncio.Event, *, think_s: float) -> None:
        """
        Write, wait for the answer, think; until *is_over*.

        Then wait until the last answer is there, ask once more, and get an answer to that.
        """
        await asyncio.sleep(self.rng.uniform(0, think_s))
        text = self._text()
        answer = await self._say("/chats", text, workspace_id=str(self.workspace_id))
        self.chat_id = answer["id"]
        self.site.sent[UUID(self.chat_id)] = [text]
        following = asyncio.create_task(self.follow())
        following.add_done_callback(self._mourn)
        try:
            while True:
                await self._at_rest()
                self.site.counts["turns"] += 1
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self.rng.uniform(0.2, 2) * think_s):
                        await is_over.wait()
                if is_over.is_set():
                    return await self._prove()
                await self._write()
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    async def _prove(self) -> None:
        """Nothing goes wrong any more: a message is answered, whatever became of those before it."""
        chat = await self.site.ask("GET", f"/chats/{self.chat_id}")
        error = chat.get("last_error") or {}
        self.site.counts[f"rest {chat['status']}"] += 1
        if chat["status"] == "error" and not error.get("message"):
            self._complain(f"it ended in an error and does not say why: {error}")
        text = await self._write(may_interrupt=False)
        await self._at_rest()
        said = self.messages[max(self.messages)]
        if self.status != "waiting" or f"done with {text}" not in said:
            self._complain(f"{text!r} was not answered after all was well: {self.status}, {said[-300:]}")
        else:
            self.site.counts["answered in the end"] += 1

    def _mourn(self, following: "asyncio.Task[None]") -> None:
        if not following.cancelled():
            self._complain(f"its viewer died: {following.exception()!r}")

    def _text(self) -> str:
        return f"chat-{self.number} turn-{next(self.turns)}"

    async def _write(self, *, may_interrupt: bool = True) -> str:
        text = self._text()
        answer = await self._say(f"/chats/{self.chat_id}/messages", text)
        if answer is not None:
            self.site.sent[UUID(self.chat_id)].append(text)
        if may_interrupt and self.rng.random() < 0.1:
            await asyncio.sleep(self.rng.uniform(0, 1))
            await self.site.ask("POST", f"/chats/{self.chat_id}/interrupt", 409)
        return text

    async def _say(self, path: str, text: str, **fields: Any) -> Any:
        body = {"content": [{"type": "text", "text": text}], **fields}
        return await self.site.ask("POST", path, json=body, headers={"Idempotency-Key": str(uuid.uuid4())})

    async def _at_rest(self) -> None:
        while not (self.status in {"waiting", "error"} and self._is_current()):
            self.news.clear()
            await self.news.wait()

    def _is_current(self) -> bool:
        """Whether the newest message of ours was seen: the status that came with it is of then, or later."""
        mine = self.site.sent[UUID(self.chat_id)][-1]
        return any(mine in text for text in self.messages.values())

    async def follow(self) -> None:
        """Watch at some replica, and at another when that one goes."""
        while True:
            self._at, self._seq = None, 0
            path = f"{API}/chats/{self.chat_id}/stream?after_id={max(self.messages, default=0)}"
            try:
                async with self.site.http.ws_connect(
                    self.site.any_url() + path, headers=self.site.headers, heartbeat=10, max_msg_size=0
                ) as socket:
                    self.site.counts["streams"] += 1
                    async for frame in socket:
                        if frame.type is not aiohttp.WSMsgType.TEXT:
                            # A ping that nobody answered, a connection that broke: elsewhere, then.
                            break
                        for event in json.loads(frame.data):
                            self._take(stream_event_adapter.validate_python(event))
                        self.news.set()
            except (aiohttp.ClientError, OSError, TimeoutError):
                self.site.counts["streams refused"] += 1
            await asyncio.sleep(self.rng.uniform(0.05, 0.5))

    def _take(self, event: StreamEvent) -> None:
        match event.type:
            case "message":
                if event.message.id <= max(self.messages, default=0):
                    self._complain(f"message {event.message.id} came twice or out of order")
                self.messages[event.message.id] = event.message.model_dump_json()
            case "history_reset":
                self._complain("the history was reset, and nobody edited it")
            case "status":
                self.status = event.status
            case "preview_reset":
                self._at = None
            case "message_part":
                self._take_part(event)

    def _take_part(self, event: MessagePartEvent) -> None:
        at = (event.history_version, event.generation_attempt)
        if at != self._at:
            if self._at is not None:
                self._complain("another episode began without a reset")
            self._at, self._seq = at, 0
        if event.seq != self._seq + 1:
            self._complain(f"fragment {event.seq} came behind {self._seq}")
        self._seq = event.seq
        self.site.counts["fragments"] += 1

    def _complain(self, text: str) -> None:
        self.site.problems.append(f"chat {self.chat_id}: {text}")
