"""The ``computer`` tool: canonical actions on the main desktop."""

from typing import Any

from pydantic import ValidationError

from agentd.desktops import Desktops
from agentd.tools.registry import Tool
from agentd.wire.content import ContentBlock, ImageContent, TextContent, ToolDefinition, ToolResult
from computer.errors import ComputerError
from computer.wire import ComputerCall, ComputerResult

__all__ = ["computer_tool", "describe_problem", "to_tool_result"]

DESCRIPTION = (
    "See and touch this workspace's desktop. Give actions in order; the first failure stops the rest "
    "and one screenshot is taken at the end."
)


def computer_tool(desktops: Desktops) -> Tool:
    """The tool, bound to the daemon's desktops."""

    async def run(arguments: dict[str, Any]) -> ToolResult:
        try:
            call = ComputerCall.model_validate(arguments)
        except ValidationError as exc:
            return _error(describe_problem(exc))
        try:
            return to_tool_result(await desktops.get().perform(call))
        except ComputerError as exc:
            return _error(str(exc))

    definition = ToolDefinition(
        name="computer",
        description=DESCRIPTION,
        input_schema=ComputerCall.model_json_schema(),
        origin="desktop",
    )
    return Tool(definition=definition, run=run)


def to_tool_result(result: ComputerResult) -> ToolResult:
    """Content blocks for the model: sentences first, then the picture."""
    lines = [report.output for report in result.reports]
    warnings = [report.warning for report in result.reports if report.warning] + list(result.warnings)
    lines += [f"Warning: {warning}" for warning in dict.fromkeys(warnings)]
    if result.error is not None:
        lines.append(f"Failed: {result.error}")
    blocks: list[ContentBlock] = [TextContent(text="\n".join(lines))] if lines else []
    if result.screenshot is not None:
        blocks.append(ImageContent(data=result.screenshot.data, mime_type=result.screenshot.media_type))
    structured = result.model_dump(mode="json", exclude={"screenshot": {"data"}})
    return ToolResult(content=tuple(blocks), is_error=result.error is not None, structured=structured)


def describe_problem(exc: ValidationError) -> str:
    """The first problems of a validation, in one line each."""
    every = exc.errors(include_url=False, include_input=False)
    # A tuple whose item is wrong is also called too short; only the item's problem is true.
    problems = [p for p in every if not any(_is_below(q["loc"], p["loc"]) for q in every)][:3]
    return "\n".join(
        f"{'.'.join(str(step) for step in p['loc']) or 'arguments'}: {p['msg']}" for p in problems
    )


def _error(text: str) -> ToolResult:
    return ToolResult(content=(TextContent(text=text),), is_error=True)


def _is_below(inner: tuple[int | str, ...], outer: tuple[int | str, ...]) -> bool:
    return len(inner) > len(outer) and inner[: len(outer)] == outer
