"""Waiting for a desktop agent films it; a film never fails the wait."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from agentd.wire.recordings import RECORDINGS_READ, RECORDINGS_START, RECORDINGS_STOP
from chatd.errors import AgentUnavailable
from chatd.store import queries
from chatd.wire import ToolResultPart
from tests.integration.chatd.core.test_subagents import results
from tests.integration.chatd.core.world import LIMIT_S, Gate, Item, World, call, output, say


async def _wait_for(world: World, kind: str, **wait: Any) -> tuple[UUID, ToolResultPart]:
    """A root that spawns an agent and waits for it in one turn: the child's id and what the wait answered."""
    spawn = call(("s", "spawn_agent"), prompt="do it", type=kind)
    chat = await world.chat([spawn, say("started")], agent_id=world.agent_id)
    await world.until_rest(chat.id)
    (child,) = await world.children(chat.id)
    world.model.scripts["hello"] = [call(("w", "wait_agent"), chat_id=str(child.id), **wait), say("ok")]
    await world.send(chat.id, "wait for it")
    await world.until_rest(chat.id)
    return child.id, (await results(world, chat.id))[-1]


@pytest.fixture
def gate(world: World) -> Gate:
    """Holds a desktop agent at its first action until it is opened."""
    gate = Gate()

    async def computer(_: Any) -> Any:
        await gate.pass_through()
        return output("done")

    world.workspace.handlers["computer"] = computer
    return gate


async def _file(world: World, file_id: str) -> Any:
    return await world.store.read(queries.get_file, UUID(file_id), user_id=world.user_id)


async def test_wait_attaches_film_and_thumbnail(world: World, gate: Gate) -> None:
    """Spec 8: the film has the child's id, is fetched in pieces, and belongs to the waiting chat."""
    world.model.scripts["do it"] = [call(("x", "computer"), actions=[]), say("all done")]
    world.workspace.film.on_start = gate.opened.set
    child_id, answer = await _wait_for(world, "computer_use")
    film = await _file(world, answer.result["recording_file_id"])
    thumbnail = await _file(world, answer.result["thumbnail_file_id"])

    assert answer.result["report"] == "all done"
    assert answer.result["recording_id"] == str(child_id)
    assert (film["media_type"], film["bytes"]) == ("video/mp4", world.workspace.film.film)
    assert (thumbnail["media_type"], thumbnail["bytes"]) == ("image/jpeg", b"jpeg")
    asked = world.workspace.film.asked
    assert {number for _, number in asked} == {child_id}
    assert [method for method, _ in asked] == [
        RECORDINGS_START, RECORDINGS_STOP, RECORDINGS_READ, RECORDINGS_READ
    ]  # fmt: skip


async def test_wait_that_times_out_leaves_the_film_running(world: World, gate: Gate) -> None:
    """Spec 8: it goes on across time-outs."""
    world.model.scripts["do it"] = [call(("x", "computer"), actions=[]), say("all done")]
    child_id, answer = await _wait_for(world, "computer_use", timeout_seconds=0.05)
    gate.opened.set()
    await world.until_rest(child_id)

    assert answer.result["timed_out"]
    assert [method for method, _ in world.workspace.film.asked] == [RECORDINGS_START]


async def test_film_that_fails_does_not_fail_the_wait(world: World, gate: Gate) -> None:
    """Spec 8: best effort."""
    world.model.scripts["do it"] = [say("all done")]
    world.workspace.film.problem = AgentUnavailable("no such recording")
    _, answer = await _wait_for(world, "computer_use")

    assert answer.result["report"] == "all done"
    assert not answer.is_error
    assert "recording_id" not in answer.result


async def test_agents_without_a_desktop_are_not_filmed(world: World) -> None:
    """Ours: there is nothing to see."""
    world.model.scripts["do it"] = [say("all done")]
    _, answer = await _wait_for(world, "general")

    assert answer.result["report"] == "all done"
    assert world.workspace.film.asked == []


@pytest.mark.parametrize("kind", ["computer_use", "general"])
@pytest.mark.parametrize("how", ["ends", "fails", "is stopped"])
async def test_agents_at_the_desktop_leave_it_when_they_rest(world: World, kind: str, how: str) -> None:
    """The issue: one lease in turn; others need not wait until it was not used for a while."""
    gate = Gate()
    ending: list[Item] = [RuntimeError("scripted")] if how == "fails" else say("all done")
    world.model.scripts["do it"] = [[gate, *ending]]
    spawn = call(("s", "spawn_agent"), prompt="do it", type=kind)
    chat = await world.chat([spawn, say("started")], agent_id=world.agent_id)
    await world.until_rest(chat.id)
    await gate.wait_reached()
    (child,) = await world.children(chat.id)
    assert world.workspace.left == []
    if how == "is stopped":
        await world.interrupt(child.id)
    else:
        gate.opened.set()
    if kind == "computer_use":
        async with asyncio.timeout(LIMIT_S):
            await world.workspace.someone_left.wait()
    await world.until_rest(child.id, "error" if how == "fails" else "waiting")
    await world.stop()

    assert world.workspace.left == ([str(child.id)] if kind == "computer_use" else [])
