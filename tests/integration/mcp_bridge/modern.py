"""A server of the SDK that is installed, whose list of tools grows; over stdio, or HTTP at the port given."""

import sys

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("modern", version="2")


def _add(name: str) -> None:
    server.add_tool(lambda: f"{name} says hello", name=name, description="Grew.")


@server.tool()
async def grow(name: str, context: Context) -> str:  # type: ignore[type-arg]
    """Add a tool and say so."""
    _add(name)
    await context.notify_tools_changed()
    return "grown"


@server.tool()
def grow_silently(name: str) -> str:
    """Add a tool and say nothing, as a change is that comes between two streams."""
    _add(name)
    return "grown"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
