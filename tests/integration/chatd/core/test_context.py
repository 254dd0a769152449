"""Context in turns: the gate of the first, the prompt, the skills' tools."""

import asyncio
from typing import Any
from uuid import UUID

from chatd.errors import AgentUnavailable
from chatd.wire import Chat, ToolResultPart
from context_push.wire.hashing import skill_hash
from context_push.wire.resources import Resource, SkillBody, SkillFile
from tests.contract.store.context import instruction, pin_problems, push, skill
from tests.integration.chatd.core.world import LIMIT_S, World, call, output, say

OLD, NEW = instruction(text="Be old."), instruction(text="Be new.")


async def start(world: World, *script: Any, **fields: Any) -> Chat:
    """A chat of the world's agent whose model answers by *script*."""
    return await world.chat(list(script) or [say("done")], **({"agent_id": world.agent_id} | fields))


async def systems(world: World) -> list[str]:
    """The system prompts that the model got."""
    assert await world.store.read(pin_problems) == []
    return [request.system for request in world.model.requests]


async def test_the_prompt_is_built_from_the_pin(world: World) -> None:
    """Requirement 002: the pinned instructions until the refresh, whatever was pushed since."""
    await world.services.pins.take_push(world.agent_id, push(1, OLD, skill("deploy")))
    chat = await start(world, say("one"), say("two"), say("three"))
    await world.until_rest(chat.id)
    await world.services.pins.take_push(world.agent_id, push(2, NEW))
    await world.send(chat.id, "again")
    await world.until_rest(chat.id)
    await world.services.pins.refresh(chat.id)
    await world.send(chat.id, "and again")
    await world.until_rest(chat.id)

    first, second, third = await systems(world)
    assert "Be old." in first
    assert "deploy: Does deploy." in first
    assert first == second
    assert "Be new." in third
    assert "deploy" not in third


async def test_a_first_turn_waits_for_the_push(world: World) -> None:
    """Spec 5.6: the gate opens as soon as the chat is pinned."""
    world.workspace.is_pushing = True
    chat = await start(world)
    await world.until(chat.id, lambda row: row["runner_id"] is not None)
    assert world.model.requests == []
    await world.services.pins.take_push(world.agent_id, push(1, NEW))
    await world.until_rest(chat.id)

    assert "Be new." in (await systems(world))[0]
    assert (await world.row(chat.id))["context_error"] is None


async def test_the_gate_is_bounded_and_a_failure_is_remembered_and_healed(world: World) -> None:
    """Spec 5.6: the turn goes on without; the next does not wait; a later push pins the chat."""
    await world.restart(context_gate_s=0.05)
    world.workspace.is_pushing = True
    chat = await start(world, say("one"), say("two"), say("three"))
    await world.until_rest(chat.id)
    error = (await world.row(chat.id))["context_error"]
    await world.restart(context_gate_s=3600)
    await world.send(chat.id, "again")
    await world.until_rest(chat.id)
    await world.services.pins.take_push(world.agent_id, push(1, NEW))
    await world.send(chat.id, "and again")
    await world.until_rest(chat.id)

    assert "within 0.05 s" in error
    without, still, healed = await systems(world)
    assert without == still
    assert "Be new." in healed
    assert (await world.row(chat.id))["context_error"] is None


async def test_the_gate_gives_up_at_once_where_nothing_will_come(world: World) -> None:
    """Spec 5.6: an agent that is too old, or away; the limit would be an hour."""
    await world.restart(context_gate_s=3600)
    reasons = []
    for number, is_pushing in enumerate((False, None)):
        world.workspace.is_pushing = is_pushing
        chat = await start(world, value=f"hello {number}")
        await world.until_rest(chat.id)
        reasons.append((await world.row(chat.id))["context_error"])

    assert "does not push" in reasons[0]
    assert "not connected" in reasons[1]


async def test_an_interrupt_ends_the_wait_at_the_gate(world: World) -> None:
    """Ours: and nothing is remembered, so the next turn may wait again."""
    await world.restart(context_gate_s=3600)
    world.workspace.is_pushing = True
    chat = await start(world)
    await world.until(chat.id, lambda row: row["runner_id"] is not None)
    await world.interrupt(chat.id)
    await world.until_rest(chat.id)

    assert world.model.requests == []
    assert (await world.row(chat.id))["context_error"] is None


async def test_a_switched_off_control_plane_does_not_wait(world: World) -> None:
    """Spec 5.5: the kill switch."""
    await world.restart(context_push=False, context_gate_s=3600)
    world.workspace.is_pushing = True
    chat = await start(world)
    await world.until_rest(chat.id)

    assert (await world.row(chat.id))["context_error"] is None


async def test_a_sub_agent_works_by_its_parent_s_pin(world: World) -> None:
    """Spec 5.6: though the workspace has moved on."""
    await world.services.pins.take_push(world.agent_id, push(1, OLD))
    spawn = call(("c1", "spawn_agent"), prompt="child")
    chat = await start(world, spawn, call(("c2", "wait_agent"), chat_id=str(UUID(int=0))), say("done"))
    await world.services.pins.take_push(world.agent_id, push(2, NEW))
    world.model.scripts["child"] = [say("report")]
    await world.until_rest(chat.id)
    (child,) = await world.children(chat.id)
    await world.until_rest(child.id)

    prompts = await systems(world)
    assert all("Be old." in prompt for prompt in prompts)
    assert len(prompts) == 4


def with_files(name: str, *files: SkillFile) -> Resource:
    """A skill that carries files."""
    plain = skill(name, "<!-- hidden -->Do it.")
    assert isinstance(plain.body, SkillBody)
    body = plain.body.model_copy(update={"files": files})
    return plain.model_copy(
        update={"body": body, "content_hash": skill_hash(plain.body.text.encode(), files)}
    )


async def results(world: World, chat_id: UUID) -> list[ToolResultPart]:
    """Every tool result of the chat."""
    return [
        part
        for message in await world.messages(chat_id)
        for part in message.content
        if isinstance(part, ToolResultPart)
    ]


async def test_skills_are_read_with_the_workspace_away(world: World) -> None:
    """Requirement 002: from the pin; files too."""

    async def gone(_: UUID) -> tuple[Any, ...]:
        raise AgentUnavailable("away")

    world.workspace.list_tools = gone  # type: ignore[method-assign]
    files = (
        SkillFile(path="a/b.md", size_bytes=5, text="he\u200bllo"),
        SkillFile(path="big.bin", size_bytes=99_000),
    )
    await world.services.pins.take_push(world.agent_id, push(1, with_files("deploy", *files)))
    chat = await start(
        world,
        call(("1", "read_skill"), name="deploy"),
        call(("2", "read_skill_file"), name="deploy", path="./a/b.md"),
        call(("3", "read_skill_file"), name="deploy", path="/w/skills/deploy/a/b.md"),
        call(("4", "read_skill_file"), name="deploy", path="big.bin"),
        call(("5", "read_skill_file"), name="deploy", path="../../secret"),
        call(("6", "read_skill"), name="nosuch"),
        call(("7", "read_skill")),
        call(("8", "read_skill_file"), name="nosuch", path="x"),
        call(("9", "read_skill_file"), name="deploy"),
        say("done"),
    )
    await world.until_rest(chat.id)
    read, *rest = await results(world, chat.id)

    assert read.result["output"].startswith("Skill deploy, in /w/skills/deploy\nFiles")
    assert read.result["output"].endswith("(99,000 bytes, too large or no text)\n\nDo it.")
    assert [part.result.get("output") for part in rest[:2]] == ["hello", "hello"]
    assert all(part.is_error for part in rest[2:])
    assert "/w/skills/deploy/big.bin" in rest[2].result["error"]
    assert "a/b.md, big.bin" in rest[3].result["error"]
    assert "there are: deploy" in rest[4].result["error"]
    assert {tool.name for tool in world.model.requests[0].tools} >= {"read_skill", "read_skill_file"}


async def test_without_skills_there_are_no_tools_for_them(world: World) -> None:
    """Spec 5.6: and a workspace that is away is an error then, as ever."""

    async def gone(_: UUID) -> tuple[Any, ...]:
        raise AgentUnavailable("away")

    await world.services.pins.take_push(world.agent_id, push(1, OLD))
    chat = await start(world)
    await world.until_rest(chat.id)
    assert not {tool.name for tool in world.model.requests[0].tools} & {"read_skill", "read_skill_file"}
    world.workspace.list_tools = gone  # type: ignore[method-assign]
    other = await start(world, value="other")

    await world.until_rest(other.id, "error")


async def test_workspace_tools_are_live_beside_the_pin(world: World) -> None:
    """Spec 5.6: MCP tools are taken from the workspace as it is now, not from the pin."""
    await world.services.pins.take_push(world.agent_id, push(1, skill("deploy")))
    async with asyncio.timeout(LIMIT_S):
        chat = await start(world, say("one"), say("two"))
        await world.until_rest(chat.id)

        async def run(_: Any) -> Any:
            return output("ran")

        world.workspace.handlers["github__create_issue"] = run
        await world.send(chat.id, "again")
        await world.until_rest(chat.id)

    names = [{tool.name for tool in request.tools} for request in world.model.requests]
    assert "github__create_issue" not in names[0]
    assert "github__create_issue" in names[1]
