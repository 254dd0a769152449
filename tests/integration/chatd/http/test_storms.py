"""
Many at once against one chatd: viewers of chats, agents that reconnect, requests, slow senders.

Short by default. ``CHATD_STORM_STREAMS=10000 CHATD_STORM_AGENTS=1000`` is the long form (it needs that many
files; the limit is raised as far as it may be); figures are printed with ``-s``.
"""

import asyncio
import json
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest

from tests.integration.chatd.http.site import API, bearer, text
from tests.support.manager import starting

STREAMS = int(os.environ.get("CHATD_STORM_STREAMS", "300"))
AGENTS = int(os.environ.get("CHATD_STORM_AGENTS", "100"))
REQUESTS = STREAMS
# Of a loaded machine; the long form takes longer.
LIMIT_S = 60.0 + STREAMS / 50
MIB = 2**20
# Chats that the streams are spread over.
CHATS = 10
# What a log must not tell; a chat whose workspace is away fails in its own way.
FAILURES = {"request_failed", "stream_failed", "not_ready", "part_ended"}
# Connections that are being made at one time.
DIALLING = 100


class Storm:
    """A chatd as a process, and what it costs."""

    def __init__(self, line: dict[str, str], pid: int, http: aiohttp.ClientSession) -> None:
        self.url, self.token, self.agent_token = line["url"], line["token"], line["agent_token"]
        self.host, self.port = self.url.removeprefix("http://").split(":")
        self.http = http
        self._process = psutil.Process(pid)
        self.figures: dict[str, Any] = {}

    def rss_mib(self) -> float:
        """Memory of the process."""
        return float(self._process.memory_info().rss / MIB)

    def files(self) -> int:
        """Open files of the process."""
        return int(self._process.num_fds())

    async def ask(self, method: str, path: str, **body: Any) -> Any:
        """A request that must succeed."""
        async with self.http.request(
            method, f"{self.url}{API}{path}", headers=bearer(self.token), **body
        ) as answer:
            assert answer.status < 300, await answer.text()
            return await answer.json()

    async def gone(self, name: str) -> None:
        """Wait until a gauge is 0 (scraping is one request)."""
        async with asyncio.timeout(LIMIT_S):
            while True:
                async with self.http.get(f"{self.url}/metrics", headers=bearer(self.token)) as answer:
                    lines = (await answer.text()).splitlines()
                if f"{name} 0.0" in lines:
                    return
                await asyncio.sleep(0.2)

    def tell(self, **figures: Any) -> None:
        """Note figures; printed at the end."""
        self.figures |= figures


@pytest.fixture
async def chatd(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Storm]:
    """One chatd with room for the storm; a parameter holds other settings."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    variables = {
        "CHATD_DATA_DIR": str(tmp_path / "data"),
        # Each user's own limits are another matter.
        **{f"CHATD_{who}_REQUESTS_PER_MINUTE": "0" for who in ("ADDRESS", "USER", "TOKEN")},
        **getattr(request, "param", {}),
    }
    async with (
        starting(tmp_path, "chatd", "serve", "--port", "0", watchdog_s=30, **variables) as service,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http,
    ):
        assert service.process.stdout is not None
        line = json.loads(await service.process.stdout.readline())
        storm = Storm(line, service.process.pid, http)
        yield storm
        code, _, log = await service.stop()
        sys.stdout.write(json.dumps(storm.figures) + "\n")
    # What is no JSON is a traceback that nobody caught.
    failed = [
        line
        for line in log.splitlines()
        if not line.startswith("{") or json.loads(line)["action"] in FAILURES
    ]
    assert (code, failed) == (0, [])


def head_of(chatd: Storm, path: str) -> str:
    """A request."""
    lines = (f"GET {path} HTTP/1.1", f"Host: {chatd.host}", f"Authorization: Bearer {chatd.token}")
    return "\r\n".join((*lines, "", ""))


async def dial(chatd: Storm, head: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection that asked for a stream and has got its headers."""
    reader, writer = await asyncio.open_connection(chatd.host, int(chatd.port), limit=2**16)
    writer.write(head.encode())
    assert b" 200 " in await reader.readline()
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


async def all_at_once(work: list[Callable[[], Awaitable[Any]]], width: int) -> list[Any]:
    """Everything, *width* at a time."""
    room = asyncio.Semaphore(width)

    async def one(task: Callable[[], Awaitable[Any]]) -> Any:
        async with room:
            return await task()

    return await asyncio.gather(*(one(task) for task in work))


@asynccontextmanager
async def health_watched(chatd: Storm) -> AsyncIterator[list[float]]:
    """Seconds that ``/healthz`` took, asked all the time."""
    took: list[float] = []

    async def ask() -> None:
        while True:
            begun = time.monotonic()
            async with chatd.http.get(f"{chatd.url}/healthz") as answer:
                assert answer.status == 200
            took.append(time.monotonic() - begun)
            await asyncio.sleep(0.1)

    task = asyncio.ensure_future(ask())
    try:
        yield took
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_thousands_of_open_streams_get_what_happens_and_leave_nothing(chatd: Storm) -> None:
    """
    Issue: 10,000 open streams; each hears of its chat, chatd answers meanwhile, and memory returns.

    Steps: open streams over a few chats; have every chat say something; see it arrive everywhere; close all;
    do it again: the second time costs no memory that the first had not taken.
    """
    chats = [await chatd.ask("POST", "/chats", json=text("say hello")) for _ in range(CHATS)]
    heads = [head_of(chatd, f"{API}/chats/{chat['id']}/stream") for chat in chats]
    idle, files = chatd.rss_mib(), chatd.files()
    rests = []
    for turn in range(2):
        begun = time.monotonic()
        opening = [lambda head=heads[number % CHATS]: dial(chatd, head) for number in range(STREAMS)]
        async with asyncio.timeout(LIMIT_S), health_watched(chatd) as took:
            streams = await all_at_once(opening, DIALLING)
            opened = time.monotonic() - begun
            open_mib = chatd.rss_mib()
            mark = f"mark-{turn}"
            begun = time.monotonic()
            for chat in chats:
                await chatd.ask("POST", f"/chats/{chat['id']}/messages", json=text(f"say {mark}"))
            await asyncio.gather(*(reader.readuntil(mark.encode()) for reader, _ in streams))
            heard = time.monotonic() - begun
        for _, writer in streams:
            writer.transport.abort()
        await asyncio.gather(*(writer.wait_closed() for _, writer in streams), return_exceptions=True)
        await chatd.gone("chatd_http_streams")
        rests.append(chatd.rss_mib())
        chatd.tell(
            streams=STREAMS,
            **{f"opened_{turn}_s": round(opened, 2), f"heard_{turn}_s": round(heard, 2)},
            **{f"open_{turn}_mib": round(open_mib), f"rest_{turn}_mib": round(rests[-1])},
            **{f"health_p95_{turn}_ms": round(sorted(took)[int(len(took) * 0.95)] * 1000)},
        )
    chatd.tell(idle_mib=round(idle), kib_a_stream=round((open_mib - idle) * 1024 / STREAMS, 1))

    assert chatd.files() <= files + 20
    assert adds_nothing(rests)


def adds_nothing(rests_mib: list[float]) -> bool:
    """What a first storm took may stay with the allocator; whether those after it added nothing to it."""
    return rests_mib[-1] < rests_mib[0] * 1.15 + 10


def hello(number: int) -> str:
    """An agent's first message."""
    params = {"protocol_version": 1, "name": f"box-{number}", "version": "0", "boot_id": f"boot-{number}"}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "hello", "params": params})


@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_a_fleet_that_reconnects_at_once_is_back(chatd: Storm) -> None:
    """
    Issue: 1,000 agents reconnect at the same moment; each gets its hello, and chatd answers meanwhile.

    Memory returns: the third time costs none that the first had not taken.
    """
    headers = bearer(chatd.agent_token)

    async def connect(number: int) -> aiohttp.ClientWebSocketResponse:
        link = await chatd.http.ws_connect(f"{chatd.url}/api/agent/link", headers=headers, heartbeat=None)
        await link.send_str(hello(number))
        while True:
            answer = json.loads(await link.receive_str())
            if answer.get("id") == 1 and "method" not in answer:
                assert "result" in answer, answer
                return link

    idle = chatd.rss_mib()
    times, rests = [], []
    async with asyncio.timeout(LIMIT_S), health_watched(chatd) as took:
        for _ in range(3):
            begun = time.monotonic()
            links = await asyncio.gather(*(connect(number) for number in range(AGENTS)))
            times.append(round(time.monotonic() - begun, 2))
            # As a proxy that is restarted does it: all at once, without a word.
            for link in links:
                assert link._response.connection is not None
                transport = link._response.connection.transport
                assert transport is not None
                transport.abort()
            await chatd.gone("chatd_http_streams")
            rests.append(chatd.rss_mib())
    chatd.tell(
        agents=AGENTS,
        connected_s=times,
        idle_mib=round(idle),
        rest_mib=[round(rest) for rest in rests],
        health_p95_ms=round(sorted(took)[int(len(took) * 0.95)] * 1000),
    )

    assert adds_nothing(rests)


async def flood(chatd: Storm) -> tuple[Counter[int], set[str]]:
    """Everybody asks at once, and then so many begin to ask and fall silent; statuses, and Retry-After."""
    statuses: Counter[int] = Counter()
    hints = set()

    async def ask() -> None:
        async with chatd.http.get(f"{chatd.url}{API}/chats", headers=bearer(chatd.token)) as answer:
            await answer.read()
            statuses[answer.status] += 1
            if answer.status == 429:
                hints.add(answer.headers["Retry-After"])

    await asyncio.gather(*(ask() for _ in range(REQUESTS)))
    # Half a head each, and then nothing.
    slow = await all_at_once(
        [lambda: asyncio.open_connection(chatd.host, int(chatd.port)) for _ in range(STREAMS)], DIALLING
    )
    for _, writer in slow:
        writer.write(b"GET / HTTP/1.1\r\nX: ")
    await chatd.ask("GET", "/me")
    for _, writer in slow:
        writer.transport.abort()
    await asyncio.gather(*(writer.wait_closed() for _, writer in slow), return_exceptions=True)
    await chatd.gone("chatd_http_streams")
    return statuses, hints


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("chatd", "is_refused"),
    [({}, False), ({"CHATD_MAX_REQUESTS": "16"}, True)],
    indirect=["chatd"],
    ids=["usual bound", "small bound"],
)
async def test_a_flood_of_requests_is_served_or_told_to_come_back(chatd: Storm, *, is_refused: bool) -> None:
    """
    Issue: 429 with Retry-After, never a hang or a 500; nothing stays open, and memory returns.

    Beyond a small bound some must be refused, and some served; a second flood adds nothing to the first.
    """
    await chatd.ask("GET", "/me")
    idle = chatd.rss_mib()
    rests = []
    for _ in range(2):
        async with asyncio.timeout(LIMIT_S):
            statuses, hints = await flood(chatd)
        rests.append(chatd.rss_mib())
        chatd.tell(
            requests=REQUESTS,
            statuses=dict(statuses),
            idle_mib=round(idle),
            rest_mib=[round(rest) for rest in rests],
        )

        assert set(statuses) <= {200, 429}
        assert statuses.total() == REQUESTS
        assert hints <= {"1"}
        if is_refused:
            assert statuses[200] > 0
            assert statuses[429] > 0

    assert adds_nothing(rests)
