"""
One peer, measured: ``python peer.py KIND BASE_URL COUNT``; runs in the peer's own environment.

Prints JSON: seconds to the first token of COUNT chats one after another, and chats a
second with 20 at a time. Kinds: sdk (OpenAI's SDK alone), pydantic-ai (in process, keeps
nothing), openai-agents (history in SQLite).
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any

AT_ONCE = 20
# A chat: asks, reads the whole answer, returns the seconds until its first token.
Chat = Callable[[str], Awaitable[float]]


def make_sdk(url: str) -> Chat:
    """The vendor's SDK."""
    from openai import AsyncOpenAI  # noqa: PLC0415 -- only this kind has it

    client = AsyncOpenAI(base_url=url, api_key="k", max_retries=0)

    async def chat(text: str) -> float:
        begun, first = time.perf_counter(), 0.0
        messages: list[Any] = [{"role": "user", "content": text}]
        stream = await client.chat.completions.create(model="rehearsal", messages=messages, stream=True)
        async for chunk in stream:
            if not first and chunk.choices and chunk.choices[0].delta.content:
                first = time.perf_counter() - begun
        return first

    return chat


def make_pydantic_ai(url: str) -> Chat:
    """An agent of pydantic-ai."""
    from pydantic_ai import Agent  # noqa: PLC0415
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    agent = Agent(OpenAIChatModel("rehearsal", provider=OpenAIProvider(base_url=url, api_key="k")))

    async def chat(text: str) -> float:
        begun, first = time.perf_counter(), 0.0
        async with agent.run_stream(text) as result:
            async for piece in result.stream_text(delta=True, debounce_by=None):
                if not first and piece:
                    first = time.perf_counter() - begun
        return first

    return chat


def make_openai_agents(url: str) -> Chat:
    """openai-agents with its history in SQLite, a session for each chat."""
    from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled  # noqa: PLC0415
    from agents.extensions.memory import SQLAlchemySession  # noqa: PLC0415
    from openai import AsyncOpenAI  # noqa: PLC0415
    from sqlalchemy.ext.asyncio import create_async_engine  # noqa: PLC0415

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=url, api_key="k", max_retries=0)
    model = OpenAIChatCompletionsModel(model="rehearsal", openai_client=client)
    agent = Agent(name="peer", model=model)
    path = os.path.join(tempfile.mkdtemp(prefix="bench-"), "peer.sqlite3")  # noqa: PTH118
    engine = create_async_engine(f"sqlite+aiosqlite:///{path}")

    async def chat(text: str) -> float:
        begun, first = time.perf_counter(), 0.0
        session = SQLAlchemySession(text, engine=engine, create_tables=True)
        result = Runner.run_streamed(agent, text, session=session)
        async for event in result.stream_events():
            is_text = event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
            if not first and is_text:
                first = time.perf_counter() - begun
        return first

    return chat


KINDS = {"sdk": make_sdk, "pydantic-ai": make_pydantic_ai, "openai-agents": make_openai_agents}


async def measure(kind: str, url: str, count: int) -> dict[str, Any]:
    """Warm up, then one after another, then many at once."""
    chat = KINDS[kind](url)
    for number in range(10):
        await chat(f"warm {kind} {number}")
    firsts = [await chat(f"{kind} {number}") for number in range(count)]
    free = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with free:
            await chat(f"many {kind} {number}")

    begun = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(count)))
    return {"first_s": firsts, "chats_per_s": count / (time.perf_counter() - begun)}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(sys.argv[1], sys.argv[2], int(sys.argv[3])))))  # noqa: T201
