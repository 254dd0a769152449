"""
Keeps one desktop up: starts it when needed, watches its members, mends or restarts it, ends it.

Owns the state and the only task that reacts to a death. It knows nothing of actions or windows.

Invariant: what was started is gone when ``stop`` returns, and before anything is started again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from computer.driver import ComputerDriver
from computer.errors import ComputerError, DisplayLost, StartFailed
from computer.session.backend import SERVER, RunningDesktop
from computer.session.process import describe_end
from computer.session.restarts import LIMIT, WINDOW_S, RestartPolicy
from computer.session.states import Event, next_state
from computer.shielding import finish
from computer.wire import DesktopState

__all__ = ["Live", "Supervisor"]

# Seconds that the server's death may be reported after that of a member it took along.
BLAME_S = 0.1
# Seconds that the server may take to die once it has closed its connections: it may write a trace first.
DYING_S = 0.5
# Seconds for a member to be mended, or for a dead desktop to be taken down.
PROGRESS_S = 30.0
# Sentences about the past that are kept until somebody acts again.
MAX_NOTICES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """A running desktop and its driver."""

    desktop: RunningDesktop
    driver: ComputerDriver
    given_up: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_usable(self) -> bool:
        """Whether the server lives and answers; asks the kernel, not the event loop."""
        return not self.driver.is_broken and self.desktop.members[SERVER].is_alive

    @property
    def is_whole(self) -> bool:
        """Whether every member lives."""
        return self.is_usable and all(watch.is_alive for watch in self.desktop.members.values())

    async def wait_given_up(self) -> None:
        """Wait until somebody gives it up."""
        await self.given_up.wait()

    def give_up(self) -> None:
        """It does not answer: have it replaced."""
        self.driver.abort()
        self.given_up.set()


class Supervisor:
    """
    One desktop over all its lives.

    Args:
        name: of the session, for its tasks.
        bring_up: starts a desktop and proves that it can be seen.
        tear_down: ends all that belongs to the session, with the desktop if there is one.
        on_change: called after each change of state; must not block.
        restarts: when to start again.
    """

    def __init__(
        self,
        name: str,
        *,
        bring_up: Callable[[], Awaitable[Live]],
        tear_down: Callable[[Live | None], Awaitable[str]],
        on_change: Callable[[], None],
        restarts: RestartPolicy | None = None,
    ) -> None:
        self._name = name
        self._bring_up = bring_up
        self._tear_down = tear_down
        self._on_change = on_change
        self._restarts = restarts or RestartPolicy()
        self._lifecycle = asyncio.Lock()
        self._starting: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        self._progress = asyncio.Event()
        self._notices: list[str] = []
        self._state: DesktopState = "stopped"
        self.live: Live | None = None
        self.error: str | None = None
        self.restart_count = 0

    @property
    def state(self) -> DesktopState:
        """State at this instant: a server whose death nobody was told of yet is not running."""
        if self._state == "running" and self.live is not None and not self.live.is_usable:
            return "starting"
        return self._state

    async def ensure(self) -> Live:
        """
        Start the desktop unless it runs; callers at the same time share one start.

        Raises:
            StartFailed: it did not come up.
            DisplayLost: it was stopped meanwhile.

        Cancellation:
            the start goes on: others may be waiting for it.
        """
        while True:
            live = self.live
            if live is None:
                await self._wait_start()
                continue
            if live.is_whole:
                return live
            if not live.is_usable:
                live.give_up()
            await self._wait_progress()
            if self._state == "stopped":
                raise DisplayLost("the desktop was stopped")

    def take_notices(self) -> tuple[str, ...]:
        """What happened since the last time that whoever acts should know; told once."""
        notices, self._notices = tuple(self._notices), []
        return notices

    def note(self, sentence: str) -> None:
        """Keep a sentence for whoever acts next."""
        self._notices = [*self._notices, sentence][-MAX_NOTICES:]

    async def stop(self) -> None:
        """End everything; harmless when repeated. Bounded by the grace of each process."""
        # Each may start the other meanwhile.
        while tasks := [task for task in (self._watching, self._starting) if task and not task.done()]:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        async with self._lifecycle:
            await self._end_live()
            self._notices = []
            self._restarts.forget()
            if self._state != "stopped":
                self._move(Event.STOP)

    async def _wait_progress(self) -> None:
        """Wait until the desktop was mended or ended; both are bounded by the grace of its processes."""
        try:
            async with asyncio.timeout(PROGRESS_S):
                await self._progress.wait()
        except TimeoutError:
            msg = f"the desktop did not come back within {PROGRESS_S:g} s"
            raise StartFailed(msg) from None

    async def _wait_start(self) -> None:
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._start(), name=f"desktop {self._name} start")
            self._starting.add_done_callback(_retrieve)
        starting = self._starting
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if starting.cancelled() and task is not None and not task.cancelling():
                raise DisplayLost("the desktop was stopped while it started") from None
            raise

    async def _start(self) -> None:
        """Start because somebody needs it: a failure is theirs to hear."""
        async with self._lifecycle:
            if self.live is not None:
                return
            self._move(Event.NEED)
            try:
                self._adopt(await self._bring_up())
            except ComputerError as exc:
                self._move(Event.GIVE_UP, str(exc))
                raise

    async def _replace(self, reason: str, tail: str) -> None:
        """End what is left of a desktop, then start it again."""
        async with self._lifecycle:
            lost = await finish(self._end_live())
        self.note(f"The desktop was restarted: {reason}. {lost}")
        await self._restart(reason, tail)

    async def _restart(self, reason: str, tail: str) -> None:
        """Start again by itself, later and later, until it is up or this is a loop."""
        while True:
            pause = self._restarts.after_death()
            if pause is None:
                msg = (
                    f"{reason}: {LIMIT} times within {WINDOW_S:g} s, so it is not started again by itself; "
                    "the next action tries once more"
                )
                error = StartFailed(msg, log_tail=tail)
                self._move(Event.GIVE_UP, str(error))
                raise error
            await asyncio.sleep(pause)
            async with self._lifecycle:
                try:
                    self._adopt(await self._bring_up())
                except ComputerError as exc:
                    reason, tail = "the desktop does not come up again", str(exc)
                    self._move(Event.LOST, str(exc))
                    continue
            self.restart_count += 1
            return

    def _adopt(self, live: Live) -> None:
        self.live = live
        for warning in live.desktop.warnings:
            self.note(warning)
        self._watching = asyncio.create_task(self._watch(live), name=f"desktop {self._name} watch")
        self._watching.add_done_callback(_retrieve)
        self._move(Event.CAME_UP)

    async def _watch(self, live: Live) -> None:
        """React to deaths for as long as this desktop lives; mend it, or replace it."""
        while True:
            await _wait_trouble(live)
            if not (live.is_usable and await self._mend(live)):
                break
            self._tick()
        live.driver.abort()
        reason, tail = _explain(live)
        self._move(Event.LOST, reason)
        self._starting = asyncio.create_task(
            self._replace(reason, tail), name=f"desktop {self._name} restart"
        )
        self._starting.add_done_callback(_retrieve)

    async def _mend(self, live: Live) -> bool:
        """Start dead members again where the desktop can do that; False when it can't."""
        dead = [role for role, watch in live.desktop.members.items() if not watch.is_alive]
        for role in dead:
            pause = self._restarts.after_death() if role in live.desktop.mendable else None
            if pause is None:
                return False
            how = describe_end(live.desktop.members[role])
            await asyncio.sleep(pause)
            try:
                await live.desktop.mend(role)
            except ComputerError:
                return False
            self.restart_count += 1
            self.note(
                f"The {role} ended {how}".rstrip()
                + " and was started again; windows are as they were, but look which one has the focus."
            )
        return live.is_usable

    async def _end_live(self) -> str:
        """End everything of the session; returns what was lost with it, as a sentence."""
        live = self.live
        if live is not None and not live.is_usable:
            live.driver.abort()
        lost = await self._tear_down(live)
        self.live = None
        self._tick()
        return lost

    def _move(self, event: Event, error: str | None = None) -> None:
        self._state, self.error = next_state(self._state, event), error
        self._on_change()

    def _tick(self) -> None:
        """Wake those who wait for the desktop to be whole, or gone."""
        self._progress.set()
        self._progress = asyncio.Event()


async def _wait_trouble(live: Live) -> None:
    """Wait until a member has ended, or somebody has given the desktop up."""
    watches = live.desktop.members
    waits = [asyncio.ensure_future(watch.wait()) for watch in (watches[SERVER], *watches.values())]
    waits.append(asyncio.ensure_future(live.wait_given_up()))
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        # A dying server closes its sockets before its death is reported: its clients seem to go first.
        await asyncio.wait(waits[:1], timeout=DYING_S if live.given_up.is_set() else BLAME_S)
    finally:
        for wait in waits:
            wait.cancel()


def _explain(live: Live) -> tuple[str, str]:
    """Why a desktop was lost, and the end of the log that may say more."""
    # The server is listed first: what dies of its death is not the cause.
    for role, watch in live.desktop.members.items():
        if not watch.is_alive:
            return f"{role} ended unexpectedly {describe_end(watch)}".rstrip(), live.desktop.log_tail(role)
    return "its X server did not answer", live.desktop.log_tail(SERVER)


def _retrieve(task: "asyncio.Task[None]") -> None:
    # Waiters got the outcome already; without any, it is in the status.
    if not task.cancelled():
        task.exception()
