"""
One peer's agent loop against a Chat Completions server, run by that peer's own Python.

Usage: peers.py NAME BASE_URL PROMPT. Prints CPU seconds of the run, imports left out.
"""

# ruff: noqa: T201, PLC0415, PLW0603 -- a program that prints; a peer is there in its own environment only
import asyncio
import resource
import sys
from typing import Any

__all__ = []

MAX_TURNS = 100_000


def cpu_s() -> float:
    """CPU seconds of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def pydantic_ai(base_url: str, prompt: str) -> str:
    """pydantic-ai, streamed."""
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.usage import UsageLimits

    model = OpenAIChatModel("rehearsal", provider=OpenAIProvider(base_url=base_url, api_key="k"))
    agent = Agent(model)

    @agent.tool_plain
    def look(place: int) -> str:
        """Look at a place."""
        return f"seen {place}"

    await run_once(agent, prompt, UsageLimits(request_limit=None))
    return "ok"


async def run_once(agent: Any, prompt: str, limits: Any) -> None:
    """One run with every event of every step read."""
    global began
    began = cpu_s()
    async with agent.iter(prompt, usage_limits=limits) as run:
        async for node in run:
            if agent.is_model_request_node(node):
                async with node.stream(run.ctx) as stream:
                    async for _ in stream:
                        pass


async def openai_agents(base_url: str, prompt: str) -> str:
    """openai-agents, streamed."""
    from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)

    @function_tool
    def look(place: int) -> str:
        """Look at a place."""
        return f"seen {place}"

    client = AsyncOpenAI(base_url=base_url, api_key="k", max_retries=0)
    model = OpenAIChatCompletionsModel(model="rehearsal", openai_client=client)
    agent = Agent(name="a", model=model, tools=[look])
    global began
    began = cpu_s()
    result = Runner.run_streamed(agent, prompt, max_turns=MAX_TURNS)
    async for _ in result.stream_events():
        pass
    return str(result.final_output)


began = 0.0
PEERS = {"pydantic-ai": pydantic_ai, "openai-agents": openai_agents}

if __name__ == "__main__":
    name, url, text = sys.argv[1:]
    asyncio.run(PEERS[name](url, text))
    print(cpu_s() - began)
