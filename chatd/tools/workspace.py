"""Tools that run in the workspace: handed over the link, answered in MCP's shape."""

import json
from contextlib import suppress
from typing import Any
from uuid import UUID

from agentd.wire.content import ToolDefinition, ToolResult
from agentd.wire.files import FILES_READ, FileBytes, FileReadParams
from agentd.wire.link import MAX_TOOL_TIMEOUT_S, ToolCallParams
from chatd.agents.directory import Directory
from chatd.errors import AgentUnavailable
from chatd.provider.protocol import ComputerSpec, FunctionTool
from chatd.store import ledger
from chatd.store.store import Store
from chatd.tools.policy import Origin, is_plan_path, plan_path
from chatd.tools.toolset import CallContext, LocalTool, ToolOutcome, error_outcome, outcome_of
from chatd.wire import ToolCallPart

__all__ = ["WorkspaceTools", "computer_spec"]

# Seconds for one workspace call; a computer call may hold or wait for up to five minutes.
CALL_TIMEOUT_S = 330.0
# Seconds for a file to be handed over.
READ_TIMEOUT_S = 60.0
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
    """
    One agent's tools, for one conversation.

    Args:
        root_chat_id: the chat that a person opened, whichever of its sub-agents asks.
        writes_plan_of: the chat whose plan is the one file that may be written; None: any may.
    """

    def __init__(
        self,
        agent_id: UUID,
        *,
        root_chat_id: UUID,
        directory: Directory,
        store: Store,
        writes_plan_of: UUID | None = None,
    ) -> None:
        self._agent_id = agent_id
        self._writes_plan_of = writes_plan_of
        self._root_chat_id = root_chat_id
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
                origin=Origin.WORKSPACE_MCP if tool.origin.startswith("mcp:") else Origin.WORKSPACE,
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
        planned = self._writes_plan_of
        if planned is not None and not all(is_plan_path(path, planned) for path in _written(call)):
            text = f"nothing was written: now only the plan is, {plan_path(planned)}"
            return error_outcome(call, text)

        try:
            result = await self._call(context)
        except AgentUnavailable as exc:
            return error_outcome(call, str(exc))
        return outcome_of(call, result)

    async def _call(self, context: CallContext) -> ToolResult:
        call, planned = context.call, self._writes_plan_of
        definition = await self._definition(call.tool_name)

        async def claim(boot_id: str) -> str:
            if definition is not None and definition.reads_only:
                # Whichever boot was asked before: asking again changes nothing.
                return boot_id
            return await self._store.write(
                ledger.claim_call, context.chat_id, context.key, boot_id=boot_id, now=self._store.now()
            )

        params = ToolCallParams(
            call_id=context.key,
            name=call.tool_name,
            arguments=call.args or {},
            chat_id=str(context.chat_id),
            vendor_call_id=call.tool_call_id[:300],
            root_chat_id=str(self._root_chat_id),
            timeout_s=_timeout_of(definition),
            writes_only=None if planned is None else plan_path(planned),
        )
        return await self._directory.call_tool(
            self._agent_id, params, claim=claim, on_progress=context.report
        )

    async def _definition(self, name: str) -> ToolDefinition | None:
        tools = await self._directory.list_tools(self._agent_id)
        return next((tool for tool in tools if tool.name == name), None)

    async def read_file(self, path: str, max_bytes: int) -> FileBytes:
        """
        A whole file.

        Raises:
            AgentUnavailable: the workspace is away, or refuses; the text says why.
        """
        params = FileReadParams(path=path, max_bytes=max_bytes)
        return await self._directory.ask(
            self._agent_id, FILES_READ, params, FileBytes, timeout_s=READ_TIMEOUT_S
        )


def _timeout_of(definition: ToolDefinition | None) -> float:
    if definition is None or definition.timeout_s is None:
        return CALL_TIMEOUT_S
    return min(definition.timeout_s, MAX_TOOL_TIMEOUT_S)


def _written(call: ToolCallPart) -> list[str]:
    """Paths that a call of a file tool would write; what makes no sense is refused in the workspace."""
    arguments = call.args or {}
    match call.tool_name:
        case "write_file":
            return [str(arguments.get("path", ""))]
        case "edit_files":
            named = [*_items(arguments.get("edits")), *_items(arguments.get("files"))]
            return [str(one.get("path", "")) for one in named] or [""]
        case _:
            return []


def _items(value: object) -> list[dict[str, Any]]:
    if isinstance(value, str):
        # Some models write an array as a text that holds one.
        with suppress(ValueError):
            value = json.loads(value)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
