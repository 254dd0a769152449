"""
Control of the daemon's desktops: who has it, who was just refused, who must let go.

Owns the leases, the time-outs and the order of a change: whoever loses control is told first, then
what is held is released, then the new holder may act. The rules are in ``lease``.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field

import structlog

from agentd.desktops import Desktops, Use
from agentd.errors import AgentError, ControlHeld, NotInControl
from agentd.lease import Lease, Party, Verdict
from agentd.wire.control import ControlState
from computer.errors import ComputerError
from computer.wire import ComputerCall, ComputerResult, DesktopStatus, ScreenshotAction

__all__ = ["HELD", "LOOK_FIRST", "Control", "touches"]

# Actions that only look; everything else is input.
LOOKING = frozenset({"screenshot", "zoom", "cursor_position", "get_clipboard", "wait", "wait_settled"})
# Seconds until a seat whose last connection ended loses control: a page that reloads is back by then.
AWAY_S = 10.0
# Agents whose last sight of a desktop is remembered; the oldest is forgotten, and may act unseen once.
MAX_SEEN = 256
HELD = "control_held"
LOOK_FIRST = "control_changed"
ANOTHER_AGENT = (
    "another agent worked at this desktop since your last picture, so nothing was done: the screen may have "
    "changed. The picture shows it as it is; it is your turn again, go on from what you see."
)

log = structlog.get_logger("agentd.control")

Perform = Callable[[ComputerCall], Awaitable[ComputerResult]]


def touches(call: ComputerCall) -> bool:
    """Whether *call* holds input, rather than only looks."""
    return any(action.action not in LOOKING for action in call.actions)


@dataclass(slots=True)
class _Desk:
    """One desktop's lease and those whom it concerns."""

    lease: Lease = field(default_factory=Lease)
    # Whose input gets through: nobody's between two holders, until what the earlier one held is released.
    effective: Party | None = None
    use: AbstractContextManager[None] | None = None
    present: Counter[str] = field(default_factory=Counter)
    left: dict[str, asyncio.TimerHandle] = field(default_factory=dict)
    timer: asyncio.TimerHandle | None = None
    listeners: list[Callable[[Party | None], None]] = field(default_factory=list)
    running: set[asyncio.Task[ComputerResult]] = field(default_factory=set)
    # Epoch and turn of what each agent saw last.
    seen: dict[str, tuple[int, int]] = field(default_factory=dict)
    releasing: asyncio.Task[None] | None = None


class Control:
    """
    The leases of one daemon.

    Args:
        desktops: whose input is released when control changes.
        idle_s: seconds without input after which a person's control ends.
        clock: monotonic seconds.
    """

    def __init__(
        self, desktops: Desktops, *, idle_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._desktops = desktops
        self._idle_s = idle_s
        self._clock = clock
        self._desks: defaultdict[str, _Desk] = defaultdict(_Desk)

    def state(self, desktop: str) -> ControlState:
        """Who has control of *desktop*."""
        lease = self._desks[desktop].lease
        holder = lease.holder
        if holder is None:
            return ControlState(epoch=lease.epoch)
        idle_s = max(0.0, lease.used_at + self._idle_s - self._clock())
        return ControlState(epoch=lease.epoch, seat=holder.seat, name=holder.name, ends_in_s=idle_s)

    def describe(self, status: DesktopStatus) -> DesktopStatus:
        """*status* with who has control."""
        holder = self._desks[status.name].lease.holder
        if holder is None:
            return status
        return status.model_copy(update={"control": holder.name, "control_seat": holder.seat})

    async def take(self, desktop: str, party: Party) -> ControlState:
        """
        Give *party* control; what the agent does meanwhile is stopped first.

        Raises:
            ControlHeld: another person has it.

        Cancellation: control is taken all the same.
        """
        desk = self._desks[desktop]
        try:
            lease = desk.lease.take(party, self._clock())
        except ControlHeld:
            log.info("control refused", action="control_refused", desktop=desktop, seat=party.seat)
            raise
        self._change(desktop, lease)
        if not desk.present[party.seat]:
            # Nobody is connected from there (yet).
            self._arm_leaving(desktop, party.seat)
        await self._settled(desk)
        return self.state(desktop)

    async def give_back(self, desktop: str, seat: str) -> ControlState:
        """
        Give the agent control again, with nothing held.

        Raises:
            NotInControl: *seat* does not have it.
        """
        self._change(desktop, self._desks[desktop].lease.give_back(seat))
        await self._settled(self._desks[desktop])
        return self.state(desktop)

    async def close(self) -> None:
        """End every time-out and every control."""
        for desktop, desk in self._desks.items():
            self._count_use(desktop, is_held=False)
            for timer in (desk.timer, *desk.left.values()):
                if timer is not None:
                    timer.cancel()
            if desk.releasing is not None:
                await asyncio.wait({desk.releasing})

    def check_free(self, desktop: str) -> None:
        """
        See that no person has control of *desktop*.

        Raises:
            ControlHeld: somebody has.
        """
        self._desks[desktop].lease.check_free()

    def touch(self, desktop: str, seat: str) -> None:
        """Input came from *seat*."""
        desk = self._desks[desktop]
        desk.lease = desk.lease.touch(seat, self._clock())

    @contextmanager
    def attached(
        self, desktop: str, seat: str, listener: Callable[[Party | None], None], *, comes_back: bool = True
    ) -> Iterator[None]:
        """
        A connection of *seat* stands while the block runs; control ends with its last.

        *listener* is called with the holder at once and after each change; it must not block.
        Whoever *comes_back*, as a page that reloads, keeps control for a moment.
        """
        desk = self._desks[desktop]
        desk.present[seat] += 1
        timer = desk.left.pop(seat, None)
        if timer is not None:
            timer.cancel()
        desk.listeners.append(listener)
        try:
            listener(desk.effective)
            yield
        finally:
            desk.listeners.remove(listener)
            desk.present[seat] -= 1
            if not desk.present[seat]:
                del desk.present[seat]
                if comes_back:
                    self._arm_leaving(desktop, seat)
                else:
                    self._leave(desktop, seat)

    async def act(
        self, desktop: str, call: ComputerCall, perform: Perform, *, actor: str | None, turn: int = 0
    ) -> ComputerResult:
        """
        Perform the agent's *call*, unless a person has control.

        Input is refused with a picture while a person has control, and once more after it was
        given back: whoever acts by pictures must have seen what the person left. *actor* names
        who acts by pictures; None where nobody looks. *turn* is the desktop's, see ``turns``:
        another agent's work changes the screen as well.
        """
        desk = self._desks[desktop]
        await self._settled(desk)
        epoch = desk.lease.epoch
        why = self._objection(desk, actor, turn) if touches(call) else None
        if why is None:
            result = await self._run(desk, call, perform)
        else:
            result = await _refuse(call, perform, why)
        if actor is not None and result.screenshot is not None:
            _remember(desk, actor, (epoch, turn))
        return result

    def _objection(self, desk: _Desk, actor: str | None, turn: int) -> tuple[str, str] | None:
        """Why the agent's input is not performed: a code, and a text for the model."""
        epoch, seen_turn = (
            (None, turn) if actor is None else desk.seen.setdefault(actor, (desk.lease.epoch, turn))
        )
        verdict = desk.lease.admit(epoch)
        if verdict is not Verdict.GO:
            return _why(verdict, desk.lease.holder)
        return None if seen_turn == turn else (LOOK_FIRST, ANOTHER_AGENT)

    async def _run(self, desk: _Desk, call: ComputerCall, perform: Perform) -> ComputerResult:
        if not touches(call):
            return await perform(call)

        async def work() -> ComputerResult:
            return await perform(call)

        task = asyncio.create_task(work(), name="agent's input")
        desk.running.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is None or current.cancelling() or not task.cancelled():
                raise
        finally:
            desk.running.discard(task)
        name = desk.lease.holder.name if desk.lease.holder is not None else "a person"
        why = f"{name} (a person) took control while this ran; what was done of it before is not known"
        return await _refuse(call, perform, (HELD, why))

    def _change(self, desktop: str, lease: Lease) -> None:
        desk = self._desks[desktop]
        before, desk.lease = desk.lease, lease
        self._arm_idle(desktop)
        if before.epoch == lease.epoch:
            return
        holder = lease.holder
        log.info(
            "control changed",
            action="control_change",
            desktop=desktop,
            epoch=lease.epoch,
            holder=holder.seat if holder else "agent",
            before=before.holder.seat if before.holder else "agent",
        )
        self._count_use(desktop, is_held=holder is not None)
        self._put_in_effect(desk, None)
        desk.releasing = asyncio.create_task(self._let_go(desktop, desk.releasing), name=f"release {desktop}")

    async def _let_go(self, desktop: str, earlier: "asyncio.Task[None] | None") -> None:
        """End what the agent does, then release what is held, by whomever."""
        if earlier is not None:
            await asyncio.wait({earlier})
        running = set(self._desks[desktop].running) if self._desks[desktop].lease.holder else set()
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        with suppress(ComputerError, AgentError):
            await self._desktops.get(desktop).release_input()
        self._put_in_effect(self._desks[desktop], self._desks[desktop].lease.holder)

    def _put_in_effect(self, desk: _Desk, holder: Party | None) -> None:
        if desk.effective == holder:
            return
        desk.effective = holder
        for listener in tuple(desk.listeners):
            listener(holder)

    async def _settled(self, desk: _Desk) -> None:
        if desk.releasing is not None:
            await asyncio.shield(desk.releasing)

    def _count_use(self, desktop: str, *, is_held: bool) -> None:
        desk = self._desks[desktop]
        if is_held and desk.use is None:
            desk.use = self._desktops.using(desktop, Use.CONTROLLING)
            desk.use.__enter__()
        elif not is_held and desk.use is not None:
            desk.use.__exit__(None, None, None)
            desk.use = None

    def _arm_idle(self, desktop: str) -> None:
        desk = self._desks[desktop]
        if desk.timer is not None:
            desk.timer.cancel()
            desk.timer = None
        if desk.lease.holder is not None:
            wait_s = max(0.0, desk.lease.used_at + self._idle_s - self._clock())
            desk.timer = asyncio.get_running_loop().call_later(wait_s, self._check_idle, desktop)

    def _check_idle(self, desktop: str) -> None:
        desk = self._desks[desktop]
        self._change(desktop, desk.lease.expire(self._clock(), self._idle_s))

    def _arm_leaving(self, desktop: str, seat: str) -> None:
        desk = self._desks[desktop]
        timer = desk.left.pop(seat, None)
        if timer is not None:
            timer.cancel()
        holder = desk.lease.holder
        if holder is not None and holder.seat == seat:
            loop = asyncio.get_running_loop()
            desk.left[seat] = loop.call_later(AWAY_S, self._leave, desktop, seat)

    def _leave(self, desktop: str, seat: str) -> None:
        desk = self._desks[desktop]
        desk.left.pop(seat, None)
        with suppress(NotInControl):
            self._change(desktop, desk.lease.give_back(seat))


def _remember(desk: _Desk, actor: str, seen: tuple[int, int]) -> None:
    desk.seen.pop(actor, None)
    desk.seen[actor] = seen
    while len(desk.seen) > MAX_SEEN:
        del desk.seen[next(iter(desk.seen))]


def _why(verdict: Verdict, holder: Party | None) -> tuple[str, str]:
    if verdict is Verdict.HELD and holder is not None:
        return HELD, (
            f"a person has control ({holder.name}), so nothing was done. The picture shows the screen now. "
            "You may look and wait; input works again once the person gives control back."
        )
    return LOOK_FIRST, (
        "a person had control until now, so nothing was done: the screen may have changed. "
        "The picture shows it as it is; you have control again, go on from what you see."
    )


async def _refuse(call: ComputerCall, perform: Perform, why: tuple[str, str]) -> ComputerResult:
    """The answer to input that was not performed: the reason, and the screen as it is."""
    look = ComputerCall(actions=(ScreenshotAction(),), model_size=call.model_size)
    seen = await perform(look)
    code, text = why
    if seen.error is not None:
        text = f"{text} (No picture: {seen.error})"
    return seen.model_copy(update={"reports": (), "error": text, "error_code": code})
