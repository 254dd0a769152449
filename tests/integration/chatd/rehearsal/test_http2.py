"""The rehearsal model over HTTP/2: the vendors' own SDKs meet what a scenario scripts."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import httpx2
import pytest

from chatd.errors import ProviderFault
from chatd.provider.factory import IMPLEMENTATIONS, ProviderName, create_provider
from chatd.provider.protocol import Finished, ModelRequest, PartDone, PromptMessage, Provider
from chatd.rehearsal import RehearsalServer, Scenario
from chatd.rehearsal.engine import Asked
from chatd.wire import TextPart
from tests.contract.provider.provoking import speak_http2

BASES: dict[ProviderName, str] = {
    "anthropic": "/anthropic",
    "google": "/google",
    "openai": "/openai/v1",
    "openai-compat": "/openai/v1",
}
# A scripted failure, the kind that the error table gives it, and whether it is tried again.
FAULTS: list[tuple[dict[str, Any], str, bool]] = [
    *[
        ({"kind": "reset_stream", "code": code, "after_events": after}, "timeout", True)
        for code in ("NO_ERROR", "INTERNAL_ERROR", "REFUSED_STREAM", "CANCEL", "ENHANCE_YOUR_CALM")
        for after in (0, 2)
    ],
    ({"kind": "reset_stream", "code": "PROTOCOL_ERROR"}, "generic", False),
    ({"kind": "reset_stream", "code": "PROTOCOL_ERROR", "after_events": 2}, "generic", False),
    ({"kind": "goaway"}, "timeout", True),
    ({"kind": "goaway", "after_events": 2}, "timeout", True),
    ({"kind": "goaway", "code": "ENHANCE_YOUR_CALM"}, "timeout", True),
    ({"kind": "cut", "after_events": 2}, "timeout", True),
    ({"kind": "cut", "after_events": 2, "reset": True}, "timeout", True),
    ({"kind": "end", "after_events": 1}, "timeout", True),
    ({"kind": "malformed", "after_events": 2}, "timeout", True),
    ({"kind": "http", "status": 429, "headers": {"retry-after": "7"}}, "rate_limit", True),
    ({"kind": "http", "status": 401}, "auth", False),
    ({"kind": "report", "after_events": 1, "status": 529, "message": "Overloaded"}, "overloaded", True),
]


@pytest.fixture(params=sorted(IMPLEMENTATIONS))
def provider_name(request: pytest.FixtureRequest) -> ProviderName:
    """Every provider in turn."""
    name: ProviderName = request.param
    return name


@asynccontextmanager
async def rehearsing(
    name: ProviderName, turns: list[dict[str, Any]], asked: list[Asked] | None = None
) -> AsyncIterator[tuple[Provider, str]]:
    """A vendor's client that speaks HTTP/2 only, and the model that it asks."""
    server = RehearsalServer(asked.append if asked is not None else None)
    url = await server.start(scenario=Scenario.model_validate({"turns": turns}))
    provider = create_provider(provider=name, api_key="k", base_url=url + BASES[name])
    speak_http2(provider)
    try:
        yield provider, url
    finally:
        await provider.close()
        await server.stop()


async def say(provider: Provider, text: str = "Hello?") -> list[Any]:
    """Ask, to the end."""
    messages = (PromptMessage(role="user", content=(TextPart(text=text),)),)
    request = ModelRequest(model="rehearsal", system="", messages=messages)
    async with asyncio.timeout(30), aclosing(provider.stream(request)) as events:
        return [event async for event in events]


def text_of(events: list[Any]) -> str:
    """The answer's words."""
    assert isinstance(events[-1], Finished)
    return "".join(event.part.text for event in events if isinstance(event, PartDone))


async def test_an_answer_is_the_same_over_http_2(provider_name: ProviderName) -> None:
    """Ours: one engine behind both; calls share a connection and do not wait for each other."""
    asked: list[Asked] = []
    words = [{"text": "Well", "delay_ms": 50}, ", hello."]
    async with rehearsing(provider_name, [{"times": None, "reply": {"text": words}}], asked) as (provider, _):
        answers = await asyncio.gather(*(say(provider) for _ in range(20)))

    assert {text_of(events) for events in answers} == {"Well, hello."}
    assert {call.is_http2 for call in asked} == {True}


async def test_each_scripted_failure_is_what_the_table_says(provider_name: ProviderName) -> None:
    """Spec 4.3: and the call behind it, on the same client, is answered."""
    turns: list[dict[str, Any]] = []
    for fault, _, _ in FAULTS:
        turns += [{"reply": {"text": ["a", "b", "c"]}, "fault": fault}, {"reply": {"text": ["fine"]}}]
    met = []
    async with rehearsing(provider_name, turns) as (provider, _):
        for _ in FAULTS:
            with pytest.raises(ProviderFault) as failed:
                await say(provider)
            met.append((failed.value.kind, failed.value.retryable))
            assert text_of(await say(provider)) == "fine"

    wanted = [(kind, retryable) for _, kind, retryable in FAULTS]
    different = [
        (fault, is_so) for (fault, *_), is_so, want in zip(FAULTS, met, wanted, strict=True) if is_so != want
    ]
    assert different == []


async def test_a_call_that_the_vendor_never_began_goes_to_another_connection(
    provider_name: ProviderName,
) -> None:
    """
    RFC 9113, 6.8: GOAWAY names the last call that was begun; a later one is safe to ask again.

    The HTTP library does it where the connection has carried a call before; else it is a failure.
    """
    away = {"reply": {"text": ["never"]}, "fault": {"kind": "goaway", "processed": False}}
    turns = [away, {"reply": {"text": ["one"]}}, away, {"reply": {"text": ["two"]}}]
    asked: list[Asked] = []
    async with rehearsing(provider_name, turns, asked) as (provider, _):
        with pytest.raises(ProviderFault) as failed:
            await say(provider)
        answers = [text_of(await say(provider)) for _ in range(2)]

    assert (failed.value.kind, failed.value.retryable) == ("timeout", True)
    assert answers == ["one", "two"]
    assert len(asked) == 4


async def test_a_request_and_an_answer_larger_than_any_window_arrive() -> None:
    """Ours: flow control in both directions; a vendor's first window has 65,535 bytes."""
    asked: list[Asked] = []
    text = "x" * 300_000
    async with rehearsing("openai-compat", [{"reply": {"text": [text, text]}}], asked) as (provider, _):
        answer = text_of(await say(provider, text * 3))

    assert answer == text * 2
    assert asked[0].body["messages"][-1]["content"] in (text * 3, [{"type": "text", "text": text * 3}])


async def test_what_only_http_2_has_is_refused_over_http_1() -> None:
    """Ours: a scenario that can't be played says so; it is not played as something else."""
    turns = [{"fault": {"kind": "reset_stream"}, "times": None}]
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    async with rehearsing("openai", turns) as (_, url), httpx2.AsyncClient() as client:
        answer = await client.post(
            f"{url}/openai/v1/chat/completions", json=body, headers={"authorization": "Bearer k"}
        )

    assert answer.status_code == 505
    assert "HTTP/2" in answer.json()["error"]["message"]


async def test_a_client_that_leaves_ends_its_answer_and_no_other() -> None:
    """Ours: the stream alone is given up; a stop of the server ends what is silent."""
    turns = [
        {
            "when": {"contains": "slow"},
            "fault": {"kind": "silence", "silence_ms": 3_600_000, "after_events": 1},
        }
    ]
    async with (
        rehearsing("openai", turns) as (_, url),
        httpx2.AsyncClient(http1=False, http2=True, timeout=30) as client,
    ):
        headers = {"authorization": "Bearer k"}
        path = f"{url}/openai/v1/chat/completions"
        slow = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "slow"}]}
        async with (
            client.stream("POST", path, json=slow, headers=headers) as response,
            aclosing(response.aiter_raw()) as pieces,
        ):
            first = (await anext(pieces)).decode()
        quick = {**slow, "messages": [{"role": "user", "content": "hello"}]}
        whole = await client.post(path, json=quick, headers=headers)

    assert json.loads(first.removeprefix("data: ").split("\n")[0])["object"] == "chat.completion.chunk"
    assert whole.text.endswith("data: [DONE]\n\n")


async def test_bytes_that_are_no_http_2_end_the_connection() -> None:
    """Ours: broken frames, half a preface and silence harm nobody else."""
    async with rehearsing("openai", []) as (provider, url):
        host, port = url.removeprefix("http://").split(":")
        silent = [await asyncio.open_connection(host, port) for _ in range(3)]
        silent[1][1].write(b"PRI * HTTP/2.0\r\n")
        # Data for a stream that nobody opened.
        silent[2][1].write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(8) + b"\x01")
        async with asyncio.timeout(30):
            await silent[2][0].read()
        answer = text_of(await say(provider, "say hello"))
    for _, writer in silent:
        writer.close()

    assert answer
