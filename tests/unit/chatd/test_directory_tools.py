"""The list of a workspace's tools, kept while it is true."""

import asyncio
from typing import Any
from uuid import UUID

from agentd.wire.content import ToolDefinition
from agentd.wire.link import ToolListResult
from chatd.agents.directory import AgentConnection, Directory

AGENT = UUID(int=1)


class Workspace:
    """Answers ``tools/list``, each time when it may, with the list of that moment."""

    def __init__(self) -> None:
        self.names = ["old"]
        self.asked = 0
        self.began, self.may_answer = asyncio.Event(), asyncio.Event()

    async def call(self, *_: Any, **__: Any) -> ToolListResult:
        """As a peer does."""
        self.asked += 1
        self.began.set()
        tools = tuple(ToolDefinition(name=name, input_schema={}) for name in self.names)
        await self.may_answer.wait()
        return ToolListResult(tools=tools)


def _directory(workspace: Workspace) -> tuple[Directory, AgentConnection]:
    directory = Directory()
    connection = AgentConnection(agent_id=AGENT, boot_id="b", name="n", peer=workspace)  # type: ignore[arg-type]
    directory.connect(connection)
    return directory, connection


async def test_a_list_is_asked_for_once_and_again_after_it_changed() -> None:
    """A step costs no question; the step after a change sees the new tools."""
    workspace = Workspace()
    workspace.may_answer.set()
    directory, connection = _directory(workspace)
    first = [await directory.list_tools(AGENT) for _ in range(3)]
    workspace.names = ["new"]
    connection.forget_tools()
    second = await directory.list_tools(AGENT)

    assert [tool.name for tools in first for tool in tools] == ["old"] * 3
    assert [tool.name for tool in second] == ["new"]
    assert workspace.asked == 2


async def test_a_list_that_was_on_its_way_during_a_change_is_not_kept() -> None:
    """It may be of before."""
    workspace = Workspace()
    directory, connection = _directory(workspace)
    asking = asyncio.create_task(directory.list_tools(AGENT))
    await workspace.began.wait()
    connection.forget_tools()
    workspace.names = ["new"]
    workspace.may_answer.set()
    await asking

    assert [tool.name for tool in await directory.list_tools(AGENT)] == ["new"]
