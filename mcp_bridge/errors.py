"""
Errors of the bridge.

BridgeError
    Refused
        ServerNotFound
        ToolNotFound
        ConfigUnusable
        SchemaUnusable
    PeerError
        StartFailed
        ProtocolBroken
        InputRequired
    Unavailable
        ServerExited
        ServerSilent
        ServerNotReady
        SessionForgotten
        BridgeClosed
"""

__all__ = [
    "BridgeClosed",
    "BridgeError",
    "ConfigUnusable",
    "InputRequired",
    "PeerError",
    "ProtocolBroken",
    "Refused",
    "SchemaUnusable",
    "ServerExited",
    "ServerNotFound",
    "ServerNotReady",
    "ServerSilent",
    "SessionForgotten",
    "StartFailed",
    "ToolNotFound",
    "Unavailable",
]


class BridgeError(Exception):
    """Something the bridge could not do; the text says what to do, and holds no secret."""

    code = "mcp_error"


class Refused(BridgeError):
    """Our rule said no."""

    code = "refused"


class ServerNotFound(Refused):
    """No server of that name is configured."""

    code = "server_not_found"


class ToolNotFound(Refused):
    """No server offers a tool of that name."""

    code = "tool_not_found"


class ConfigUnusable(Refused):
    """A configuration file or one entry of it can't be used."""

    code = "config_unusable"


class SchemaUnusable(Refused):
    """A tool's input schema can't be offered to any model; the text says why."""

    code = "schema_unusable"


class PeerError(BridgeError):
    """The server misbehaved."""

    code = "peer_error"


class StartFailed(PeerError):
    """The server's program or address does not work."""

    code = "start_failed"


class ProtocolBroken(PeerError):
    """What the server said is not MCP, or more than we take."""

    code = "protocol_broken"


class InputRequired(PeerError):
    """The server asked for a person's or a model's input, which a call here can't give."""

    code = "input_required"


class Unavailable(BridgeError):
    """May work later."""

    code = "unavailable"


class ServerExited(Unavailable):
    """The server or its connection ended during the call, which may or may not have run."""

    code = "server_exited"


class ServerSilent(Unavailable):
    """No answer in time."""

    code = "server_silent"


class ServerNotReady(Unavailable):
    """The server is starting, or waits for its next start."""

    code = "server_not_ready"


class SessionForgotten(Unavailable):
    """The server no longer knows our session; the call did not run."""

    code = "session_forgotten"


class BridgeClosed(Unavailable):
    """The bridge is on its way out."""

    code = "bridge_closed"
