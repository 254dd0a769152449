"""Proposing a plan."""

import base64
import uuid

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chatd.errors import AgentUnavailable, BadRequest
from chatd.provider.protocol import FunctionTool
from chatd.store.rows import NewFile
from chatd.tools.arguments import describe
from chatd.tools.attach import ReadWorkspaceFile
from chatd.tools.policy import is_plan_path, plan_path
from chatd.tools.toolset import CallContext, LocalTool, ToolOutcome, error_outcome
from chatd.wire import Chat, ToolResultPart

__all__ = ["PROPOSE_PLAN", "PlanTool"]

# Bytes of a plan: it goes into every later prompt.
MAX_PLAN_BYTES = 32 * 1024


class ProposePlan(BaseModel):
    """Show the plan to the person."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    path: str | None = Field(default=None, description="The plan's file; the one of this chat by default.")


PROPOSE_PLAN = FunctionTool(
    name="propose_plan",
    description=(
        "Show your plan to the person, who decides about it: your turn ends with this. Write it before, "
        "as Markdown, with write_file."
    ),
    input_schema=ProposePlan.model_json_schema(),
)


class PlanTool:
    """
    ``propose_plan`` of one chat whose plan is being made.

    Args:
        chat: the chat.
        read_file: reads a file of its workspace; None: it has none, so no plan can be proposed.
    """

    def __init__(self, chat: Chat, *, read_file: ReadWorkspaceFile | None) -> None:
        self._chat = chat
        self._read_file = read_file

    def tool(self) -> LocalTool:
        """Without what ends a turn: the policy knows that."""
        return LocalTool(definition=PROPOSE_PLAN, run=self._propose)

    async def _propose(self, context: CallContext) -> ToolOutcome:
        try:
            wish = ProposePlan.model_validate(context.call.args or {})
            path, text = await self._read(wish.path or plan_path(self._chat.id))
        except ValidationError as exc:
            return error_outcome(context.call, describe(exc))
        except (BadRequest, AgentUnavailable) as exc:
            return error_outcome(context.call, str(exc))
        file = NewFile(id=uuid.uuid4(), media_type="text/markdown", data=text.encode(), name="plan.md")
        result: dict[str, object] = {
            "ok": True,
            "kind": "plan",
            "path": path,
            "file_id": str(file.id),
            "media_type": file.media_type,
            "plan": text,
        }
        return ToolOutcome(part=_part(context, result), files=(file,))

    async def _read(self, path: str) -> tuple[str, str]:
        """
        Where the plan is, and its text.

        Raises:
            BadRequest, AgentUnavailable: there is none to show; the text says why.
        """
        if not is_plan_path(path, self._chat.id):
            raise BadRequest(f"the plan of this chat is {plan_path(self._chat.id)}")
        if self._read_file is None:
            raise BadRequest("this chat has no workspace, so there is no plan to show")
        found = await self._read_file(path, MAX_PLAN_BYTES)
        try:
            text = base64.b64decode(found.data).decode()
        except UnicodeDecodeError:
            raise BadRequest(f"{path} is not UTF-8 text") from None
        if not text.strip():
            raise BadRequest(f"{path} is empty; write the plan first")
        return found.path, text


def _part(context: CallContext, result: dict[str, object]) -> ToolResultPart:
    call = context.call
    return ToolResultPart(tool_call_id=call.tool_call_id, tool_name=call.tool_name, result=result)
