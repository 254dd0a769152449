"""
Who may touch a desktop: one lease for the agent and every person.

Pure; times are given. The agent has control unless a person took it. A wish for control is granted
or refused at once, never queued: a person always comes before the agent, never before another
person. What ends a person's control is giving it back, going away, or not using it.

Whoever acts by what it saw names the epoch in which it saw it: a picture from before somebody
else's turn is no ground to click on.

Invariant: the epoch grows by one with each change of holder, and with nothing else.
"""

from dataclasses import dataclass, replace
from enum import Enum

from agentd.errors import ControlHeld, NotInControl

__all__ = ["Lease", "Party", "Verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """
    A person at one screen.

    Attributes:
        seat: names the screen (a page, a VNC client); the same person has one for each.
        name: shown to others and to the model.
    """

    seat: str
    name: str


class Verdict(Enum):
    """What the agent's wish to act is answered with."""

    GO = "go"
    HELD = "held"
    LOOK_FIRST = "look first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """
    One desktop's lease.

    Attributes:
        holder: the person in control; None is the agent.
        used_at: seconds; when the holder last asked or touched something.
    """

    epoch: int = 1
    holder: Party | None = None
    used_at: float = 0.0

    def take(self, party: Party, now: float) -> "Lease":
        """
        The lease with *party* in control; unchanged but for its time where it is already.

        Raises:
            ControlHeld: another person has control.
        """
        if self.holder is None:
            return Lease(epoch=self.epoch + 1, holder=party, used_at=now)
        if self.holder.seat != party.seat:
            self.check_free()
        return replace(self, holder=party, used_at=now)

    def check_free(self) -> None:
        """
        See that no person has control.

        Raises:
            ControlHeld: somebody has.
        """
        if self.holder is not None:
            raise ControlHeld(f"{self.holder.name} has control of this desktop; ask for it to be given back")

    def give_back(self, seat: str) -> "Lease":
        """
        The lease with the agent in control again.

        Raises:
            NotInControl: *seat* has no control that it could give back.
        """
        if self.holder is None or self.holder.seat != seat:
            raise NotInControl("you do not have control of this desktop (any more)")
        return Lease(epoch=self.epoch + 1)

    def touch(self, seat: str, now: float) -> "Lease":
        """The lease after input of *seat*; nothing changes unless it is the holder's."""
        if self.holder is None or self.holder.seat != seat:
            return self
        return replace(self, used_at=now)

    def expire(self, now: float, idle_s: float) -> "Lease":
        """The lease without a holder that has not used it for *idle_s* seconds."""
        if self.holder is None or now < self.used_at + idle_s:
            return self
        return Lease(epoch=self.epoch + 1)

    def admit(self, seen_epoch: int | None) -> Verdict:
        """
        Whether the agent may act.

        Args:
            seen_epoch: of the last picture that it was shown; None: it does not act by pictures.
        """
        if self.holder is not None:
            return Verdict.HELD
        if seen_epoch is not None and seen_epoch != self.epoch:
            return Verdict.LOOK_FIRST
        return Verdict.GO
