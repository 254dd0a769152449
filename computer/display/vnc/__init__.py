"""
The VNC display: a screen that is reachable only by RFB.

Uses our own RFB core and not vncdotool, which is the independent peer in our tests. Its client
(1.4.2) needs Twisted's reactor, of which a process has one that can't be started twice; a call
that is waiting when the server hangs up or sends what it does not know waits for ever; an answer
that comes after a time-out is taken for that of the next call; characters outside ASCII go out
as code points instead of keysyms; ``slash`` presses the backslash; keys that are held
are forgotten; pictures pass through files; and its password code breaks with the next release
of the library below it.
"""

from computer.display.vnc.connection import Address
from computer.display.vnc.display import VncDisplay

__all__ = ["Address", "VncDisplay"]
