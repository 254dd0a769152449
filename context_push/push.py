"""
Pushes snapshots over one connection: the current one, then one after each change.

Owns retrying and versions; knows no link: it sends through the function it is given.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Literal

import structlog

from context_push.discover import operating_system
from context_push.errors import PushRefused, PushUnavailable
from context_push.manager import ContextManager, LastPush, Snapshot
from context_push.wire.push import ContextPush, PushAnswer, push_problem

__all__ = ["RETRY_FIRST_S", "RETRY_MAX_S", "Pusher", "Send"]

# Seconds before the first retry of a push that could not be taken now; doubled up to the last.
RETRY_FIRST_S = 0.25
RETRY_MAX_S = 30.0

Send = Callable[[ContextPush], Awaitable[PushAnswer]]
log = structlog.get_logger("context_push.push")


class Pusher:
    """One connection's pushes."""

    def __init__(
        self,
        manager: ContextManager,
        send: Send,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._manager = manager
        self._send = send
        self._sleep = sleep
        self._os = operating_system()[:200]
        self._is_initial = True

    async def run(self) -> None:
        """
        Push for as long as the connection lives; returns when the control plane takes no pushes.

        *send* raises ``PushUnavailable`` for what may work later and ``PushRefused`` for
        what never will. A push that is not accepted is not tried again; the next change is.
        """
        version = 0
        while True:
            snapshot = await self._manager.wait_newer(version)
            try:
                version = await self._push(snapshot)
            except PushRefused as exc:
                self._tell(snapshot.version, "refused", str(exc))
                log.info("pushes are not taken", action="push_refused", reason=str(exc))
                return

    async def _push(self, snapshot: Snapshot) -> int:
        """Push until it is answered, always what is newest; the version that was answered."""
        delay_s = RETRY_FIRST_S
        while True:
            push = self._push_of(snapshot)
            problem = await asyncio.to_thread(push_problem, push)
            if problem is not None:
                self._tell(push.version, "rejected", problem)
                log.error("a push would be refused", action="push_problem", reason=problem)
                return snapshot.version
            try:
                answer = await self._send(push)
            except PushUnavailable as exc:
                self._tell(push.version, "waiting", str(exc))
                log.info("push failed", action="push_retry", reason=str(exc), delay_s=delay_s)
                await self._sleep(delay_s)
                delay_s = min(delay_s * 2, RETRY_MAX_S)
                snapshot = self._manager.snapshot
                continue
            self._tell(push.version, "accepted" if answer.accepted else "rejected", answer.reason)
            if answer.accepted:
                self._is_initial = False
            else:
                log.warning("push not accepted", action="push_rejected", reason=answer.reason)
            return snapshot.version

    def _tell(
        self, version: int, outcome: Literal["accepted", "rejected", "refused", "waiting"], reason: str | None
    ) -> None:
        self._manager.last_push = LastPush(
            version=version, outcome=outcome, reason=reason, at=datetime.now(UTC)
        )

    def _push_of(self, snapshot: Snapshot) -> ContextPush:
        return ContextPush(
            version=snapshot.version,
            aggregate_hash=snapshot.aggregate_hash,
            resources=snapshot.resources,
            initial=self._is_initial,
            snapshot_error=snapshot.error,
            os=self._os,
            directory=self._manager.sources.working_dir[:4096],
        )
