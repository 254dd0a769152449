"""Chats whose agent makes a plan: what it may call, and when its turn is over."""

from typing import Any
from uuid import UUID

from agentd.wire.content import ToolResult
from agentd.wire.link import ToolCallParams
from chatd.store import deployment
from chatd.tools.policy import plan_path
from tests.integration.chatd.core.world import World, call, output, say

QUESTIONS = [
    {
        "header": "Colour",
        "question": "Which colour?",
        "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
    }
]


async def _results(world: World, chat_id: UUID) -> list[dict[str, Any]]:
    messages = await world.messages(chat_id)
    return [part.result for message in messages if message.role == "tool" for part in message.content]


async def test_a_plan_is_proposed_and_the_turn_is_over(world: World) -> None:
    """Spec 8.1, 8.2: the plan's text is kept with the chat, and the person speaks next."""
    text = "# Plan\n\n1. Paint it red.\n"
    script = [call(("a", "propose_plan")), say("never asked")]
    script.insert(0, call(("w", "write_file"), path="~/plan.md", content=text))
    world.workspace.handlers["write_file"] = _refuse
    chat = await world.chat(script, plan_mode="plan", agent_id=world.agent_id)
    world.workspace.files[plan_path(chat.id)] = text.encode()
    await world.until_rest(chat.id)
    results = await _results(world, chat.id)

    assert "only the plan" in results[0]["error"]
    assert (results[1]["kind"], results[1]["plan"]) == ("plan", text)
    assert len(results) == 2
    assert plan_path(chat.id) in world.model.requests[0].system
    assert {"propose_plan", "write_file"} <= {tool.name for tool in world.model.requests[0].tools}


async def test_questions_end_the_turn_and_bad_ones_do_not(world: World) -> None:
    """Spec 8.6: an error names what to mend, and the model goes on."""
    few = [{**QUESTIONS[0], "options": QUESTIONS[0]["options"][:1]}]
    script = [
        call(("a", "ask_user_question"), questions=few),
        call(("b", "ask_user_question"), questions=QUESTIONS),
        say("never asked"),
    ]
    chat = await world.chat(script, plan_mode="plan")
    await world.until_rest(chat.id)
    results = await _results(world, chat.id)

    assert "questions.0.options" in results[0]["error"]
    assert results[1] == {"questions": QUESTIONS}


async def test_the_workspace_is_told_what_may_be_written(world: World) -> None:
    """Spec 8.2: only the workspace sees where a path leads."""
    given: list[ToolCallParams] = []

    async def write(params: ToolCallParams) -> ToolResult:
        given.append(params)
        return output("ok")

    world.workspace.handlers["write_file"] = write
    chat = await world.chat([say("yes?"), say("done")], plan_mode="plan", agent_id=world.agent_id)
    await world.until_rest(chat.id)
    path = plan_path(chat.id)
    world.model.scripts["hello"].insert(0, call(("b", "write_file"), path=path, content="x"))
    await world.send(chat.id, "write it")
    await world.until_rest(chat.id)

    assert [(params.arguments["path"], params.writes_only) for params in given] == [(path, path)]


async def test_a_call_of_what_is_not_offered_is_refused(world: World) -> None:
    """The policy holds whatever the model says."""
    chat = await world.chat(
        [call(("a", "spawn_computer_use_agent"), prompt="x"), say("ok")], plan_mode="plan"
    )
    await world.until_rest(chat.id)
    (result,) = await _results(world, chat.id)

    assert "there is no tool 'spawn_computer_use_agent'" in result["error"]


async def test_the_desktop_is_out_of_reach_while_a_plan_is_made(world: World) -> None:
    """Vector 87: the computer is not offered, and nothing fails for that; a person may say so at any time."""
    world.workspace.handlers["computer"] = _refuse
    parent = await world.chat([say("done")])
    child = await world.chat(
        [call(("a", "computer"), text="?"), say("ok")],
        value="errand",
        parent=parent,
        mode="computer_use",
        plan_mode="plan",
    )
    await world.until_rest(child.id)
    requests = [one for one in world.model.requests if "errand" in str(one.messages[0])]
    (result,) = await _results(world, child.id)

    assert {request.computer for request in requests} == {None}
    assert "there is no tool 'computer'" in result["error"]


async def _refuse(params: ToolCallParams) -> ToolResult:
    raise AssertionError(f"{params.name} was handed over")


async def test_a_deployment_adds_to_what_a_planning_chat_is_told(world: World) -> None:
    """Spec 3: plan-mode-instructions, for chats that make a plan alone; standing prompts for all."""
    store = world.services.store
    for name, value in (("plan-mode-instructions", "Think twice."), ("system-prompt", "Be kind.")):
        await store.write(deployment.save_setting, name, value, now=store.now())
    planning = await world.chat([say("a")], plan_mode="plan")
    await world.until_rest(planning.id)
    usual = await world.chat([say("b")], value="usual", system_prompt="Be red.")
    await world.until_rest(usual.id)
    first, second = (request.system for request in world.model.requests)

    assert ("Think twice." in first, "Be kind." in first) == (True, True)
    assert "Think twice." not in second
    assert second.endswith("Be kind.\n\nBe red.")
