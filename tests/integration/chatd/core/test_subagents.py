"""A root chat starts agents and waits for them."""

import asyncio
import itertools
import uuid
from typing import Any
from uuid import UUID

import pytest

from chatd.faults import FaultKind, make_fault
from chatd.provider.protocol import Finished, PartDone
from chatd.store.store import Store
from chatd.tools import subagents
from chatd.wire import Chat, TextPart, ToolResultPart
from tests.integration.chatd.core.world import LIMIT_S, Gate, World, call, say

AUTH = make_fault(FaultKind.AUTH, "scripted", retryable=False)


async def results(world: World, chat_id: UUID) -> list[ToolResultPart]:
    """Every tool result of the chat, in order."""
    messages = await world.messages(chat_id)
    return [part for message in messages for part in message.content if isinstance(part, ToolResultPart)]


async def spawned(world: World, **fields: Any) -> tuple[UUID, UUID]:
    """A root that started one agent and then rests: ids of root and child."""
    args = {"prompt": "do it", **fields}
    chat = await world.chat([call(("s", "spawn_agent"), **args), say("started"), say("2")])
    await world.until_rest(chat.id)
    (child,) = await world.children(chat.id)
    return chat.id, child.id


async def ask(world: World, chat_id: UUID, /, **args: Any) -> ToolResultPart:
    """Let the root call ``wait_agent`` with *args* and return its result."""
    world.model.scripts["hello"] = [call(("w", "wait_agent"), **args), say("ok")]
    await world.send(chat_id, "wait for it")
    await world.until_rest(chat_id)
    return (await results(world, chat_id))[-1]


async def test_an_agent_is_started_and_its_report_read(world: World) -> None:
    """Spec 7: an ordinary chat with a parent; the report is its newest text."""
    world.model.scripts["do it"] = [call(("x", "none"), text="working"), say("all done")]
    chat_id, child_id = await spawned(world, title=" My title ")
    answer = await ask(world, chat_id, chat_id=str(child_id))

    first = (await results(world, chat_id))[0].result
    assert (first["chat_id"], first["title"], first["type"]) == (str(child_id), "My title", "general")
    assert first["status"] == "running"
    assert answer.result == {
        "chat_id": str(child_id),
        "title": "My title",
        "type": "general",
        "status": "waiting",
        "report": "all done",
    }
    assert not answer.is_error
    row = await world.row(child_id)
    assert (row["parent_chat_id"], row["root_chat_id"], row["owner_id"]) == (chat_id, chat_id, world.user_id)


async def test_a_report_that_was_cut_off_says_so(world: World) -> None:
    """Ours: who asked must know that the end is missing."""
    world.model.scripts["do it"] = [[PartDone(TextPart(text="half a report")), Finished(reason="length")]]
    chat_id, child_id = await spawned(world)
    report = (await ask(world, chat_id, chat_id=str(child_id))).result["report"]

    assert report.startswith("half a report\n\n[The answer was cut off")


async def wait_for_late(world: World, monkeypatch: pytest.MonkeyPatch, *, is_heard: bool) -> ToolResultPart:
    """A root that waits, with no look soon but by hint; only then its agent ends. Its result."""
    monkeypatch.setattr(subagents, "WAIT_AGENT_POLL_S", 3600.0)
    gate, waits, looks = Gate(), asyncio.Event(), itertools.count(1)
    find = subagents.find_agent

    async def find_and_tell(store: Store, parent: Chat, chat_id: UUID) -> Chat:
        found = await find(store, parent, chat_id)
        # The first look finds out who is meant; behind the second it waits.
        if next(looks) == 2:
            for listener in () if is_heard else world.hub._by_chat[chat_id]:
                monkeypatch.setattr(listener, "notify", lambda *_: None)
            waits.set()
        return found

    monkeypatch.setattr(subagents, "find_agent", find_and_tell)
    world.model.scripts["do it"] = [[gate, *say("late")]]
    chat_id, child_id = await spawned(world)
    world.model.scripts["hello"] = [call(("w", "wait_agent"), chat_id=str(child_id)), say("ok")]
    await world.send(chat_id, "wait")
    await gate.wait_reached()
    async with asyncio.timeout(LIMIT_S):
        await waits.wait()
    gate.opened.set()
    await world.until_rest(chat_id)
    return (await results(world, chat_id))[-1]


@pytest.mark.past_bug(17)
async def test_waiting_lasts_until_the_child_is_done(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spec 7: parent and child work at the same time; the end of the child, and only that, wakes the wait."""
    answer = await wait_for_late(world, monkeypatch, is_heard=True)

    assert answer.result["report"] == "late"


async def test_a_wait_that_can_hear_nobody_looks_often(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spec 7: 200 ms between looks, not 5 s, while hints of other replicas can't come."""
    world.hub.hears_others = False
    answer = await wait_for_late(world, monkeypatch, is_heard=False)

    assert answer.result["report"] == "late"


async def test_who_waits_sees_how_the_child_is_and_its_newest_line(world: World) -> None:
    """Issue: progress for long ones; people see it at the call that waits."""
    gate = Gate()
    world.model.scripts["do it"] = [call(("x", "none"), text="I look\nat it."), [gate, *say("done")]]
    chat_id, child_id = await spawned(world)
    await gate.wait_reached()
    world.model.scripts["hello"] = [call(("w", "wait_agent"), chat_id=str(child_id)), say("ok")]
    await world.send(chat_id, "wait")
    with world.hub.watch_chat(chat_id) as watching:
        async with asyncio.timeout(LIMIT_S):
            while not (told := world.services.buffer.progress(chat_id, after=0)):
                await watching.wait()
    gate.opened.set()
    await world.until_rest(chat_id)

    assert [(one.tool_call_id, one.text) for one in told] == [("w", "running: none failed")]


async def test_a_desktop_agent_has_the_desktop_and_nothing_else(world: World) -> None:
    """Spec 7: computer_use gets the computer; depth is one, so no child can spawn."""

    async def act(_: object) -> Any:
        raise NotImplementedError

    world.workspace.handlers = {"computer": act, "shell": act}
    world.model.scripts |= {"look": [say("seen")], "read": [say("read")]}
    script = [
        call(("a", "spawn_computer_use_agent"), prompt="look"),
        call(("b", "spawn_agent"), prompt="read"),
        say("started"),
    ]
    chat = await world.chat(script, agent_id=world.agent_id)
    await world.until_rest(chat.id)
    children = await world.children(chat.id)
    for child in children:
        await world.until_rest(child.id)

    tools = {
        request.messages[0].content[0].text: ([tool.name for tool in request.tools], request.computer)  # type: ignore[union-attr]
        for request in world.model.requests
    }
    assert [child.mode for child in children] == ["computer_use", None]
    assert tools["hello"][0] == [
        "spawn_computer_use_agent", "spawn_agent", "wait_agent",
        "list_agents", "message_agent", "interrupt_agent", "attach_file", "shell",
    ]  # fmt: skip
    assert tools["look"][0] == []
    assert tools["look"][1] is not None
    assert tools["read"] == (["attach_file", "shell"], None)


async def test_a_spawn_repeated_after_a_crash_is_the_same_child(world: World) -> None:
    """Ours: the process died between the child's creation and the commit of its result."""
    world.model.scripts["do it"] = [say("once")]
    reached = Gate()
    create = world.store.create_chat

    async def create_and_hang(new: Any) -> Any:
        child = await create(new)
        await reached.pass_through()
        return child

    root = await world.chat([call(("s", "spawn_agent"), prompt="do it"), say("started")])
    world.store.create_chat = create_and_hang  # type: ignore[method-assign]
    await reached.wait_reached()
    await world.stop()
    world.store.create_chat = create  # type: ignore[method-assign]
    await world.store.release_all()
    world.start()
    await world.until_rest(root.id)
    (child,) = await world.children(root.id)
    await world.until_rest(child.id)

    assert (await results(world, root.id))[0].result["chat_id"] == str(child.id)
    assert await world.texts(child.id) == ["user:do it", "assistant:once"]


async def test_a_wait_that_takes_too_long_is_no_error(world: World) -> None:
    """Spec 7: timed_out with title and status; the child keeps running."""
    gate = Gate()
    world.model.scripts["do it"] = [[gate, *say("late")]]
    chat_id, child_id = await spawned(world)
    await gate.wait_reached()
    answer = await ask(world, chat_id, chat_id=str(child_id), timeout_seconds=0.01)

    assert answer.result["timed_out"] is True
    assert (answer.result["status"], answer.is_error) == ("running", False)
    gate.opened.set()
    await world.until_rest(child_id)


async def test_a_failed_agent_s_error_is_told(world: World) -> None:
    """Spec 7: error status gives a structured payload with the report so far."""
    world.model.scripts["do it"] = [call(("x", "none"), text="half way"), [AUTH]]
    chat_id, child_id = await spawned(world)
    answer = await ask(world, chat_id, chat_id=str(child_id))

    assert answer.is_error
    assert (answer.result["kind"], answer.result["report"]) == ("auth", "half way")
    assert answer.result["error"] == AUTH.user_text


@pytest.mark.parametrize("whose", ["foreign", "own", "unknown", "not an id", "missing", "bad timeout"])
async def test_waiting_for_what_is_no_child_is_an_error(world: World, whose: str) -> None:
    """Spec 7: descendant check; self, strangers and nonsense are refused."""
    stranger = await world.chat([say("x")], value="stranger")
    await world.until_rest(stranger.id)
    chat = await world.chat([say("x")])
    await world.until_rest(chat.id)
    args: dict[str, Any] = {
        "foreign": {"chat_id": str(stranger.id)},
        "own": {"chat_id": str(chat.id)},
        "unknown": {"chat_id": str(uuid.uuid4())},
        "not an id": {"chat_id": "x"},
        "missing": {},
        "bad timeout": {"chat_id": str(stranger.id), "timeout_seconds": -1},
    }[whose]
    answer = await ask(world, chat.id, **args)

    assert answer.is_error
    assert answer.result["error"]


@pytest.mark.parametrize("args", [{}, {"prompt": " \n"}, {"prompt": 5}, {"prompt": "x", "type": "painter"}])
async def test_a_senseless_spawn_starts_nothing(world: World, args: dict[str, Any]) -> None:
    """Spec 7: the prompt must not be blank, the type must be known."""
    chat = await world.chat([call(("s", "spawn_agent"), **args), say("oh")])
    await world.until_rest(chat.id)

    assert (await results(world, chat.id))[0].is_error
    assert await world.children(chat.id) == ()


async def test_an_agent_has_the_model_that_was_named_else_its_parent_s(world: World) -> None:
    """Spec 7: the argument comes first; one that nobody knows is an error that lists those there are."""
    small = await world.add_model("small")
    world.model.scripts |= {"do it": [say("done")], "do more": [say("done")]}
    script = [
        call(("a", "spawn_agent"), prompt="do it", model_config_id="small"),
        call(("b", "spawn_agent"), prompt="do more"),
        call(("c", "spawn_agent"), prompt="do it", model_config_id="large"),
        say("started"),
    ]
    chat = await world.chat(script)
    await world.until_rest(chat.id)
    children = {child.title: child.last_model_config_id for child in await world.children(chat.id)}

    assert children == {"do it": small, "do more": world.config_id}
    assert (await results(world, chat.id))[-1].result == {
        "error": "unknown model 'large'; there are: openai:m"
    }


async def test_desktop_agents_have_a_model_of_their_own(world: World) -> None:
    """Spec 7: they reject the argument, and there is none where there is no workspace."""
    seeing = await world.add_model("seeing")
    await world.restart(computer_use_model="seeing")
    world.model.scripts["look"] = [say("seen")]
    script = [
        call(("a", "spawn_computer_use_agent"), prompt="look"),
        call(("b", "spawn_agent"), prompt="look", type="computer_use", model_config_id="m"),
        say("started"),
    ]
    chat = await world.chat(script, agent_id=world.agent_id)
    await world.until_rest(chat.id)
    elsewhere = await world.chat([call(("c", "spawn_computer_use_agent"), prompt="look"), say("oh")])
    await world.until_rest(elsewhere.id)
    (child,) = await world.children(chat.id)

    assert child.last_model_config_id == seeing
    assert "takes no model_config_id" in (await results(world, chat.id))[1].result["error"]
    assert "no desktop" in (await results(world, elsewhere.id))[0].result["error"]
