"""How a command is to be run: background marks, durations, environment, directory; pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agentd.errors import CommandRefused

__all__ = [
    "DEFAULT_WAIT_S",
    "MAX_COMMAND_BYTES",
    "MAX_WAIT_S",
    "NON_INTERACTIVE",
    "Invocation",
    "parse_command",
    "parse_duration",
    "process_environment",
]

# Seconds that `execute` waits unless told otherwise, and at most.
DEFAULT_WAIT_S = 10.0
MAX_WAIT_S = 4 * 3600.0
# Bytes; Linux takes 128 KiB for one argument.
MAX_COMMAND_BYTES = 100_000

# Nobody sits at the keyboard: nothing may ask, page, colour, or open an editor.
NON_INTERACTIVE: Mapping[str, str] = {
    "AGENTD_CHAT_AGENT": "true",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
    "NO_COLOR": "1",
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
}

_DURATION = re.compile(
    r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?"
)
_SECONDS = (3600.0, 60.0, 1.0, 0.001)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """A command line for ``sh -c`` and whether to wait for its end."""

    command: str
    background: bool


def parse_command(text: str, *, background: bool = False) -> Invocation:
    """
    Read a command; one ``&`` at its end means background, and is taken off.

    Raises:
        CommandRefused: empty, too long, or with a character that can't be passed.
    """
    command = text.strip()
    if "\0" in command:
        raise CommandRefused("the command holds a NUL character, which can't be passed to a program")
    try:
        size = len(command.encode())
    except UnicodeEncodeError as exc:
        msg = f"the command can't be encoded: {exc.reason} at character {exc.start}"
        raise CommandRefused(msg) from exc
    if size > MAX_COMMAND_BYTES:
        msg = f"the command has {size} bytes, over {MAX_COMMAND_BYTES}; write it to a file and run that"
        raise CommandRefused(msg)
    if _ends_with_background_mark(command):
        command, background = command[:-1].rstrip(), True
    if not command:
        raise CommandRefused("the command is empty")
    return Invocation(command=command, background=background)


def _ends_with_background_mark(command: str) -> bool:
    # `&&` wants more, `|&` pipes, `>&` and `<&` redirect, `\&` is the character.
    return command.endswith("&") and command[-2:-1] not in {"&", "|", ">", "<", "\\"}


def parse_duration(value: str | float, *, what: str = "timeout") -> float:
    """
    Seconds of ``90``, ``"90"``, ``"90s"``, ``"1h30m"`` or ``"500ms"``.

    Raises:
        CommandRefused: it is no duration, or negative.
    """
    seconds: float | None = None
    if isinstance(value, str):
        text = value.strip().lower()
        match = _DURATION.fullmatch(text)
        if re.fullmatch(r"\d+(?:\.\d+)?", text):
            seconds = float(text)
        elif text and match is not None and any(match.groups()):
            seconds = sum(float(n) * unit for n, unit in zip(match.groups(), _SECONDS, strict=True) if n)
    elif value == value and abs(value) != float("inf"):  # noqa: PLR0124 -- not a number
        seconds = float(value)
    if seconds is None or seconds < 0:
        msg = f'{what}: {value!r} is no duration; give seconds, or a text such as "90s", "5m", "1h30m"'
        raise CommandRefused(msg)
    return seconds


def process_environment(
    base: Mapping[str, str], *, chat_id: str | None, extra: Mapping[str, str]
) -> dict[str, str]:
    """All variables of a command: *base*, what keeps programs from asking, the chat, then *extra*."""
    chat = {"AGENTD_CHAT_ID": chat_id} if chat_id else {}
    return {**base, **NON_INTERACTIVE, **chat, **extra}
