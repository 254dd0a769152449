"""
Which functions a model is told of: in a fixed order, no more than one request takes. Pure.

Ours come first, so that no number of MCP tools can take a chat's own from it.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from chatd.constants import MAX_TOOLS
from chatd.provider.protocol import FunctionTool
from chatd.tools.policy import Origin
from chatd.tools.toolset import LocalTool, Toolset

__all__ = ["MAX_TOOLS", "Offer", "by_name", "offer"]

# Who comes first. The client's tools are part of what its chat is for; among the servers those that an
# administrator chose.
ORDER = (Origin.OURS, Origin.WORKSPACE, Origin.CLIENT, Origin.DEPLOYMENT_MCP, Origin.WORKSPACE_MCP)


class Offer(NamedTuple):
    """What the model is told of, and the names of what found no room."""

    functions: tuple[FunctionTool, ...]
    left_out: tuple[str, ...]


def by_name(tools: Iterable[LocalTool]) -> dict[str, LocalTool]:
    """Tools by name, in order; of two with one name the first."""
    found: dict[str, LocalTool] = {}
    for tool in sorted(tools, key=lambda tool: ORDER.index(tool.origin)):
        found.setdefault(tool.definition.name, tool)
    return found


def offer(toolset: Toolset, client: Sequence[FunctionTool] = (), *, has_search: bool = False) -> Offer:
    """
    The functions of a request.

    Args:
        toolset: what the chat may call.
        client: those that the chat's client runs; one that is called like another is told in its place,
            since it is the client that its calls go to.
        has_search: whether the vendor's web search takes a place too, as the computer does.
    """
    of_client = {tool.name: (Origin.CLIENT, tool) for tool in client}
    ours = {
        name: (tool.origin, tool.definition) for name, tool in toolset.tools.items() if not tool.is_hidden
    }
    every = sorted((ours | of_client).values(), key=lambda one: ORDER.index(one[0]))
    functions = tuple(function for _, function in every)
    room = MAX_TOOLS - has_search - (toolset.computer is not None)
    return Offer(functions[:room], tuple(function.name for function in functions[room:]))
