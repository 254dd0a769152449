"""Turns that go well: answers, tools, queued messages."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest

from agentd.wire.content import ToolResult
from agentd.wire.link import ToolCallParams
from chatd.provider.protocol import TextDelta
from chatd.store.machine import ChatTx
from chatd.wire import TextPart, ToolResultPart
from tests.integration.chatd.core.world import Gate, World, call, output, say


async def test_a_simple_answer_ends_the_turn(world: World) -> None:
    """Spec 6.4: one step, committed once; the chat is nobody's afterwards."""
    chat = await world.chat([say("hi there")])
    row = await world.until_rest(chat.id)

    assert await world.texts(chat.id) == ["user:hello", "assistant:hi there"]
    assert (row["worker_id"], row["runner_id"], row["last_error"]) == (None, None, None)
    assert (await world.messages(chat.id))[-1].model_config_id == world.config_id
    (request,) = world.model.requests
    assert (request.model, [message.role for message in request.messages]) == ("m", ["user"])


async def test_fragments_are_published_while_the_model_speaks(world: World) -> None:
    """Spec 5.4: an episode of (history, attempt), gone when the turn is over."""
    gate = Gate()
    chat = await world.chat([[*say("one")[:1], gate, *say("one")[1:]]])
    await gate.wait_reached()
    episode = world.services.buffer.get(chat.id)
    assert episode is not None
    assert (episode.history_version, episode.attempt) == (1, 1)
    assert [fragment.part.text for fragment in episode.fragments] == ["one"]  # type: ignore[union-attr]
    gate.opened.set()
    await world.until_rest(chat.id)
    await world.stop()

    assert world.services.buffer.get(chat.id) is None


async def test_tools_run_at_the_same_time_and_commit_in_call_order(world: World) -> None:
    """Spec 6.4: concurrently; all results in one commit, stored in call order."""
    barrier, order = asyncio.Barrier(3), []
    last = asyncio.Event()

    async def meet(params: ToolCallParams) -> ToolResult:
        await barrier.wait()
        if params.call_id.endswith("/a"):
            await last.wait()
        order.append(params.call_id.rpartition("/")[2])
        if len(order) == 2:
            last.set()
        return output(params.name)

    world.workspace.handlers = {"meet": meet}
    calls = call(("a", "meet"), ("b", "meet"), ("c", "meet"))
    chat = await world.chat([calls, say("done")], agent_id=world.agent_id)
    await world.until_rest(chat.id)

    expected = ["user:hello", "assistant:a", "tool:a", "tool:b", "tool:c", "assistant:done"]
    assert await world.texts(chat.id) == expected
    assert order[-1] == "a"
    revisions = await world.revisions(chat.id)
    assert len(set(revisions[2:5])) == 1
    assert revisions == sorted(revisions)


async def test_desktop_actions_run_in_call_order(world: World) -> None:
    """Ours: there is one pointer; beside it an agent at the desktop has programs, and nothing else."""
    events: list[str] = []

    async def act(params: ToolCallParams) -> ToolResult:
        name = params.call_id.rpartition("/")[2]
        events.append(f"+{name}")
        await asyncio.sleep(0)
        await world.store.read(lambda _: None)
        events.append(f"-{name}")
        return output(name)

    world.workspace.handlers = {"computer": act, "apps": act, "execute": act}
    calls = call(("a", "computer"), ("b", "computer"), ("c", "computer"))
    chat = await world.chat([calls, say("done")], agent_id=world.agent_id, mode="computer_use")
    await world.until_rest(chat.id)

    assert events == ["+a", "-a", "+b", "-b", "+c", "-c"]
    assert (await world.texts(chat.id))[2:5] == ["tool:a", "tool:b", "tool:c"]
    assert world.model.requests[0].computer is not None
    assert [tool.name for tool in world.model.requests[0].tools] == ["apps"]


async def test_failing_tools_are_results_and_the_turn_goes_on(world: World) -> None:
    """Spec 6.4: unknown and broken tools become error results."""

    async def broken(_: ToolCallParams) -> ToolResult:
        msg = "boom"
        raise RuntimeError(msg)

    world.workspace.handlers = {"broken": broken}
    chat = await world.chat([call(("a", "broken"), ("b", "none")), say("ok")], agent_id=world.agent_id)
    await world.until_rest(chat.id)

    assert (await world.texts(chat.id))[2:] == ["tool:a!", "tool:b!", "assistant:ok"]
    seen = [part for part in world.model.requests[1].messages[-1].content if isinstance(part, ToolResultPart)]
    assert "RuntimeError: boom" in seen[0].result["error"]


async def test_a_message_sent_during_a_turn_is_answered_after_it(world: World) -> None:
    """Spec 1.2: the turn that ends with a backlog promotes its head at once."""
    gate = Gate()
    chat = await world.chat([[gate, *say("first")], say("second"), say("third")])
    await gate.wait_reached()
    await world.send(chat.id, "more")
    await world.send(chat.id, "and more")
    assert await world.texts(chat.id) == ["user:hello"]
    gate.opened.set()
    await world.until_rest(chat.id)

    expected = ["user:hello", "assistant:first", "user:more", "assistant:second", "user:and more"]
    assert await world.texts(chat.id) == [*expected, "assistant:third"]


@pytest.mark.past_bug(5)
async def test_an_idle_chat_is_taken_up_again(world: World) -> None:
    """Spec 9, complaint 5: a send wakes the worker, whatever the interval."""
    await world.restart(acquire_interval_s=3600.0)
    chat = await world.chat([say("one"), say("two")])
    await world.until_rest(chat.id)
    await world.send(chat.id, "again")
    await world.until_rest(chat.id)

    assert (await world.texts(chat.id))[2:] == ["user:again", "assistant:two"]


async def test_many_chats_are_served_at_once(world: World) -> None:
    """Ours: more chats than a batch, all waiting for each other."""
    await world.restart(acquire_interval_s=3600.0, acquire_batch=2)
    gates = [Gate() for _ in range(7)]
    chats = [
        await world.chat([[gate, *say("x")]], value=f"chat {number}") for number, gate in enumerate(gates)
    ]
    for gate in gates:
        await gate.wait_reached()
    for gate in gates:
        gate.opened.set()

    for chat in chats:
        await world.until_rest(chat.id)


@pytest.mark.parametrize("steps", [1, 3])
async def test_a_turn_has_a_last_step(world: World, steps: int) -> None:
    """Spec 8: max steps a run; the turn ends with an error that says so."""
    await world.restart(max_steps=steps)
    rows = [call((f"c{number}", "none")) for number in range(steps)]
    chat = await world.chat([*rows, say("never")])
    row = await world.until_rest(chat.id, "error")

    assert row["last_error"]["kind"] == "config"
    assert len(world.model.requests) == steps


async def test_each_turn_has_its_own_steps(world: World) -> None:
    """Ours: a backlog is not punished for the turns before it."""
    await world.restart(max_steps=1)
    gate = Gate()
    chat = await world.chat([[gate, *say("1")], say("2"), say("3")])
    await gate.wait_reached()
    await world.send(chat.id, "b")
    await world.send(chat.id, "c")
    gate.opened.set()
    await world.until_rest(chat.id)

    assert (await world.texts(chat.id))[-1] == "assistant:3"


async def test_fragments_cost_no_reads_of_the_row(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: a runner looks at its row when the row changed, not at every word."""
    gates, names = [Gate() for _ in range(30)], []
    words = [item for gate in gates for item in (gate, TextDelta("word "))]
    last = Gate()
    chat = await world.chat([[*words, last, *say("end")[1:]]])
    await gates[0].wait_reached()
    read = world.database.read

    async def counted(run: Callable[..., object], *args: object, **kwargs: object) -> object:
        names.append(run.__name__)
        return await read(run, *args, **kwargs)

    monkeypatch.setattr(world.database, "read", counted)
    for gate in gates:
        await gate.wait_reached()
        await read(lambda _: None)
        gate.opened.set()
    await last.wait_reached()
    looked = names.count("read_row")
    last.opened.set()
    await world.until_rest(chat.id)

    # One at most: the runner's own attempt, recorded before the first word.
    assert looked <= 1


async def test_a_message_that_steers_is_in_the_next_model_call(world: World) -> None:
    """Issue: taken in before the next call of the turn under way; one that only waits comes after it."""
    gate = asyncio.Event()
    begun = asyncio.Event()

    async def slow(params: ToolCallParams) -> ToolResult:
        begun.set()
        await gate.wait()
        return output(params.name)

    world.workspace.handlers = {"slow": slow}
    script = [call(("a", "slow")), say("steered"), say("over")]
    chat = await world.chat(script, agent_id=world.agent_id)
    await asyncio.wait_for(begun.wait(), 30)
    for value, steer in (("later", False), ("now", True)):
        send = partial(ChatTx.send, content=(TextPart(text=value),), created_by=chat.owner_id, steer=steer)
        await world.store.transition(chat.id, send)
    gate.set()
    await world.until_rest(chat.id)

    texts = await world.texts(chat.id)
    assert texts[:3] == ["user:hello", "assistant:a", "tool:a"]
    assert texts[3:] == ["user:now", "assistant:steered", "user:later", "assistant:over"]
    assert len(world.model.requests) == 3
