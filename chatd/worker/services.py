"""What every runner needs, in one value."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from uuid import UUID

from chatd.agents.directory import Directory
from chatd.errors import AgentUnavailable
from chatd.loop.request import FileCache
from chatd.loop.silence import Patience
from chatd.mcp_host import McpHost
from chatd.metrics import Metrics, ModelLabels
from chatd.prompt.truncation import budget_bytes
from chatd.provider.catalog import Catalog
from chatd.provider.prices import context_window
from chatd.push.sender import PushSender
from chatd.replicas.membership import Membership
from chatd.replicas.together import Together
from chatd.sealing import Sealer
from chatd.settings import ChatdSettings
from chatd.store import deployment
from chatd.store.pinning import Pins
from chatd.store.store import Store
from chatd.stream.buffer import PartBuffer
from chatd.stream.hub import Hub
from chatd.stream.sync import OnlyHere, PartSource
from chatd.tools.attach import attach_tool
from chatd.tools.mcp import mcp_tools
from chatd.tools.offering import by_name
from chatd.tools.plans import PlanTool
from chatd.tools.policy import ChatKind, Origin, asks_meanwhile, is_offered, kind_of, stops_turn
from chatd.tools.questions import question_tool
from chatd.tools.recording import Filming
from chatd.tools.skills import SkillTools
from chatd.tools.steering import SteeringTools
from chatd.tools.subagents import SubagentTools
from chatd.tools.toolset import LocalTool, Observed, Toolset
from chatd.tools.workspace import WorkspaceTools
from chatd.wire import Chat

__all__ = ["Answered", "Services"]

# Chats that wait for their title, answers that wait for a line about them.
MAX_UNTITLED = 256
MAX_UNANNOUNCED = 256
# Seconds that a chat which can go on without its workspace waits for it: a reconnect takes one.
AWAY_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What a chat's model said at the end of its turn, for its owner to be told."""

    chat: Chat
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The control plane's parts that a turn uses."""

    settings: ChatdSettings
    store: Store
    hub: Hub
    buffer: PartBuffer
    catalog: Catalog
    directory: Directory
    mcp: McpHost
    push: PushSender
    # Who we are among those that share the database, and the others; alone unless told otherwise.
    membership: Membership = field(default_factory=Membership)
    together: Together | None = None
    files: FileCache = field(default_factory=FileCache)
    # Windows that servers told, by model.
    windows: dict[UUID, int] = field(default_factory=dict)
    # Chats that want a title by a model; one that finds no room keeps its first words.
    untitled: asyncio.Queue[Chat] = field(default_factory=lambda: asyncio.Queue(maxsize=MAX_UNTITLED))
    # Answers that are told in a model's words; one that finds no room is told by its beginning.
    unannounced: asyncio.Queue[Answered] = field(
        default_factory=lambda: asyncio.Queue(maxsize=MAX_UNANNOUNCED)
    )
    metrics: Metrics = field(default_factory=Metrics)
    # Chance from 0 to 1, by which the waits of chats that failed together differ.
    chance: Callable[[], float] = random.random

    @property
    def sealer(self) -> Sealer:
        """Seals and opens what the database keeps of secrets."""
        return self.mcp.sealer

    @property
    def patience(self) -> Patience:
        """How long a vendor may be silent."""
        settings = self.settings
        return Patience(startup_s=settings.startup_timeout_s, silence_s=settings.stream_silence_timeout_s)

    @property
    def elsewhere(self) -> PartSource:
        """Where fragments of chats come from that others drive."""
        return OnlyHere() if self.together is None else self.together.parts

    @property
    def pins(self) -> Pins:
        """Chats' context."""
        return Pins(self.store)

    async def auto_archive_days(self) -> int:
        """After how many idle days chats are archived: as people set it, else as the installation."""
        stored: int | None = await self.store.read(deployment.read_setting, "auto-archive-days")
        return self.settings.auto_archive_days if stored is None else stored

    def window(self, chat: Chat) -> int | None:
        """Tokens of the chat's model: as its server told, else as the installation or the tables say."""
        model_id = chat.last_model_config_id
        return self.windows.get(model_id) or context_window(self.catalog.source(model_id))

    async def toolset(self, chat: Chat) -> Toolset:
        """
        What *chat* may call, its results bounded by its model's window.

        Raises:
            AgentUnavailable: the workspace did not connect in time, and there are no skills.
        """
        source = self.catalog.source(chat.last_model_config_id)
        of = ModelLabels(source.provider, source.model)

        def observe(result: Observed) -> None:
            self.metrics.tool_answered(
                of,
                result.tool,
                size_bytes=result.size_bytes,
                is_error=result.is_error,
                is_truncated=result.is_truncated,
            )

        budget = budget_bytes(self.window(chat))
        return replace(await self._tools(chat), result_bytes=budget, observe=observe)

    async def _tools(self, chat: Chat) -> Toolset:
        """
        What *chat* may call.

        A desktop agent the computer, and programs and windows by name; any other what
        ``chatd.tools.policy`` says of its kind. Names of the deployment's MCP servers come before those
        of the workspace's. Skills need no workspace.

        Raises:
            AgentUnavailable: the workspace did not connect in time, and there are no skills.
        """
        skills = await self._skills(chat)
        kind = kind_of(chat, self.settings.experiments)
        workspace = self._workspace(chat)
        if chat.mode == "computer_use":
            return await self._desktop_tools(workspace, skills, kind)
        hosted = await mcp_tools(self.mcp, chat, store=self.store)
        is_needed = not skills and not hosted
        tools = await self._functions(workspace, is_needed=is_needed) if workspace else []
        plan = PlanTool(chat, read_file=workspace.read_file if workspace else None).tool()
        ask = question_tool(meanwhile=asks_meanwhile(kind))
        attach = [attach_tool(workspace.read_file)] if workspace else []
        every = [*self._subagent_tools(chat), plan, ask, *attach, *skills, *hosted, *tools]
        offered = [
            replace(tool, stops_turn=stops_turn(tool.definition.name, kind))
            for tool in every
            if is_offered(tool.definition.name, tool.origin, kind)
        ]
        return Toolset(tools=by_name(offered))

    def _workspace(self, chat: Chat) -> WorkspaceTools | None:
        if chat.agent_id is None:
            return None
        return WorkspaceTools(
            chat.agent_id,
            root_chat_id=chat.root_chat_id,
            directory=self.directory,
            store=self.store,
            writes_plan_of=chat.id if chat.plan_mode is not None else None,
        )

    async def _desktop_tools(
        self, workspace: WorkspaceTools | None, skills: list[LocalTool], kind: ChatKind
    ) -> Toolset:
        if workspace is None or not is_offered("computer", Origin.WORKSPACE, kind):
            return Toolset(tools=by_name(skills))
        computer = await workspace.computer()
        beside = await self._functions(workspace, is_needed=False)
        named = [tool for tool in beside if is_offered(tool.definition.name, tool.origin, kind)]
        return Toolset(
            tools=by_name([*named, *skills]),
            computer=computer,
            run_computer=workspace.run if computer else None,
        )

    def _subagent_tools(self, chat: Chat) -> list[LocalTool]:
        if chat.parent_chat_id is not None:
            return []
        starting = SubagentTools(
            chat,
            store=self.store,
            catalog=self.catalog,
            hub=self.hub,
            desktop_model=self.settings.computer_use_model,
            wait_timeout_s=self.settings.wait_agent_timeout_s,
            filming=Filming(self.directory, chat.agent_id) if chat.agent_id else None,
        )
        return [*starting.tools(), *SteeringTools(chat, store=self.store).tools()]

    async def _skills(self, chat: Chat) -> list[LocalTool]:
        """Those of the chat's pin; a chat that is known to have none is not asked for."""
        if chat.context is not None and not chat.context.pinned:
            return []
        return await SkillTools(chat.id, store=self.store).tools()

    async def _functions(self, workspace: WorkspaceTools, *, is_needed: bool) -> list[LocalTool]:
        """The workspace's functions; none while it is away, unless there is nothing else to go on with."""
        try:
            async with asyncio.timeout(None if is_needed else AWAY_S):
                return await workspace.functions()
        except (AgentUnavailable, TimeoutError):
            if is_needed:
                raise
            return []
