"""
How one viewer wants its picture, as it last said, whoever sends that.

Pure. A viewer's stream may change hands between the desktop's server and a broadcast; each must hear what
was said to the other.
"""

from dataclasses import dataclass

from computer.geometry import Rect, Size
from computer.rfb.messages import CONTINUOUS_UPDATES, SET_PIXEL_FORMAT, render_update_request
from computer.rfb.updates import Style, parse_style
from computer.rfb.viewer import Control, Encodings, FenceMessage, UpdateRequest, ViewerMessage

__all__ = ["Wishes"]

# Where a message names its pixels, and ServerInit those of the server.
_FORMAT = slice(4, 20)


@dataclass(slots=True)
class Wishes:
    """
    One viewer's wishes.

    Args:
        init: the server's ServerInit message, which names the pixels until the viewer does.

    Attributes:
        encodings: that it understands.
        has_fences: it has answered one.
    """

    init: bytes
    encodings: tuple[int, ...] = ()
    has_fences: bool = False
    _format: bytes = b""
    _encodings: bytes = b""
    _continuous: bytes = b""
    _has_asked: bool = False

    @property
    def is_continuous(self) -> bool:
        """Whether it switched continuous updates on, and may ask for nothing any more."""
        return bool(self._continuous)

    @property
    def style(self) -> Style | None:
        """How it may be shown a broadcast; None: it wants pixels that are not made there."""
        return parse_style((self._format or self.init)[_FORMAT], self.encodings)

    def note(self, message: ViewerMessage, passed: bytes) -> None:
        """Keep what *message* says of the picture; *passed* is what a server may hear of it."""
        match message:
            case Control(raw=raw) if raw[0] == SET_PIXEL_FORMAT:
                self._format = passed
            case Control(raw=raw) if raw[0] == CONTINUOUS_UPDATES:
                self._continuous = passed if raw[1] else b""
            case Encodings(numbers=numbers):
                self.encodings, self._encodings = numbers, passed
            case UpdateRequest():
                self._has_asked = True
            case FenceMessage(is_reply=True):
                self.has_fences = True

    def replay(self, size: Size) -> bytes:
        """What a server must hear to go on for this viewer: its wishes, and one for the whole picture."""
        area = Rect(left=0, top=0, right=size.width, bottom=size.height)
        request = render_update_request(area, incremental=False) if self._has_asked else b""
        return self._format + self._encodings + request + self._continuous
