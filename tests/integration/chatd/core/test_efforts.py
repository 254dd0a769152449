"""How hard a chat's model thinks, and its agents' with it; what a request has room for."""

import logging
from typing import Any
from uuid import UUID

import pytest
import structlog

from chatd.model_wire import ModelOverride
from chatd.store import deployment, model_overrides
from chatd.store.machine import ChatTx
from chatd.tools.offering import MAX_TOOLS
from chatd.wire import DynamicTool, ToolResultPart, TurnChanges
from tests.contract.store.bench import text
from tests.integration.chatd.core.world import Gate, World, call, output, say

EFFORTS = ("low", "medium", "high")


@pytest.fixture(autouse=True)
def _thinking(world: World) -> None:
    world.model.efforts = EFFORTS


def with_desktop(world: World) -> dict[str, Any]:
    """A chat whose workspace has a desktop."""

    async def look(_: object) -> Any:
        return output("seen")

    world.workspace.handlers["computer"] = look
    return {"agent_id": world.agent_id}


async def send(world: World, chat_id: UUID, value: str, **fields: Any) -> None:
    """A message that changes its chat."""
    how = {name: fields.pop(name) for name in ("steer", "interrupt") if name in fields}

    def apply(tx: ChatTx) -> None:
        tx.send(text(value), created_by=world.user_id, changes=TurnChanges(**fields), **how)

    await world.store.transition(chat_id, apply)


async def test_the_effort_of_a_message_reaches_the_model_until_another_is_chosen(world: World) -> None:
    """Spec 2.1, 3: stored with chat and message; null goes back to the model's own."""
    chat = await world.chat([say("a"), say("b"), say("c"), say("d")], reasoning_effort="high")
    await world.until_rest(chat.id)
    for changes in ({}, {"reasoning_effort": "low"}, {"reasoning_effort": None}):
        await send(world, chat.id, "more", **changes)
        await world.until_rest(chat.id)

    assert [request.effort for request in world.model.requests] == ["high", "high", "low", None]


async def test_an_effort_that_the_model_lost_is_lowered(world: World) -> None:
    """Ours: the installation may offer less by now; the vendor must not refuse the request."""
    world.model.efforts = ("low", "medium")
    chat = await world.chat([say("a")], reasoning_effort="high")
    await world.until_rest(chat.id)

    assert [request.effort for request in world.model.requests] == ["medium"]


@pytest.mark.parametrize("how", ["queue", "interrupt", "steer"])
async def test_a_message_for_later_leaves_the_step_under_way_as_it_is(world: World, how: str) -> None:
    """Brief: neither plan mode nor effort of a waiting message touch the running turn."""
    gate = Gate()
    script = [[gate, *call(("x", "none"))], say("first"), say("second")]
    if how == "interrupt":
        script = [[gate, *say("late")], say("second")]
    chat = await world.chat(script)
    await gate.wait_reached()
    kind = {} if how == "queue" else {how: True}
    await send(world, chat.id, "plan it", plan_mode="plan", reasoning_effort="low", **kind)
    during = await world.row(chat.id)
    gate.opened.set()
    await world.until_rest(chat.id)
    plans = ["propose_plan" in {tool.name for tool in one.tools} for one in world.model.requests]
    efforts = [request.effort for request in world.model.requests]
    # The queued one begins a turn behind the first; the steering one is in the very next call.
    expected = [False, False, True] if how == "queue" else [False, True]

    assert (during["plan_mode"], during["last_reasoning_effort"]) == (None, None)
    assert plans == expected
    assert efforts == ["low" if plan else None for plan in expected]


@pytest.mark.parametrize(
    ("asked", "expected"), [({}, "high"), ({"reasoning_effort": "low"}, "low")], ids=["inherits", "own"]
)
async def test_an_agent_thinks_as_its_parent_unless_told_otherwise(
    world: World, asked: dict[str, str], expected: str
) -> None:
    """Spec 7: arguments before the parent's."""
    world.model.scripts["do it"] = [say("done")]
    chat = await world.chat(
        [call(("s", "spawn_agent"), prompt="do it", **asked), say("ok")], reasoning_effort="high"
    )
    await world.until_rest(chat.id)
    (child,) = await world.children(chat.id)
    row = await world.until_rest(child.id)

    assert row["last_reasoning_effort"] == expected
    assert (await world.messages(child.id))[0].reasoning_effort == expected


@pytest.mark.parametrize(
    ("kind", "asked", "problem"),
    [
        ("general", {"reasoning_effort": "max"}, "does not offer 'max'; there are: low, medium, high"),
        ("general", {"reasoning_effort": "hard"}, "reasoning_effort"),
        ("computer_use", {"reasoning_effort": "low"}, "takes no model_config_id and no reasoning_effort"),
        ("computer_use", {"model_config_id": "m"}, "takes no model_config_id and no reasoning_effort"),
    ],
)
async def test_an_agents_effort_must_be_one_that_there_is(
    world: World, kind: str, asked: dict[str, str], problem: str
) -> None:
    """Spec 7: computer_use rejects model and effort; errors are results."""
    args = {"prompt": "do it", "type": kind, **asked}
    chat = await world.chat([call(("s", "spawn_agent"), **args), say("ok")], **with_desktop(world))
    await world.until_rest(chat.id)
    (answer,) = await _results(world, chat.id)

    assert answer.is_error
    assert problem in answer.result["error"]
    assert await world.children(chat.id) == ()


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("kind", ["general", "explore", "computer_use"])
async def test_a_persons_preference_comes_before_the_parents(
    world: World, kind: str, *, allowed: bool
) -> None:
    """Spec 7: argument, personal override, parent; the switch of an administrator decides."""
    store = world.store
    for context in ("general", "explore"):
        wish = ModelOverride(model_config_id=world.config_id, reasoning_effort="low")
        await store.write(model_overrides.save_override, world.user_id, context, wish)
    if not allowed:
        now = store.now()
        await store.write(deployment.save_setting, "personal-model-overrides", False, now=now)
    world.model.scripts["do it"] = [say("done")]
    script = [call(("s", "spawn_agent"), prompt="do it", type=kind), say("ok")]
    chat = await world.chat(script, reasoning_effort="high", **with_desktop(world))
    await world.until_rest(chat.id)
    (child,) = await world.children(chat.id)
    row = await world.until_rest(child.id)

    assert row["last_reasoning_effort"] == ("low" if allowed and kind != "computer_use" else "high")


async def _results(world: World, chat_id: UUID) -> list[ToolResultPart]:
    messages = await world.messages(chat_id)
    return [part for message in messages for part in message.content if isinstance(part, ToolResultPart)]


async def test_tools_that_find_no_room_are_told_once_a_turn(world: World) -> None:
    """Brief: a log line and a counter; the built-in tools and the turn are as ever."""

    async def ok(_: object) -> Any:
        return output("ok")

    world.workspace.handlers["execute"] = ok
    client = tuple(DynamicTool(name=f"c{n}", description="") for n in range(200))
    script = [call(("x", "execute"), command="true"), call(("y", "execute"), command="true"), say("done")]
    with structlog.testing.capture_logs() as lines:
        chat = await world.chat(script, dynamic_tools=client, agent_id=world.agent_id)
        await world.until_rest(chat.id)
    told = [[tool.name for tool in request.tools] for request in world.model.requests]
    (line,) = [line for line in lines if line.get("action") == "tools_left_out"]
    rendered = world.services.metrics.render().decode()
    (sample,) = [row for row in rendered.splitlines() if row.startswith("chatd_tools_left_out_total{")]

    assert {len(names) for names in told} == {MAX_TOOLS}
    assert all("execute" in names and "wait_agent" in names for names in told)
    assert line["log_level"] == logging.getLevelName(logging.WARNING).lower()
    assert (line["count"], line["limit"]) == (float(sample.split()[-1]), MAX_TOOLS)
    assert line["first"].startswith("c")
