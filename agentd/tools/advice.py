"""What a model is told besides a command's output: a tool that does it better, or what a code means. Pure."""

import re

__all__ = ["advise"]

_PLACE = r"[^\s|&;<>$`-][^\s|&;<>$`]*"
_READ = "read_file shows a file with line numbers, and parts of it."
# Commands that a tool of the workspace does better, as a whole; there is none that searches.
_BETTER: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(rf"cat {_PLACE}"), _READ),
    (re.compile(rf"(?:head|tail)(?: -n ?\+?\d+| -\d+)? {_PLACE}"), _READ),
    (re.compile(rf"sed -n ['\"]?\d+(?:,\d+)?p['\"]? {_PLACE}"), _READ),
    (re.compile(rf"ls(?: -[A-Za-z1]+)*(?: {_PLACE})?"), "list_directory shows what a directory holds."),
    (
        re.compile(r"sed (?:-[A-Za-z]+ )*-i\b.*"),
        "edit_files changes text in files, all of it or nothing, and says what it did not find.",
    ),
)
_CODES = {
    127: "Exit code 127: the shell did not find a program. Is it installed, and is it in PATH?",
    137: "Exit code 137: it was killed, by hand or for want of memory.",
}


def advise(command: str, exit_code: int | None) -> str | None:
    """Return a sentence about a *command* that ended, None where there is nothing to say."""
    words = " ".join(command.split())
    better = next((text for pattern, text in _BETTER if pattern.fullmatch(words)), None)
    return better or _CODES.get(-1 if exit_code is None else exit_code)
