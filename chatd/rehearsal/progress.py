"""Where the rehearsal model's program stands, as the ids of its calls carry it. Pure."""

import re
from dataclasses import astuple, dataclass

__all__ = ["Progress"]

_MARKER = re.compile(r"rh((?:_\d{1,4}){8})(?:_|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """
    Where the program stands, as an id can carry it.

    The counters belong to the current *step*: *presses* of the terminal's key,
    *looks* since the last press or typing, whether the command was *typed*, the
    fresh terminals or echoes seen *before*, *clicks* for focus, *reruns*. *blind* counts
    answers without a picture. While a terminal is opened, *typed* says that the fresh
    one in front was marked.
    """

    step: int = 0
    presses: int = 0
    looks: int = 0
    typed: int = 0
    before: int = 0
    clicks: int = 0
    reruns: int = 0
    blind: int = 0

    @property
    def marker(self) -> str:
        """The text for a call's id."""
        return "rh" + "".join(f"_{min(number, 9_999)}" for number in astuple(self))

    @staticmethod
    def of(call_id: str) -> "Progress":
        """Read a call's id; the beginning when it is not ours."""
        match = _MARKER.search(call_id)
        if match is None:
            return Progress()
        step, presses, looks, typed, before, clicks, reruns, blind = map(int, match[1][1:].split("_"))
        return Progress(
            step=step,
            presses=presses,
            looks=looks,
            typed=typed,
            before=before,
            clicks=clicks,
            reruns=reruns,
            blind=blind,
        )
