"""
The model loop beside others': CPU per streamed token and per step, on one rehearsal server.

Each contender runs in a process of its own, with its own SDK, for a short and a long
turn; the difference is what a token or a step costs, start left out. The runs
alternate, and the median is taken. Then our own parts: a prompt of 1,000 messages.
"""

# ruff: noqa: T201 -- a program that prints; a peer is there in its own environment only
import argparse
import asyncio
import statistics
import subprocess
import sys
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path

from chatd.loop.request import FileCache, build_prompt
from chatd.prompt.repair import repair_prompt
from chatd.provider import anthropic_prompt, openai_chat_prompt
from chatd.provider.protocol import FunctionTool, ModelRequest
from chatd.rehearsal import RehearsalServer, Scenario
from chatd.wire import Message, TextPart, ToolCallPart, ToolResultPart

ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
PEER_PYTHON = ROOT / ".venv-peers" / "agents" / "bin" / "python"
TOKENS, STEPS = (100, 4_100), (5, 65)

Contender = tuple[str, list[str]]
CONTENDERS: dict[str, list[Contender]] = {
    "token": [
        ("ours, stream alone", [sys.executable, str(HERE / "ours.py"), "stream"]),
        ("ours, durable chat", [sys.executable, str(HERE / "ours.py"), "whole"]),
        ("pydantic-ai", [str(PEER_PYTHON), str(HERE / "peers.py"), "pydantic-ai"]),
        ("openai-agents", [str(PEER_PYTHON), str(HERE / "peers.py"), "openai-agents"]),
    ],
    "step": [
        ("ours, durable chat", [sys.executable, str(HERE / "ours.py"), "whole"]),
        ("pydantic-ai", [str(PEER_PYTHON), str(HERE / "peers.py"), "pydantic-ai"]),
        ("openai-agents", [str(PEER_PYTHON), str(HERE / "peers.py"), "openai-agents"]),
    ],
}


def scenario(kind: str, count: int) -> Scenario:
    """Answers of *count* tokens, or of *count* calls one after the other."""
    if kind == "token":
        reply = {"text": ["word "] * count}
        return Scenario.model_validate({"turns": [{"times": None, "reply": reply}]})
    step = {"calls": [{"name": "look", "arguments": {"place": 1}}]}
    turns = [{"times": count, "reply": step}, {"reply": {"text": ["done"]}}]
    return Scenario.model_validate({"turns": turns})


async def cpu_of(command: list[str], kind: str, count: int) -> float:
    """CPU seconds of one run."""
    server = RehearsalServer()
    url = await server.start(scenario=scenario(kind, count))
    try:
        full = [*command, f"{url}/openai/v1", "go"]
        process = await asyncio.create_subprocess_exec(
            *full, cwd=ROOT, stdout=subprocess.PIPE, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
        )
        out, _ = await process.communicate()
    finally:
        await server.stop()
    if process.returncode:
        sys.exit(f"{' '.join(full)} failed")
    return float(out.split()[-1])


async def compare(kind: str, rounds: int) -> None:
    """Measure all contenders in turn."""
    short, long = TOKENS if kind == "token" else STEPS
    costs: dict[str, list[float]] = {name: [] for name, _ in CONTENDERS[kind]}
    for _ in range(rounds):
        for name, command in CONTENDERS[kind]:
            some, more = await cpu_of(command, kind, short), await cpu_of(command, kind, long)
            costs[name].append((more - some) / (long - short))
    print(f"\nCPU per {kind}, median of {rounds}")
    for name, values in sorted(costs.items(), key=lambda row: statistics.median(row[1])):
        spread = f"{min(values) * 1e6:,.0f} … {max(values) * 1e6:,.0f}"
        print(f"  {name:<24} {statistics.median(values) * 1e6:>10,.0f} µs   ({spread})")


def history(count: int) -> list[Message]:
    """*count* messages: a question, then calls and results."""
    now, chat = datetime(2026, 1, 1, tzinfo=UTC), uuid.UUID(int=1)

    def row(number: int, role: str, part: object) -> Message:
        return Message.model_validate(
            {"id": number, "chat_id": chat, "role": role, "content": (part,), "created_at": now}
        )

    rows = [row(1, "user", TextPart(text="go"))]
    for number in range(2, count, 2):
        name = f"call_{number}"
        args = {"command": f"ls /{number}", "timeout": "10s"}
        rows.append(row(number, "assistant", ToolCallPart(tool_call_id=name, tool_name="execute", args=args)))
        value = {"output": "x" * 500, "exit_code": 0}
        rows.append(
            row(number + 1, "tool", ToolResultPart(tool_call_id=name, tool_name="execute", result=value))
        )
    return rows


async def prompt_times(rounds: int) -> None:
    """A prompt of 1,000 messages, from rows to the vendor's JSON."""
    rows = history(1_000)
    tools = (FunctionTool(name="execute", description="d", input_schema={"type": "object"}),)
    print(f"\nprompt of {len(rows):,} messages, CPU, median and p99 of {rounds}")
    builders = {
        "Anthropic": ("anthropic", lambda asked: anthropic_prompt.build_messages(asked, "toolset")),
        "Chat Completions": ("openai-compat", openai_chat_prompt.build_messages),
    }
    for name, (provider, build) in builders.items():
        times = []
        for _ in range(rounds):
            began = time.process_time()
            messages = await build_prompt(None, rows, provider=provider, cache=FileCache())  # type: ignore[arg-type]
            build(ModelRequest(model="m", system="s", messages=messages, tools=tools))
            times.append(time.process_time() - began)
        assert len(repair_prompt(messages)) == len(messages)
        times.sort()
        median, p99 = statistics.median(times) * 1e3, times[int(len(times) * 0.99)] * 1e3
        print(f"  {name:<24} {median:>10.1f} ms   {p99:.1f} ms")


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="script/bench loop")
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    await prompt_times(rounds * 20)
    for kind in CONTENDERS:
        await compare(kind, rounds)


asyncio.run(main())
