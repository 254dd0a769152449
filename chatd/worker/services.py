"""What every runner needs, in one value."""

from dataclasses import dataclass

from chatd.agents.directory import Directory
from chatd.provider.catalog import Catalog
from chatd.settings import ChatdSettings
from chatd.store.store import Store
from chatd.stream.buffer import PartBuffer
from chatd.stream.hub import Hub
from chatd.tools.subagents import SubagentTools
from chatd.tools.toolset import Toolset
from chatd.tools.workspace import WorkspaceTools
from chatd.wire import Chat

__all__ = ["Services"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The control plane's parts that a turn uses."""

    settings: ChatdSettings
    store: Store
    hub: Hub
    buffer: PartBuffer
    catalog: Catalog
    directory: Directory

    async def toolset(self, chat: Chat) -> Toolset:
        """
        What *chat* may call.

        A desktop agent the computer; a root chat its sub-agents and the workspace;
        any other child the workspace.

        Raises:
            AgentUnavailable: the workspace did not connect in time.
        """
        workspace = None
        if chat.agent_id is not None:
            workspace = WorkspaceTools(chat.agent_id, directory=self.directory, store=self.store)
        if chat.mode == "computer_use":
            computer = await workspace.computer() if workspace else None
            return Toolset(computer=computer, run_computer=workspace.run if workspace and computer else None)
        tools = await workspace.functions() if workspace else []
        if chat.parent_chat_id is None:
            tools = [
                *SubagentTools(
                    chat,
                    store=self.store,
                    hub=self.hub,
                    wait_timeout_s=self.settings.wait_agent_timeout_s,
                ).tools(),
                *tools,
            ]
        return Toolset(tools={tool.definition.name: tool for tool in tools})
