"""
The first turn's gate: a chat whose workspace has yet to tell its context waits for it, a little.

It gives up at once where nothing will come. Why it went without is remembered, so that
later turns don't wait again; a later push pins the chat all the same.
"""

import asyncio
from collections.abc import Sequence

import sqlalchemy as sa
import structlog

from chatd.context.render import render_context
from chatd.loop.prompts import system_prompt
from chatd.prompt.assemble import insert_system, system_texts
from chatd.store import deployment, pins
from chatd.tools.policy import plan_path
from chatd.wire import Message
from chatd.worker.services import Services

__all__ = ["system_of", "wait_pinned"]

log = structlog.get_logger("chatd.context")


async def wait_pinned(services: Services, chat: sa.RowMapping) -> None:
    """
    Wait until the chat has a pin, if it may get one; at most ``context_gate_s``.

    Cancellation: nothing is remembered; the next turn waits again.
    """
    is_hopeless = chat["agent_id"] is None or chat["context_error"] is not None
    if pins.is_pinned(chat) or is_hopeless or not services.settings.context_push:
        return
    limit_s = services.settings.context_gate_s
    reason: str | None = f"the workspace did not tell its instructions and skills within {limit_s:g} s"
    try:
        async with asyncio.timeout(limit_s):
            reason = await _until_pinned(services, chat)
    except TimeoutError:
        pass
    if reason is not None:
        log.info(
            "chat goes without context", action="context_missing", chat_id=str(chat["id"]), reason=reason
        )
        await services.pins.record_failure(chat["id"], reason)


async def _until_pinned(services: Services, chat: sa.RowMapping) -> str | None:
    """None once it is pinned; else why it never will be."""
    with services.hub.watch_chat(chat["id"]) as subscription:
        while True:
            # A push pins it too, but one may have come before the chat could be seen.
            if pins.is_pinned(await services.pins.pin_unpinned(chat["id"])):
                return None
            match await services.directory.pushes_context(chat["agent_id"]):
                case None:
                    return "the workspace was not connected"
                case False:
                    return "the workspace's agentd does not push its context"
                case True:
                    await subscription.wait()


async def system_of(services: Services, row: sa.RowMapping, messages: Sequence[Message]) -> str:
    """What heads every prompt of the chat: instructions, the workspace's, its system messages."""
    is_planning = row["plan_mode"] is not None
    instructions = system_prompt(
        mode=row["mode"],
        is_child=row["parent_chat_id"] is not None,
        plan_path=plan_path(row["id"]) if is_planning else None,
    )
    if is_planning:
        added = await services.store.read(deployment.read_setting, "plan-mode-instructions")
        instructions = insert_system(instructions, added or "")
    context = await _context_block(services, row)
    return insert_system(instructions, context, *system_texts(messages))


async def _context_block(services: Services, chat: sa.RowMapping) -> str:
    """What the system prompt says of the workspace's instructions and skills; empty for none."""
    is_hopeless = chat["agent_id"] is None or chat["context_error"] is not None
    if is_hopeless and not pins.is_pinned(chat):
        return ""
    pin = await services.store.read(pins.read_pin, chat["id"])
    return render_context(pin.resources, pin.environment)
