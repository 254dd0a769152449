"""An agent at the desktop that has come to rest leaves it to others."""

import sqlalchemy as sa
import structlog

from agentd.wire.link import DESKTOP_LEAVE, DesktopLeaveParams, Empty
from chatd.errors import AgentUnavailable
from chatd.worker.services import Services

__all__ = ["leave_desktop"]

# Seconds. Where nobody is told, others get the desktop when it was not used for a while.
TELL_S = 5.0

log = structlog.get_logger("chatd.runner")


async def leave_desktop(services: Services, row: sa.RowMapping) -> None:
    """Tell the workspace of the chat of *row*, if it is an agent at the desktop; best effort."""
    if row["mode"] != "computer_use" or row["agent_id"] is None:
        return
    params = DesktopLeaveParams(chat_id=str(row["id"]))
    try:
        await services.directory.ask(row["agent_id"], DESKTOP_LEAVE, params, Empty, timeout_s=TELL_S)
    except AgentUnavailable as exc:
        log.info("desktop not left", action="leave_failed", chat_id=str(row["id"]), reason=str(exc))
