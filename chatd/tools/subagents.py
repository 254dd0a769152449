"""
Sub-agents: chats that a root chat starts and waits for. Depth is one.

A spawn is named by its call, so a repeat after a crash finds the child it made.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field, ValidationError, field_validator

from chatd.constants import WAIT_AGENT_BLIND_S, WAIT_AGENT_POLL_S
from chatd.errors import BadRequest, ChatdError, NotFound
from chatd.model_wire import OverrideContext, ReasoningEffort
from chatd.provider.catalog import Catalog
from chatd.provider.protocol import FunctionTool
from chatd.store import queries
from chatd.store.store import NewChat, Store, derive_title
from chatd.stream.hub import Hub, Subscription
from chatd.tools.arguments import describe, schema_of
from chatd.tools.choosing import ModelChoice, choose_model, preferred_model
from chatd.tools.family import (
    NO_AGENT,
    Arguments,
    ToChat,
    find_agent,
    is_busy,
    progress_of,
    result_of,
    summary_of,
)
from chatd.tools.recording import ChildFilm, Filming
from chatd.tools.toolset import CallContext, LocalTool, ToolOutcome, error_outcome
from chatd.wire import Chat, ChatMode, TextPart, ToolCallPart, ToolResultPart

__all__ = ["SubagentTools"]

MODES: dict[str, ChatMode | None] = {"general": None, "explore": "explore", "computer_use": "computer_use"}
# Seconds a single wait may take, whatever the model asks for.
MAX_WAIT_S = 3600.0
# Seconds that a film which is about to begin when the wait ends may still take.
FILM_GRACE_S = 5.0
# Above every id of a message.
MAX_ID = 2**62


class SpawnComputerUse(Arguments):
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

    type: Literal["general", "explore", "computer_use"] = "general"
    model_config_id: str | None = Field(
        default=None,
        max_length=200,
        description="Another model, by id, provider:model or name; not for computer_use.",
    )
    reasoning_effort: ReasoningEffort | None = Field(
        default=None, description="How hard it thinks, if its model offers that; not for computer_use."
    )


class Wait(ToChat):
    """Wait for an agent."""

    timeout_seconds: float | None = Field(default=None, gt=0)


class SubagentTools:
    """
    The tools of one root chat.

    Args:
        desktop_model: of agents that work at the desktop; None: the chat's.
    """

    def __init__(
        self,
        parent: Chat,
        *,
        store: Store,
        catalog: Catalog,
        hub: Hub,
        wait_timeout_s: float,
        filming: Filming | None = None,
        desktop_model: str | None = None,
    ) -> None:
        self._parent = parent
        self._desktop_model = desktop_model
        self._store = store
        self._catalog = catalog
        self._hub = hub
        self._wait_timeout_s = wait_timeout_s
        self._filming = filming

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
                    "Start an agent of a type: general works with files and commands, explore only looks, "
                    "computer_use works at the desktop. Returns its chat_id at once."
                ),
                Spawn,
                self._spawn,
            ),
            ("wait_agent", "Wait until an agent is done; returns its report.", Wait, self._wait),
        ]
        return [
            LocalTool(
                definition=FunctionTool(name=name, description=text, input_schema=schema_of(model)),
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
            return error_outcome(context.call, describe(exc))
        kind = kind or (wish.type if isinstance(wish, Spawn) else "general")
        try:
            choice = await self._choice(wish, kind)
            child = await self._store.create_chat(
                NewChat(
                    owner_id=self._parent.owner_id,
                    agent_id=self._parent.agent_id,
                    model_config_id=choice.model_config_id,
                    reasoning_effort=choice.effort,
                    parent=self._parent,
                    mcp_server_ids=self._parent.mcp_server_ids,
                    mode=MODES[kind],
                    client_type=self._parent.client_type,
                    plan_mode=None if kind == "explore" else self._parent.plan_mode,
                    title=(wish.title or "").strip()[:80] or derive_title(wish.prompt),
                    content=(TextPart(text=wish.prompt),),
                    spawn_key=context.key,
                )
            )
        except ChatdError as exc:
            return error_outcome(context.call, str(exc))
        return result_of(context.call, summary_of(child))

    async def _choice(self, wish: SpawnComputerUse, kind: str) -> ModelChoice:
        """
        The model of an agent: what was asked for, else what its owner prefers, else its parent's.

        Raises:
            BadRequest: there is no such model or effort, or none at the desktop can be had so.
        """
        parent = self._parent
        inherited = ModelChoice(parent.last_model_config_id, parent.last_reasoning_effort)
        model, effort = None, None
        if isinstance(wish, Spawn):
            model, effort = wish.model_config_id, wish.reasoning_effort
        if kind == "computer_use":
            self._check_desktop(is_choosy=model is not None or effort is not None)
            return choose_model(self._catalog, inherited, model=self._desktop_model, effort=None)
        context: OverrideContext = "explore" if kind == "explore" else "general"
        preferred = await preferred_model(self._store, self._catalog, parent.owner_id, context)
        return choose_model(self._catalog, preferred or inherited, model=model, effort=effort)

    def _check_desktop(self, *, is_choosy: bool) -> None:
        if self._parent.plan_mode is not None:
            raise BadRequest("no agent works at the desktop while a plan is made")
        if self._parent.agent_id is None:
            raise BadRequest("this chat has no workspace, so there is no desktop to work at")
        if is_choosy:
            raise BadRequest("an agent at the desktop takes no model_config_id and no reasoning_effort")

    async def _wait(self, context: CallContext) -> ToolOutcome:
        try:
            wish = Wait.model_validate(context.call.args or {})
            child = await self._child(wish.chat_id)
        except ValidationError as exc:
            return error_outcome(context.call, describe(exc))
        except NotFound:
            return error_outcome(context.call, NO_AGENT)
        timeout_s = min(wish.timeout_seconds or self._wait_timeout_s, MAX_WAIT_S)
        filming = self._filming if child.mode == "computer_use" else None
        child = await self._until_done(child, timeout_s, filming, context.report)
        if is_busy(child.status):
            return result_of(context.call, {**summary_of(child), "timed_out": True})
        film = await filming.stop(child) if filming is not None else ChildFilm()
        return await self._report(context.call, child, film)

    async def _until_done(
        self, child: Chat, timeout_s: float, filming: Filming | None, report: Callable[[str], None]
    ) -> Chat:
        starting = None
        if filming is not None and is_busy(child.status):
            starting = asyncio.create_task(filming.start(child), name=f"film {child.id}")
        try:
            return await self._until_rest(child.id, timeout_s, report)
        finally:
            # Not cancelled while it can be helped: a film that has begun must be known to have.
            if starting is not None:
                await asyncio.wait({starting}, timeout=FILM_GRACE_S)
                starting.cancel()

    async def _until_rest(self, chat_id: UUID, timeout_s: float, report: Callable[[str], None]) -> Chat:
        told = ""
        with self._hub.watch_chat(chat_id) as subscription:
            try:
                async with asyncio.timeout(timeout_s):
                    while is_busy((child := await self._child(chat_id)).status):
                        if (news := await self._progress(child)) != told:
                            report(news)
                            told = news
                        can_hear = self._hub.hears_others
                        await _wait_changed(
                            subscription, WAIT_AGENT_POLL_S if can_hear else WAIT_AGENT_BLIND_S
                        )
                    return child
            except TimeoutError:
                # It may have ended between the last look and the deadline.
                return await self._child(chat_id)

    async def _progress(self, child: Chat) -> str:
        page = await self._store.read(queries.list_messages, child.id, before_id=MAX_ID, limit=1)
        return progress_of(child, [one for one in page.messages if one.role != "user"])

    async def _child(self, chat_id: UUID) -> Chat:
        return await find_agent(self._store, self._parent, chat_id)

    async def _report(self, call: ToolCallPart, child: Chat, film: ChildFilm) -> ToolOutcome:
        report = await self._store.read(queries.last_answer, child.id)
        value = {**summary_of(child), "report": report, **film.fields}
        if child.status != "error":
            return replace(result_of(call, value), files=film.files)
        error = child.last_error
        value |= {
            "error": error.message if error else "the agent failed",
            "kind": error.kind if error else "generic",
            "detail": error.detail if error else None,
            "retryable": error is not None and error.retryable,
        }
        part = ToolResultPart(
            tool_call_id=call.tool_call_id, tool_name=call.tool_name, result=value, is_error=True
        )
        return ToolOutcome(part=part, files=film.files)


async def _wait_changed(subscription: Subscription, limit_s: float) -> None:
    """Until the child's row changed, or for *limit_s*; its fragments are nobody's business here."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limit_s):
            while not await subscription.wait():
                continue
