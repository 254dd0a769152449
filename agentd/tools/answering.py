"""
Answer a tool call exactly once, whatever became of it.

Owns what is said where the outcome is unknown: the model must look before it goes on, so it is shown
what there is to see.
"""

from agentd.calls import CallTable, Knows
from agentd.errors import OutcomeUnknown
from agentd.tools.registry import Tool
from agentd.wire.content import ContentBlock, TextContent, ToolResult
from agentd.wire.link import ToolCallParams

__all__ = ["answer_call"]


async def answer_call(calls: CallTable, tool: Tool, call: ToolCallParams) -> ToolResult:
    """
    Run *call* with *tool*, or tell what it answered before.

    Raises:
        CallCancelled, LedgerFailed, ShuttingDown: see ``CallTable.run``.

    Cancellation:
        the run goes on; a repeat attaches to it.
    """
    try:
        return await calls.run(call, lambda: tool.run(call), knows=_who_knows(tool))
    except OutcomeUnknown as exc:
        seen: tuple[ContentBlock, ...] = await tool.look(call) if tool.look is not None else ()
        content = (TextContent(text=str(exc)), *seen)
        return ToolResult(content=content, is_error=True, structured={"code": exc.code})
    except TimeoutError:
        text = f"{call.name} did not end within {call.timeout_s:g} s and was stopped"
        return ToolResult(content=(TextContent(text=text),), is_error=True)


def _who_knows(tool: Tool) -> Knows:
    if tool.definition.reads_only:
        return Knows.NOBODY
    return Knows.TOOL if tool.runs_once else Knows.LEDGER
