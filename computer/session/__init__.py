"""
Desktop sessions: an X server, a window manager and their environment, as one thing.

``DesktopSession`` starts one lazily, notices when a member dies, and takes everything down
again that was started in it.
"""

from computer.session.backend import Backend, RunningDesktop
from computer.session.session import DesktopSession
from computer.session.settings import SessionSettings

__all__ = ["Backend", "DesktopSession", "RunningDesktop", "SessionSettings"]
