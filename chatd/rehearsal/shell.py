"""
What a terminal's text means: prompts, echoed commands and their output.

Pure functions over the lines that ``screen`` read. The prompt is the customary
one, ending in "$" or "#". A cell that could not be read is U+FFFD and equals
any character.
"""

import re
from collections.abc import Sequence

__all__ = ["count_echoes", "has_prompt", "output_of", "visible_text"]

UNREADABLE = "\ufffd"
# A prompt such as "$", "#", "user@host:~/src$". Nothing before the sign holds a space.
_PROMPT = re.compile(r"[^\s$#]{0,80}[$#]")


def has_prompt(lines: Sequence[str]) -> bool:
    """Whether the shell waits for a command: the last line that is not blank is a bare prompt."""
    last = next((line for line in reversed(lines) if line.strip()), "")
    return _PROMPT.fullmatch(last.strip(f" {UNREADABLE}")) is not None


def count_echoes(lines: Sequence[str], command: str) -> int:
    """How many lines are a prompt followed by exactly *command*."""
    return sum(_is_echo(line, command) for line in lines)


def output_of(lines: Sequence[str], command: str) -> str | None:
    """
    The lines between the last echo of *command* and the prompt after it.

    Returns:
        None when no echo of *command* is visible.
    """
    echoes = [index for index, line in enumerate(lines) if _is_echo(line, command)]
    return visible_text(lines[echoes[-1] + 1 :]) if echoes else None


def visible_text(lines: Sequence[str]) -> str:
    """All the lines, without blank ones around them and without the prompt at the end."""
    kept = [line.rstrip() for line in lines]
    while kept and not kept[-1]:
        kept.pop()
    if kept and has_prompt(kept):
        kept.pop()
    return "\n".join(kept).strip("\n")


def _is_echo(line: str, command: str) -> bool:
    match = _PROMPT.match(line)
    if match is None:
        return False
    seen, expected = line[match.end() :].strip(), command.strip()
    return len(seen) == len(expected) and all(
        a in {b, UNREADABLE} or b > "~" for a, b in zip(seen, expected, strict=True)
    )
