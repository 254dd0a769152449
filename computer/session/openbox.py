"""
How the window manager of our desktops behaves: keys, mouse, root menu, terminal.

Pure text. ``ctrl+alt+t`` and ``super+Return`` open a terminal; a right click on the
background opens a menu.

The terminal is drawn to be read from pixels as well as by eye: the bitmap font 6x13, black
on white, no antialiasing, no bold, no colours, no scroll bar, no blinking, 150 columns by 40
rows at (40, 40). Its shell reads no start-up files and keeps no history; the prompt is ``$ ``,
or ``# `` for root.
"""

import shlex
from collections.abc import Sequence
from xml.sax.saxutils import escape

__all__ = ["BACKGROUND", "render_browser", "render_menu", "render_rc", "render_terminal"]

# 0xRRGGBB of the empty desktop.
BACKGROUND = 0x2E3440

_XTERM = (
    "xterm", "-fn", "6x13", "-fb", "6x13", "-geometry", "150x40+40+40", "-bg", "white", "-fg", "black",
    "+sb", "-cm", "+bc", "-title", "Terminal",
    "-xrm", "XTerm*allowBoldFonts: false",
    "-xrm", "XTerm*boldMode: false",
    "-xrm", "XTerm*cursorBlink: false",
    "-xrm", "XTerm*cursorColor: black",
    "-xrm", "XTerm*renderFont: false",
    "-xrm", "XTerm*allowTitleOps: false",
)  # fmt: skip

_RC = """<?xml version="1.0" encoding="UTF-8"?>
<openbox_config xmlns="http://openbox.org/3.4/rc">
  <focus><focusNew>yes</focusNew><followMouse>no</followMouse><raiseOnFocus>no</raiseOnFocus></focus>
  <placement><policy>Smart</policy><center>yes</center></placement>
  <theme><name>Clearlooks</name><titleLayout>NLIMC</titleLayout><animateIconify>no</animateIconify></theme>
  <desktops><number>1</number><popupTime>0</popupTime></desktops>
  <resize><drawContents>yes</drawContents><popupShow>Never</popupShow></resize>
  <keyboard>
    <keybind key="C-A-t"><action name="Execute"><command>{terminal}</command></action></keybind>
    <keybind key="W-Return"><action name="Execute"><command>{terminal}</command></action></keybind>
    <keybind key="A-F4"><action name="Close"/></keybind>
    <keybind key="A-Tab"><action name="NextWindow"><finalactions>
      <action name="Focus"/><action name="Raise"/><action name="Unshade"/>
    </finalactions></action></keybind>
  </keyboard>
  <mouse>
    <dragThreshold>1</dragThreshold><doubleClickTime>500</doubleClickTime>
    <context name="Frame">
      <mousebind button="A-Left" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
      <mousebind button="A-Left" action="Drag"><action name="Move"/></mousebind>
    </context>
    <context name="Titlebar">
      <mousebind button="Left" action="Drag"><action name="Move"/></mousebind>
      <mousebind button="Left" action="DoubleClick"><action name="ToggleMaximize"/></mousebind>
    </context>
    <context name="Titlebar Top Right Bottom Left TLCorner TRCorner BRCorner BLCorner">
      <mousebind button="Left" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
      <mousebind button="Right" action="Press">
        <action name="Focus"/><action name="Raise"/><action name="ShowMenu"><menu>client-menu</menu></action>
      </mousebind>
    </context>
    <context name="Top Right Bottom Left TLCorner TRCorner BRCorner BLCorner">
      <mousebind button="Left" action="Drag"><action name="Resize"/></mousebind>
    </context>
    <context name="Client">
      <mousebind button="Left" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
      <mousebind button="Middle" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
      <mousebind button="Right" action="Press"><action name="Focus"/><action name="Raise"/></mousebind>
    </context>
    <context name="Close"><mousebind button="Left" action="Click"><action name="Close"/></mousebind></context>
    <context name="Maximize">
      <mousebind button="Left" action="Click"><action name="ToggleMaximize"/></mousebind>
    </context>
    <context name="Iconify">
      <mousebind button="Left" action="Click"><action name="Iconify"/></mousebind>
    </context>
    <context name="Root">
      <mousebind button="Right" action="Press">
        <action name="ShowMenu"><menu>root-menu</menu></action>
      </mousebind>
    </context>
  </mouse>
  <menu><file>{menu}</file><hideDelay>200</hideDelay></menu>
</openbox_config>
"""

_MENU = """<?xml version="1.0" encoding="UTF-8"?>
<openbox_menu xmlns="http://openbox.org/3.4/menu">
  <menu id="root-menu" label="Desktop">
{items}
  </menu>
</openbox_menu>
"""

_ITEM = '    <item label="{label}"><action name="Execute"><command>{command}</command></action></item>'


def render_rc(*, terminal: str, menu: str) -> str:
    """Configuration of openbox; *terminal* is a command, *menu* the path of the menu file."""
    return _RC.format(terminal=escape(terminal), menu=escape(menu))


def render_menu(*, terminal: str, browser: str | None) -> str:
    """Root menu; the browser is listed where there is one."""
    entries = [("Terminal", terminal)]
    if browser is not None:
        entries.append(("Browser", browser))
    items = "\n".join(_ITEM.format(label=label, command=escape(command)) for label, command in entries)
    return _MENU.format(items=items)


def render_terminal(*, has_bash: bool) -> str:
    """
    Shell script that becomes the terminal.

    A plain sh sets its own ``$ `` or ``# `` when PS1 is absent; bash needs to be told.
    """
    lines = ["#!/bin/sh", "unset PROMPT_COMMAND PS1 ENV BASH_ENV", "export HISTFILE=/dev/null"]
    shell: tuple[str, ...] = ("sh", "-i")
    if has_bash:
        lines.append("export PS1='\\$ '")
        shell = ("bash", "--norc", "--noprofile", "-i")
    lines.append(f"exec {shlex.join([*_XTERM, '-e', *shell])}")
    return "\n".join(lines) + "\n"


def render_browser(argv: Sequence[str]) -> str:
    """Shell script that becomes the browser; addresses given to it are added."""
    return f'#!/bin/sh\nexec {shlex.join(argv)} "$@"\n'
