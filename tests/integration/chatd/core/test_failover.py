"""A turn goes on with its model's fallback when the model fails."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agentd.wire.link import ToolCallParams
from chatd.errors import BadRequest
from chatd.provider.catalog import Catalog, rehearsal_sources
from chatd.provider.protocol import WebSearch
from chatd.rehearsal import RehearsalServer, Scenario
from chatd.rehearsal.engine import Asked
from chatd.store import catalog_rows
from chatd.wire import Message
from tests.contract.store.bench import START
from tests.integration.chatd.core.world import World, output

PAGES = [{"url": "https://a.example/one", "title": "One"}]


class Pair:
    """A world with two models, *first* and its fallback *second*; the first fails when it is asked again."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.asked: list[Asked] = []
        self.server = RehearsalServer(self.asked.append)
        self.catalog = Catalog([])

    async def start(self, first: str, second: str, *faults: dict[str, Any], **settings: Any) -> None:
        """Start both and a worker."""
        turns: list[dict[str, Any]] = [
            {"when": {"holds": name, "contains": "again"}, "times": None, "fault": fault}
            for name, fault in zip(('"model-one"', '"model-two"'), faults, strict=False)
        ]
        look = {"searches": [{"query": "q", "pages": PAGES}], "calls": [{"name": "look", "arguments": {}}]}
        turns += [{"reply": look}, {"times": None, "reply": {"text": ["fine"]}}]
        url = await self.server.start(scenario=Scenario.model_validate({"turns": turns}))
        by_name = {source.provider: source for source in rehearsal_sources(url)}
        sources = [
            replace(by_name[first], model="model-one", fallback="model-two", web_search=WebSearch()),  # type: ignore[index]
            replace(by_name[second], model="model-two", display_name="Two"),  # type: ignore[index]
        ]
        self.catalog = Catalog(sources)
        await self.world.store.write(catalog_rows.save_configs, self.catalog.configs(), now=START)
        self.world.config_id = sources[0].id
        self.world.services = replace(self.world.services, catalog=self.catalog)
        self.world.set(**settings)

        async def handler(_: ToolCallParams) -> Any:
            return output("seen")

        self.world.workspace.handlers["look"] = handler
        self.world.start()

    async def converse(self, status: str = "waiting") -> list[Message]:
        """A turn that goes well, then one that the first model fails."""
        chat = await self.world.create("hello", agent_id=self.world.agent_id)
        await self.world.until_rest(chat.id)
        await self.world.send(chat.id, "again")
        await self.world.until_rest(chat.id, status)
        return await self.world.messages(chat.id)

    def models(self) -> list[str]:
        """Who was asked the second question, in order."""
        asked = [one.body for one in self.asked if "again" in str(one.body)]
        return [body["model"] for body in asked]


@pytest.fixture
async def pair(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pair]:
    """Not yet started; retries wait for no time."""
    monkeypatch.setattr("chatd.worker.runner.effective_delay_s", lambda *_: 0.0)
    world = World(tmp_path, database_url)
    await world.prepare()
    pair = Pair(world)
    try:
        yield pair
    finally:
        await world.close()
        await pair.catalog.close()
        await pair.server.stop()


@pytest.mark.parametrize(
    ("first", "second"),
    [("anthropic", "openai"), ("openai", "anthropic"), ("anthropic", "google"), ("openai", "openai-compat")],
)
async def test_the_fallback_goes_on_with_everything_but_the_first_vendors_own(
    pair: Pair, first: str, second: str
) -> None:
    """Issue: tools and history stay, signatures and encrypted items do not go to another vendor."""
    await pair.start(first, second, {"kind": "http", "status": 529})
    messages = await pair.converse()
    body = str(pair.asked[-1].body)

    assert pair.models() == ["model-one"] * 3 + ["model-two"]
    assert pair.asked[-1].problem is None
    assert "look" in body
    assert "seen" in body
    kept = json.dumps([one.model_dump(mode="json") for one in messages[:-1]])
    sealed = re.findall(r'"(?:encrypted_content|signature|encrypted_index|id)": "([^"]+)"', kept)
    assert sealed
    assert [one for one in sealed if one in body] == []
    assert messages[-1].model_config_id == pair.catalog.resolve("model-two")
    assert (await pair.world.row(messages[-1].chat_id))["last_model_config_id"] == pair.world.config_id
    assert 'chatd_failovers_total{kind="overloaded",model="model-one"' in (
        pair.world.services.metrics.render().decode()
    )


@pytest.mark.parametrize(
    ("fault", "asked"),
    [
        ({"kind": "http", "status": 401}, ["model-one", "model-two"]),
        ({"kind": "http", "status": 404, "message": "model: not_found_error"}, ["model-one", "model-two"]),
        ({"kind": "http", "status": 400}, ["model-one"]),
    ],
)
async def test_what_never_heals_goes_over_at_once_and_a_bad_request_never(
    pair: Pair, fault: dict[str, Any], asked: list[str]
) -> None:
    """Ours: another vendor refuses a bad request as well."""
    await pair.start("anthropic", "openai", fault)
    await pair.converse("waiting" if len(asked) == 2 else "error")

    assert pair.models()[: len(asked)] == asked
    assert set(pair.models()) == set(asked)


async def test_there_is_one_fallback_and_the_turn_ends_with_its_error(pair: Pair) -> None:
    """Ours: no ring; the last error is that of who was asked last."""
    await pair.start(
        "anthropic",
        "openai",
        {"kind": "http", "status": 529},
        {"kind": "http", "status": 401},
        failover_attempts=1,
    )
    messages = await pair.converse("error")
    row = await pair.world.row(messages[-1].chat_id)

    assert pair.models() == ["model-one", "model-two"]
    assert (row["last_error"]["kind"], row["last_error"]["provider"]) == ("auth", "openai")


@pytest.mark.parametrize("fallback", ["model-two", "model-three", None])
async def test_a_turn_whose_key_is_gone_goes_over_or_says_so(pair: Pair, fallback: str | None) -> None:
    """Issue: the kind is missing_key; a fallback that is gone too is none."""
    names = {} if fallback is None else {"anthropic:model-one": fallback}
    await pair.start("anthropic", "openai", model_fallbacks=names)
    (_, second) = pair.catalog.sources()
    chat = await pair.world.create("hello", agent_id=pair.world.agent_id)
    await pair.world.until_rest(chat.id)
    pair.catalog.replace([second])
    await pair.world.send(chat.id, "again")
    row = await pair.world.until_rest(chat.id, "waiting" if fallback == "model-two" else "error")

    if fallback == "model-two":
        assert pair.models() == ["model-two"]
        assert (await pair.world.messages(chat.id))[-1].model_config_id == second.id
    else:
        error = row["last_error"]
        assert (error["kind"], error["provider"], error["retryable"]) == ("missing_key", "anthropic", False)
        assert pair.models() == []


async def test_a_key_may_go_in_the_middle_of_a_turn(pair: Pair) -> None:
    """Ours: wherever the turn is then, the fallback goes on."""
    await pair.start("anthropic", "openai", model_fallbacks={"anthropic:model-one": "model-two"})
    (_, second) = pair.catalog.sources()
    chat = await pair.world.create("hello", agent_id=pair.world.agent_id)
    await pair.world.until(chat.id, lambda row: row["generation_attempt"] == 1)
    pair.catalog.replace([second])
    row = await pair.world.until_rest(chat.id)

    assert row["last_error"] is None
    assert (await pair.world.messages(chat.id))[-1].model_config_id == second.id


def test_a_fallback_must_be_there() -> None:
    """Ours: a wrong name is told at the start, not when it is needed."""
    (one, *_) = rehearsal_sources("http://127.0.0.1:1")
    with pytest.raises(BadRequest, match="unknown model 'nobody'"):
        Catalog([replace(one, fallback="nobody")])
    told = Catalog(rehearsal_sources("http://127.0.0.1:1")).configs()

    assert {config.fallback_id for config in told} == {None}
