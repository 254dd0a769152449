"""The daemon's tools."""

from agentd.tools.registry import Registry, Tool
from agentd.wire.content import TextContent, ToolDefinition, ToolResult
from agentd.wire.link import ToolCallParams


def _tool(name: str, origin: str = "builtin") -> Tool:
    async def run(_: ToolCallParams) -> ToolResult:
        return ToolResult(content=(TextContent(text=origin),))

    return Tool(definition=ToolDefinition(name=name, input_schema={}, origin=origin), run=run)


def test_a_source_may_change_its_tools_and_only_a_change_is_told() -> None:
    """The link asks for the list again when it is another than before."""
    registry = Registry([_tool("own")])
    told: list[tuple[str, ...]] = []
    registry.on_change = lambda: told.append(tuple(tool.name for tool in registry.definitions()))

    registry.offer("mcp", [_tool("a__b", "mcp:a")])
    registry.offer("mcp", [_tool("a__b", "mcp:a")])
    registry.offer("mcp", [])

    assert told == [("own", "a__b"), ("own",)]


def test_a_source_can_not_take_the_place_of_a_tool_of_ours() -> None:
    """The first of a name counts."""
    registry = Registry([_tool("computer", "desktop")])
    registry.offer("mcp", [_tool("computer", "mcp:evil")])

    assert registry.get("computer").definition.origin == "desktop"
