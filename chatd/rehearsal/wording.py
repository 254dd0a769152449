"""
The sentences of the rehearsal model's answers: steps by name, and text read off the screen.

Pure.
"""

import re
from collections.abc import Sequence

from chatd.rehearsal.language import OpenTerminal, Perform, Run, Say, Step, Tell
from chatd.rehearsal.shell import UNREADABLE

__all__ = ["done_text", "fenced", "imperative", "undone_text"]

_IRREGULAR = {"typed": "type", "took": "take", "moved": "move"}


def done_text(steps: Sequence[Step], *, is_last_running: bool = False) -> str:
    """What *steps* did, in the past tense; *is_last_running* when the last command has not ended."""
    named = [_past_tense(step) for step in steps]
    if is_last_running:
        named[-1] = named[-1].replace("ran ", "started ", 1)
    return ", ".join(filter(None, named))


def undone_text(steps: Sequence[Step]) -> str:
    """The *steps* that are left, by name."""
    return ", ".join(imperative(step) for step in steps)


def imperative(step: Step) -> str:
    """A step as one would ask for it."""
    match step:
        case OpenTerminal():
            return "open a terminal"
        case Run(command=command):
            return f"run `{command}`"
        case Perform(label=label):
            verb, _, rest = label.partition(" ")
            return f"{_IRREGULAR.get(verb, verb.removesuffix('ed'))} {rest}"
        case Tell():
            return "tell what it says"
        case Say(text=text):
            return f"say “{text[:80]}”"


def fenced(text: str) -> str:
    """*text* as a block of code, with a note when it holds characters that could not be read."""
    fence = max(["``", *re.findall(r"`+", text)], key=len) + "`"
    block = f"{fence}text\n{text}\n{fence}"
    if UNREADABLE not in text:
        return block
    return f"{block}\n\nSome characters could not be read; they are shown as {UNREADABLE}."


def _past_tense(step: Step) -> str:
    match step:
        case OpenTerminal():
            return "opened a terminal"
        case Run(command=command):
            return f"ran `{command}`"
        case Perform(label=label):
            return label
        case _:
            return ""
