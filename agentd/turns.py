"""
Whose turn it is at each desktop, where several agents share one.

There is one pointer and one screen: two agents at once would click on what the other has just opened. So
one agent has the desktop until it is done, or has not acted for a while; others wait for their turn, in the
order in which they came. Owns that order; whether a person has control is ``control``'s.

Invariant: the number of a desktop's turn grows by one whenever another agent gets it, and with nothing else.
"""

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import structlog

from agentd.errors import DesktopBusy

__all__ = ["MAX_WAITING", "WAIT_S", "Turns"]

# Calls that wait for one desktop; more are refused at once.
MAX_WAITING = 64
# Seconds that a call waits for its turn. Less than the control plane waits for a call's answer.
WAIT_S = 240.0

log = structlog.get_logger("agentd.turns")


@dataclass(slots=True)
class _Desk:
    agent: str | None = None
    number: int = 0
    running: int = 0
    used_at: float = 0.0
    is_leaving: bool = False
    waiting: deque[tuple[str, "asyncio.Future[None]"]] = field(default_factory=deque)
    timer: asyncio.TimerHandle | None = None


class Turns:
    """
    The turns at one daemon's desktops.

    Args:
        idle_s: seconds without a call after which another agent gets a desktop.
        wait_s: seconds that a call waits.
        clock: monotonic seconds.
    """

    def __init__(
        self, *, idle_s: float, wait_s: float = WAIT_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._idle_s, self._wait_s, self._clock = idle_s, wait_s, clock
        self._desks: defaultdict[str, _Desk] = defaultdict(_Desk)

    @asynccontextmanager
    async def taken(self, desktop: str, agent: str) -> AsyncIterator[int]:
        """
        Have the desktop for one call of *agent*'s, waiting for its turn; gives the turn's number.

        Raises:
            DesktopBusy: the turn did not come in time, or too many wait already.

        Cancellation: the place in the queue is given up.
        """
        desk = self._desks[desktop]
        await self._wait_for(desktop, desk, agent)
        try:
            yield desk.number
        finally:
            desk.running -= 1
            desk.used_at = self._clock()
            self._look(desktop, desk)

    def leave(self, agent: str) -> None:
        """*agent* is done: its desktops go to whoever waits, once its calls have ended."""
        for desktop, desk in self._desks.items():
            if desk.agent == agent:
                desk.is_leaving = True
                self._look(desktop, desk)

    def close(self) -> None:
        """End every time-out; whoever waits goes on waiting, until its call is cancelled."""
        for desk in self._desks.values():
            if desk.timer is not None:
                desk.timer.cancel()

    async def _wait_for(self, desktop: str, desk: _Desk, agent: str) -> None:
        if desk.agent == agent and not desk.is_leaving:
            desk.running += 1
            return
        if len(desk.waiting) >= MAX_WAITING:
            raise DesktopBusy(f"{MAX_WAITING} calls wait for this desktop already")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        desk.waiting.append((agent, turn))
        self._look(desktop, desk)
        try:
            async with asyncio.timeout(self._wait_s):
                await asyncio.shield(turn)
        except TimeoutError:
            self._give_up(desktop, desk, agent, turn)
            msg = (
                f"another agent works at this desktop and was not done within {self._wait_s:g} s; nothing "
                "was done. Try again, or report that the desktop was busy."
            )
            raise DesktopBusy(msg) from None
        except asyncio.CancelledError:
            self._give_up(desktop, desk, agent, turn)
            raise

    def _give_up(self, desktop: str, desk: _Desk, agent: str, turn: "asyncio.Future[None]") -> None:
        if turn.done():
            # It came at the same moment.
            desk.running -= 1
            self._look(desktop, desk)
            return
        with suppress(ValueError):
            desk.waiting.remove((agent, turn))

    def _look(self, desktop: str, desk: _Desk) -> None:
        """Hand the desktop on if it is free; else look again when it may be."""
        if desk.timer is not None:
            desk.timer.cancel()
            desk.timer = None
        if desk.running or not desk.waiting:
            return
        left_s = desk.used_at + self._idle_s - self._clock()
        if desk.agent is not None and not desk.is_leaving and left_s > 0:
            desk.timer = asyncio.get_running_loop().call_later(left_s, self._look, desktop, desk)
            return
        self._hand_on(desktop, desk)

    def _hand_on(self, desktop: str, desk: _Desk) -> None:
        """To the one that waits longest, with all its calls."""
        agent = desk.waiting[0][0]
        if agent != desk.agent:
            desk.number += 1
            log.info("turn at a desktop", action="turn", desktop=desktop, chat_id=agent, number=desk.number)
        desk.agent, desk.is_leaving = agent, False
        others: deque[tuple[str, asyncio.Future[None]]] = deque()
        for waiting, turn in desk.waiting:
            if waiting != agent:
                others.append((waiting, turn))
            elif not turn.done():
                turn.set_result(None)
                desk.running += 1
        desk.waiting = others
