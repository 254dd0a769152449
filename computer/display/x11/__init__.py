"""
The X11 display: the only importer of Xlib in this project.

Screen by shared memory where libxcb is there and by GetImage where it is not, input by
XTEST, rest by XDamage, pointer picture by XFixes, windows by EWMH.
"""

from computer.display.x11.connection import connect
from computer.display.x11.display import X11Display
from computer.display.x11.root import paint_root
from computer.display.x11.windows import WindowDesk

__all__ = ["WindowDesk", "X11Display", "connect", "paint_root"]
