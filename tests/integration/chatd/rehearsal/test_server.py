"""The server itself: broken streams, hostile bodies, start and stop."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatd.errors import Misuse
from chatd.rehearsal import RehearsalServer, Scenario
from chatd.rehearsal.engine import Asked

PATHS = [
    "/anthropic/v1/messages",
    "/openai/v1/responses",
    "/openai/v1/chat/completions",
    "/google/v1beta/models/m:streamGenerateContent",
]
BODY = {
    "model": "m",
    "max_tokens": 99,
    "stream": True,
    "messages": [{"role": "user", "content": "x"}],
    "input": "x",
    "contents": [{"role": "user", "parts": [{"text": "x"}]}],
}


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    """An HTTP client with a key."""
    async with aiohttp.ClientSession(headers={"x-api-key": "k"}) as session:
        yield session


async def _started(fault: dict[str, Any], text: list[str]) -> tuple[RehearsalServer, str]:
    server = RehearsalServer()
    scenario = Scenario.model_validate({"turns": [{"reply": {"text": text}, "fault": fault}]})
    return server, await server.start(scenario=scenario)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("after_events", [0, 3, 1_000])
async def test_a_cut_stream_ends_without_its_end(
    session: aiohttp.ClientSession, path: str, after_events: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Ours: the connection closes after the events asked for, with no end and no error logged."""
    server, base_url = await _started({"kind": "cut", "after_events": after_events}, ["a", "b"])
    response = await session.post(base_url + path, json=BODY)
    received = [await response.content.readuntil(b"\n\n") for _ in range(min(after_events, 3))]
    with pytest.raises(aiohttp.ClientPayloadError):
        await response.read()
    await server.stop()

    assert all(b"data: " in event for event in received)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("fault", "last"),
    [
        ({"kind": "end", "after_events": 2}, "data: "),
        ({"kind": "malformed", "after_events": 2}, "data: {broken"),
        ({"kind": "report", "after_events": 2, "status": 529, "message": "busy"}, "busy"),
    ],
)
async def test_a_stream_fails_as_scripted(
    session: aiohttp.ClientSession, path: str, fault: dict[str, Any], last: str
) -> None:
    """Ours: two events, then the failure; the vendor's own end is missing, or never read."""
    server, base_url = await _started(fault, ["a", "b", "c"])
    async with session.post(base_url + path, json=BODY) as response:
        events = (await response.text()).strip().split("\n\n")
    await server.stop()

    assert last in events[2 if fault["kind"] != "end" else 1]
    assert len(events) == {"end": 2, "report": 3}.get(fault["kind"], len(events))


@pytest.mark.parametrize("path", PATHS)
async def test_an_observer_sees_every_call_and_why_it_is_refused(
    session: aiohttp.ClientSession, path: str
) -> None:
    """Ours: what a test of retries and of requests looks at."""
    seen: list[Asked] = []
    server = RehearsalServer(seen.append)
    base_url = await server.start(scenario=Scenario())
    async with session.post(base_url + path, json=BODY) as response:
        await response.read()
    async with session.post(base_url + path, json={"stream": True}) as response:
        await response.read()
    await server.stop()

    assert [asked.problem is None for asked in seen] == [True, False]
    assert seen[0].at <= seen[1].at


async def test_an_answer_that_is_no_stream_can_be_cut_too(session: aiohttp.ClientSession) -> None:
    """Ours: then nothing arrives at all."""
    server, base_url = await _started({"kind": "cut"}, ["a"])
    with pytest.raises(aiohttp.ClientError):
        await session.post(base_url + PATHS[0], json={**BODY, "stream": False})
    await server.stop()


async def test_silence_can_be_abandoned_by_either_side(session: aiohttp.ClientSession) -> None:
    """Ours: a silent stream holds up neither the client that leaves nor the server that stops."""
    server, base_url = await _started({"kind": "silence", "after_events": 2, "silence_ms": 3_600_000}, ["a"])
    async with asyncio.timeout(30):
        response = await session.post(base_url + PATHS[0], json=BODY)
        first = await response.content.readuntil(b"\n\n")
        response.close()
        await server.stop()

    assert first.startswith(b"event: message_start\n")


async def test_a_short_silence_is_followed_by_the_rest(session: aiohttp.ClientSession) -> None:
    """Ours: nothing is lost, in a stream and in a whole answer."""
    server, base_url = await _started({"kind": "silence", "silence_ms": 1}, ["a"])
    async with session.post(base_url + PATHS[2], json=BODY) as response:
        text = await response.text()
    await server.stop()

    assert text.endswith("data: [DONE]\n\n")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"7", b"\xff", b"[" * 200_000, b"{}"])
async def test_malformed_bodies_get_the_vendors_400(
    session: aiohttp.ClientSession, path: str, body: bytes
) -> None:
    """Vendors: an error object, never a 500."""
    server = RehearsalServer()
    base_url = await server.start()
    async with session.post(base_url + path, data=body) as response:
        answer = await response.json()
    await server.stop()

    assert response.status == 400
    assert answer["error"].get("type", answer["error"].get("status")) in {
        "invalid_request_error",
        "INVALID_ARGUMENT",
    }


@settings(max_examples=60, deadline=None)
@given(
    body=st.recursive(
        st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_any_json_gets_a_400(body: Any) -> None:
    """Ours: no body of chance is a request, and none breaks the server."""

    async def ask() -> list[int]:
        server = RehearsalServer()
        base_url = await server.start()
        async with aiohttp.ClientSession(headers={"x-api-key": "k"}) as session:
            data = json.dumps(body).encode()
            statuses = [(await session.post(base_url + path, data=data)).status for path in PATHS]
        await server.stop()
        return statuses

    assert asyncio.run(ask()) == [400] * len(PATHS)


async def test_unknown_paths_and_missing_keys_have_the_vendors_shape() -> None:
    """Vendors: an error object for everything."""
    server = RehearsalServer()
    base_url = await server.start()
    async with aiohttp.ClientSession() as session:
        unknown = await session.get(f"{base_url}/openai/v1/nothing")
        wrong_method = await session.get(base_url + PATHS[0])
        no_key = await session.post(base_url + PATHS[1], json=BODY)
        answers = [
            (response.status, "error" in await response.json())
            for response in (unknown, wrong_method, no_key)
        ]
    await server.stop()

    assert answers == [(404, True), (405, True), (401, True)]


async def test_it_starts_once_and_stops_twice() -> None:
    """Ours: a second start is our bug, a second stop is harmless; two servers live side by side."""
    first, second = RehearsalServer(), RehearsalServer()
    urls = {await first.start(), await second.start()}
    with pytest.raises(Misuse):
        await first.start()
    for server in (first, second, first):
        await server.stop()

    assert len(urls) == 2
