"""
What a terminal's text means: prompts, echoed commands and their output.

Pure functions over the lines that ``screen`` read. The prompt is the customary
one, ending in "$" or "#". A cell that could not be read is U+FFFD and equals
any character.
"""

import re
from collections.abc import Sequence

__all__ = [
    "UNREADABLE",
    "closes_shell",
    "count_echoes",
    "ends_in_sign",
    "has_prompt",
    "is_fresh",
    "output_of",
    "visible_text",
    "wipes_screen",
]

UNREADABLE = "\ufffd"
# A prompt such as "$", "#", "user@host:~/src$". Nothing before the sign holds a space.
_PROMPT = re.compile(r"[^\s$#]{0,80}[$#]")
_CLOSING = re.compile(r"(?:^|[;&|({])\s{0,8}(?:exit|logout)(?:\s{1,8}\d{1,3})?[\s;]{0,8}$")

_WIPING = re.compile(r"\b(?:clear|reset|tput)\b|033|x1b|\\[ec]", re.IGNORECASE)


def has_prompt(lines: Sequence[str]) -> bool:
    """Whether the shell waits for a command: the last line that is not blank is a bare prompt."""
    return _PROMPT.fullmatch(_last(lines)) is not None


def ends_in_sign(lines: Sequence[str]) -> bool:
    """Whether the last line that is not blank ends like a prompt, whatever stands before it."""
    return _last(lines).endswith(("$", "#"))


def is_fresh(lines: Sequence[str]) -> bool:
    """Whether there is nothing but a prompt, as in a new terminal."""
    return has_prompt(lines) and sum(bool(line.strip()) for line in lines) == 1


def closes_shell(command: str) -> bool:
    """Whether *command* ends with leaving the shell."""
    return _CLOSING.search(command) is not None


def wipes_screen(command: str) -> bool:
    """Whether *command* may leave a screen with nothing but a prompt."""
    return _WIPING.search(command) is not None


def count_echoes(lines: Sequence[str], command: str) -> int:
    """How many lines are a prompt followed by exactly *command*."""
    return sum(_prompt_of_echo(line, command) is not None for line in lines)


def output_of(lines: Sequence[str], command: str, *, is_ended: bool = True) -> str | None:
    """
    The lines between the last echo of *command* and the prompt after it.

    The prompt is left out also where the output did not end its line; there is none
    unless *is_ended*.

    Returns:
        None when no echo of *command* is visible.
    """
    prompts = [_prompt_of_echo(line, command) for line in lines]
    found = [(index, prompt) for index, prompt in enumerate(prompts) if prompt is not None]
    if not found:
        return None
    index, prompt = found[-1]
    if not is_ended:
        return "\n".join(lines[index + 1 :]).strip("\n")
    return visible_text(lines[index + 1 :], prompt)


def visible_text(lines: Sequence[str], prompt: str = "") -> str:
    """All the lines, without blank ones around them and without the prompt at the end; *prompt* if known."""
    kept = [line.rstrip() for line in lines]
    while kept and not kept[-1]:
        kept.pop()
    if kept and prompt and kept[-1].endswith(prompt):
        kept[-1] = kept[-1].removesuffix(prompt).rstrip()
    elif kept and has_prompt(kept):
        kept.pop()
    return "\n".join(kept).strip("\n")


def _last(lines: Sequence[str]) -> str:
    return next((line for line in reversed(lines) if line.strip()), "").strip(f" {UNREADABLE}")


def _prompt_of_echo(line: str, command: str) -> str | None:
    """The prompt before the echo of *command*; None when *line* is no such echo."""
    expected = command.strip()
    match = _PROMPT.match(line)
    if match is not None and _is_same(line[match.end() :].strip(), expected):
        return match[0]
    # After output that did not end its line.
    head, seen = line[: -len(expected)], line[-len(expected) :]
    return head[-2] if head.endswith(("$ ", "# ")) and _is_same(seen, expected) else None


def _is_same(seen: str, expected: str) -> bool:
    is_equal = len(seen) == len(expected) and all(
        a in {b, UNREADABLE} or b > "~" for a, b in zip(seen, expected, strict=True)
    )
    return is_equal or _folded(seen) == _folded(expected)


def _folded(text: str) -> str:
    """*text* with characters outside ASCII as one: a terminal may show each as several cells."""
    return re.sub(r"[^ -~]+", UNREADABLE, text)
