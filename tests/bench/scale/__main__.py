"""
What chats, workspaces and viewers cost a replica and its PostgreSQL, measured from outside.

Real processes: two chatds and a PostgreSQL that syncs to disk; the model server, workspaces and viewers are
of this process and not counted. CPU is the processes' own time, so other load on the machine only slows it.
Run as ``script/bench scale``; ``--save docs/concepts/scale.json`` keeps the constants for the capacity model.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import psycopg
from cryptography.fernet import Fernet

from agentd.wire.content import TextContent, ToolDefinition, ToolResult
from agentd.wire.link import (
    HELLO,
    PROTOCOL_VERSION,
    STREAMS_OPEN,
    TOOLS_CALL,
    TOOLS_LIST,
    Empty,
    HelloParams,
    HelloResult,
    ToolListResult,
)
from agentd.wire.peer import JsonRpcPeer
from chatd.rehearsal.conversation import Call, Chunk, Conversation, Reply
from chatd.store import accounts
from chatd.store.database import Database
from chatd.store.store import utc_now
from tests.bench.scale.desktops import StreamEnds, measure_desktops
from tests.bench.scale.resting import measure_rest
from tests.support.cluster.members import Replica
from tests.support.cluster.postgres_pair import PostgresPair
from tests.support.cluster.proxy import CutProxy
from tests.support.model_server import model_server

API = "/api/experimental"
FRAGMENTS = 60
# Turns whose last model call came: nobody asks chatd whether they are over, that would cost too.
_ANSWERED: dict[str, asyncio.Event] = {}
# Seconds until such a turn is over.
SETTLE_S = 3.0


def answer(conversation: Conversation) -> Reply:
    """One tool call, then an answer in sixty pieces: two model calls a turn."""
    if conversation.entries[-1].role == "tool":
        text = next(entry.text for entry in reversed(conversation.entries) if entry.role == "user")
        _ANSWERED.setdefault(text, asyncio.Event()).set()
        return Reply(chunks=tuple(Chunk(text=f"word {n} ") for n in range(FRAGMENTS)))
    return Reply(chunks=(Chunk(text="look"),), calls=(Call(name="probe", arguments={}),), finish="tool-calls")


class Bench:
    """Two replicas, their PostgreSQL, and what they used."""

    def __init__(
        self, first: Replica, second: Replica, postgres: PostgresPair, http: aiohttp.ClientSession
    ) -> None:
        self.first, self.second, self.postgres, self.http = first, second, postgres, http
        self.token = ""
        # One for each who watches: streams of one token share the look whether it still holds.
        self.watchers: list[str] = []
        self.agents: list[tuple[str, str]] = []
        self.streams = StreamEnds(http)
        self._postgres: dict[int, float] = {}
        self._numbers = itertools.count()

    def _note(self, backends: list[psutil.Process]) -> None:
        """CPU of PostgreSQL's processes, also of those that end meanwhile, as far as it was seen."""
        for one in backends:
            with contextlib.suppress(psutil.NoSuchProcess):
                self._postgres[one.pid] = _cpu(one)

    def use(self) -> dict[str, float]:
        """CPU seconds, resident bytes, and what PostgreSQL counted, so far."""
        node = self.postgres.primary
        assert self.first.process is not None
        assert self.second.process is not None
        assert node.process is not None
        server = psutil.Process(node.process.pid)
        self._note([server, *server.children(recursive=True)])
        with psycopg.connect(node.url("chatd"), autocommit=True) as connection:
            connection.execute("SELECT pg_stat_force_next_flush()")
            row = connection.execute(
                "SELECT xact_commit, tup_inserted + tup_updated + tup_deleted,"
                " pg_database_size(current_database()), (SELECT wal_bytes FROM pg_stat_wal),"
                " (SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'chatd%')"
                " FROM pg_stat_database WHERE datname = current_database()"
            ).fetchone()
        assert row is not None
        return {
            "first_cpu_s": _cpu(psutil.Process(self.first.process.pid)),
            "second_cpu_s": _cpu(psutil.Process(self.second.process.pid)),
            "first_rss": psutil.Process(self.first.process.pid).memory_info().rss,
            "second_rss": psutil.Process(self.second.process.pid).memory_info().rss,
            "postgres_cpu_s": sum(self._postgres.values()),
            "transactions": float(row[0]),
            "rows_written": float(row[1]),
            "database_bytes": float(row[2]),
            "wal_bytes": float(row[3]),
            "connections": float(row[4]),
        }

    async def over(self, work: Any) -> dict[str, float]:
        """What was used while *work* ran."""
        before = self.use()
        await work
        after = self.use()
        return {name: after[name] - before[name] for name in after}

    async def ask(self, method: str, path: str, **request: Any) -> Any:
        """One request to the first replica."""
        headers = {"Authorization": f"Bearer {self.token}"}
        async with self.http.request(
            method, self.first.url + API + path, headers=headers, **request
        ) as answer:
            body = await answer.json()
            assert answer.status < 300, body
            return body

    async def turn(self, text: str, chat_id: str | None = None) -> str:
        """A turn from the first word to rest; the chat."""
        body: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
        if chat_id is None:
            body["workspace_id"] = self.agents[0][0]
            chat_id = (await self.ask("POST", "/chats", json=body))["id"]
        else:
            await self.ask("POST", f"/chats/{chat_id}/messages", json=body)
        async with asyncio.timeout(120):
            await _ANSWERED.setdefault(text, asyncio.Event()).wait()
        return chat_id

    async def turns(self, count: int, chats: list[str | None], at_once: int = 8) -> list[str]:
        """So many turns."""
        room = asyncio.Semaphore(at_once)

        async def one(number: int) -> str:
            async with room:
                return await self.turn(f"turn {next(self._numbers)}", chats[number % len(chats)])

        made = await asyncio.gather(*(one(number) for number in range(count)))
        await asyncio.sleep(SETTLE_S)
        return made


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


async def link(bench: Bench, url: str, token: str, stack: AsyncExitStack) -> None:
    """A workspace with one tool."""

    async def tools(_: dict[str, Any]) -> ToolListResult:
        return ToolListResult(tools=(ToolDefinition(name="probe", input_schema={}, origin="builtin"),))

    async def call(_: dict[str, Any]) -> ToolResult:
        return ToolResult(content=(TextContent(text="here"),))

    headers = {"Authorization": f"Bearer {token}"}
    socket = await stack.enter_async_context(bench.http.ws_connect(url + "/api/agent/link", headers=headers))

    async def frames() -> AsyncIterator[str | bytes]:
        async for message in socket:
            yield message.data

    async def open_stream(params: dict[str, Any]) -> Empty:
        bench.streams.dial(url, token, params["stream_id"])
        return Empty()

    handlers = {TOOLS_LIST: tools, TOOLS_CALL: call, STREAMS_OPEN: open_stream}
    peer = JsonRpcPeer(socket.send_str, handlers)
    _run(stack, peer.run(frames()))
    hello = HelloParams(protocol_version=PROTOCOL_VERSION, name="box", version="0", boot_id=token[-8:])
    await peer.call(HELLO, hello, HelloResult, timeout_s=60)


async def watch(bench: Bench, url: str, chat_id: str, token: str, stack: AsyncExitStack) -> None:
    """A viewer that reads everything."""
    headers = {"Authorization": f"Bearer {token}"}
    path = f"{url}{API}/chats/{chat_id}/stream"
    socket = await stack.enter_async_context(bench.http.ws_connect(path, headers=headers, max_msg_size=0))
    await socket.receive()

    async def read() -> None:
        async for _ in socket:
            pass

    _run(stack, read())


def _run(stack: AsyncExitStack, work: Any) -> None:
    task = asyncio.create_task(work)

    async def stop() -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    stack.push_async_callback(stop)


async def measure(bench: Bench, stack: AsyncExitStack, options: argparse.Namespace) -> dict[str, float]:
    """All constants, by name; each is a difference over a difference."""
    found: dict[str, float] = {}
    start = bench.use()
    found["replica_rss_mb"] = start["first_rss"] / 1e6
    idle = await bench.over(asyncio.sleep(options.seconds))
    found["replica_idle_cpu"] = (idle["first_cpu_s"] + idle["second_cpu_s"]) / 2 / options.seconds
    found["replica_idle_transactions_per_s"] = idle["transactions"] / 2 / options.seconds

    async def link_all() -> None:
        await asyncio.gather(*(link(bench, bench.first.url, token, stack) for _, token in bench.agents))
        await asyncio.sleep(3)

    linked = await bench.over(link_all())
    count = len(bench.agents)
    found["agent_rss_kb"] = linked["first_rss"] / count / 1e3
    found["agent_connect_cpu_ms"] = linked["first_cpu_s"] / count * 1e3
    pinged = await bench.over(asyncio.sleep(options.seconds))
    found["agent_idle_cpu_us_per_s"] = (
        max(0.0, pinged["first_cpu_s"] - idle["first_cpu_s"]) / options.seconds / count * 1e6
    )

    found |= await measure_desktops(bench, pinged, min(options.desktops, count), options.seconds)

    (chat_id, *_) = await bench.turns(8, [None])
    found |= await measure_rest(bench, chat_id, options.resting, options.seconds)
    chats: list[str] = []

    async def turn_all() -> None:
        chats.extend(await bench.turns(options.turns, [None]))

    began = asyncio.get_running_loop().time()
    turned = await bench.over(turn_all())
    lasted_s = asyncio.get_running_loop().time() - began
    found |= _per_turn(turned, options.turns, "turn")
    found["chat_bytes"] = turned["database_bytes"] / options.turns
    # The other replica drove none of them; it heard of all.
    heard_s = max(0.0, turned["second_cpu_s"] - idle["second_cpu_s"] * lasted_s / options.seconds)
    found["turn_heard_cpu_ms"] = heard_s / options.turns * 1e3

    async def watch_all() -> None:
        for number in range(options.viewers):
            chat_id, token = chats[number % len(chats)], bench.watchers[number]
            await watch(bench, bench.second.url, chat_id, token, stack)
        await asyncio.sleep(3)

    watched = await bench.over(watch_all())
    found["viewer_rss_kb"] = watched["second_rss"] / options.viewers / 1e3
    found["viewer_open_cpu_ms"] = watched["second_cpu_s"] / options.viewers * 1e3
    still = await bench.over(asyncio.sleep(options.seconds))
    found["viewer_idle_cpu_us_per_s"] = (
        max(0.0, still["second_cpu_s"] - idle["second_cpu_s"]) / options.seconds / options.viewers * 1e6
    )
    found["viewer_idle_transactions_per_s"] = (
        max(0.0, still["transactions"] - idle["transactions"]) / options.seconds / options.viewers
    )
    # Each chat once more, every one watched over there: what the relay and its viewers cost.
    again = await bench.over(bench.turns(options.turns, list(chats)))
    per_chat = options.viewers / len(chats)
    found["watched_turn_second_cpu_ms"] = again["second_cpu_s"] / options.turns * 1e3
    found["viewers_per_watched_turn"] = per_chat
    found["connections_per_replica"] = bench.use()["connections"] / 2
    found["watched_turn_first_cpu_ms"] = again["first_cpu_s"] / options.turns * 1e3
    return found


def _per_turn(used: dict[str, float], turns: int, name: str) -> dict[str, float]:
    return {
        f"{name}_cpu_ms": used["first_cpu_s"] / turns * 1e3,
        f"{name}_postgres_cpu_ms": used["postgres_cpu_s"] / turns * 1e3,
        f"{name}_transactions": used["transactions"] / turns,
        f"{name}_rows_written": used["rows_written"] / turns,
        f"{name}_wal_kb": used["wal_bytes"] / turns / 1e3,
    }


async def main(options: argparse.Namespace) -> None:
    """Start everything, measure, print."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sc-", dir="/tmp")))
        postgres = PostgresPair()
        stack.push_async_callback(postgres.close)
        await postgres.start()
        postgres.primary.execute("CREATE DATABASE chatd")
        model, bodies = await stack.enter_async_context(model_server(answer))
        replicas, key = [], Fernet.generate_key().decode()
        for number in range(2):
            proxy = CutProxy(postgres.primary.port)
            settings = {
                "CHATD_DATABASE": postgres.primary.url("chatd"),
                "CHATD_COMPAT_BASE_URL": model,
                "CHATD_AUTO_TITLES": "false",
                "CHATD_SECRET_KEYS": json.dumps([key]),
            }
            replica = Replica(f"r{number}", folder, settings, proxy, has_fake_clock=False)
            await replica.peers.start()
            stack.push_async_callback(replica.peers.close)
            stack.push_async_callback(replica.end)
            await replica.start()
            replicas.append(replica)
        http = await stack.enter_async_context(
            aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=None), connector=aiohttp.TCPConnector(limit=0)
            )
        )
        bench = Bench(replicas[0], replicas[1], postgres, http)
        await prepare(bench, options.agents, watchers=max(options.viewers, options.desktops))
        await asyncio.sleep(4)
        forget = asyncio.create_task(_forget(bodies))
        found = await measure(bench, stack, options)
        forget.cancel()
    rounded = {name: float(f"{value:.3g}") for name, value in found.items()}
    sys.stdout.write(json.dumps(rounded, indent=2) + "\n")
    if options.save:
        options.save.write_text(json.dumps(rounded, indent=2) + "\n")


async def _forget(bodies: list[Any]) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            await asyncio.sleep(1)
            bodies.clear()


async def prepare(bench: Bench, agents: int, *, watchers: int) -> None:
    """A person, her workspaces, and a token for each of her browsers."""

    def make(connection: Any) -> None:
        now = utc_now()
        user_id = accounts.ensure_user(connection, "somebody", now=now)
        bench.token = accounts.issue_token(connection, "api", user_id, now=now)
        bench.watchers += [accounts.issue_token(connection, "api", user_id, now=now) for _ in range(watchers)]
        for number in range(agents):
            agent_id = accounts.ensure_agent(connection, user_id, f"a{number}", now=now)
            token = accounts.issue_token(connection, "agent", user_id, now=now, agent_id=agent_id)
            bench.agents.append((str(agent_id), token))

    database = Database(bench.postgres.primary.url("chatd"))
    await database.write(make)
    await database.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agents", type=int, default=300)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--viewers", type=int, default=400)
    parser.add_argument("--desktops", type=int, default=100)
    parser.add_argument("--resting", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--save", type=Path, default=None)
    asyncio.run(main(parser.parse_args()))
