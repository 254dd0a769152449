"""
The X11 display: the only importer of Xlib in this project.

Screen by shared memory where libxcb is there and by GetImage where it is not, input by
XTEST, rest by XDamage, pointer picture by XFixes, windows by EWMH.
"""

from computer.display.x11.connection import connect, disconnect, translate_errors
from computer.display.x11.display import X11Display
from computer.display.x11.resize import resize_screen
from computer.display.x11.root import enforce_cookie, paint_root, paint_wallpaper
from computer.display.x11.screen import Screen
from computer.display.x11.windows import WindowDesk

__all__ = [
    "Screen",
    "WindowDesk",
    "X11Display",
    "connect",
    "disconnect",
    "enforce_cookie",
    "paint_root",
    "paint_wallpaper",
    "resize_screen",
    "translate_errors",
]
