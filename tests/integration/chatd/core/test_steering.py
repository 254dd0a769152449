"""A root chat lists the agents that it started, tells them something and stops them."""

import uuid
from typing import Any
from uuid import UUID

import pytest

from chatd.errors import NotFound
from chatd.store import schema
from chatd.store.lineage import read_descendant
from chatd.wire import ToolResultPart
from tests.integration.chatd.core.world import Gate, Item, World, call, say


async def started(world: World, script: list[list[Item]], **fields: Any) -> tuple[UUID, UUID]:
    """A root at rest that started one agent, which works by *script*: ids of both."""
    world.model.scripts["do it"] = script
    chat = await world.chat([call(("s", "spawn_agent"), prompt="do it", **fields), say("started")])
    await world.until_rest(chat.id)
    (child,) = await world.children(chat.id)
    return chat.id, child.id


async def ask(world: World, chat_id: UUID, name: str, /, **args: Any) -> ToolResultPart:
    """Let the root call *name* and return its result."""
    world.model.scripts["hello"] = [call(("t", name), **args), say("ok")]
    await world.send(chat_id, "go on")
    await world.until_rest(chat_id)
    messages = await world.messages(chat_id)
    return [part for one in messages for part in one.content if isinstance(part, ToolResultPart)][-1]


async def test_agents_are_listed_newest_first(world: World) -> None:
    """Spec 7: own unarchived children, total and has_more."""
    world.model.scripts |= {f"job {n:02}": [say("done")] for n in range(12)}
    calls = [call((f"s{n}", "spawn_agent"), prompt=f"job {n:02}", title="  ") for n in range(12)]
    chat = await world.chat([*calls, say("started")])
    await world.until_rest(chat.id)
    children = [(await world.until_rest(one.id), one)[1] for one in await world.children(chat.id)]
    await world.store.transition(children[3].id, lambda tx: tx.archive())
    page = (await ask(world, chat.id, "list_agents")).result
    rest = (await ask(world, chat.id, "list_agents", limit=500, offset=10)).result

    times = [one["updated_at"] for one in page["agents"]]
    assert (len(page["agents"]), page["total"], page["has_more"]) == (10, 11, True)
    assert times == sorted(times, reverse=True)
    assert (len(rest["agents"]), rest["has_more"]) == (1, False)
    told = {one["chat_id"]: one["title"] for one in page["agents"] + rest["agents"]}
    assert told == {str(one.id): f"job {n:02}" for n, one in enumerate(children) if n != 3}


@pytest.mark.parametrize("interrupt", [False, True])
async def test_a_message_waits_or_interrupts(world: World, *, interrupt: bool) -> None:
    """Spec 7: to an agent at work it waits for the end of the turn, or ends it."""
    gate = Gate()
    script: list[list[Item]] = [[*say("first")[:2], gate, *say("first")[2:]], say("second")]
    chat_id, child_id = await started(world, script)
    await gate.wait_reached()
    answer = await ask(
        world, chat_id, "message_agent", chat_id=str(child_id), message="more", interrupt=interrupt
    )
    gate.opened.set()
    await world.until_rest(child_id)

    assert (answer.is_error, answer.result["interrupted"]) == (False, interrupt)
    assert await world.texts(child_id) == ["user:do it", "assistant:first", "user:more", "assistant:second"]


async def test_a_message_to_an_agent_at_rest_is_a_new_turn(world: World) -> None:
    """Spec 7: as if its person had sent it."""
    chat_id, child_id = await started(world, [say("first"), say("second")])
    await world.until_rest(child_id)
    args = {"chat_id": str(child_id), "message": "more", "interrupt": True}
    answer = await ask(world, chat_id, "message_agent", **args)
    await world.until_rest(child_id)

    assert (answer.result["status"], answer.result["interrupted"]) == ("running", False)
    assert (await world.texts(child_id))[-1] == "assistant:second"


async def test_a_message_repeated_after_a_crash_is_sent_once(world: World) -> None:
    """Ours: the process died between the message and the commit of its result."""
    chat_id, child_id = await started(world, [say("first"), say("second")])
    await world.until_rest(child_id)
    reached = Gate()

    async def hang(changed: UUID) -> None:
        if changed == child_id and (await world.row(chat_id))["status"] == "running":
            world.hooked.after = None
            await reached.pass_through()

    world.hooked.after = hang
    args = {"chat_id": str(child_id), "message": "more"}
    world.model.scripts["hello"] = [call(("m", "message_agent"), **args), say("ok")]
    await world.send(chat_id, "go on")
    await reached.wait_reached()
    await world.restart()
    await world.until_rest(chat_id)
    await world.until_rest(child_id)

    texts = await world.texts(child_id)
    assert texts == ["user:do it", "assistant:first", "user:more", "assistant:second"]


@pytest.mark.parametrize("name", ["interrupt_agent", "close_agent"])
async def test_an_agent_is_stopped_and_one_at_rest_is_left(world: World, name: str) -> None:
    """Spec 8.4: the old name answers as the new one, and is offered to nobody."""
    gate = Gate()
    chat_id, child_id = await started(world, [[gate, *say("late")]])
    await gate.wait_reached()
    first = (await ask(world, chat_id, name, chat_id=str(child_id))).result
    await world.until_rest(child_id)
    second = (await ask(world, chat_id, name, chat_id=str(child_id))).result

    assert (first["interrupted"], second["interrupted"]) == (True, False)
    assert second["status"] == "waiting"
    assert ("terminated" in second) == (name == "close_agent")
    assert "close_agent" not in {tool.name for request in world.model.requests for tool in request.tools}


@pytest.mark.parametrize("name", ["message_agent", "interrupt_agent"])
async def test_what_is_no_child_is_refused(world: World, name: str) -> None:
    """Spec 7: descendant check in every tool."""
    stranger = await world.chat([say("x")], value="stranger")
    chat = await world.chat([say("x")])
    for one in (stranger, chat):
        await world.until_rest(one.id)

    for named in (chat.id, stranger.id, uuid.uuid4(), None):
        answer = await ask(world, chat.id, name, chat_id=named and str(named), message="x")
        assert answer.is_error
    assert await world.texts(stranger.id) == ["user:stranger", "assistant:x"]


async def test_descent_is_walked_upward_and_survives_a_ring(world: World) -> None:
    """Spec 7: self, strangers and rings are none; any depth is."""
    await world.stop()
    root, other = await world.create(), await world.create()
    child = await world.create(parent=root)
    grandchild = await world.create(parent=child)

    async def is_below(chat_id: UUID, root_id: UUID) -> bool:
        try:
            return bool(await world.store.read(read_descendant, chat_id, of=root_id))
        except NotFound:
            return False

    assert [await is_below(one.id, root.id) for one in (child, grandchild, root, other)] == [1, 1, 0, 0]

    def tie(connection: Any) -> None:
        table = schema.chats
        connection.execute(table.update().where(table.c.id == root.id).values(parent_chat_id=grandchild.id))

    await world.store.write(tie)
    assert not await is_below(child.id, other.id)
    assert not await is_below(root.id, root.id)
    world.start()
