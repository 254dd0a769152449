"""
Conditions of a call: what must hold on the screen, or the rest of the actions is not done.

Belongs to the thread of its display. A tripwire is looked at just before an action; what changes
between that look and the action is not seen.
"""

from collections.abc import Sequence

import numpy as np

from computer.display import Display
from computer.errors import InvalidAction, TripwireTripped
from computer.geometry import Rect, Scale
from computer.pixels import Framebuffer
from computer.wire import RegionTripwire, TitleTripwire, Tripwire

__all__ = ["Tripwires"]


class Tripwires:
    """The tripwires of one call; *scale* is that of its coordinates."""

    def __init__(self, display: Display, wires: Sequence[Tripwire], scale: Scale) -> None:
        self._display = display
        self._scale = scale
        self._texts = tuple(wire.text for wire in wires if isinstance(wire, TitleTripwire))
        self._wires = tuple(wire for wire in wires if isinstance(wire, RegionTripwire))
        self._regions: list[tuple[RegionTripwire, Rect, Framebuffer]] = []

    def begin(self) -> None:
        """
        Keep how the regions look now.

        Raises:
            OutOfBounds, InvalidAction: a region leaves the screen, or is empty.
            InvalidAction: this display does not know titles.
        """
        if self._texts and self._display.active_title() is None:
            raise InvalidAction("this display does not tell window titles; leave that tripwire out")
        for wire in self._wires:
            region = self._scale.region_to_native(*wire.region)
            self._regions.append((wire, region, self._display.read_pixels(region)))

    def check(self) -> None:
        """
        See that everything holds.

        Raises:
            TripwireTripped: something does not; the sentence says what.
            OutOfBounds: the screen has shrunk below a region.
        """
        if self._texts:
            title = self._display.active_title() or ""
            for text in self._texts:
                if text not in title:
                    msg = f"the active window is {title!r}, whose title does not hold {text!r}"
                    raise TripwireTripped(msg)
        for wire, region, before in self._regions:
            if not np.array_equal(self._display.read_pixels(region)[..., :3], before[..., :3]):
                msg = f"the region {list(wire.region)} has changed since the call began"
                raise TripwireTripped(msg)
