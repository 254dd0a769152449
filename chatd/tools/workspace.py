"""Tools that run in the workspace: handed over the link, answered in MCP's shape."""

from uuid import UUID

from agentd.wire.content import ToolDefinition
from agentd.wire.link import ToolCallParams
from chatd.agents.directory import Directory
from chatd.errors import AgentUnavailable
from chatd.provider.protocol import ComputerSpec, FunctionTool
from chatd.store import ledger
from chatd.store.store import Store
from chatd.tools.toolset import CallContext, LocalTool, ToolOutcome, error_outcome, outcome_of

__all__ = ["WorkspaceTools", "computer_spec"]

# Seconds for one workspace call; a computer call may hold or wait for up to five minutes.
CALL_TIMEOUT_S = 330.0
# The frame that models see: the default desktop's own size, which every vendor takes unscaled.
MODEL_SIZE = (1280, 800)


def computer_spec(definition: ToolDefinition) -> ComputerSpec:
    """The computer tool for the vendors."""
    return ComputerSpec(
        model_size=MODEL_SIZE,
        description=definition.description,
        input_schema=definition.input_schema,
    )


class WorkspaceTools:
    """One agent's tools."""

    def __init__(self, agent_id: UUID, *, directory: Directory, store: Store) -> None:
        self._agent_id = agent_id
        self._directory = directory
        self._store = store

    async def functions(self) -> list[LocalTool]:
        """Every tool but the desktop's."""
        return [
            LocalTool(
                definition=FunctionTool(
                    name=tool.name, description=tool.description, input_schema=tool.input_schema
                ),
                run=self.run,
            )
            for tool in await self._directory.list_tools(self._agent_id)
            if tool.origin != "desktop"
        ]

    async def computer(self) -> ComputerSpec | None:
        """The desktop's tool, if the workspace has one."""
        for tool in await self._directory.list_tools(self._agent_id):
            if tool.name == "computer" and tool.origin == "desktop":
                return computer_spec(tool)
        return None

    async def run(self, context: CallContext) -> ToolOutcome:
        """Hand the call over and wait for its answer."""
        call = context.call

        async def claim(boot_id: str) -> str:
            return await self._store.write(
                ledger.claim_call, context.chat_id, context.key, boot_id=boot_id, now=self._store.now()
            )

        params = ToolCallParams(
            call_id=context.key,
            name=call.tool_name,
            arguments=call.args or {},
            chat_id=str(context.chat_id),
            timeout_s=CALL_TIMEOUT_S,
        )
        try:
            result = await self._directory.call_tool(self._agent_id, params, claim=claim)
        except AgentUnavailable as exc:
            return error_outcome(call, str(exc))
        return outcome_of(call, result)
