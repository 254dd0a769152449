"""
Browsers at a desktop: a profile of the session's own, and the options they need there.

A browser asked for twice with one profile hands over to the first; one profile for two desktops
would open the window on the wrong one.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

__all__ = ["BROWSERS", "clear_profile_locks", "with_profile"]

# Programs looked for, in this order.
BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_OPTIONS = ("--no-first-run", "--no-default-browser-check", "--password-store=basic", "--disable-gpu")
# What a browser that was killed leaves in its profile, and by which the next one thinks it runs.
_LOCKS = ("SingletonLock", "SingletonCookie", "SingletonSocket")


def with_profile(argv: Sequence[str], profile: Path, *, is_root: bool) -> list[str]:
    """
    Add to the command line of a browser what it needs here; any other command stays as it is.

    Nothing is added where the caller chose a profile; Chromium refuses to run as root inside its sandbox.
    """
    if Path(argv[0]).name not in BROWSERS or any(word.startswith("--user-data-dir") for word in argv):
        return list(argv)
    options = [f"--user-data-dir={profile}", *_OPTIONS]
    if is_root:
        options.append("--no-sandbox")
    return [argv[0], *(option for option in options if option not in argv), *argv[1:]]


def clear_profile_locks(profile: Path) -> None:
    """Remove the locks of a browser that is gone; call it while none of the session's runs."""
    for name in _LOCKS:
        with suppress(FileNotFoundError):
            (profile / name).unlink()
