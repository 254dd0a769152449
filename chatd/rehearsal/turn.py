"""
The part of a conversation that a reply answers: the last instruction and what was done since.

Pure. Not every text of the user's role is an instruction: where a protocol has no
place for a tool's words, clients write them as a message in brackets, and where
it cannot replay a call, as ``[earlier tool call …]`` from both sides. Such texts,
and those right after a tool's answer that hold no step, are notes.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Any

from chatd.rehearsal.conversation import Conversation, Entry, Picture, ToolOutput, ToolUse
from chatd.rehearsal.language import Program, parse

__all__ = ["Turn", "action_error", "current_turn", "error_text", "is_outcome_unknown", "json_result"]

# Characters of an error that are repeated in an answer.
MAX_ERROR_CHARACTERS = 300
# How clients begin a call, or its answer, that the protocol could not replay.
_PROSE_CALL = "[earlier tool call"
_PROSE_COMPUTER = f"{_PROSE_CALL} computer"
_PROSE_FAILURE = re.compile(r"\[earlier tool call [^\]\n]{1,80}, failed\] ?(.+)", re.DOTALL)
# How clients mark an error where the protocol has no flag for it.
_ERROR_PREFIX = "Error: "
# How the computer's tool begins the sentence about what failed, after what it did before.
_FAILED = re.compile(r"^(?:Error: )?Failed: (.+)", re.DOTALL | re.MULTILINE)
# How clients give the words of a computer's answer that has room for a picture only.
_COMPUTER_NOTE = "[computer] "
# A call that only looks: that it failed says nothing about a step.
_TOUCHES = re.compile(r'"action": ?"(?!screenshot|wait|zoom|cursor_position)\w')


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """
    The last instruction, understood, with the calls and answers after it.

    *lost* counts the computer's calls that came back as prose only, *lost_since* those
    after the last answer that came back properly. *note* is the last note. *errors*
    are what tools reported, each once. *lost_call* and *lost_error* are the prose of the
    last lost call that failed after that answer and was more than a look; empty when none did.
    """

    text: str
    program: Program
    calls: tuple[ToolUse, ...] = ()
    outputs: tuple[ToolOutput, ...] = ()
    said: tuple[str, ...] = ()
    note: str = ""
    lost: int = 0
    lost_since: int = 0
    errors: tuple[str, ...] = ()
    lost_call: str = ""
    lost_error: str = ""

    @property
    def action_count(self) -> int:
        """Actions of the computer that were asked for."""
        return self.lost + sum(call.action_count for call in self.calls if call.name == "computer")

    @property
    def picture(self) -> Picture | None:
        """The last picture of the last call's answer; None when that brought none."""
        if not self.calls:
            return None
        pictures = [
            picture
            for output in self.outputs
            if output.call_id == self.calls[-1].call_id
            for picture in output.pictures
        ]
        return pictures[-1] if pictures else None

    def result_of(self, call: ToolUse) -> ToolOutput | None:
        """The answer to *call*."""
        return next((output for output in self.outputs if output.call_id == call.call_id), None)


def current_turn(conversation: Conversation) -> Turn:
    """Cut the last turn out of *conversation*."""
    text, after = _cut(conversation.entries)
    after = _with_notes(after)
    said = map(_own_text, _of_role(after, "assistant"))
    last = max((index for index, entry in enumerate(after) if entry.role == "tool"), default=-1)
    errors = chain.from_iterable(map(_errors_in, after))
    lost_call, lost_error = _lost_failure(after[last + 1 :])
    return Turn(
        text=text,
        program=parse(text),
        calls=tuple(chain.from_iterable(entry.calls for entry in after)),
        outputs=tuple(chain.from_iterable(entry.outputs for entry in after)),
        said=tuple(filter(None, said)),
        note=next((entry.text for entry in reversed(_of_role(after, "user")) if entry.text.strip()), ""),
        lost=_count_lost(after),
        lost_since=_count_lost(after[last + 1 :]),
        errors=tuple(dict.fromkeys(filter(None, errors))),
        lost_call=lost_call,
        lost_error=lost_error,
    )


def _cut(entries: Sequence[Entry]) -> tuple[str, Sequence[Entry]]:
    """The last instruction and the entries after it; no text and all entries when there is none."""
    for index in reversed(range(len(entries))):
        if _is_instruction(entries, index):
            return entries[index].text, entries[index + 1 :]
    return "", entries


def _with_notes(entries: Sequence[Entry]) -> list[Entry]:
    """Give the words that clients write after a computer's picture to the answer they belong to."""
    found: list[Entry] = []
    for entry in entries:
        is_note = entry.role == "user" and entry.text.startswith(_COMPUTER_NOTE)
        if is_note and found and found[-1].outputs:
            *others, last = found[-1].outputs
            text = "\n".join(filter(None, [last.text, entry.text.removeprefix(_COMPUTER_NOTE)]))
            found[-1] = replace(found[-1], outputs=(*others, replace(last, text=text)))
        else:
            found.append(entry)
    return found


def _lost_failure(entries: Sequence[Entry]) -> tuple[str, str]:
    """The prose of the last failed call that touched something, and why it failed."""
    for call, answer in reversed(list(pairwise(entries))):
        failure = _PROSE_FAILURE.match(answer.text) if answer.role == "user" else None
        if failure and call.role == "assistant" and _TOUCHES.search(call.text):
            words = _FAILED.search(failure[1])
            return call.text, (words or failure)[1][:MAX_ERROR_CHARACTERS]
    return "", ""


def _of_role(entries: Sequence[Entry], role: str) -> list[Entry]:
    return [entry for entry in entries if entry.role == role]


def _errors_in(entry: Entry) -> list[str | None]:
    prose = _PROSE_FAILURE.match(entry.text) if entry.role == "user" else None
    told = [prose[1][:MAX_ERROR_CHARACTERS]] if prose else []
    return [*map(error_text, entry.outputs), *told]


def _own_text(entry: Entry) -> str:
    return entry.text.split(_PROSE_CALL)[0].strip()


def _count_lost(entries: Sequence[Entry]) -> int:
    return sum(entry.role == "user" and entry.text.startswith(_PROSE_COMPUTER) for entry in entries)


def json_result(output: ToolOutput) -> dict[str, Any]:
    """A tool's answer as an object; text that is no object becomes ``{"output": text}``."""
    value = _loads(output.text)
    if isinstance(value, dict) and set(value) == {"output"}:
        inner = _loads(value["output"]) if isinstance(value["output"], str) else value["output"]
        return inner if isinstance(inner, dict) else {"output": value["output"]}
    return value if isinstance(value, dict) else {"output": output.text}


def error_text(output: ToolOutput) -> str | None:
    """What went wrong, in the tool's words; None when nothing did."""
    error = json_result(output).get("error")
    is_marked = output.text.startswith(_ERROR_PREFIX)
    if not output.is_error and not error and not is_marked:
        return None
    text = str(error or output.text.removeprefix(_ERROR_PREFIX) or "the tool failed")
    return text[:MAX_ERROR_CHARACTERS]


def action_error(output: ToolOutput) -> str | None:
    """Why the computer did not do what it was asked, flagged as an error or not; None when it did."""
    failed = _FAILED.search(output.text)
    return failed[1].strip()[:MAX_ERROR_CHARACTERS] if failed else error_text(output)


def is_outcome_unknown(error: str) -> bool:
    """Whether *error* leaves open if the action was done, so that only the screen can tell."""
    return re.search(r"outcome\b.{0,20}\bunknown", error) is not None


def _is_instruction(entries: Sequence[Entry], index: int) -> bool:
    entry = entries[index]
    if entry.role != "user" or not entry.text.strip():
        return False
    if entry.text.startswith("["):
        return False
    follows_tool = index > 0 and entries[index - 1].role == "tool"
    return not follows_tool or bool(parse(entry.text).steps)


def _loads(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
