"""
Reading the skills that a chat is pinned to.

They come from the chat's own copy: so they are those that its prompt lists, and the
workspace may be away.
"""

import posixpath
from collections.abc import Sequence
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chatd.context.render import ok_skills, skill_text
from chatd.provider.protocol import FunctionTool
from chatd.store import pins
from chatd.store.store import Store
from chatd.tools.arguments import describe
from chatd.tools.toolset import CallContext, LocalTool, ToolOutcome, error_outcome
from chatd.wire import ToolCallPart, ToolResultPart
from context_push.wire.resources import Resource, SkillBody, SkillFile
from context_push.wire.text import sanitize

__all__ = ["SKILL_TOOLS", "SkillTools"]


class _Arguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ReadSkill(_Arguments):
    """Read a skill."""

    name: str = Field(description="The skill's name, as listed.")


class ReadSkillFile(ReadSkill):
    """Read a file that belongs to a skill."""

    path: str = Field(description="The file's path within the skill's directory.")


SKILL_TOOLS = (
    FunctionTool(
        name="read_skill",
        description="Read a skill's instructions, and which files belong to it.",
        input_schema=ReadSkill.model_json_schema(),
    ),
    FunctionTool(
        name="read_skill_file",
        description="Read a file that belongs to a skill.",
        input_schema=ReadSkillFile.model_json_schema(),
    ),
)


class SkillTools:
    """The skills of one chat."""

    def __init__(self, chat_id: UUID, *, store: Store) -> None:
        self._chat_id = chat_id
        self._store = store

    async def tools(self) -> list[LocalTool]:
        """Both tools, or none when the chat has no skills."""
        if not await self._skills():
            return []
        whole, file = SKILL_TOOLS
        return [
            LocalTool(definition=whole, run=self._read_skill),
            LocalTool(definition=file, run=self._read_skill_file),
        ]

    async def _skills(self) -> list[tuple[Resource, SkillBody]]:
        return ok_skills(await self._store.read(pins.pinned_resources, self._chat_id))

    async def _read_skill(self, context: CallContext) -> ToolOutcome:
        try:
            wish = ReadSkill.model_validate(context.call.args or {})
        except ValidationError as exc:
            return error_outcome(context.call, describe(exc))
        skills = await self._skills()
        found = _named(skills, wish.name)
        if found is None:
            return error_outcome(context.call, _unknown(wish.name, skills))
        resource, body = found
        head = [f"Skill {body.name}, in {resource.source}"]
        if body.files:
            head.append("Files, to be read with read_skill_file:")
            head += [f"- {_describe(file)}" for file in body.files]
        return _text(context.call, "\n".join(head) + "\n\n" + skill_text(body.text))

    async def _read_skill_file(self, context: CallContext) -> ToolOutcome:
        try:
            wish = ReadSkillFile.model_validate(context.call.args or {})
        except ValidationError as exc:
            return error_outcome(context.call, describe(exc))
        skills = await self._skills()
        found = _named(skills, wish.name)
        if found is None:
            return error_outcome(context.call, _unknown(wish.name, skills))
        resource, body = found
        path = posixpath.normpath(wish.path.removeprefix(f"{resource.source}/"))
        file = next((file for file in body.files if file.path == path), None)
        if file is None:
            names = ", ".join(file.path for file in body.files) or "none"
            return error_outcome(context.call, f"{body.name} has no file {wish.path!r}; there are: {names}")
        if file.text is None:
            text = f"{_describe(file)} is not kept with the chat; it is at {resource.source}/{file.path}"
            return error_outcome(context.call, text)
        return _text(context.call, sanitize(file.text))


def _named(skills: Sequence[tuple[Resource, SkillBody]], name: str) -> tuple[Resource, SkillBody] | None:
    return next((pair for pair in skills if pair[1].name == name), None)


def _unknown(name: str, skills: Sequence[tuple[Resource, SkillBody]]) -> str:
    return f"there is no skill {name!r}; there are: {', '.join(body.name for _, body in skills) or 'none'}"


def _describe(file: SkillFile) -> str:
    kept = "" if file.text is not None else ", too large or no text"
    return f"{file.path} ({file.size_bytes:,} bytes{kept})"


def _text(call: ToolCallPart, text: str) -> ToolOutcome:
    result = {"output": text}
    return ToolOutcome(
        part=ToolResultPart(tool_call_id=call.tool_call_id, tool_name=call.tool_name, result=result)
    )
