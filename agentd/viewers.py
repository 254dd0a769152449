"""Everybody who watches the daemon's desktops: lets them in, runs their streams, tells figures of each."""

import asyncio
import itertools
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from agentd.broadcasts import Broadcasts
from agentd.control import Control
from agentd.desktops import Desktops
from agentd.errors import AgentError, ControlHeld, ShuttingDown, TooMany
from agentd.feed import Feed
from agentd.lease import Party
from agentd.relay import DesktopEnd, Ending, Relay, ViewerEnd, greet
from agentd.wire.control import ViewerFigures, ViewerGrant
from agentd.wishes import Wishes

__all__ = ["MAX_VIEWERS", "Admission", "Viewers"]

# Streams at the same time, of all desktops, also those that are about to begin. Each takes 200 kB at most.
MAX_VIEWERS = 200

log = structlog.get_logger("agentd.viewers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """A viewer that was let in and waits for its stream: run it or close it."""

    name: str
    grant: ViewerGrant
    desktop: DesktopEnd
    give_up: Callable[[], None]

    def close(self) -> None:
        """Give the place up; once more is nothing."""
        self.give_up()
        self.desktop.writer.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Viewer:
    number: int
    desktop: str
    relay: Relay
    since: datetime


class Viewers:
    """
    The viewers of one daemon.

    Args:
        desktops: what they watch.
        control: which of them may touch it.
        broadcast_from: viewers of a desktop from which on those who come share one encoder; 0: never.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        desktops: Desktops,
        control: Control,
        *,
        broadcast_from: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.desktops = desktops
        self.control = control
        self._broadcast_from = broadcast_from
        self._broadcasts = Broadcasts(desktops)
        self._clock = clock
        self._numbers = itertools.count(1)
        self._live: dict[int, _Viewer] = {}
        # Of those who are let in at the moment, wait for their stream, or have one.
        self._places: set[object] = set()
        self._asking: set[asyncio.Task[object]] = set()
        self._chores: set[asyncio.Task[object]] = set()
        self._gathering: dict[str, asyncio.Task[None]] = {}

    async def admit(self, name: str, grant: ViewerGrant) -> Admission:
        """
        Connect to the desktop called *name*, starting it first when needed.

        Raises:
            ControlHeld: the grant asks for control, and another person has it.
            TooMany: so many watch already.
            ComputerError, NotFound: there is nothing to watch.
        """
        if len(self._places) >= MAX_VIEWERS:
            msg = f"{MAX_VIEWERS} viewers watch this daemon's desktops already"
            raise TooMany(msg)
        place = object()
        self._places.add(place)
        try:
            desktop = await self._reach(name, grant)
        except BaseException:
            self._places.discard(place)
            raise
        return Admission(name=name, grant=grant, desktop=desktop, give_up=lambda: self._places.discard(place))

    async def _reach(self, name: str, grant: ViewerGrant) -> DesktopEnd:
        """The desktop's end of the stream, and control where the grant asks for it."""
        with self.desktops.viewing(name):
            session = self.desktops.get(name)
            desktop = await greet(*await session.connect_rfb())
            if grant.may == "take":
                try:
                    await self.control.take(name, _party(grant))
                except BaseException:
                    desktop.writer.close()
                    raise
        return desktop

    async def run(self, admission: Admission, end: ViewerEnd) -> Ending:
        """
        Carry *admission*'s stream over *end* until either side has enough; says which did.

        Cancellation: the stream ends as at any other end.
        """
        name, grant = admission.name, admission.grant
        number = next(self._numbers)
        wishes = Wishes(admission.desktop.init)
        relay = Relay(
            wishes=wishes,
            feed=await self._feed(admission, wishes),
            grant=grant,
            desktop=admission.desktop,
            viewer=end,
            on_input=lambda: self.control.touch(name, grant.seat),
            on_press=lambda: self._ask(name, grant),
            on_paste=lambda: self._adopt_clipboard(name),
            on_watching=lambda: self._gather(name),
            clock=self._clock,
        )
        viewer = _Viewer(number=number, desktop=name, relay=relay, since=datetime.now(UTC))
        self._live[number] = viewer
        log.info("viewer came", action="viewer_open", desktop=name, seat=grant.seat, may=grant.may)
        try:
            with (
                self.desktops.viewing(name),
                self.control.attached(
                    name,
                    grant.seat,
                    relay.control_changed,
                    # A VNC program gets a seat of its own for each connection: nobody comes back to it.
                    comes_back=grant.may != "take",
                ),
            ):
                ending = await relay.run()
        finally:
            del self._live[number]
            self._log_end(viewer)
        log.info("stream ended", action="viewer_end", desktop=name, seat=grant.seat, reason=ending.reason)
        return ending

    def figures(self, desktop: str | None = None) -> list[ViewerFigures]:
        """What each viewer of *desktop* (None: of any) has got, the longest there first."""
        return [
            _figures(viewer, self._clock())
            for viewer in self._live.values()
            if desktop is None or viewer.desktop == desktop
        ]

    async def close(self) -> None:
        """Stop asking for control in anybody's name, and showing screens."""
        tasks = [*self._asking, *self._chores]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._broadcasts.close()

    async def _feed(self, admission: Admission, wishes: Wishes) -> Feed | None:
        """A part of the broadcast, for who only watches and is not among the first."""
        name, grant = admission.name, admission.grant
        if not self._is_crowd(name, coming=1):
            return None
        if grant.may == "take" or self.control.state(name).seat == grant.seat:
            return None
        return await self._broadcasts.feed(name, wishes)

    def _is_crowd(self, name: str, *, coming: int = 0) -> bool:
        watching = sum(viewer.desktop == name for viewer in self._live.values())
        return 0 < self._broadcast_from <= watching + coming

    def _gather(self, name: str) -> None:
        """Have everybody who only watches share the broadcast, once they are enough."""
        if name in self._gathering or not self._is_crowd(name):
            return

        async def gather() -> None:
            del self._gathering[name]
            relays = [viewer.relay for viewer in self._live.values() if viewer.desktop == name]
            for relay in [relay for relay in relays if relay.can_join]:
                feed = None
                with suppress(AgentError):
                    feed = await self._broadcasts.feed(name, relay.wishes)
                if feed is None:
                    # The desktop is gone, or can't be looked at: they stay where they are.
                    return
                if relay.can_join:
                    relay.join(feed)
                else:
                    feed.close()

        task = self._gathering[name] = asyncio.create_task(gather(), name=f"broadcast for all of {name}")
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    def _ask(self, name: str, grant: ViewerGrant) -> None:
        """A press of somebody who wants control whenever it is free."""
        if grant.may != "take" or self._asking or self.control.state(name).seat is not None:
            return

        async def take() -> None:
            with suppress(ControlHeld, ShuttingDown):
                await self.control.take(name, _party(grant))

        task: asyncio.Task[object] = asyncio.create_task(take(), name=f"control for {grant.seat}")
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    def _adopt_clipboard(self, name: str) -> None:
        """What the desktop's server can't read for its viewers, it may get from us."""

        async def adopt() -> None:
            with suppress(AgentError):
                await self.desktops.get(name).adopt_clipboard()

        task: asyncio.Task[object] = asyncio.create_task(adopt(), name=f"clipboard of {name}")
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    def _log_end(self, viewer: _Viewer) -> None:
        figures = _figures(viewer, self._clock())
        log.info(
            "viewer went",
            action="viewer_close",
            **figures.model_dump(include={"desktop", "seat", "sent_bytes", "frames", "dropped"}),
        )


def _party(grant: ViewerGrant) -> Party:
    return Party(seat=grant.seat, name=grant.name)


def _figures(viewer: _Viewer, now: float) -> ViewerFigures:
    relay = viewer.relay
    dropped = relay.filter.dropped
    return ViewerFigures(
        id=viewer.number,
        desktop=viewer.desktop,
        seat=relay.grant.seat,
        name=relay.grant.name,
        may=relay.grant.may,
        role=relay.filter.role.value,
        source="server" if relay.feed is None else "broadcast",
        since=viewer.since,
        sent_bytes=relay.sent_bytes,
        received_bytes=relay.received_bytes,
        frames=relay.acknowledged.count,
        lag_ms=0.0 if relay.waiting_since is None else max(0.0, now - relay.waiting_since) * 1000,
        dropped={
            "input": dropped.input,
            "clipboard": dropped.clipboard,
            "clipboard_too_long": dropped.clipboard_too_long,
            "resize": dropped.resize,
        },
    )
