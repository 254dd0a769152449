"""
A real chatd dies by SIGKILL at each commit while twenty chats run with tools; every chat ends.

The whole list is walked by CHATD_CRASH_POINTS=1000; by default a few points, others each time.
"""

import asyncio
import base64
import contextlib
import itertools
import os
import random
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp
import pytest
import sqlalchemy as sa

from agentd.wire.content import TextContent, ToolDefinition, ToolResult
from agentd.wire.link import HELLO, PROTOCOL_VERSION, HelloParams, HelloResult, ToolListResult
from agentd.wire.peer import JsonRpcPeer
from chatd.prompt.compaction import SUMMARY_INSTRUCTION
from chatd.rehearsal.codec import ApiError
from chatd.rehearsal.conversation import Call, Chunk, Conversation, Reply
from chatd.state import Transition
from chatd.store import schema
from chatd.store.database import Database, sqlite_url
from tests.integration.chatd.http.site import API, bearer, frames
from tests.support.checker import request_problems, row_problems
from tests.support.crashing import DEADLINE, Crash, commits_seen, start_chatd
from tests.support.model_server import model_server

CHATS = 20
COMMITS = (
    # A worker that is there owns a chat in the transaction that makes it runnable.
    "create+acquire",
    "spawn+create+acquire",
    "send+acquire",
    "edit+acquire",
    "complete_requires_action+acquire",
    "request_compaction+acquire",
    # What the next process finds.
    "acquire",
    "record_attempt",
    "claim_call",
    "commit_step",
    "commit_step+finish_turn",
    "commit_step+boundary",
    "commit_step+boundary+finish_turn",
    "set_aside+commit_step",
    "finish_turn",
    "finish_error",
    "record_retry",
    "enter_requires_action",
    "cancel_requires_action",
    "send",
    "send_interrupt",
    "interrupt",
    "finish_interruption",
    "promote_queued",
    "delete_queued",
    "take_steered",
    "clear_context",
    "archive",
    "unarchive",
    "reconcile",
    "mark_read",
    "save_upload",
    # What a call of a second model costs.
    "book",
)
# Of those the ones that most chats come to, so that one of the first few may be the last.
OFTEN = {
    "create+acquire",
    "send+acquire",
    "record_attempt",
    "claim_call",
    "commit_step",
    "commit_step+finish_turn",
    "send",
}
# What is committed besides and has no part in a chat's history: when chatd starts or looks after its house,
# links, leases. "run" is a look for chats that found none, "spawn" a repeat that found its child.
OTHERS = {
    "_issue_tokens",
    "_release_all",
    "beat",
    "delete_answers",
    "delete_dead",
    "delete_entries",
    "delete_unlinked",
    "mark_gone",
    "record_failure",
    "record_link",
    "register",
    "replace_title",
    "run",
    "save_configs",
    "seal_bare_keys",
    "share_key",
    "spawn",
    "touch",
}
# CHATD_CRASH_ONLY names the commits that are tried, with commas between.
ONLY = os.environ.get("CHATD_CRASH_ONLY", ",".join(COMMITS)).split(",")
POINTS = [(name, when) for name in COMMITS if name in ONLY for when in ("before", "after")]
POINTS_TRIED = int(os.environ.get("CHATD_CRASH_POINTS", "4"))
# Seconds after which a test has failed; nothing waits for it.
LIMIT_S = 120 + 40 * min(POINTS_TRIED, len(POINTS))
# The tool that a model calls, by a word of what it was asked.
TOOLS = {"client": "ask_client", "slow": "slow", "spawn": "spawn_agent"}
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)
# Tokens of the model's window, and a text that nearly fills it.
WINDOW_TOKENS = 8_000
LONG = " ".join(["word"] * 5_500)
CLIENT_TOOL = {"name": "ask_client", "description": "", "input_schema": {"type": "object"}}


class Model:
    """Calls tools twice over, then answers; every seventh request fails first."""

    def __init__(self) -> None:
        self.count = itertools.count(1)
        self.failed: set[str] = set()

    def answer(self, conversation: Conversation) -> Reply:
        """By what it was shown, as a model does."""
        text = next(entry.text for entry in reversed(conversation.entries) if entry.role == "user")
        if SUMMARY_INSTRUCTION[:40] in text:
            if any("without a summary" in entry.text for entry in conversation.entries):
                raise ApiError("no summaries today", status=401)
            return Reply(chunks=(Chunk(text="it went on"),))
        if "fail" in text and text not in self.failed:
            self.failed.add(text)
            raise ApiError("overloaded", status=503)
        # What was said since is in the same entry.
        if "locked out" in text and "again" not in text:
            raise ApiError("no such key", status=401)
        if any(entry.pictures for entry in conversation.entries):
            raise ApiError("Could not process image", status=400)
        rounds = len(
            list(itertools.takewhile(lambda entry: entry.role != "user", conversation.entries[::-1]))
        )
        if rounds >= 4:
            return Reply(chunks=(Chunk(text="done with "), Chunk(text=text)))
        name = next((name for word, name in TOOLS.items() if word in text), "probe")
        if name == "spawn_agent":
            calls = (Call(name=name, arguments={"prompt": text.replace("spawn", "probe by itself")}),)
        else:
            calls = tuple(Call(name=name, arguments={"n": n}) for n in (1, 2))
        return Reply(chunks=(Chunk(text="let me look"),), calls=calls, finish="tool-calls")


class Plane:
    """chatd as its clients know it: it goes away and comes back at another port."""

    def __init__(self, settings: dict[str, str], http: aiohttp.ClientSession, points: list[Crash]) -> None:
        self.settings, self.http, self.points = settings, http, points
        self.died: list[Crash] = []
        self.line: dict[str, str] | None = None
        self.changed = asyncio.Event()
        self.sent: dict[UUID, list[str]] = {}
        # For what no client can do; whoever lets chats do that gives it.
        self.database: Database

    async def run(self) -> None:
        """Start it, wait until it died, start it again; the last one lives until we are cancelled."""
        while True:
            crash = self.points[0] if self.points else None
            process, read_line = start_chatd(self.settings, crash)
            try:
                self._tell(await asyncio.to_thread(read_line))
                await asyncio.to_thread(process.join)
            finally:
                process.kill()
                process.join()
            self._tell(None)
            if process.exitcode == -9 and crash is not None:
                self.died.append(self.points.pop(0))

    def _tell(self, line: dict[str, str] | None) -> None:
        self.line = line
        self.changed.set()
        self.changed = asyncio.Event()

    async def ready(self) -> dict[str, str]:
        """Where it answers, once it does."""
        while self.line is None:
            await self.changed.wait()
        return self.line

    async def ask(self, method: str, path: str, *refusals: int, **request: Any) -> Any:
        """One request, said again until it is answered; None when the answer is one of *refusals*."""
        while True:
            line = await self.ready()
            headers = bearer(line["token"]) | request.get("headers", {})
            try:
                async with self.http.request(
                    method, line["url"] + API + path, **(request | {"headers": headers})
                ) as answer:
                    if answer.status in refusals:
                        return None
                    body = await answer.text()
                    assert answer.status < 300 or answer.status == 401, (path, answer.status, body)
                    if answer.status < 300:
                        return await answer.json() if body else None
            except (aiohttp.ClientError, ConnectionError):
                pass
            await asyncio.sleep(0.01)

    async def say(self, path: str, text: str, *refusals: int, **fields: Any) -> Any:
        """A message, exactly once; it is owed from the moment it was acknowledged."""
        body = {"content": [{"type": "text", "text": text}], **fields}
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        answer = await self.ask("POST", path, *refusals, json=body, headers=headers)
        if answer is not None:
            self.sent.setdefault(UUID(answer.get("id") or path.split("/")[2]), []).append(text)
        return answer

    async def until(self, chat_id: str, *statuses: str) -> str:
        """Wait for one of *statuses*."""
        while True:
            chat = await self.ask("GET", f"/chats/{chat_id}")
            status: str = chat["status"]
            assert status != "error" or "error" in statuses, chat.get("last_error")
            if status in statuses:
                return status
            await asyncio.sleep(0.02)


DURATIONS_S = {"probe": 0, "slow": 0.2}


async def work_in(plane: Plane, durations_s: Mapping[str, float] = DURATIONS_S) -> None:
    """The workspace, with tools by how long they take: it dials in again whenever chatd came back."""

    async def tools(_: dict[str, Any]) -> ToolListResult:
        return ToolListResult(
            tools=tuple(ToolDefinition(name=name, input_schema={}, origin="builtin") for name in durations_s)
        )

    async def call(params: dict[str, Any]) -> ToolResult:
        await asyncio.sleep(durations_s[params["name"]])
        return ToolResult(content=(TextContent(text=params["call_id"]),))

    while True:
        line = await plane.ready()
        with contextlib.suppress(aiohttp.ClientError, ConnectionError):
            async with plane.http.ws_connect(
                line["url"] + "/api/agent/link", headers=bearer(line["agent_token"])
            ) as socket:
                peer = JsonRpcPeer(socket.send_str, {"tools/list": tools, "tools/call": call})
                hello = HelloParams(protocol_version=PROTOCOL_VERSION, name="box", version="0", boot_id="b")
                async with asyncio.TaskGroup() as group:
                    running = group.create_task(peer.run(frames(socket)))
                    with contextlib.suppress(Exception):
                        await peer.call(HELLO, hello, HelloResult, timeout_s=LIMIT_S)
                    await asyncio.wait({running})
        await asyncio.sleep(0.01)


Life = Callable[[Plane, str], Awaitable[None]]


async def start(plane: Plane, text: str, **fields: Any) -> str:
    """A new chat that was asked *text*."""
    chat_id: str = (await plane.say("/chats", text, **fields))["id"]
    return chat_id


async def ask_twice(plane: Plane, name: str) -> None:
    """Two turns, watched."""
    chat_id = await start(plane, f"{name} probe")
    await plane.until(chat_id, "waiting")
    line = await plane.ready()
    with contextlib.suppress(aiohttp.ClientError, ConnectionError):
        async with plane.http.ws_connect(
            f"{line['url']}{API}/chats/{chat_id}/stream", headers=bearer(line["token"])
        ) as socket:
            await socket.receive()
    await plane.say(f"/chats/{chat_id}/messages", f"{name} probe more")


async def queue(plane: Plane, name: str) -> None:
    """Messages that wait; the last one goes first."""
    chat_id = await start(plane, f"{name} slow")
    path = f"/chats/{chat_id}/messages"
    for number in range(3):
        answer = await plane.say(path, f"{name} probe {number}")
    if answer["queued_message"] is not None:
        queued_id = answer["queued_message"]["id"]
        await plane.ask("POST", f"/chats/{chat_id}/queue/{queued_id}/promote", 404, 409)


async def interrupt(plane: Plane, name: str) -> None:
    """A stop in the middle of tools, then another turn."""
    chat_id = await start(plane, f"{name} slow")
    await plane.ask("POST", f"/chats/{chat_id}/interrupt", 409)
    await plane.say(f"/chats/{chat_id}/messages", f"{name} probe")


async def say_over(plane: Plane, name: str) -> None:
    """A message that stops the turn."""
    chat_id = await start(plane, f"{name} slow")
    path = f"/chats/{chat_id}/messages"
    await plane.say(path, f"{name} probe over", busy_behavior="interrupt")


async def steer(plane: Plane, name: str) -> None:
    """Messages that the turn under way takes in, with another effort: each is in the history once."""
    chat_id = await start(plane, f"{name} slow")
    path = f"/chats/{chat_id}/messages"
    for number in range(2):
        await plane.say(path, f"{name} probe {number}", busy_behavior="steer", plan_mode=None)


async def answer_as_client(plane: Plane, name: str) -> None:
    """Calls that the client answers."""
    chat_id = await start(plane, f"{name} client", unsafe_dynamic_tools=[CLIENT_TOOL])
    while await plane.until(chat_id, "waiting", "requires_action") == "requires_action":
        page = await plane.ask("GET", f"/chats/{chat_id}/messages?limit=200")
        calls = [part for part in page["messages"][-1]["content"] if part["type"] == "tool-call"]
        results = [{"tool_call_id": part["tool_call_id"], "output": {"ok": 1}} for part in calls]
        if results:
            await plane.ask("POST", f"/chats/{chat_id}/tool-results", 400, 409, json={"results": results})


async def survive_failure(plane: Plane, name: str) -> None:
    """A vendor that fails once."""
    await start(plane, f"{name} fail probe")


async def edit(plane: Plane, name: str) -> None:
    """A message said anew."""
    chat_id = await start(plane, f"{name} probe")
    await plane.until(chat_id, "waiting")
    first = (await plane.ask("GET", f"/chats/{chat_id}/messages"))["messages"][0]["id"]
    body = {"content": [{"type": "text", "text": f"{name} probe anew"}]}
    await plane.ask("PATCH", f"/chats/{chat_id}/messages/{first}", 404, json=body)


async def put_away(plane: Plane, name: str) -> None:
    """Archived, and taken out again."""
    chat_id = await start(plane, f"{name} probe")
    await plane.until(chat_id, "waiting")
    await plane.ask("PATCH", f"/chats/{chat_id}", 400, json={"archived": True})
    await plane.ask("PATCH", f"/chats/{chat_id}", 400, json={"archived": False})


async def be_refused(plane: Plane, name: str) -> None:
    """A vendor that wants no such key; the next message goes through."""
    chat_id = await start(plane, f"{name} locked out")
    await plane.until(chat_id, "error")
    await plane.say(f"/chats/{chat_id}/messages", f"{name} probe again")


async def take_back(plane: Plane, name: str) -> None:
    """A message that waits is deleted, unless its turn has come."""
    chat_id = await start(plane, f"{name} slow")
    path = f"/chats/{chat_id}"
    body = {"content": [{"type": "text", "text": f"{name} probe, or not"}]}
    answer = await plane.ask("POST", f"{path}/messages", json=body)
    if answer["queued_message"] is not None:
        await plane.ask("DELETE", f"{path}/queue/{answer['queued_message']['id']}", 404, 409)


async def sum_up(plane: Plane, name: str) -> None:
    """A summary, another turn, and all is forgotten."""
    chat_id = await start(plane, f"{name} probe")
    path = f"/chats/{chat_id}"
    await plane.until(chat_id, "waiting")
    await plane.ask("POST", f"{path}/compact", 409)
    await plane.until(chat_id, "waiting")
    await plane.say(f"{path}/messages", f"{name} probe more")
    await plane.until(chat_id, "waiting")
    await plane.ask("POST", f"{path}/clear")


async def fill_up(plane: Plane, name: str) -> None:
    """A history too long for the model, in the middle of a turn: summed up, or not."""
    await start(plane, f"{name} probe {LONG}")
    await start(plane, f"{name} probe without a summary {LONG}")


async def keep_waiting(plane: Plane, name: str) -> None:
    """Calls that the client never answers."""
    chat_id = await start(plane, f"{name} client", unsafe_dynamic_tools=[CLIENT_TOOL])
    await plane.until(chat_id, "waiting")


async def delegate(plane: Plane, name: str) -> None:
    """Sub-agents."""
    chat_id = await start(plane, f"{name} spawn")
    await plane.until(chat_id, "waiting")


async def show_picture(plane: Plane, name: str) -> None:
    """A picture that the vendor refuses is set aside."""
    headers = {"Content-Type": "image/png"}
    file_id = (await plane.ask("POST", "/chats/files", data=PNG, headers=headers))["id"]
    words = f"{name} probe of a picture"
    content = [{"type": "text", "text": words}, {"type": "file", "file_id": file_id}]
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    chat = await plane.ask("POST", "/chats", json={"content": content}, headers=headers)
    plane.sent[UUID(chat["id"])] = [words]


async def be_broken(plane: Plane, name: str) -> None:
    """A row that somebody brought into no valid state is repaired, and goes on."""
    chat_id = await start(plane, f"{name} probe")
    await plane.until(chat_id, "waiting")
    await plane.database.write(break_row, UUID(chat_id))
    await plane.ask("POST", f"/chats/{chat_id}/reconcile-invalid", 409)
    await plane.until(chat_id, "error")
    await plane.say(f"/chats/{chat_id}/messages", f"{name} probe again")


def break_row(connection: sa.Connection, chat_id: UUID) -> None:
    """An archived chat that runs: there is no such state."""
    table = schema.chats
    broken = table.update().where(table.c.id == chat_id, table.c.status == "waiting")
    connection.execute(broken.values(archived=True, status="running"))


LIVES: tuple[Life, ...] = (
    ask_twice,
    queue,
    interrupt,
    say_over,
    steer,
    answer_as_client,
    survive_failure,
    edit,
    put_away,
    be_refused,
    take_back,
    sum_up,
    fill_up,
    keep_waiting,
    delegate,
    show_picture,
    be_broken,
)


async def live(plane: Plane, number: int, batch: int) -> None:
    """One chat from its first message to its rest."""
    await LIVES[number % len(LIVES)](plane, f"{batch}/{number}")


async def all_over(plane: Plane) -> None:
    """Until every chat is at rest."""
    for chat_id in list(plane.sent):
        await plane.until(str(chat_id), "waiting")
        for child in (await plane.ask("GET", f"/chats/{chat_id}"))["children"]:
            await plane.until(child["id"], "waiting")


@asynccontextmanager
async def running(
    plane: Plane, durations_s: Mapping[str, float] = DURATIONS_S, *, limit_s: float = LIMIT_S
) -> AsyncIterator[None]:
    """Chatd and its workspace; both are gone afterwards."""
    async with asyncio.timeout(limit_s), asyncio.TaskGroup() as group:
        tasks = [group.create_task(plane.run()), group.create_task(work_in(plane, durations_s))]
        yield
        for task in tasks:
            task.cancel()


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S + 30)
async def test_a_chatd_killed_at_each_commit_loses_doubles_and_orphans_nothing(
    tmp_path: Path, database_url: str
) -> None:
    """Issue: SIGKILL before and after each kind of commit; twenty chats with tools; a checker reads all."""
    seed = random.randrange(10**6)  # noqa: S311 -- a schedule, no secret
    rng = random.Random(seed)  # noqa: S311
    chosen = rng.sample(POINTS, min(POINTS_TRIED, len(POINTS)))
    # What a death left behind is taken over once a start, all of it at once.
    chosen.sort(key=lambda point: point[0] == "acquire")
    points = [Crash(name, when, rng.randint(1, 4) if name in OFTEN else 1) for name, when in chosen]
    settings = {"CHATD_DATA_DIR": str(tmp_path), DEADLINE: "2"}
    if database_url.startswith("postgresql"):
        settings["CHATD_DATABASE"] = database_url
    else:
        database_url = sqlite_url(tmp_path / "chatd.sqlite3")
    database = Database(database_url)
    async with model_server(Model().answer) as (url, bodies), aiohttp.ClientSession() as http:
        settings |= {"CHATD_COMPAT_BASE_URL": url, "CHATD_CONTEXT_WINDOW": str(WINDOW_TOKENS)}
        plane = Plane(settings, http, list(points))
        plane.database = database
        try:
            async with running(plane):
                for batch in itertools.count():
                    await asyncio.gather(*(live(plane, number, batch) for number in range(CHATS)))
                    if not plane.points:
                        break
                    assert batch < 2 * len(points) + 5, f"seed {seed}: never came to {plane.points}"
                await all_over(plane)
            problems = await database.read(row_problems, plane.sent)
        finally:
            await database.close()
    problems += [problem for body in bodies for problem in request_problems(body)]

    assert problems == [], f"seed {seed}"
    assert plane.died == points
    assert len(plane.sent) >= CHATS
    # A chat that a dead process left behind is owned with whatever is done to it first.
    seen = {name.removesuffix("+acquire") for name in commits_seen(tmp_path)}
    listed = {name.removesuffix("+acquire") for name in COMMITS}
    assert sorted(seen - listed - OTHERS) == [], "commits that no list has"


def test_every_transition_is_a_point_of_death() -> None:
    """Issue: at each commit point; what no run came to by chance would be missed otherwise."""
    named = {move for name in COMMITS for move in name.split("+")}

    assert {str(move) for move in Transition} <= named
