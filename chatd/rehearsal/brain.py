"""
What the rehearsal model answers: a pure function of the conversation.

With a computer it works at the desktop (``desktop``). Without one, but with the
tools to start an agent that has one, it delegates. Otherwise it explains itself.
"""

import re

from chatd.errors import BadRequest
from chatd.rehearsal.conversation import Call, Conversation, Picture, Reply, ToolUse, chunked, limit_reply
from chatd.rehearsal.desktop import work
from chatd.rehearsal.language import HELP, Say
from chatd.rehearsal.screen import Screen, read_picture
from chatd.rehearsal.sight import Reader
from chatd.rehearsal.turn import Turn, current_turn, error_text, json_result

__all__ = ["SPAWN_TOOL", "WAIT_TOOL", "decide", "read_or_none"]

SPAWN_TOOL = "spawn_computer_use_agent"
WAIT_TOOL = "wait_agent"
# Waits for one agent. At a minute each this is longer than any program of ours takes.
MAX_WAITS = 60
MAX_TITLE_CHARACTERS = 60
# How most instructions begin; what comes after it tells them apart.
_OPENING = re.compile(
    r"^(?:please )?(?:open|start|launch)(?: up)? (?:a |the |another )?(?:new )?terminal(?: window)?"
    r"(?:,? and then |,? and |,? then |[,;.] ?(?:then )?)(?=\S)",
    re.IGNORECASE,
)
# Characters of the user's text that are echoed.
MAX_ECHO_CHARACTERS = 2_000


def read_or_none(picture: Picture) -> Screen | None:
    """Read a picture; None when it is none."""
    try:
        return read_picture(picture)
    except BadRequest:
        return None


def decide(conversation: Conversation, read: Reader = read_or_none) -> Reply:
    """
    Answer *conversation*.

    Args:
        conversation: the whole request.
        read: reads a screenshot; None when it cannot.
    """
    turn = current_turn(conversation)
    return limit_reply(_decide(conversation, turn, read), conversation.max_output_tokens)


def _decide(conversation: Conversation, turn: Turn, read: Reader) -> Reply:
    if not conversation.may_call:
        return _saying(_summary(conversation))
    if conversation.computer is not None and turn.program.steps:
        return work(turn, conversation.computer, read)
    last = next((call for call in reversed(turn.calls) if call.name in {SPAWN_TOOL, WAIT_TOOL}), None)
    if last is not None:
        return _after_delegation(conversation, turn, last)
    if turn.program.needs_desktop and SPAWN_TOOL in conversation.tools:
        return _calling("I'll do that on the desktop.", SPAWN_TOOL, prompt=turn.text, title=_title(turn.text))
    said = [step.text for step in turn.program.steps if isinstance(step, Say)]
    if said and not turn.program.needs_desktop:
        return _saying("\n".join(said))
    return _saying(_introduction(turn))


def _title(text: str) -> str:
    """What tells *text* from other instructions, cut at a word."""
    words = " ".join(text.split())
    title = _OPENING.sub("", words) or words
    if len(title) <= MAX_TITLE_CHARACTERS:
        return title
    head = title[:MAX_TITLE_CHARACTERS]
    # One long word has no place to cut but its middle.
    cut = head.rfind(" ") if head.rfind(" ") > MAX_TITLE_CHARACTERS // 3 else MAX_TITLE_CHARACTERS - 1
    return title[:cut].rstrip(" ,;:.") + "…"


def _after_delegation(conversation: Conversation, turn: Turn, last: ToolUse) -> Reply:
    """Go on after the last call of an agent tool: wait, wait again, or report."""
    output = turn.result_of(last)
    if output is None:
        return _saying(f"The tool {last.name} gave no result, so I cannot go on.")
    error = error_text(output)
    if error is not None:
        what = "start an agent at the desktop" if last.name == SPAWN_TOOL else "get the agent's report"
        return _saying(f"I could not {what}: {error}")
    result = json_result(output)
    if last.name == WAIT_TOOL and result.get("timed_out") is not True:
        return _saying(_report(result))
    chat_id = result.get("chat_id") or last.arguments.get("chat_id")
    if not isinstance(chat_id, str):
        return _saying(f"I could not start an agent at the desktop: {output.text[:MAX_ECHO_CHARACTERS]}")
    return _wait_for(chat_id, conversation, turn)


def _wait_for(chat_id: str, conversation: Conversation, turn: Turn) -> Reply:
    if WAIT_TOOL not in conversation.tools:
        return _saying("An agent at the desktop was started, but I have no way to wait for its report.")
    waits = sum(call.name == WAIT_TOOL for call in turn.calls)
    if waits >= MAX_WAITS:
        return _saying(f"The agent at the desktop has not finished; I stopped waiting after {waits} tries.")
    return _calling("", WAIT_TOOL, chat_id=chat_id)


def _report(result: dict[str, object]) -> str:
    report = result.get("report")
    if isinstance(report, str) and report.strip():
        return f"The agent at the desktop reports:\n\n{report}"
    if set(result) == {"output"}:
        # Not the tool's JSON, so the words of whatever stood in its way.
        return f"I could not get the agent's report: {result['output']}"
    return f"The agent at the desktop ended without a report (status: {result.get('status', 'unknown')})."


def _summary(conversation: Conversation) -> str:
    """What is asked for when no tool may be called: the conversation in a few words."""
    *said, _ = [entry.text for entry in conversation.entries if entry.text.strip()] or [""]
    calls = sum(len(entry.calls) for entry in conversation.entries)
    words = (said[-1] if said else "nothing")[:MAX_ECHO_CHARACTERS]
    return f"The conversation so far had {calls} tool calls. Said last: {words}"


def _introduction(turn: Turn) -> str:
    text = turn.text.strip()[:MAX_ECHO_CHARACTERS]
    pieces = [
        "I am the rehearsal model: a stand-in that needs no model key and follows simple instructions.",
    ]
    if turn.program.needs_desktop:
        pieces.append("This needs a desktop, and this chat has no tool for one.")
    pieces.append(f"I understand:\n\n{HELP}")
    if text:
        pieces.append(f"You wrote: {text}")
    return "\n\n".join(pieces)


def _saying(text: str) -> Reply:
    return Reply(chunks=chunked(text))


def _calling(text: str, name: str, **arguments: str) -> Reply:
    return Reply(chunks=chunked(text), calls=(Call(name=name, arguments=arguments),), finish="tool-calls")
