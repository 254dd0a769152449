"""A history that its vendor refuses is mended, once, and the mending is stored."""

import base64
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from chatd.provider.catalog import Catalog, rehearsal_sources
from chatd.rehearsal import RehearsalServer, Scenario
from chatd.rehearsal.engine import Asked
from chatd.store import catalog_rows, queries, schema, uploads
from chatd.store.rows import public_message
from chatd.wire import FilePart, Message, TextPart
from tests.contract.store.bench import START
from tests.integration.chatd.core.world import World

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
# Of it, what is the same in both alphabets of base64.
HELD = PNG[:72]
# How each vendor points at the third item of a history.
POINTERS = {
    "anthropic": "messages.2.content.0.image.source: Could not process image",
    "openai": "Invalid 'input[2].content[0].image_url'. The image data is not valid.",
    "openai-compat": "Invalid content in messages[3].content[0]",
    "google": "* GenerateContentRequest.contents[2].parts[0].inline_data.data: Invalid image",
}


class Picky:
    """A world whose model refuses a picture, in the words of *message*."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.asked: list[Asked] = []
        self.server = RehearsalServer(self.asked.append)
        self.catalog = Catalog([])

    async def start(self, provider: str, message: str, *, status: int = 400, holds: str = HELD) -> None:
        """Start the model and a worker."""
        fault = {"kind": "http", "status": status, "message": message}
        turns: list[dict[str, Any]] = [
            {"when": {"holds": holds, "may_call": may_call}, "times": None, "fault": fault}
            for may_call in (True, False)
        ]
        turns += [
            {"when": {"may_call": may_call}, "times": None, "reply": {"text": ["fine"]}}
            for may_call in (True, False)
        ]
        url = await self.server.start(scenario=Scenario.model_validate({"turns": turns}))
        sources = [one for one in rehearsal_sources(url) if one.provider == provider]
        self.catalog = Catalog(sources)
        await self.world.store.write(catalog_rows.save_configs, self.catalog.configs(), now=START)
        self.world.config_id = sources[0].id
        self.world.services = replace(self.world.services, catalog=self.catalog)
        self.world.start()

    async def show(self, chat_id: UUID, status: str = "waiting") -> list[Message]:
        """Send a picture with a question; what people see afterwards."""
        file = {"owner_id": self.world.user_id, "name": "p.png", "media_type": "image/png"}
        now, data = self.world.store.now(), base64.b64decode(PNG)
        file_id = await self.world.store.write(uploads.save_upload, **file, data=data, now=now)
        picture = FilePart(media_type="image/png", file_id=str(file_id))
        content = (picture, TextPart(text="what is it?"))
        await self.world.store.transition(chat_id, lambda tx: tx.send(content, created_by=self.world.user_id))
        await self.world.until_rest(chat_id, status)
        page = await self.world.store.read(queries.list_messages, chat_id, limit=100)
        return [public_message(one) for one in page.messages]


@pytest.fixture
async def picky(tmp_path: Path, database_url: str) -> AsyncIterator[Picky]:
    """Not yet started."""
    world = World(tmp_path, database_url)
    await world.prepare()
    picky = Picky(world)
    try:
        yield picky
    finally:
        await world.close()
        await picky.catalog.close()
        await picky.server.stop()


@pytest.mark.parametrize("provider", POINTERS)
async def test_what_the_vendor_points_at_is_set_aside_and_the_turn_goes_on(
    picky: Picky, provider: str
) -> None:
    """Issue: found by its pointer, told to people, asked again once, stored once."""
    await picky.start(provider, POINTERS[provider])
    chat = await picky.world.create("hello")
    await picky.world.until_rest(chat.id)
    shown = await picky.show(chat.id)
    asked = len(picky.asked)
    await picky.world.send(chat.id, "and now?")
    await picky.world.until_rest(chat.id)

    question, note, answer = shown[2:]
    assert [part.text for part in question.content if isinstance(part, TextPart)] == [
        "[the file p.png was set aside: the model's vendor refused it]",
        "what is it?",
    ]
    assert (note.role, note.visibility) == ("assistant", "user")
    assert "has been set aside" in note.content[0].text  # type: ignore[union-attr]
    assert HELD not in "".join(one.model_dump_json() for one in shown)
    assert [part.text for part in answer.content if isinstance(part, TextPart)] == ["fine"]
    # Hello, the refusal, the second try; then one for the next turn.
    assert (asked, len(picky.asked)) == (3, 4)


async def test_without_a_pointer_it_is_found_by_asking_for_little(picky: Picky) -> None:
    """Issue: by bisection, bounded; what the questions cost is booked, what was set aside is kept."""
    await picky.start("openai-compat", "Could not process image")
    chat = await picky.world.create("hello")
    await picky.world.until_rest(chat.id)
    for text in ("one", "two", "three"):
        await picky.world.send(chat.id, text)
        await picky.world.until_rest(chat.id)
    shown = await picky.show(chat.id)

    def kept(connection: sa.Connection) -> list[Any]:
        table = schema.messages
        mine = (table.c.chat_id == chat.id) & (table.c.visibility == "user")
        return list(connection.execute(sa.select(table.c.content).where(mine)).scalars())

    ((note,),) = await picky.world.store.read(kept)
    assert shown[-1].content[0].text == "fine"  # type: ignore[union-attr]
    assert next(iter(note["provider_metadata"]["set_aside"].values()))[0]["name"] == "p.png"
    probes = [asked for asked in picky.asked if asked.body.get("max_tokens") == 16]
    assert 1 <= len(probes) <= 4


@pytest.mark.parametrize(
    ("status", "message", "holds"),
    [
        (400, "Could not process image", "what is it?"),
        (401, "messages.2: bad key", HELD),
        (404, "The model `x` does not exist.", HELD),
    ],
)
async def test_what_is_not_the_histories_fault_changes_nothing(
    picky: Picky, status: int, message: str, holds: str
) -> None:
    """Ours: a refusal of something else (here: of words) is an error after one more try at most."""
    await picky.start("anthropic", message, status=status, holds=holds)
    chat = await picky.world.create("hello")
    await picky.world.until_rest(chat.id)
    shown = await picky.show(chat.id, "error")

    assert len(picky.asked) <= 8
    assert (await picky.world.row(chat.id))["last_error"]["detail"] != ""
    if status != 400:
        assert any(isinstance(part, FilePart) for part in shown[-1].content)
        assert len(picky.asked) == 2
