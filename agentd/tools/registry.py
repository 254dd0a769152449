"""The daemon's tools by name."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from agentd.errors import NotFound
from agentd.wire.content import ContentBlock, ToolDefinition, ToolResult
from agentd.wire.link import ToolCallParams

__all__ = ["Registry", "Tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """
    A definition and what runs it.

    *run* gets the whole call (arguments, call id, chat); failures the model should read are
    results with *is_error*. *look* shows what there is to see where nobody knows what a call did.
    *runs_once*: the tool knows a call id again by itself, beyond the life of this daemon; it is asked
    where the ledger of calls does not know.
    """

    definition: ToolDefinition
    run: Callable[[ToolCallParams], Awaitable[ToolResult]]
    look: Callable[[ToolCallParams], Awaitable[tuple[ContentBlock, ...]]] | None = None
    runs_once: bool = False


class Registry:
    """
    Tools in registration order; names are unique, the first one counts.

    Sources (the MCP servers) may offer theirs later and change them; ``on_change`` is told.
    """

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._own = tuple(tools)
        self._sources: dict[str, tuple[Tool, ...]] = {}
        self._tools: dict[str, Tool] = {}
        self.on_change: Callable[[], None] = lambda: None
        self._index()

    def offer(self, source: str, tools: Iterable[Tool]) -> None:
        """Make the tools of *source* these; those that it offered before go."""
        before = self.definitions()
        self._sources[source] = tuple(tools)
        self._index()
        if self.definitions() != before:
            self.on_change()

    def _index(self) -> None:
        self._tools = {}
        for tool in (*self._own, *(tool for tools in self._sources.values() for tool in tools)):
            self._tools.setdefault(tool.definition.name, tool)

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
