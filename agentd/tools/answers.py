"""Results of the workspace's own tools: data for the model, or one sentence about what went wrong."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from agentd.errors import AgentError
from agentd.tools.registry import Tool
from agentd.wire.content import TextContent, ToolDefinition, ToolResult
from agentd.wire.link import ToolCallParams

__all__ = ["Arguments", "data_tool", "describe_problem", "error_result"]


class Arguments(BaseModel):
    """What a tool takes; unknown names are errors, so that a misspelt option is not ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")


ArgumentsT = TypeVar("ArgumentsT", bound=BaseModel)


def data_tool(
    name: str,
    description: str,
    arguments: type[ArgumentsT],
    run: Callable[[ArgumentsT, ToolCallParams], Awaitable[dict[str, Any]]],
    *,
    timeout_s: float | None = None,
    runs_once: bool = False,
    reads_only: bool = False,
) -> Tool:
    """A tool whose result is data; bad arguments and typed errors become results with *is_error*."""

    async def answer(call: ToolCallParams) -> ToolResult:
        try:
            given = arguments.model_validate(call.arguments)
        except ValidationError as exc:
            return error_result(describe_problem(exc))
        try:
            return ToolResult(structured=await run(given, call))
        except AgentError as exc:
            return error_result(str(exc), exc.code)

    definition = ToolDefinition(
        name=name,
        description=description,
        input_schema=arguments.model_json_schema(),
        timeout_s=timeout_s,
        reads_only=reads_only,
    )
    return Tool(definition=definition, run=answer, runs_once=runs_once)


def error_result(text: str, code: str | None = None) -> ToolResult:
    """One sentence for the model; *code* for programs."""
    structured = {"error": text, "error_code": code} if code is not None else None
    return ToolResult(content=(TextContent(text=text),), is_error=True, structured=structured)


def describe_problem(exc: ValidationError) -> str:
    """The first problems of a validation, in one line each."""
    every = exc.errors(include_url=False, include_input=False)
    # A tuple whose item is wrong is also called too short; only the item's problem is true.
    problems = [p for p in every if not any(_is_below(q["loc"], p["loc"]) for q in every)][:3]
    return "\n".join(
        f"{'.'.join(str(step) for step in p['loc']) or 'arguments'}: {p['msg']}" for p in problems
    )


def _is_below(inner: tuple[int | str, ...], outer: tuple[int | str, ...]) -> bool:
    return len(inner) > len(outer) and inner[: len(outer)] == outer
