"""
How many updates a viewer has taken in, as its own messages tell.

Pure. Who asks for each update asks for the next once it has seen the last. Who gets them unasked
(continuous updates) says nothing by itself, but answers the fences that are set round them: Xvnc sets one
before and one after each, by which it measures how quick the viewer is, a broadcast one of its own after
each.

Source: rfbproto, 7.4.9 and 7.4.11; for Xvnc's fences ``VNCSConnectionST::writeRTTPing`` of TigerVNC.
"""

from computer.rfb.messages import CONTINUOUS_UPDATES
from computer.rfb.viewer import Control, FenceMessage, UpdateRequest, ViewerMessage

__all__ = ["SEEN", "Acknowledged"]

# Payloads of fences: a broadcast's after an update, and Xvnc's round one.
SEEN = b"agentd: seen"
_PING = b"\1"
_PINGS_PER_UPDATE = 2
_FENCE_HEAD = 9


class Acknowledged:
    """The count of one viewer."""

    def __init__(self) -> None:
        self._requests = self._seen = self._pings = 0
        self._is_continuous = self._has_fences = False

    @property
    def count(self) -> int | None:
        """Updates taken in; None where the viewer gets them unasked and answers no fence."""
        if self._is_continuous and not self._has_fences:
            return None
        return self._requests + self._seen + self._pings // _PINGS_PER_UPDATE

    def note(self, message: ViewerMessage) -> None:
        """Count what *message* says."""
        match message:
            case Control(raw=raw) if raw[0] == CONTINUOUS_UPDATES:
                self._is_continuous = raw[1] != 0
            case UpdateRequest(is_incremental=True) if not self._is_continuous:
                self._requests += 1
            case FenceMessage(is_reply=True, raw=raw):
                self._has_fences = True
                # In the other mode the request that follows counts.
                self._seen += self._is_continuous and raw[_FENCE_HEAD:] == SEEN
                self._pings += self._is_continuous and raw[_FENCE_HEAD:] == _PING
