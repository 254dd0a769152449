"""How a WebSocket that carries RFB is asked for, the same at both daemons. Pure."""

from collections.abc import Mapping

__all__ = ["ALIVE", "SUBPROTOCOL", "upgrade_trouble"]

SUBPROTOCOL = "binary"
# Payload of the pings by which a daemon asks whether a viewer is there. Whoever carries its stream on hands
# them on, and the answers back: that a relay lives says nothing of the viewer. Others are each hop's own.
ALIVE = b"agentd: alive?"
_HINT = "this route is a WebSocket that carries RFB; connect a VNC client such as noVNC, or `agentd vnc`"


def upgrade_trouble(headers: Mapping[str, str]) -> str | None:
    """
    Why a request with *headers* gets no stream of RFB; None: it may have one.

    Clients name the subprotocol ``binary`` or none; bytes in any other clothes would be misread.
    """
    if headers.get("Upgrade", "").lower() != "websocket":
        return _HINT
    offered = [name.strip() for name in headers.get("Sec-WebSocket-Protocol", "").split(",") if name.strip()]
    if offered and SUBPROTOCOL not in offered:
        return f"RFB travels in binary frames: the subprotocol is {SUBPROTOCOL!r} or none, not {offered[0]!r}"
    return None
