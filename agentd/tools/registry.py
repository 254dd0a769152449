"""The daemon's tools by name."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

from agentd.errors import NotFound
from agentd.wire.content import ToolDefinition, ToolResult

__all__ = ["Registry", "Tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A definition and what runs it; failures the model should read are results with *is_error*."""

    definition: ToolDefinition
    run: Callable[[dict[str, Any]], Awaitable[ToolResult]]


class Registry:
    """Tools in registration order; names are unique."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.definition.name: tool for tool in tools}

    def definitions(self) -> tuple[ToolDefinition, ...]:
        """What ``tools/list`` answers."""
        return tuple(tool.definition for tool in self._tools.values())

    def get(self, name: str) -> Tool:
        """
        The tool called *name*.

        Raises:
            NotFound: there is none; the text lists those there are.
        """
        tool = self._tools.get(name)
        if tool is None:
            msg = f"no tool named {name!r}; this workspace has: {', '.join(self._tools) or 'none'}"
            raise NotFound(msg)
        return tool
