"""
Ask the person.

While a plan is made the turn ends with a question. On the page, if that is tried out, the agent goes on
meanwhile: the question has an id of its own then, since vendors use ids of calls again, and the whole result
is small enough for any model's budget, so that the id is never cut off.
"""

import json
import uuid
from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from chatd.prompt.truncation import MIN_BUDGET_BYTES
from chatd.provider.protocol import FunctionTool
from chatd.tools.arguments import describe
from chatd.tools.toolset import CallContext, LocalTool, ToolOutcome, Toolset, error_outcome
from chatd.wire import Part, ToolResultPart

__all__ = ["ASK_USER_QUESTION", "first_question", "last_question", "question_tool"]

NAME = "ask_user_question"
STATUS = (
    "The person sees this now and may answer at any time; the answer comes as their message. Go on with what "
    "does not depend on it; where all does, end your turn."
)
Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000)]


class _Arguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Option(_Arguments):
    """One answer to choose."""

    label: Words
    description: Words


class Question(_Arguments):
    """One question."""

    header: Words = Field(description="A word or two.")
    question: Words
    options: Annotated[list[Option], Field(min_length=2, max_length=4)]


class AskUserQuestion(_Arguments):
    """Ask the person."""

    questions: Annotated[list[Question], Field(min_length=1, max_length=8)]


def _definition(what_follows: str) -> FunctionTool:
    asking = (
        "Ask the person what only they can decide, with two to four options each; they may answer "
        "something else as well. "
    )
    return FunctionTool(
        name=NAME, description=asking + what_follows, input_schema=AskUserQuestion.model_json_schema()
    )


ASK_USER_QUESTION = _definition("Your turn ends with this; the answer comes as their next message.")
ASK_MEANWHILE = _definition("You go on working; the answer comes later, as their message.")


def question_tool(*, meanwhile: bool) -> LocalTool:
    """The tool; *meanwhile*: the turn goes on."""

    async def ask(context: CallContext) -> ToolOutcome:
        call = context.call
        try:
            wish = AskUserQuestion.model_validate(call.args or {})
        except ValidationError as exc:
            return error_outcome(call, describe(exc))
        result: dict[str, object] = wish.model_dump()
        if meanwhile:
            result |= {"question_id": str(uuid.uuid4()), "status": STATUS}
            if len(json.dumps(result).encode()) > MIN_BUDGET_BYTES:
                return error_outcome(call, f"too long: at most {MIN_BUDGET_BYTES} bytes; ask less at once")
        part = ToolResultPart(tool_call_id=call.tool_call_id, tool_name=call.tool_name, result=result)
        return ToolOutcome(part=part)

    return LocalTool(definition=ASK_MEANWHILE if meanwhile else ASK_USER_QUESTION, run=ask)


def last_question(toolset: Toolset, results: Iterable[ToolResultPart]) -> str | None:
    """What the last of *results* that asks meanwhile asks first; None where nothing does."""
    tool = toolset.tools.get(NAME)
    if tool is None or tool.definition is not ASK_MEANWHILE:
        return None
    asked = [question for part in results if (question := first_question(part)) is not None]
    return asked[-1] if asked else None


def first_question(part: Part) -> str | None:
    """What a result asks first; None where it asks nothing."""
    if not isinstance(part, ToolResultPart) or part.tool_name != NAME or part.is_error:
        return None
    try:
        return AskUserQuestion.model_validate(part.result).questions[0].question
    except ValidationError:
        # A client's own tool of that name.
        return None
