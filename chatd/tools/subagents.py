"""
Sub-agents: chats that a root chat starts and waits for. Depth is one.

A spawn is named by its call, so a repeat after a crash finds the child it made.
"""

import asyncio
import contextlib
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from chatd.errors import NotFound
from chatd.provider.protocol import FunctionTool
from chatd.store import queries
from chatd.store.rows import chat_from_row
from chatd.store.store import NewChat, Store, derive_title
from chatd.stream.hub import Hub, Subscription
from chatd.tools.toolset import CallContext, LocalTool, ToolOutcome, error_outcome, truncate
from chatd.wire import Chat, Message, TextPart, ToolCallPart, ToolResultPart

__all__ = ["SubagentTools"]

# Seconds between looks at a child when no hint comes.
POLL_S = 5.0
# Seconds a single wait may take, whatever the model asks for.
MAX_WAIT_S = 3600.0


class _Arguments(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class SpawnComputerUse(_Arguments):
    """Start an agent that works at the desktop."""

    prompt: str = Field(min_length=1, description="The whole task, with everything the agent must know.")
    title: str | None = Field(default=None, description="A few words for people.")

    @field_validator("prompt")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            msg = "must not be blank"
            raise ValueError(msg)
        return value


class Spawn(SpawnComputerUse):
    """Start an agent."""

    type: Literal["general", "computer_use"] = "general"


class Wait(_Arguments):
    """Wait for an agent."""

    chat_id: UUID
    timeout_seconds: float | None = Field(default=None, gt=0)


class SubagentTools:
    """The tools of one root chat."""

    def __init__(self, parent: Chat, *, store: Store, hub: Hub, wait_timeout_s: float) -> None:
        self._parent = parent
        self._store = store
        self._hub = hub
        self._wait_timeout_s = wait_timeout_s

    def tools(self) -> list[LocalTool]:
        """What a root chat may call."""
        rows: list[tuple[str, str, type[BaseModel], Any]] = [
            (
                "spawn_computer_use_agent",
                (
                    "Start an agent that sees and drives the workspace's desktop. "
                    "Returns its chat_id at once; call wait_agent for its report."
                ),
                SpawnComputerUse,
                self._spawn_computer_use,
            ),
            (
                "spawn_agent",
                (
                    "Start an agent of a type: general works with files and commands, computer_use at the "
                    "desktop. Returns its chat_id at once."
                ),
                Spawn,
                self._spawn,
            ),
            ("wait_agent", "Wait until an agent is done; returns its report.", Wait, self._wait),
        ]
        return [
            LocalTool(
                definition=FunctionTool(name=name, description=text, input_schema=model.model_json_schema()),
                run=run,
            )
            for name, text, model, run in rows
        ]

    async def _spawn_computer_use(self, context: CallContext) -> ToolOutcome:
        return await self._start(context, SpawnComputerUse, "computer_use")

    async def _spawn(self, context: CallContext) -> ToolOutcome:
        return await self._start(context, Spawn, None)

    async def _start(
        self, context: CallContext, model: type[SpawnComputerUse], kind: str | None
    ) -> ToolOutcome:
        try:
            wish = model.model_validate(context.call.args or {})
        except ValidationError as exc:
            return error_outcome(context.call, _problem(exc))
        kind = kind or (wish.type if isinstance(wish, Spawn) else "general")
        child = await self._store.create_chat(
            NewChat(
                owner_id=self._parent.owner_id,
                agent_id=self._parent.agent_id,
                model_config_id=self._parent.last_model_config_id,
                parent=self._parent,
                mode="computer_use" if kind == "computer_use" else None,
                title=(wish.title or "").strip()[:80] or derive_title(wish.prompt),
                content=(TextPart(text=wish.prompt),),
                spawn_key=context.key,
            )
        )
        return _result(context.call, {**_summary(child), "type": kind})

    async def _wait(self, context: CallContext) -> ToolOutcome:
        try:
            wish = Wait.model_validate(context.call.args or {})
            child = await self._child(wish.chat_id)
        except ValidationError as exc:
            return error_outcome(context.call, _problem(exc))
        except NotFound:
            return error_outcome(context.call, "this chat_id is no agent that you started")
        timeout_s = min(wish.timeout_seconds or self._wait_timeout_s, MAX_WAIT_S)
        child = await self._until_done(child.id, timeout_s)
        if _is_busy(child):
            return _result(context.call, {**_summary(child), "timed_out": True})
        return await self._report(context.call, child)

    async def _until_done(self, chat_id: UUID, timeout_s: float) -> Chat:
        with self._hub.watch_chat(chat_id) as subscription:
            try:
                async with asyncio.timeout(timeout_s):
                    while _is_busy(child := await self._child(chat_id)):
                        await _wait_changed(subscription)
                    return child
            except TimeoutError:
                # It may have ended between the last look and the deadline.
                return await self._child(chat_id)

    async def _child(self, chat_id: UUID) -> Chat:
        row = await self._store.read(queries.read_row, chat_id)
        if row["parent_chat_id"] != self._parent.id:
            raise NotFound("no such agent")
        return chat_from_row(row)

    async def _report(self, call: ToolCallPart, child: Chat) -> ToolOutcome:
        messages = await self._store.read(queries.prompt_messages, child.id)
        value = {**_summary(child), "report": truncate(_last_text(messages))}
        if child.status != "error":
            return _result(call, value)
        error = child.last_error
        value |= {
            "error": error.message if error else "the agent failed",
            "kind": error.kind if error else "generic",
        }
        part = ToolResultPart(
            tool_call_id=call.tool_call_id, tool_name=call.tool_name, result=value, is_error=True
        )
        return ToolOutcome(part=part)


async def _wait_changed(subscription: Subscription) -> None:
    """Until the child's row changed, or for ``POLL_S``; its fragments are nobody's business here."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(POLL_S):
            while not await subscription.wait():
                continue


def _is_busy(chat: Chat) -> bool:
    return chat.status in {"running", "interrupting", "requires_action"}


def _summary(chat: Chat) -> dict[str, Any]:
    return {"chat_id": str(chat.id), "title": chat.title, "status": chat.status}


def _last_text(messages: list[Message]) -> str:
    for message in reversed(messages):
        if message.role == "assistant":
            text = "\n".join(p.text for p in message.content if isinstance(p, TextPart)).strip()
            if text:
                return text
    return ""


def _result(call: ToolCallPart, value: dict[str, Any]) -> ToolOutcome:
    part = ToolResultPart(tool_call_id=call.tool_call_id, tool_name=call.tool_name, result=value)
    return ToolOutcome(part=part)


def _problem(exc: ValidationError) -> str:
    first = exc.errors(include_url=False)[0]
    return f"{'.'.join(str(step) for step in first['loc']) or 'arguments'}: {first['msg']}"
