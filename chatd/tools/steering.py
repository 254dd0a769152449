"""
Tools by which a root chat steers agents that work already: list them, tell them something, stop them.

What is told is told once: a repeat after a crash gets the first answer.
"""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from pydantic import BaseModel, Field, ValidationError, field_validator

from chatd.constants import AGENTS_PAGE, AGENTS_PAGE_MAX
from chatd.errors import NotFound, Refused
from chatd.provider.protocol import FunctionTool
from chatd.store import requests
from chatd.store.lineage import list_children
from chatd.store.machine import ChatTx
from chatd.store.store import Store
from chatd.tools.arguments import describe, schema_of
from chatd.tools.family import NO_AGENT, Arguments, ToChat, find_agent, result_of, summary_of
from chatd.tools.toolset import CallContext, LocalTool, ToolOutcome, error_outcome
from chatd.wire import Chat, TextPart

__all__ = ["SteeringTools"]


class ListAgents(Arguments):
    """List agents."""

    limit: int = Field(default=AGENTS_PAGE, ge=1, description=f"{AGENTS_PAGE} to {AGENTS_PAGE_MAX}.")
    offset: int = Field(default=0, ge=0)

    @field_validator("limit")
    @classmethod
    def _clamped(cls, value: int) -> int:
        return min(max(value, AGENTS_PAGE), AGENTS_PAGE_MAX)


class Message(ToChat):
    """Tell an agent something."""

    message: str = Field(min_length=1, description="What it must know; it sees nothing of this conversation.")
    interrupt: bool = Field(
        default=False, description="Stop what it does now; else it reads this when it is done."
    )

    @field_validator("message")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
            msg = "must not be blank"
            raise ValueError(msg)
        return value


Wish = tuple[str, str, type[BaseModel], Callable[[CallContext, Any], Awaitable[ToolOutcome]]]


class SteeringTools:
    """The tools of one root chat."""

    def __init__(self, parent: Chat, *, store: Store) -> None:
        self._parent = parent
        self._store = store

    def tools(self) -> list[LocalTool]:
        """All of them; ``close_agent``, as histories know it, is answered but not offered."""
        interrupt = "Stop what an agent does now. It stays: message_agent gives it more to do."
        wishes: list[Wish] = [
            ("list_agents", "List the agents that you started, newest first.", ListAgents, self._list),
            (
                "message_agent",
                "Tell an agent something. It begins at once when it is at rest, else the message waits.",
                Message,
                self._message,
            ),
            ("interrupt_agent", interrupt, ToChat, self._interrupt),
            ("close_agent", interrupt, ToChat, self._interrupt),
        ]
        return [
            LocalTool(
                definition=FunctionTool(name=name, description=text, input_schema=schema_of(model)),
                run=self._guarded(model, run),
                is_hidden=name == "close_agent",
            )
            for name, text, model, run in wishes
        ]

    def _guarded(
        self, model: type[BaseModel], run: Callable[[CallContext, Any], Awaitable[ToolOutcome]]
    ) -> Callable[[CallContext], Awaitable[ToolOutcome]]:
        async def guarded(context: CallContext) -> ToolOutcome:
            try:
                return await run(context, model.model_validate(context.call.args or {}))
            except ValidationError as exc:
                return error_outcome(context.call, describe(exc))
            except NotFound:
                return error_outcome(context.call, NO_AGENT)
            except Refused as exc:
                return error_outcome(context.call, str(exc))

        return guarded

    async def _list(self, context: CallContext, wish: ListAgents) -> ToolOutcome:
        page = await self._store.read(list_children, self._parent.id, limit=wish.limit, offset=wish.offset)
        value = {
            "agents": [summary_of(chat) | {"updated_at": chat.updated_at.isoformat()} for chat in page.chats],
            "total": page.total,
            "has_more": wish.offset + len(page.chats) < page.total,
        }
        return result_of(context.call, value)

    async def _message(self, context: CallContext, wish: Message) -> ToolOutcome:
        agent = await find_agent(self._store, self._parent, wish.chat_id)
        owner_id, asked = agent.owner_id, requests.fingerprint(wish.model_dump_json())

        def send(tx: ChatTx) -> dict[str, Any]:
            known = requests.earlier_answer(tx.connection, owner_id, context.key, asked)
            if known is not None:
                return known
            self._store.admit(tx)
            is_working = tx["status"] in {"running", "requires_action"}
            tx.send((TextPart(text=wish.message),), created_by=owner_id, interrupt=wish.interrupt)
            told = {"status": tx["status"], "interrupted": wish.interrupt and is_working}
            requests.save_answer(tx.connection, owner_id, context.key, asked=asked, answer=told, now=tx.now)
            return told

        told = await self._store.transition(agent.id, send)
        return result_of(context.call, summary_of(agent) | told)

    async def _interrupt(self, context: CallContext, wish: ToChat) -> ToolOutcome:
        agent = await find_agent(self._store, self._parent, wish.chat_id)
        told = await self._stop(agent.id)
        if context.call.tool_name == "close_agent":
            told["terminated"] = True
        return result_of(context.call, summary_of(agent) | told)

    async def _stop(self, agent_id: UUID) -> dict[str, Any]:
        """Stop an agent that works; one at rest, or stopping already, is left as it is."""

        def stop(tx: ChatTx) -> dict[str, Any]:
            is_working = tx["status"] in {"running", "requires_action"}
            if is_working:
                tx.interrupt()
            return {"status": tx["status"], "interrupted": is_working}

        return await self._store.transition(agent_id, stop)
