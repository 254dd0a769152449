"""
Everything that can go wrong with a desktop, as one tree.

    ComputerError
        Refused                 our rule said no
            InvalidAction
            OutOfBounds
            ScreenResized
            UnknownKey
            TripwireTripped
            WallpaperUnreadable
            WindowNotFound
        PeerError               the other side misbehaved
            RfbProtocolError
        Unavailable             may work later
            DisplayLost
            CaptureTimeout
            NotConfirmed
            StartFailed
                LaunchFailed
        Misuse                  our bug
            DisplayClosed

``code`` is a stable word for programs, ``str()`` a sentence for people and models.
"""

from typing import ClassVar

__all__ = [
    "CaptureTimeout",
    "ComputerError",
    "DisplayClosed",
    "DisplayLost",
    "InvalidAction",
    "LaunchFailed",
    "Misuse",
    "NotConfirmed",
    "OutOfBounds",
    "PeerError",
    "Refused",
    "RfbProtocolError",
    "ScreenResized",
    "StartFailed",
    "TripwireTripped",
    "Unavailable",
    "UnknownKey",
    "WallpaperUnreadable",
    "WindowNotFound",
]


class ComputerError(Exception):
    """Base of all errors of this package."""

    code: ClassVar[str] = "computer_error"


class Refused(ComputerError):
    """A rule of ours said no; nothing was done."""

    code: ClassVar[str] = "refused"


class InvalidAction(Refused):
    """The action can't be carried out as it is written."""

    code: ClassVar[str] = "invalid_action"


class OutOfBounds(Refused):
    """A point or region leaves the screen."""

    code: ClassVar[str] = "out_of_bounds"


class ScreenResized(Refused):
    """The screen has another size than on the picture that the coordinates were read from."""

    code: ClassVar[str] = "screen_resized"


class UnknownKey(Refused):
    """
    A chord names a key that we don't know.

    Attributes:
        name: the part that was not understood.
        suggestion: the nearest known name, or None.
    """

    code: ClassVar[str] = "unknown_key"

    def __init__(self, name: str, suggestion: str | None = None) -> None:
        self.name = name
        self.suggestion = suggestion
        hint = f"; did you mean {suggestion!r}?" if suggestion else ""
        super().__init__(f"unknown key {name!r}{hint}")


class TripwireTripped(Refused):
    """The screen is not as the call wants it to be; what came before was done, the rest was not."""

    code: ClassVar[str] = "tripwire_tripped"


class WallpaperUnreadable(Refused):
    """The picture for the background can't be read; the message has its path."""

    code: ClassVar[str] = "wallpaper_unreadable"


class WindowNotFound(Refused):
    """No window has this id, or it has gone in the meantime."""

    code: ClassVar[str] = "window_not_found"


class PeerError(ComputerError):
    """The other side broke its protocol."""

    code: ClassVar[str] = "peer_error"


class RfbProtocolError(PeerError):
    """A VNC server or viewer sent something that RFB does not allow."""

    code: ClassVar[str] = "rfb_protocol_error"


class Unavailable(ComputerError):
    """The desktop can't be used now; a later try may work."""

    code: ClassVar[str] = "unavailable"


class DisplayLost(Unavailable):
    """The X server closed the connection or is gone."""

    code: ClassVar[str] = "display_lost"


class CaptureTimeout(Unavailable):
    """The X server did not answer in time."""

    code: ClassVar[str] = "capture_timeout"


class NotConfirmed(Unavailable):
    """The request was sent, and what it asks for was not seen to happen in time, or not all of it."""

    code: ClassVar[str] = "not_confirmed"


class StartFailed(Unavailable):
    """
    A desktop session did not come up.

    Attributes:
        log_tail: last lines of the failing program's log, "" when there is none.
    """

    code: ClassVar[str] = "start_failed"

    def __init__(self, reason: str, *, log_tail: str = "") -> None:
        self.log_tail = log_tail
        super().__init__(f"{reason}\n{log_tail}" if log_tail else reason)


class LaunchFailed(StartFailed):
    """An application ended before it showed a window; ``log_tail`` is what it said."""

    code: ClassVar[str] = "launch_failed"


class Misuse(ComputerError, RuntimeError):
    """A caller inside this project broke a contract."""

    code: ClassVar[str] = "misuse"


class DisplayClosed(Misuse):
    """The display was used after ``close()``."""

    code: ClassVar[str] = "display_closed"
