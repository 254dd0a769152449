"""Floods, slow senders, giant bodies: everybody together finds a limit, and chatd goes on."""

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from chatd.routes import bounds
from tests.integration.chatd.http.site import API, LIMIT_S, Site, bearer, serving


@asynccontextmanager
async def small(path: Path, monkeypatch: pytest.MonkeyPatch, **limits: int) -> AsyncIterator[Site]:
    """A control plane with little room."""
    for name, value in limits.items():
        monkeypatch.setenv(f"CHATD_{name.upper()}", str(value))
    async with serving(path / "data") as site:
        yield site


def bounds_of(site: Site) -> bounds.Bounds:
    """The counts of a control plane."""
    return site.plane.bounds


async def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that happens on the other side."""
    async with asyncio.timeout(LIMIT_S):
        while True:
            if is_so():
                return
            await asyncio.sleep(0.01)


def head_of(site: Site, *fields: str) -> bytes:
    """The head of a request for a new chat."""
    lines = (f"POST {API}/chats HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {site.tokens['me']}")
    return "\r\n".join((*lines, "Content-Type: application/json", *fields, "", "")).encode()


async def connect(site: Site, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection on which *data* was sent."""
    reader, writer = await asyncio.open_connection(site.plane.settings.host, site.plane.port)
    writer.write(data)
    await writer.drain()
    return reader, writer


async def test_too_many_requests_at_once_are_told_to_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: 429 and Retry-After beyond the limit; health is answered; afterwards there is room."""
    async with small(tmp_path, monkeypatch, max_requests=2) as site:
        waiting = [await connect(site, head_of(site, "Content-Length: 9")) for _ in range(2)]
        await until(lambda: bounds_of(site).requests == 2)
        async with site.http.get(f"{API}/me", headers=bearer(site.tokens["me"])) as answer:
            refused = answer.status, (await answer.json())["code"], answer.headers["Retry-After"]
        healthy = await site.status("GET", "/healthz", {})
        for _, writer in waiting:
            writer.write(b"{}       ")
        answers = [await reader.readline() for reader, _ in waiting]
        for _, writer in waiting:
            writer.close()
        after = await site.status("GET", f"{API}/me", bearer(site.tokens["me"]))

    assert refused == (429, "busy", "1")
    assert (healthy, after) == (200, 200)
    assert all(b" 400 " in line for line in answers)


@pytest.mark.parametrize("kind", ["sse", "websocket"])
async def test_too_many_streams_are_refused_before_they_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Ours: a stream that finds no room is answered like any other request; those that end make room."""
    async with small(tmp_path, monkeypatch, max_streams=1) as site:
        path = f"{API}/chats/{await site.quiet_chat()}/stream"
        headers = bearer(site.tokens["me"])
        async with site.http.get(path, headers=headers) as first:
            await first.content.readline()
            if kind == "sse":
                status = await site.status("GET", path, headers)
            else:
                with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                    await site.http.ws_connect(path, headers=headers)
                status = refused.value.status
            counted = bounds_of(site).streams, bounds_of(site).requests
        await until(lambda: bounds_of(site).streams == 0)
        async with site.http.get(path, headers=headers) as again:
            opened = again.status

    assert (status, counted, opened) == (429, (1, 0), 200)


async def test_too_many_connections_are_closed_with_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: 503 without a look at the request; the count goes back when others leave."""
    async with small(tmp_path, monkeypatch, max_connections=16) as site:
        held = [await connect(site, b"") for _ in range(20)]
        async with asyncio.timeout(LIMIT_S):
            told = [await reader.read() for reader, _ in held[-4:]]
        counted = bounds_of(site).connections
        for _, writer in held:
            writer.close()
        await until(lambda: bounds_of(site).connections == 0)
        after = await site.status("GET", "/healthz", {})

    assert counted == 16
    assert all(text.startswith(b"HTTP/1.1 503 ") and b"Retry-After: 1" in text for text in told)
    assert after == 200


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET / HT", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: a"],
    ids=["nothing", "line", "headers"],
)
async def test_whoever_sends_headers_slowly_is_cut_off(site: Site, sent: bytes) -> None:
    """Slow loris: a request that is not here in time loses its connection, however often a byte comes."""
    reader, writer = await connect(site, sent)
    await until(lambda: bounds_of(site).connections > 0)
    async with asyncio.timeout(LIMIT_S):
        bounds_of(site).cut_slow(time.monotonic())
        early = bounds_of(site).refused["slow"]
        writer.write(b"b")
        bounds_of(site).cut_slow(time.monotonic() + bounds.HEADERS_S + 1)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
    writer.close()

    assert (early, bounds_of(site).refused["slow"]) == (0, 1)


async def test_a_connection_between_requests_and_one_that_is_served_are_not_slow(site: Site) -> None:
    """Ours: the clock runs only while a request's headers arrive."""
    path = f"{API}/chats/{await site.quiet_chat()}/stream"
    async with AsyncExitStack() as stack:
        stream = await stack.enter_async_context(site.http.get(path, headers=bearer(site.tokens["me"])))
        await stream.content.readline()
        reader, writer = await connect(site, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        await reader.readuntil(b"}")
        bounds_of(site).cut_slow(time.monotonic() + 3600)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        is_open = not stream.content.at_eof()

    assert (bounds_of(site).refused["slow"], is_open) == (0, True)
    assert b"200 OK" in answer


async def test_a_body_that_does_not_arrive_is_given_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow loris with a body: 408, and the connection ends."""
    monkeypatch.setattr(bounds, "BODY_S", 0.2)
    reader, writer = await connect(site, head_of(site, "Content-Length: 100", "Connection: close") + b"{")
    async with asyncio.timeout(LIMIT_S):
        answer = await reader.readuntil(b"}")
    writer.close()

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["code"] == "too_slow"


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (("X: " + "a" * 9000,), 400),
        (tuple(f"X{number}: a" for number in range(200)), 400),
        (("Content-Length: 99999999999",), 413),
        (("Content-Length: 99999999999999999999999999",), 400),
        (("Transfer-Encoding: chunked", "Content-Length: 1"), 400),
    ],
    ids=["long", "many", "body", "number", "smuggled"],
)
async def test_giant_heads_and_bodies_are_refused_unread(
    site: Site, fields: tuple[str, ...], status: int
) -> None:
    """Ours: by what the head says, before any of it is kept."""
    reader, writer = await connect(site, head_of(site, *fields))
    async with asyncio.timeout(LIMIT_S):
        answer = await reader.readline()
    writer.close()

    assert f" {status} ".encode() in answer


async def test_a_bomb_is_not_unpacked(site: Site) -> None:
    """Ours: a body counts as what it becomes; 100 MB of nothing in 100 kB are refused."""
    bomb = gzip.compress(b" " * 100_000_000)
    headers = bearer(site.tokens["me"]) | {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    status = await site.status("POST", f"{API}/chats", headers, data=bomb)

    assert status == 413


async def test_counts_are_told(site: Site) -> None:
    """Ours: what is open and what was refused, for Prometheus."""
    async with site.http.get("/metrics", headers=bearer(site.tokens["me"])) as answer:
        text = await answer.text()

    assert "chatd_http_connections 1.0" in text
    assert 'chatd_http_refused_total{what="slow"} 0.0' in text


async def test_a_viewer_that_goes_is_noticed_at_once(site: Site) -> None:
    """Ours: its stream ends with its connection, not with the next sign of life half a minute later."""
    path = f"{API}/chats/{await site.quiet_chat()}/stream"
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {site.tokens['me']}\r\n\r\n"
    reader, writer = await connect(site, head.encode())
    await reader.readuntil(b"data: ")
    opened = bounds_of(site).streams, site.plane.services.hub.chat_subscribers
    writer.transport.abort()
    await until(lambda: (bounds_of(site).streams, site.plane.services.hub.chat_subscribers) == (0, 0))

    assert opened == (1, 1)
