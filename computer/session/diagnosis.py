"""
What the end of an X server's log means, and what to do about it.

One row per pattern; the first that matches wins, so the more particular come first.
"""

import re

__all__ = ["diagnose", "is_taken"]

# An X server ends with these when another took its display number or port in the same moment.
_TAKEN = (
    "already active",
    "already running",
    "Cannot establish any listening sockets",
    "could not create lock",
    "Address already in use",
)

_KEYMAP_HELP = "install the keymaps (apt-get install x11-xkb-utils xkb-data)"
_SIGNS: tuple[tuple[str, str], ...] = (
    # The compiler is missing or can't be run: the shell says which file.
    (r"(\S*/xkbcomp): (not found|Permission denied|No such file[^\n]*)", r"\1: \2; " + _KEYMAP_HELP),
    (r"Couldn't open rules file (\S+)", r"\1 is missing; " + _KEYMAP_HELP),
    (
        r"Failed to compile keymap|Failed to activate virtual core keyboard",
        "no keymap could be compiled from /usr/share/X11/xkb; " + _KEYMAP_HELP,
    ),
    (r"could not open default font '?(\w+)'?", r"the font \1 is missing (apt-get install xfonts-base)"),
    (r"No space left on device", "a disk is full: /tmp, /dev/shm or the runtime directory"),
)


def diagnose(log_tail: str) -> str | None:
    """One sentence that names the file and the remedy; None when the log shows nothing known."""
    for pattern, meaning in _SIGNS:
        found = re.search(pattern, log_tail)
        if found:
            return found.expand(meaning)
    return None


def is_taken(log_tail: str) -> bool:
    """Whether the server ended because its number or port is another's; the next may be free."""
    return any(sign in log_tail for sign in _TAKEN)
