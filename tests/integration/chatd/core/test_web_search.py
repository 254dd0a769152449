"""A vendor's own web search: where it stands, what people see of it, and that it goes back as it came."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chatd.provider.catalog import Catalog, rehearsal_sources
from chatd.rehearsal import RehearsalServer, Scenario
from chatd.rehearsal.engine import Asked
from chatd.settings import ChatdSettings, ModelOptions
from chatd.store import catalog_rows
from chatd.store.rows import public_message
from tests.contract.store.bench import START
from tests.integration.chatd.core.world import World

PAGES = [{"url": "https://a.example/one", "title": "One"}, {"url": "https://a.example/two", "title": "Two"}]
SCENARIO = {
    "turns": [
        {"reply": {"searches": [{"query": "what is it", "pages": PAGES}], "text": ["It is ", "this."]}},
        {"reply": {"text": ["As I said."]}},
    ]
}


class Searching:
    """A world whose model is one vendor's, with its search switched on or off."""

    def __init__(self, world: World, provider: str) -> None:
        self.world, self.provider = world, provider
        self.asked: list[Asked] = []
        self.server = RehearsalServer(self.asked.append)
        self.catalog = Catalog([])

    async def start(self, **options: Any) -> None:
        """Start the model and a worker."""
        url = await self.server.start(scenario=Scenario.model_validate(SCENARIO))
        settings = ChatdSettings(
            data_dir=Path("/nowhere"),
            model_options={self.provider: ModelOptions(**options)},  # type: ignore[dict-item]
        )
        sources = [one for one in rehearsal_sources(url, settings=settings) if one.provider == self.provider]
        self.catalog = Catalog(sources)
        await self.world.store.write(catalog_rows.save_configs, self.catalog.configs(), now=START)
        self.world.config_id = sources[0].id
        self.world.services = replace(self.world.services, catalog=self.catalog)
        self.world.start()


@pytest.fixture(params=["anthropic", "openai"])
async def searching(
    tmp_path: Path, database_url: str, request: pytest.FixtureRequest
) -> AsyncIterator[Searching]:
    """Not yet started."""
    world = World(tmp_path, database_url)
    await world.prepare()
    searching = Searching(world, request.param)
    try:
        yield searching
    finally:
        await world.close()
        await searching.catalog.close()
        await searching.server.stop()


async def test_a_search_stays_in_its_place_and_goes_back_as_it_came(searching: Searching) -> None:
    """Requirement 000: inside the assistant's row, over turns and restarts; the page never gets its seals."""
    world = searching.world
    await searching.start(web_search_enabled=True)
    chat = await world.create("what is it?")
    await world.until_rest(chat.id)
    await world.restart()
    await world.send(chat.id, "again?")
    await world.until_rest(chat.id)

    _, answer, *_ = await world.messages(chat.id)
    kinds = [part.type for part in answer.content]
    shown = public_message(answer).model_dump_json(exclude_none=True)
    first, second = (json.dumps(asked.body) for asked in searching.asked)
    assert kinds == ["tool-call", "tool-result", "text", "source", "source"]
    assert await world.texts(chat.id) == [
        "user:what is it?",
        f"assistant:{answer.content[0].tool_call_id}",  # type: ignore[union-attr]
        "user:again?",
        "assistant:As I said.",
    ]
    assert "https://a.example/two" in shown
    assert not [word for word in ("sealed_", "provider_metadata") if word in shown]
    assert ('"web_search' in first, "a.example" in first) == (True, False)
    assert [asked.problem for asked in searching.asked] == [None, None]
    assert "https://a.example/one" in second
    assert ("sealed_" in second) == (searching.provider == "anthropic")


async def test_nothing_is_searched_unless_it_was_switched_on(searching: Searching) -> None:
    """Spec 7: off by default."""
    await searching.start()
    chat = await searching.world.create("what is it?")
    await searching.world.until_rest(chat.id)

    assert "web_search" not in json.dumps(searching.asked[0].body)
    assert await searching.world.texts(chat.id) == ["user:what is it?", "assistant:It is this."]
