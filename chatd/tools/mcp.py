"""
Tools of the deployment's MCP servers.

A call is claimed before it leaves: one that was begun and never answered is not made again, since
nobody knows what it did. What a server calls read-only may be asked again.
"""

import uuid

from agentd.wire.content import ToolResult
from chatd.mcp_host import McpHost
from chatd.provider.protocol import FunctionTool
from chatd.store import ledger
from chatd.store.store import Store
from chatd.tools.policy import Origin
from chatd.tools.toolset import CallContext, LocalTool, ToolOutcome, error_outcome, outcome_of
from chatd.wire import Chat
from mcp_bridge.errors import BridgeError
from mcp_bridge.wire import BridgedTool

__all__ = ["mcp_tools"]

UNKNOWN = (
    "the outcome is unknown: this call was begun before, and chatd ended before it was answered; "
    "look at what it did before you call it again"
)


async def mcp_tools(host: McpHost, chat: Chat, *, store: Store) -> list[LocalTool]:
    """What *chat* may call of the servers that it has."""
    # Exploring is like planning: a planning chat's agents may not reach more than it does.
    is_careful = chat.plan_mode is not None or chat.mode == "explore"
    offered = await host.offered(chat.mcp_server_ids, plan_mode=is_careful)
    return [_tool(host, tool, store) for _, tool in offered]


def _tool(host: McpHost, tool: BridgedTool, store: Store) -> LocalTool:
    async def is_first(context: CallContext) -> bool:
        attempt = uuid.uuid4().hex
        owner = await store.write(
            ledger.claim_call, context.chat_id, context.key, boot_id=attempt, now=store.now()
        )
        return owner == attempt

    async def run(context: CallContext) -> ToolOutcome:
        if not tool.read_only and not await is_first(context):
            return error_outcome(context.call, UNKNOWN)
        try:
            outcome = await host.call(tool.name, context.call.args or {})
        except BridgeError as exc:
            return error_outcome(context.call, str(exc))
        return outcome_of(context.call, ToolResult.model_validate(outcome.model_dump(by_alias=True)))

    definition = FunctionTool(
        name=tool.name, description=tool.description or tool.title or "", input_schema=tool.input_schema
    )
    return LocalTool(definition=definition, run=run, origin=Origin.DEPLOYMENT_MCP)
