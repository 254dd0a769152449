"""
Many chats with vendors that fail in every way that can be scripted.

By default for seconds; ``CHATD_CHAOS_S=600`` makes it 200 chats with real delays for ten minutes,
``CHATD_CHAOS_SEED`` repeats a run.
"""

import asyncio
import contextlib
import json
import os
import random
import re
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from agentd.wire.content import TextContent, ToolResult
from agentd.wire.link import ToolCallParams
from chatd.errors import Refused
from chatd.provider.catalog import Catalog, rehearsal_sources
from chatd.rehearsal import RehearsalServer, Scenario
from chatd.rehearsal.engine import Asked
from chatd.rehearsal.faults import HttpFault
from chatd.store import catalog_rows
from chatd.wire import FaultKind
from tests.contract.provider.provoking import speak_http2
from tests.contract.store.bench import START
from tests.integration.chatd.core.world import World
from tests.support.checker import row_problems

CHAOS_S = float(os.environ.get("CHATD_CHAOS_S", "0"))
SEED = int(os.environ.get("CHATD_CHAOS_SEED", random.randrange(1_000_000)))  # noqa: S311 -- a schedule
CHATS, TURNS = (200, 1_000_000) if CHAOS_S else (16, 2)
# Seconds of silence that these chats bear; most scripted silences are shorter, some longer.
PATIENCE_S = 10.0 if CHAOS_S else 3.0
TOO_LONG_MS = int(PATIENCE_S * 2_500)
# Seconds in which a turn must end: with real delays, a few unlucky tries take minutes.
TURN_S = 1_200 if CHAOS_S else 300
# Tries of one call. Few, so that turns end on a machine too busy for any patience as well.
ATTEMPTS = 25 if CHAOS_S else 6
_MARK = re.compile(r"chaos (\d+) turn (\d+)")


def random_fault(rng: random.Random) -> dict[str, Any]:
    """A failure; one in twelve is final."""
    after = rng.randrange(5)
    hint = {"retry-after-ms": str(rng.randrange(20, 300))} if rng.random() < 0.6 else {}
    status = rng.choice([408, 429, 500, 502, 503, 504, 529])
    return rng.choice(
        [
            *[{"kind": "http", "status": status, "headers": hint}] * 4,
            {"kind": "http", "status": rng.choice([400, 401, 403, 404, 422])},
            {"kind": "http", "status": 502, "body": "<html>bad gateway</html>", "headers": hint},
            {"kind": "cut", "after_events": after},
            {"kind": "cut", "after_events": after, "reset": True},
            {"kind": "end", "after_events": rng.randrange(2)},
            {"kind": "reset_stream", "after_events": after, "code": rng.choice(["CANCEL", "REFUSED_STREAM"])},
            {"kind": "goaway", "after_events": after, "processed": rng.random() < 0.5},
            {"kind": "malformed", "after_events": after, "data": rng.choice(["{broken", "[", "<html>"])},
            {"kind": "report", "after_events": after, "status": rng.choice([429, 500, 529])},
            {
                "kind": "silence",
                "after_events": after,
                "silence_ms": rng.choice([5, 30, int(PATIENCE_S * 2_500)]),
            },
        ]
    )


def random_turn(rng: random.Random) -> dict[str, Any]:
    """An answer with or without calls; two in five fail."""
    words = ["Well", ", ", "this is", " an answer."]
    calls = [{"name": "look", "arguments": {"n": n}} for n in range(rng.choice([0, 0, 0, 1, 3]))]
    turn: dict[str, Any] = {"reply": {"text": words[: rng.randrange(1, 5)], "calls": calls}}
    return turn | ({"fault": random_fault(rng)} if rng.random() < 0.4 else {})


class Chaos:
    """A world whose models are the rehearsal model, under each of its protocols, over HTTP/1.1 and HTTP/2."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rng = random.Random(SEED)  # noqa: S311 -- a schedule, no secret
        self.asked: list[Asked] = []
        self.sent: dict[UUID, list[str]] = {}
        self.kinds: set[str] = set()
        self.server = RehearsalServer(self.asked.append)
        self.catalog = Catalog([])

    async def prepare(self) -> None:
        """Start the model, and let every chat choose among its protocols."""
        turns = [random_turn(self.rng) for _ in range(1_000)]
        url = await self.server.start(scenario=Scenario.model_validate({"turns": turns}))
        sources = rehearsal_sources(url)
        # A key of their own: sources with the same one share a client.
        others = [replace(one, model="rehearsal over HTTP/2", api_key="http2") for one in sources]
        self.catalog = Catalog([*sources, *others])
        for source in others:
            speak_http2(await self.catalog.provider(source.id))
        self.world.services = replace(self.world.services, catalog=self.catalog)
        await self.world.store.write(catalog_rows.save_configs, self.catalog.configs(), now=START)

        async def look(_: ToolCallParams) -> ToolResult:
            return ToolResult(content=(TextContent(text="seen"),))

        self.world.workspace.handlers["look"] = look

    async def converse(self, number: int, deadline: float) -> None:
        """One chat: turn after turn, each to its end, however it ends."""
        chat_id: UUID | None = None
        for turn in range(TURNS):
            text = f"chaos {number} turn {turn}"
            if chat_id is None:
                self.world.config_id = self.rng.choice(self.catalog.configs()).id
                chat_id = (await self.world.create(text, agent_id=self.world.agent_id)).id
            else:
                await self.world.send(chat_id, text)
            self.sent.setdefault(chat_id, []).append(text)
            if self.rng.random() < 0.1:
                await asyncio.sleep(self.rng.random() / 10)
                with contextlib.suppress(Refused):
                    await self.world.interrupt(chat_id)
            row = await self.until_rest(chat_id)
            if row["status"] == "error":
                self.kinds.add(row["last_error"]["kind"])
            if CHAOS_S and asyncio.get_running_loop().time() > deadline:
                return

    async def until_rest(self, chat_id: UUID) -> dict[str, Any]:
        """Wait until the chat needs nobody."""
        with self.world.hub.watch_chat(chat_id) as subscription:
            async with asyncio.timeout(TURN_S):
                while (row := await self.world.row(chat_id))["status"] not in {"waiting", "error"}:
                    await subscription.wait()
        return row


@pytest.fixture
async def chaos(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Chaos]:
    """A running worker; its delays are short, unless the run is a long one."""
    if not CHAOS_S:
        monkeypatch.setattr("chatd.worker.runner.effective_delay_s", lambda n, hint: max(0.01, hint))
    world = World(tmp_path, database_url, startup_timeout_s=PATIENCE_S, stream_silence_timeout_s=PATIENCE_S)
    await world.prepare()
    chaos = Chaos(world)
    await chaos.prepare()
    world.start()
    try:
        yield chaos
    finally:
        await world.close()
        await chaos.catalog.close()
        await chaos.server.stop()


@pytest.mark.timeout(CHAOS_S + TURN_S * 2)
async def test_every_chat_ends_whatever_its_vendor_does(chaos: Chaos) -> None:
    """
    Issue: all end, the rows are whole, no request is one that a vendor refuses, no hint is ignored.

    The scenario is played to whoever asks next, so each chat meets another mixture.
    """
    deadline = asyncio.get_running_loop().time() + CHAOS_S
    async with asyncio.TaskGroup() as group:
        for number in range(CHATS):
            group.create_task(chaos.converse(number, deadline))

    assert await chaos.world.database.read(row_problems, chaos.sent) == [], f"seed {SEED}"
    assert [asked.problem for asked in chaos.asked if asked.problem] == [], f"seed {SEED}"
    assert early_retries(chaos.asked) == [], f"seed {SEED}"
    assert chaos.kinds <= set(FaultKind)
    assert {type(asked.fault).__name__ for asked in chaos.asked} >= {"HttpFault", "NoneType"}
    assert {asked.is_http2 for asked in chaos.asked} == {True, False}


def early_retries(asked: list[Asked]) -> list[str]:
    """Which calls came back before the vendor's hint, by the vendor's own clock."""
    turns: dict[tuple[str, str], list[Asked]] = defaultdict(list)
    for call in asked:
        mark = _MARK.findall(json.dumps(call.body))[-1]
        turns[mark].append(call)
    early = []
    for mark, calls in turns.items():
        for before, after in pairwise(calls):
            headers = before.fault.headers if isinstance(before.fault, HttpFault) else {}
            hint_s = int(headers.get("retry-after-ms", 0)) / 1000
            if after.at - before.at < hint_s:
                early.append(f"{mark}: after {after.at - before.at:.3f} s instead of {hint_s}")
    return early
