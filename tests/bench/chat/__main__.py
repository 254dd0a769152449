"""
Chats beside their peers: ``script/bench chatd [--count 200] [--realtime]``.

Same run, same model server (the rehearsal model at zero delay, fifty pieces an answer): the
vendor's SDK alone, pydantic-ai, openai-agents, and ours, durable on SQLite. ``--realtime``
gives the measured processes real-time priority, for a machine that is not alone.
"""

# ruff: noqa: T201 -- a program that prints
import argparse
import asyncio
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import psutil

from agentd.wire.link import HELLO, PROTOCOL_VERSION, HelloParams, HelloResult, ToolListResult
from agentd.wire.peer import JsonRpcPeer

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
PEERS = ROOT / ".venv-peers" / "agents" / "bin" / "python"
API = "/api/experimental"
AT_ONCE = (1, 20, 100)
LISTED = 100_000
# Seconds after which something hangs.
LIMIT_S = 60


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which *share* of them are."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def report(name: str, value: float, unit: str, target: str = "", note: str = "") -> None:
    """One line."""
    print(f"  {name:<58} {value:>10.1f} {unit:<12} {target:<18} {note}", flush=True)


@asynccontextmanager
async def workspace(client: "Client") -> AsyncIterator[None]:
    """A workspace without tools, dialled in, so that no turn waits for one."""

    async def tools(_: dict[str, Any]) -> ToolListResult:
        return ToolListResult(tools=())

    headers = {"Authorization": f"Bearer {client.chatd.line['agent_token']}"}
    async with client.http.ws_connect("/api/agent/link", headers=headers) as socket:
        peer = JsonRpcPeer(socket.send_str, {"tools/list": tools})
        running = asyncio.create_task(peer.run(message.data async for message in socket))
        hello = HelloParams(protocol_version=PROTOCOL_VERSION, name="box", version="0", boot_id="b")
        await peer.call(HELLO, hello, HelloResult, timeout_s=LIMIT_S)
        yield
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


class Chatd:
    """A real chatd, and its client."""

    def __init__(self, home: Path, model_url: str, **settings: str) -> None:
        self.home = home
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(home), "LOGNAME": "bench", "PYTHONPATH": str(ROOT),
            "CHATD_DATA_DIR": str(home / "data"), "CHATD_COMPAT_BASE_URL": f"{model_url}/openai/v1",
            "CHATD_COMPAT_API_KEY": "k", "CHATD_COMPAT_MODEL": "rehearsal",
            # The peers make no titles.
            "CHATD_AUTO_TITLES": "false", **settings,
        }  # fmt: skip
        self.process: subprocess.Popen[bytes]
        self.line: dict[str, str] = {}

    def start(self) -> None:
        """Start and wait until it listens."""
        argv = [sys.executable, "-c", "from chatd.cli import main; main()", "serve", "--port", "0"]
        log = (self.home / "log").open("ab")
        self.process = subprocess.Popen(argv, env=self.environment, stdout=subprocess.PIPE, stderr=log)
        assert self.process.stdout is not None
        self.line = json.loads(self.process.stdout.readline())

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()

    @property
    def headers(self) -> dict[str, str]:
        """The token's."""
        return {"Authorization": f"Bearer {self.line['token']}"}

    def memory_kb(self) -> float:
        """Resident memory."""
        return psutil.Process(self.process.pid).memory_info().rss / 1024


@dataclass
class Stream:
    """A socket and what it said last."""

    socket: aiohttp.ClientWebSocketResponse
    role: str = ""
    status: str = ""


class Client:
    """One person's connections."""

    def __init__(self, chatd: Chatd) -> None:
        self.chatd = chatd
        connector = aiohttp.TCPConnector(limit=0)
        self.http = aiohttp.ClientSession(chatd.line["url"], headers=chatd.headers, connector=connector)

    async def create(self, text: str) -> str:
        """A new chat."""
        body = {"content": [{"type": "text", "text": text}]}
        async with self.http.post(f"{API}/chats", json=body) as answer:
            chat_id: str = (await answer.json())["id"]
            return chat_id

    async def send(self, chat_id: str, text: str) -> None:
        """A message."""
        body = {"content": [{"type": "text", "text": text}]}
        async with self.http.post(f"{API}/chats/{chat_id}/messages", json=body) as answer:
            assert answer.status == 200, await answer.text()
            await answer.read()

    async def until_over(self, stream: "Stream") -> float:
        """Read a stream until its turn is over; when the first of its answer came."""
        first = 0.0
        async for frame in stream.socket:
            for event in json.loads(frame.data):
                match event["type"]:
                    case "message_part":
                        first = first or time.monotonic()
                    case "message":
                        stream.role = event["message"]["role"]
                        if stream.role == "assistant":
                            first = first or time.monotonic()
                    case "status":
                        stream.status = event["status"]
            # A turn may come and go between two looks: then no status changed.
            if first and (stream.role, stream.status) == ("assistant", "waiting"):
                return first
        raise AssertionError("the stream ended")

    @asynccontextmanager
    async def stream(self, chat_id: str) -> AsyncIterator["Stream"]:
        """The chat's socket."""
        path = f"{API}/chats/{chat_id}/stream"
        async with asyncio.timeout(LIMIT_S), self.http.ws_connect(path, max_msg_size=0) as socket:
            yield Stream(socket)

    async def whole_chat(self, text: str) -> float:
        """Create, answer, idle; seconds from the wish to the first token."""
        begun = time.monotonic()
        async with self.stream(await self.create(text)) as socket:
            first = await self.until_over(socket)
        return first - begun


async def first_tokens(client: Client, model_url: str, count: int, direct: list[float]) -> None:
    """Added time to the first token, and from sending to the model call."""
    chat_id = await client.create("warm")
    sent: dict[str, float] = {}
    firsts: list[float] = []
    async with client.stream(chat_id) as socket:
        await client.until_over(socket)
        for number in range(count):
            # A chat with a short history, as the peers' are.
            fresh = await client.create(f"warm {number}")
            async with client.stream(fresh) as stream:
                await client.until_over(stream)
                text = f"first {number}"
                sent[text] = time.monotonic()
                await client.send(fresh, text)
                firsts.append(await client.until_over(stream) - sent[text])
    created = [await client.whole_chat(f"created {number}") for number in range(count)]
    async with client.http.get(f"{model_url}/arrivals") as answer:
        arrivals = await answer.json()
    acquire = [arrivals[text] - begun for text, begun in sent.items()]
    base, ms = statistics.median(direct), 1e3
    print("\nTime to first token, ms (send on an open stream, until its fragment is there)")
    report("ours, p50", statistics.median(firsts) * ms, "ms")
    report("ours, added to the SDK alone, p50", (statistics.median(firsts) - base) * ms, "ms", "target <= 10")
    report("ours, added to the SDK alone, p99", (quantile(firsts, 0.99) - base) * ms, "ms", "target <= 50")
    report("ours, create and connect included, p50", statistics.median(created) * ms, "ms")
    report("from send to model call, p50", statistics.median(acquire) * ms, "ms")
    report("from send to model call, p99", quantile(acquire, 0.99) * ms, "ms")


async def throughput(client: Client, count: int) -> dict[int, float]:
    """Chats a second through create, answer, idle."""
    rates = {}
    for at_once in AT_ONCE:
        free = asyncio.Semaphore(at_once)
        number = count if at_once > 1 else count // 2

        async def one(name: str, free: asyncio.Semaphore = free) -> None:
            async with free:
                await client.whole_chat(name)

        begun = time.monotonic()
        await asyncio.gather(*(one(f"many {at_once} {n}") for n in range(number)))
        rates[at_once] = number / (time.monotonic() - begun)
        target = "target >= 30" if at_once == 20 else ""
        report(f"ours, {at_once} at once", rates[at_once], "chats/s", target)
    return rates


async def fan_out(client: Client, count: int, pieces: int, target: str) -> None:
    """One answer to many subscribers; how long they took to catch up when they came all at once."""
    chat_id = await client.create("warm")
    async with client.stream(chat_id) as socket:
        await client.until_over(socket)
    line = client.chatd.line
    before = client.chatd.memory_kb()
    readers = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "tests.bench.chat.subscribers",
            line["url"],
            line["token"],
            chat_id,
            str(count),
        ),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        limit=2**20,
    )
    assert readers.stdout is not None
    caught_up = json.loads(await readers.stdout.readline())["caught_up_s"]
    after = client.chatd.memory_kb()
    await client.send(chat_id, f"pieces {pieces};")
    found = json.loads(await readers.stdout.readline())
    await readers.wait()
    whole = found["tokens"] / (count * pieces)
    note = f"{whole:.0%} as fragments, wrong {found['wrong']}, unlike {found['unlike']}"
    report(
        f"ours, delivered to {count}", found["tokens"] / max(found["seconds"], 1e-9), "tokens/s", target, note
    )
    reconnect = "target < 1" if count == 100 else ""
    report(f"{count} subscribers connect and catch up", caught_up, "s", reconnect)
    if count == 1_000:
        report("memory of an idle subscriber", (after - before) / count, "kB", "target <= 100")


async def memory(client: Client) -> None:
    """Of idle chats."""
    before = client.chatd.memory_kb()
    for number in range(300):
        await client.whole_chat(f"idle {number}")
    report("memory of an idle chat", (client.chatd.memory_kb() - before) / 300, "kB")


async def listing(client: Client) -> None:
    """Fifty of a hundred thousand."""
    chat_id = await client.create("one of many")
    async with client.stream(chat_id) as socket:
        await client.until_over(socket)
    path = client.chatd.home / "data" / "chatd.sqlite3"
    connection = sqlite3.connect(path, timeout=30)
    names = [row[1] for row in connection.execute("PRAGMA table_info(chats)")]
    others = ", ".join(name for name in names if name not in {"id", "title"})
    copy = f"INSERT INTO chats (id, title, {others}) SELECT ?, ?, {others} FROM chats WHERE id = ?"  # noqa: S608
    origin = uuid.UUID(chat_id).hex
    connection.executemany(copy, ((uuid.uuid4().hex, f"chat {n}", origin) for n in range(LISTED)))
    connection.commit()
    connection.close()
    times = []
    for _ in range(200):
        begun = time.monotonic()
        async with client.http.get(f"{API}/chats?limit=50") as answer:
            assert len(await answer.json()) == 50
        times.append(time.monotonic() - begun)
    print(f"\nListing 50 of {LISTED:,} chats")
    report("p50", statistics.median(times) * 1e3, "ms")
    report("p99", quantile(times, 0.99) * 1e3, "ms", "target < 20")


async def takeover(home: Path, model_url: str) -> None:
    """A chat whose runner is dead, by its lease; a chat whose whole process was killed."""
    lease_s = 3
    chatd = Chatd(home, model_url, CHATD_LEASE_S=str(lease_s))
    chatd.start()
    client = Client(chatd)
    async with workspace(client):
        chat_id = await client.create("to be taken over")
        async with client.stream(chat_id) as socket:
            await client.until_over(socket)
        connection = sqlite3.connect(home / "data" / "chatd.sqlite3", timeout=30, isolation_level=None)
        key = uuid.UUID(chat_id).hex
        now = time.strftime("%Y-%m-%d %H:%M:%S.000000", time.gmtime())
        dead = uuid.uuid4().hex
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM chat_messages WHERE chat_id = ? AND role = 'assistant'", [key])
        change = "UPDATE chats SET status = 'running', worker_id = ?, runner_id = ? WHERE id = ?"
        connection.execute(change, [dead, dead, key])
        connection.execute("INSERT INTO chat_heartbeats VALUES (?, ?, ?)", [key, dead, now])
        connection.execute("COMMIT")
        connection.close()
        begun = time.monotonic()
        while True:
            async with client.http.get(f"{API}/chats/{chat_id}") as answer:
                if (await answer.json())["status"] == "waiting":
                    break
            await asyncio.sleep(0.02)
    print("\nTakeover of a dead runner's chat")
    report(f"answered, lease of {lease_s} s", time.monotonic() - begun, "s", f"target <= {lease_s + 1}")
    await client.http.close()
    chatd.kill()


def peers(model_url: str, count: int) -> dict[str, dict[str, Any]]:
    """What the others take, each in its own process."""
    found = {}
    kinds = [("sdk", sys.executable)]
    kinds += [(kind, str(PEERS)) for kind in ("pydantic-ai", "openai-agents")] if PEERS.exists() else []
    for kind, python in kinds:
        argv = [python, str(HERE / "peer.py"), kind, f"{model_url}/openai/v1", str(count)]
        done = subprocess.run(argv, capture_output=True, check=False, env=dict(os.environ))
        if done.returncode:
            print(f"  {kind}: {done.stderr.decode()[-500:]}")
            continue
        found[kind] = json.loads(done.stdout)
    return found


async def ours(chatd: Chatd, model_url: str, count: int, found: dict[str, dict[str, Any]]) -> None:
    """Everything about ours, beside what the others took."""
    chatd.start()
    print("\nThe process")
    report("resident memory at start", chatd.memory_kb() / 1024, "MB", "target < 120")
    client = Client(chatd)
    try:
        async with workspace(client):
            direct = found["sdk"]["first_s"]
            await first_tokens(client, model_url, count, direct)
            for kind, figures in found.items():
                first = statistics.median(figures["first_s"])
                added = (first - statistics.median(direct)) * 1e3
                late = quantile(figures["first_s"], 0.99) * 1e3
                report(f"{kind}, p50", first * 1e3, "ms", note=f"added {added:.1f}, p99 {late:.1f}")
            print("\nChats a second")
            rates = await throughput(client, count)
            for kind, figures in found.items():
                rate = figures["chats_per_s"]
                report(
                    f"{kind}, 20 at once", rate, "chats/s", note=f"ours is {rates[20] / rate:.2f} times that"
                )
            print("\nFan-out of one answer")
            for subscribers, pieces, target in (
                (1, 5_000, ""),
                (100, 5_000, "target >= 20,000"),
                (1_000, 1_000, "target >= 15,000"),
            ):
                await fan_out(client, subscribers, pieces, target)
            await memory(client)
            await listing(client)
    finally:
        await client.http.close()
        chatd.kill()


def main() -> None:
    """Run it all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--realtime", action="store_true")
    wish = parser.parse_args()
    if wish.realtime:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    priority = "real-time" if wish.realtime else "usual"
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, {priority} priority")
    model = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.chat.model"], stdout=subprocess.PIPE, cwd=ROOT
    )
    assert model.stdout is not None
    try:
        url = model.stdout.readline().decode().strip()
        found = peers(url, wish.count)
        with tempfile.TemporaryDirectory(prefix="bench-") as home, tempfile.TemporaryDirectory() as other:
            asyncio.run(ours(Chatd(Path(home), url), url, wish.count, found))
            asyncio.run(takeover(Path(other), url))
    finally:
        model.kill()
        model.wait()


if __name__ == "__main__":
    main()
