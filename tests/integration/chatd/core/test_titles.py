"""Titles by a model, beside the first turn."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from chatd.faults import FaultKind, make_fault
from chatd.prompt.titles import TITLE_INSTRUCTION
from chatd.provider.catalog import ModelSource
from chatd.provider.protocol import Finished, ModelRequest
from chatd.store import metadata, spending
from chatd.store.spending import SpendPolicy
from chatd.wire import Usage
from chatd.worker.titles import find_titles, propose_title
from tests.integration.chatd.core.world import Gate, Item, OneModel, World, call, say

ASKED = "please do this thing for me now"
FALLBACK = "please do this thing for me…"


@pytest.fixture
async def titled(world: World) -> AsyncIterator[World]:
    """A world in which titles are looked for; the script ``user: …`` answers for them."""
    await world.restart(auto_titles=True)
    finding = asyncio.create_task(find_titles(world.services))
    yield world
    finding.cancel()
    await asyncio.gather(finding, return_exceptions=True)


def title_requests(world: World) -> list[ModelRequest]:
    """Those that asked for a title."""
    return [request for request in world.model.requests if request.system == TITLE_INSTRUCTION]


async def test_a_new_chat_is_named_by_a_model(titled: World) -> None:
    """Spec 10: in place of the first words, told to watchers, no tools, few tokens."""
    titled.model.scripts["user: " + ASKED] = [say('"Thing Doing"')]
    chat = await titled.chat([say("done")], value=ASKED, title=FALLBACK, system_prompt="Be red.")
    await titled.until_rest(chat.id)
    await titled.until(chat.id, lambda row: row["title"] == "Thing Doing")

    (request,) = title_requests(titled)
    assert (request.tools, request.max_output_tokens) == ((), 256)


async def test_a_title_that_somebody_gave_stays(titled: World) -> None:
    """Spec 10: also one that is given while the model thinks."""
    gate = Gate()
    titled.model.scripts["user: " + ASKED] = [[gate, *say("Other")]]
    chat = await titled.chat([say("done")], value=ASKED, title=FALLBACK)
    await gate.wait_reached()
    await titled.store.change(chat.id, metadata.set_title, "Mine")
    gate.opened.set()
    await titled.until_rest(chat.id)
    own = await titled.chat([say("done")], value="more words", title="Chosen")
    await titled.until_rest(own.id)

    assert (await titled.row(chat.id))["title"] == "Mine"
    assert len(title_requests(titled)) == 1


def paid(text: str) -> list[Item]:
    """An answer to a prompt of a million tokens."""
    return [*say(text)[:-1], Finished(reason="stop", usage=Usage(input_tokens=1_000_000, output_tokens=0))]


async def test_calls_beside_the_turns_are_booked_to_their_chat(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a title, a summary and advice are paid for like answers, used or not, and count for the limit."""
    priced = ModelSource(provider="openai", model="gpt-4o-mini", display_name="M", api_key="k")
    monkeypatch.setattr(OneModel, "source", lambda *_: priced)
    await world.restart(advisor_model="m")
    world.model.summaries = [paid("slowly"), paid("")]
    ask = call(("a", "advisor"), question="how?")
    chat = await world.chat([ask, say("done")], value=ASKED)
    await world.until_rest(chat.id)
    await world.store.transition(chat.id, lambda tx: tx.request_compaction())
    await world.until_rest(chat.id, "error")
    refused = make_fault(FaultKind.AUTH, "scripted")
    world.model.scripts = {"user: " + ASKED: [paid("far too many words for a title in any list"), [refused]]}
    titles = [await propose_title(world.services, chat) for _ in range(2)]
    cost = await world.store.read(spending.chat_cost, chat.id)
    spent = await world.store.read(SpendPolicy().spending_of, world.user_id, now=world.store.now())

    assert titles == [None, None]
    assert (cost["priced_side_calls"], cost["unpriced_side_calls"]) == (3, 0)
    assert (cost["side_call_cost_micros"], cost["input_tokens"]) == (450_000, 3_000_000)
    assert cost["total_cost_micros"] == spent.spent_micros == 450_000


async def test_a_proposal_writes_nothing(world: World) -> None:
    """Spec 10: on request, of what was said so far; a model that fails has none."""
    chat = await world.chat([say("done")], value=ASKED, title=FALLBACK)
    await world.until_rest(chat.id)
    fault = make_fault(FaultKind.AUTH, "scripted")
    world.model.scripts = {"user: " + ASKED: [say("A Name"), [fault]]}

    assert await propose_title(world.services, chat) == "A Name"
    assert await propose_title(world.services, chat) is None
    assert (await world.row(chat.id))["title"] == FALLBACK
