"""Tools of the workspace's MCP servers."""

from collections.abc import Callable

from agentd.tools.registry import Tool
from agentd.wire.content import TextContent, ToolDefinition, ToolResult
from agentd.wire.link import ToolCallParams
from mcp_bridge.bridge import Bridge
from mcp_bridge.errors import BridgeError
from mcp_bridge.wire import BridgedTool

__all__ = ["mcp_tools"]


def mcp_tools(bridge: Bridge, tell: Callable[[str, str], None]) -> list[Tool]:
    """
    Every tool that the bridge offers now; a call finds the server of the moment.

    *tell* hears of each call's progress: its id, and what the server says of it.
    """
    return [_tool(bridge, tool, tell) for tool in bridge.tools()]


def _tool(bridge: Bridge, tool: BridgedTool, tell: Callable[[str, str], None]) -> Tool:
    async def run(request: ToolCallParams) -> ToolResult:
        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            count = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
            tell(request.call_id, f"{count}: {message}" if message else count)

        try:
            outcome = await bridge.call(tool.name, request.arguments, on_progress=progressed)
        except BridgeError as exc:
            return ToolResult(
                content=(TextContent(text=str(exc)),), is_error=True, structured={"code": exc.code}
            )
        return ToolResult.model_validate(outcome.model_dump(by_alias=True))

    definition = ToolDefinition(
        name=tool.name,
        description=tool.description or tool.title or "",
        input_schema=tool.input_schema,
        origin=f"mcp:{tool.server}",
    )
    return Tool(definition=definition, run=run)
