"""
How long to wait for the screen before looking at it.

Pure. The rule by which a wait ends is ``computer.display.rest``'s; here is how much patience each
kind of action deserves.
"""

from dataclasses import dataclass

from computer.actions import Effect
from computer.display import Patience
from computer.errors import InvalidAction

__all__ = ["SettleSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleSettings:
    """
    Patience in milliseconds.

    An echo is on the screen after 10 ms, a new window after 100; an action without any effect
    must not cost more than its first change is worth.

    Attributes:
        quiet_ms: without a change, after which the screen is at rest.
        long_quiet_ms: the same after actions that start something (a click, Return), where
            *is_patient* asks for it: a page that loads over a network pauses that long.
        is_patient: whether such actions get the long time.
        first_change_ms: in which an echo must begin, or there is none.
        start_first_change_ms: the same for actions that start something.
        between_first_change_ms: the same between two actions of one call, where the second needs
            what the first has started (a window to type into, a page to load).
        cap_ms: after which a wait ends though the screen changes still.

    Raises:
        InvalidAction: a time is not positive.
    """

    quiet_ms: int = 100
    long_quiet_ms: int = 400
    is_patient: bool = False
    first_change_ms: int = 100
    start_first_change_ms: int = 300
    between_first_change_ms: int = 1_000
    cap_ms: int = 3_000

    def __post_init__(self) -> None:
        times = (
            self.quiet_ms, self.long_quiet_ms, self.first_change_ms, self.start_first_change_ms,
            self.between_first_change_ms, self.cap_ms,
        )  # fmt: skip
        if min(times) < 1:
            msg = f"times to settle must be positive: {self}"
            raise InvalidAction(msg)

    def after(self, effect: Effect, *, is_within_call: bool = False) -> Patience | None:
        """Patience after an action; None where there is nothing to wait for."""
        if effect is Effect.NONE:
            return None
        first_change, quiet = self.first_change_ms, self.quiet_ms
        if effect is Effect.START:
            first_change = self.between_first_change_ms if is_within_call else self.start_first_change_ms
            quiet = self.long_quiet_ms if self.is_patient else quiet
        return Patience(first_change_s=first_change / 1_000, quiet_s=quiet / 1_000, cap_s=self.cap_ms / 1_000)

    def asked(self, quiet_s: float, timeout_s: float, pending: Effect) -> Patience:
        """
        Patience of a wait that was asked for, after an action that is still *pending*.

        A link that was clicked is drawn as clicked at once; its page may take half a second to
        begin. So what starts something is watched for ``between_first_change_ms`` at least.
        """
        least = self.between_first_change_ms / 1_000 if pending is Effect.START else 0.0
        return Patience(first_change_s=max(quiet_s, least), quiet_s=quiet_s, cap_s=timeout_s, least_s=least)
