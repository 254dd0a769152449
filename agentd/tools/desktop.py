"""The ``computer`` tool: canonical actions on the desktop of the chat that asks."""

from pydantic import ValidationError

from agentd.acting import Hands, Origin
from agentd.errors import DesktopBusy, TooMany
from agentd.tools.answers import describe_problem, error_result
from agentd.tools.registry import Tool
from agentd.wire.content import ContentBlock, ImageContent, TextContent, ToolDefinition, ToolResult
from agentd.wire.link import ToolCallParams
from computer.errors import ComputerError
from computer.wire import ComputerCall, ComputerResult

__all__ = ["computer_tool", "origin_of", "to_tool_result"]

DESCRIPTION = (
    "See and touch this workspace's desktop. Give actions in order; the first failure stops the rest "
    "and one screenshot is taken at the end."
)


def computer_tool(hands: Hands, desktop: str | None = None) -> Tool:
    """The tool, performed by *hands* at *desktop*, or at the chat's own."""

    async def run(request: ToolCallParams) -> ToolResult:
        try:
            call = ComputerCall.model_validate(request.arguments)
        except ValidationError as exc:
            return error_result(describe_problem(exc))
        try:
            return to_tool_result(await hands.perform(call, origin=origin_of(request), desktop=desktop))
        except (ComputerError, DesktopBusy, TooMany) as exc:
            return error_result(str(exc), exc.code)

    async def look(request: ToolCallParams) -> tuple[ContentBlock, ...]:
        looking = {"actions": [{"action": "screenshot"}], "model_size": request.arguments.get("model_size")}
        shown = await run(request.model_copy(update={"arguments": looking}))
        return shown.content

    definition = ToolDefinition(
        name="computer",
        description=DESCRIPTION,
        input_schema=ComputerCall.model_json_schema(),
        origin="desktop",
    )
    return Tool(definition=definition, run=run, look=look)


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


def origin_of(request: ToolCallParams) -> Origin:
    """Who asks by a call of the link."""
    return Origin(
        actor=request.actor,
        chat_id=request.chat_id,
        root_chat_id=request.root_chat_id,
        call_id=request.call_id,
        vendor_call_id=request.vendor_call_id,
    )
