"""
RFB 3.8, the client's side, without any I/O.

Bytes go in, events and bytes to send come out. Owns the grammar, the limits and the picture;
not the socket, not the waiting. What a server may not send ends in ``RfbProtocolError``.

Sources: RFC 6143; the RFB protocol specification of the rfbproto project for fences, the
extended clipboard, LED state and the sizes and cursors that came after the RFC.
"""

from computer.rfb.client import RfbClient
from computer.rfb.messages import (
    ClipboardOffered,
    ClipboardProvided,
    ClipboardRequested,
    CutText,
    Encoding,
    Event,
    FenceReply,
    Resized,
    Updated,
)

__all__ = [
    "ClipboardOffered",
    "ClipboardProvided",
    "ClipboardRequested",
    "CutText",
    "Encoding",
    "Event",
    "FenceReply",
    "Resized",
    "RfbClient",
    "Updated",
]
