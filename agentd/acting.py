"""
The one way in which anything acts on a desktop.

Owns who is said to have asked (``Origin``), what is kept of a secret that was typed, and the
order of what happens around a call: those who watch see it before and after. Whoever wants a desktop
to do something comes through ``Hands``: the link, the local API, the MCP server. Canonical actions are
performed; what is done to programs, windows and the screen itself is a ``Chore``.
"""

from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol, TypeVar

from agentd.control import Control
from agentd.desktops import Desktops, Use
from agentd.turns import Turns
from computer.secrets import MIN_FOUND, hide_in_result, secrets_of
from computer.session import DesktopSession
from computer.wire import ComputerCall, ComputerResult

__all__ = ["LOCAL", "Chore", "Deed", "Hands", "Origin", "Watcher", "Watching"]

T = TypeVar("T")

# Secrets of one desktop that are looked for in later results (the clipboard may hold one); the oldest
# is forgotten first.
MAX_SECRETS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """
    Who asked for an action.

    Attributes:
        actor: ``agent`` (a chat's model), ``local`` (the socket), ``mcp``, or ``person:NAME``.
        call_id: names the intention; a repeat has the same.
        root_chat_id: the chat that a person opened, where chat_id is a sub-agent's.
        vendor_call_id: the id that the model's vendor gave to the call.
    """

    actor: str = "local"
    chat_id: str | None = None
    root_chat_id: str | None = None
    call_id: str | None = None
    vendor_call_id: str | None = None


LOCAL = Origin()
# A chat's model.
AGENT = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chore:
    """
    Something done to a desktop that is no canonical action: a program opened, a window moved.

    Attributes:
        name: what it is; none of the canonical actions'.
        arguments: of JSON; what is None is left out.
    """

    name: str
    arguments: Mapping[str, object]

    def describe(self) -> dict[str, object]:
        """As one action of a log."""
        given = {name: value for name, value in self.arguments.items() if value is not None}
        return {"action": self.name, **given}


Deed = ComputerCall | Chore


class Watching(Protocol):
    """One call that is being watched."""

    async def ended(self, result: ComputerResult | None, error: BaseException | None) -> None:
        """The call gave *result* (None: it was a chore), or ended in *error*; must not raise."""


class Watcher(Protocol):
    """Sees every call on a desktop, before and after."""

    async def begin(self, desktop: str, deed: Deed, origin: Origin) -> Watching:
        """Something is about to be done; must not raise."""


class Hands:
    """
    Performs calls on the daemon's desktops.

    Args:
        desktops: all of them.
        watchers: told of each call, in this order; the last first when it has ended.
        control: whether a person has control; without it nobody ever has.
        turns: which agent acts; without it all may at once.
    """

    def __init__(
        self,
        desktops: Desktops,
        watchers: Sequence[Watcher] = (),
        *,
        control: Control | None = None,
        turns: Turns | None = None,
    ) -> None:
        self._desktops = desktops
        self._control = control
        self._turns = turns
        self._watchers = tuple(watchers)
        self._secrets: defaultdict[str, deque[str]] = defaultdict(lambda: deque(maxlen=MAX_SECRETS))

    async def perform(
        self, call: ComputerCall, *, origin: Origin = LOCAL, desktop: str | None = None
    ) -> ComputerResult:
        """
        Perform *call* for *origin* on the desktop called *desktop*, starting it first when needed.

        Without a name it is the one that the chat works at, made if there is none.

        Raises:
            NotFound: there is no such desktop.
            TooMany: another one can't be made.
            DesktopBusy: another agent has its turn there.
            ComputerError: nothing was done; see ``DesktopSession.perform``.
        """
        desktop, session = self._find(desktop, origin)
        self._remember(desktop, call)

        async with self._turn(desktop, origin) as turn:

            async def work() -> ComputerResult:
                return self._without_secrets(desktop, await self._act(desktop, session, call, origin, turn))

            return await self._watched(desktop, call, origin, work)

    async def manage(
        self,
        chore: Chore,
        work: Callable[[DesktopSession], Awaitable[T]],
        *,
        origin: Origin = LOCAL,
        desktop: str | None = None,
    ) -> T:
        """
        Do *chore* by *work* on the desktop called *desktop*, found as ``perform`` finds it.

        Raises:
            ControlHeld: a person has control: what goes away under their hands is input, too.
            NotFound, TooMany, DesktopBusy: as ``perform``.
            ComputerError: what *work* says.
        """
        name, session = self._find(desktop, origin)
        if self._control is not None:
            self._control.check_free(name)
        async with self._turn(name, origin):
            return await self._watched(name, chore, origin, lambda: work(session))

    def _turn(self, desktop: str, origin: Origin) -> AbstractAsyncContextManager[int]:
        """Its turn among the agents of chats; nobody else waits for one."""
        if self._turns is None or origin.actor != AGENT or origin.chat_id is None:
            return nullcontext(0)
        return self._turns.taken(desktop, origin.chat_id)

    def _find(self, desktop: str | None, origin: Origin) -> tuple[str, DesktopSession]:
        if desktop is not None:
            return desktop, self._desktops.get(desktop)
        name = self._desktops.name_for(origin.root_chat_id or origin.chat_id, origin.chat_id)
        return name, self._desktops.ensure(name)

    async def _watched(self, desktop: str, deed: Deed, origin: Origin, work: Callable[[], Awaitable[T]]) -> T:
        watching = [await watcher.begin(desktop, deed, origin) for watcher in self._watchers]
        result: T | None = None
        problem: BaseException | None = None
        try:
            with self._desktops.using(desktop, Use.ACTING):
                result = await work()
            return result
        except BaseException as exc:
            problem = exc
            raise
        finally:
            told = result if isinstance(result, ComputerResult) else None
            for watched in reversed(watching):
                await watched.ended(told, problem)

    async def _act(
        self, desktop: str, session: DesktopSession, call: ComputerCall, origin: Origin, turn: int
    ) -> ComputerResult:
        if self._control is None:
            return await session.perform(call)
        # The shell does not act by pictures; everybody else must have seen what a person left.
        actor = None if origin.actor == LOCAL.actor else f"{origin.actor}/{origin.chat_id}"
        return await self._control.act(desktop, call, session.perform, actor=actor, turn=turn)

    def _remember(self, desktop: str, call: ComputerCall) -> None:
        kept = self._secrets[desktop]
        kept.extend(secret for secret in secrets_of(call) if len(secret) >= MIN_FOUND and secret not in kept)

    def _without_secrets(self, desktop: str, result: ComputerResult) -> ComputerResult:
        # Single characters were quoted, if at all, by the call that typed them.
        return hide_in_result(result, self._secrets[desktop], quotes=False)
