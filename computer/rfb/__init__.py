"""
RFB 3.8 without any I/O: the client's side, and what others' clients send.

Bytes go in, events and bytes to send come out. Owns the grammar, the limits and the picture;
not the socket, not the waiting. What a server may not send ends in ``RfbProtocolError``.
``viewer`` reads the messages of somebody else's viewer, ``roles`` decides which of them pass.

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
