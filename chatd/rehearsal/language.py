"""
The small imperative language that the rehearsal model understands.

Steps are separated by new lines, ";", sentences, ", then", "and then", "and" and, before
a verb of the language, ","; quotes and backticks protect what is inside them. Case does not matter::

    open a terminal
    run `cmd`            run cmd
    type "text"          type “text”        type 'text'
    press ctrl+l
    click 100 200        double click 100 200    right click 100 200
    scroll down 3
    wait 2 seconds
    take a screenshot
    tell me what it says
    say something
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from computer.wire import (
    MAX_DURATION_MS,
    MAX_SCROLL_NOTCHES,
    MAX_TEXT_CHARACTERS,
    Action,
    Key,
    MouseMove,
    ScreenshotAction,
    TypeText,
    Wait,
    action_adapter,
)

__all__ = ["HELP", "OpenTerminal", "Perform", "Program", "Run", "Say", "Step", "Tell", "parse"]

# Steps in one instruction: more cannot be done within the cap on actions anyway.
MAX_STEPS = 50
# Characters that are looked at. Longer text is data, not an instruction.
MAX_CHARACTERS = 20_000

HELP = """\
- open a terminal
- run `a command`
- type "some text"
- press ctrl+l
- click 100 200, double click 100 200
- scroll down 3
- wait 2 seconds
- take a screenshot
- tell me what it says
- say something"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTerminal:
    """Open a terminal window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Run *command* in a terminal and wait for the prompt."""

    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Perform:
    """Perform one action of the computer; *label* says it in the past tense."""

    action: Action
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """Tell what the terminal says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """Say *text* in the answer."""

    text: str


Step = OpenTerminal | Run | Perform | Tell | Say


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """An instruction, understood. *unknown* holds the pieces that were not."""

    steps: tuple[Step, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def needs_desktop(self) -> bool:
        """Whether any step needs a desktop."""
        return any(not isinstance(step, Say) for step in self.steps)


_QUOTED = r"`[^`]*`|“[^”]*”|\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)"
_GAP = r"[ \t]{1,8}"
_VERBS = "open|start|run|execute|type|press|hit|click|double|triple|right|scroll|wait|take|tell|say"
_SEPARATOR = (
    rf"[ \t]{{0,8}}\n|;|,{_GAP}then{_GAP}|,?{_GAP}and{_GAP}(?:then{_GAP})?|,?{_GAP}then{_GAP}"
    rf"|,{_GAP}(?=(?:{_VERBS})\b)"
    r"|(?<=[\w`\"”')])[.!](?=\s)"
)
_SCAN = re.compile(rf"(?P<quoted>{_QUOTED})|(?P<separator>{_SEPARATOR})", re.IGNORECASE)
_POLITE = re.compile(
    r"(?:please|now|then|first|next|finally|also|and|just|okay|ok|hello|hi|could you|can you|would you|"
    r"i want you to|i would like you to|i'd like you to)\b[\s,:]{0,8}",
    re.IGNORECASE,
)


def parse(text: str) -> Program:
    """Read the steps in *text*; what is not understood is kept in ``unknown``."""
    steps: list[Step] = []
    unknown: list[str] = []
    # The raw text of the last step, while more text may still belong to its argument.
    open_text = ""
    for separator, segment in _segments(text[:MAX_CHARACTERS]):
        step = _parse_step(segment)
        if step is None and open_text and separator.strip() not in {"", ".", "!"}:
            open_text = f"{open_text}{separator}{segment}"
            steps[-1] = _parse_step(open_text) or steps[-1]
        elif step is None:
            unknown.append(segment.strip())
            open_text = ""
        elif len(steps) < MAX_STEPS:
            steps.append(step)
            open_text = segment if _takes_rest(segment) else ""
    return Program(steps=tuple(steps), unknown=tuple(piece for piece in unknown if piece))


def _segments(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    start = 0
    separator = "\n"
    for match in _SCAN.finditer(text):
        if match["separator"] is None:
            continue
        found.append((separator, text[start : match.start()]))
        separator, start = match["separator"], match.end()
    found.append((separator, text[start:]))
    return [(before, segment) for before, segment in found if segment.strip(" \t\r\n.!")]


def _takes_rest(segment: str) -> bool:
    bare = _without_politeness(segment)
    return bool(re.match(r"(?:run|execute|type|say)\b", bare, re.IGNORECASE)) and not re.search(_QUOTED, bare)


def _without_politeness(segment: str) -> str:
    bare = segment.strip()
    for _ in range(5):
        match = _POLITE.match(bare)
        if match is None or match.end() == len(bare):
            break
        bare = bare[match.end() :]
    return bare


def _parse_step(segment: str) -> Step | None:
    bare = re.sub(r"(?<=[\w`\"”')])[.!?,]$", "", _without_politeness(segment))
    bare = re.sub(r",? please$", "", bare, flags=re.IGNORECASE)
    for pattern, build in _RULES:
        match = pattern.fullmatch(bare)
        if match is not None:
            return build(match)
    return None


def _unquoted(argument: str) -> str:
    argument = argument.strip()
    return argument[1:-1] if re.fullmatch(_QUOTED, argument) else argument


def _run(match: re.Match[str]) -> Step | None:
    command = " ".join(_unquoted(match[1]).splitlines()).strip()
    return Run(command=command) if 0 < len(command) < MAX_TEXT_CHARACTERS else None


def _type(match: re.Match[str]) -> Step | None:
    text = _unquoted(match[1])
    return Perform(action=TypeText(text=text), label=f"typed “{text}”") if text else None


def _say(match: re.Match[str]) -> Step | None:
    text = _unquoted(match[1])
    return Say(text=text) if text else None


def _press(match: re.Match[str]) -> Step | None:
    keys = re.sub(r" ?\+ ?", "+", match[1])
    keys = "+".join("Return" if key.lower() in {"enter", "return"} else key for key in keys.split("+"))
    return Perform(action=Key(text=keys), label=f"pressed {keys}")


def _click(match: re.Match[str]) -> Step | None:
    kind = (match["kind"] or "left").lower()
    x, y = int(match["x"]), int(match["y"])
    action = action_adapter.validate_python({"action": f"{kind}_click", "coordinate": (x, y)})
    return Perform(action=action, label=f"{kind}-clicked at {x} {y}")


def _move(match: re.Match[str]) -> Step | None:
    x, y = int(match["x"]), int(match["y"])
    return Perform(action=MouseMove(coordinate=(x, y)), label=f"moved the pointer to {x} {y}")


def _scroll(match: re.Match[str]) -> Step | None:
    direction = match["direction"].lower()
    amount = min(int(match["amount"] or 3), MAX_SCROLL_NOTCHES)
    action = action_adapter.validate_python(
        {"action": "scroll", "scroll_direction": direction, "scroll_amount": amount}
    )
    return Perform(action=action, label=f"scrolled {direction} {amount}")


def _wait(match: re.Match[str]) -> Step | None:
    amount = 1.0 if match["amount"].lower() in {"a", "one"} else float(match["amount"])
    unit = (match["unit"] or "s").lower()
    factor = 60_000 if unit.startswith("min") else 1 if unit.startswith(("ms", "mil")) else 1_000
    duration = min(round(amount * factor), MAX_DURATION_MS)
    return Perform(action=Wait(duration_ms=duration), label=f"waited {duration / 1_000:g} s")


def _rule(
    pattern: str, build: Callable[[re.Match[str]], Step | None]
) -> tuple[re.Pattern[str], Callable[..., Step | None]]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL), build


_POINT = r"(?: on| at| to)? ?\(? ?(?P<x>\d{1,5})(?: ?, ?| x | )(?P<y>\d{1,5}) ?\)?"
_RULES = (
    _rule(
        r"(?:open|start|launch)(?: up)? (?:a |the |another )?(?:new )?(?:terminal|xterm|console|shell)"
        r"(?: window| emulator)?",
        lambda _: OpenTerminal(),
    ),
    _rule(
        rf"(?:run|execute)(?: the command| this)?:? ({_QUOTED})(?: (?:in|on|inside|there)\b.{{0,80}})?", _run
    ),
    _rule(r"(?:run|execute)(?: the command)?:? (.+)", _run),
    _rule(rf"(?:type|enter|write) ({_QUOTED})(?: (?:in|into|there)\b.{{0,80}})?", _type),
    _rule(r"type (.+)", _type),
    _rule(r"(?:press|hit)(?: the)?(?: keys?)? (\S{1,40}(?: ?\+ ?\S{1,40}){0,4})(?: keys?)?", _press),
    _rule(rf"(?:(?P<kind>left|right|middle|double|triple)[ -]?)?click{_POINT}", _click),
    _rule(rf"move(?: the)?(?: mouse| pointer)?{_POINT}", _move),
    _rule(
        r"scroll (?P<direction>up|down|left|right)(?: by)?"
        r"(?: (?P<amount>\d{1,6}))?(?: notches| times| lines)?",
        _scroll,
    ),
    _rule(
        r"wait(?: for)? (?P<amount>\d{1,6}(?:\.\d{1,3})?|a|one) ?"
        r"(?P<unit>ms|milliseconds?|s|secs?|seconds?|min|minutes?)?",
        _wait,
    ),
    _rule(
        r"(?:(?:take|make|get) )?(?:a |another )?screenshot",
        lambda _: Perform(action=ScreenshotAction(), label="took a screenshot"),
    ),
    _rule(
        r"tell me what (?:it|the (?:screen|terminal|output)|you) (?:says?|shows?|sees?|prints?|printed)"
        r"(?: there| now| on the screen)?"
        r"|(?:tell|show|read) me the (?:output|result|screen)|read the (?:output|screen|terminal)"
        r"|what does (?:it|the (?:screen|terminal|output)) (?:say|show)",
        lambda _: Tell(),
    ),
    _rule(r"say:? (.+)", _say),
)
