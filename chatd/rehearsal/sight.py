"""
What the rehearsal model sees: which terminal is which, what runs there, what it says.

Pure questions to one screenshot and to those before it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from chatd.rehearsal.conversation import Picture
from chatd.rehearsal.language import OpenTerminal, Run, Step
from chatd.rehearsal.progress import Progress
from chatd.rehearsal.screen import Screen, Terminal
from chatd.rehearsal.shell import (
    closes_shell,
    count_echoes,
    ends_in_sign,
    has_prompt,
    is_fresh,
    output_of,
    visible_text,
)
from chatd.rehearsal.turn import Turn
from chatd.rehearsal.wording import fenced

__all__ = ["Place", "Reader", "Sight", "is_idle", "place_of"]

_UNCERTAIN = (
    "The command line is not on the screen (cleared, or another window is in front); the screen shows"
)
_SILENCE = "It says nothing: there is no output."
_STILL_SILENT = "It is still running (or waits for input); so far it has printed nothing."

Reader = Callable[[Picture], Screen | None]
# Origin and lines of a terminal.
Place = tuple[tuple[int, int], tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """The *screen* as it is now, and *turn* and *read* to look at it as it was."""

    turn: Turn
    screen: Screen
    read: Reader

    @property
    def steps(self) -> tuple[Step, ...]:
        """The program."""
        return self.turn.program.steps

    @property
    def idle(self) -> tuple[Terminal, ...]:
        """Terminals that wait for a command, the focused one first."""
        return tuple(filter(is_idle, self.screen.terminals))

    @property
    def fresh_count(self) -> int:
        """Terminals that show nothing but a prompt."""
        return sum(is_fresh(terminal.lines) for terminal in self.idle)

    def focused(self) -> Terminal | None:
        """The terminal that gets the keys; None when none is seen to."""
        front = self.screen.terminals[0] if self.screen.terminals else None
        return front if front is not None and front.cursor is not None and front.cursor.is_solid else None

    def echoes(self, command: str) -> int:
        """How often *command* stands behind a prompt, in all terminals."""
        return sum(count_echoes(terminal.lines, command) for terminal in self.screen.terminals)

    def terminal_of(self, command: str) -> Terminal:
        """The terminal that shows *command*, else the one in front; there must be one."""
        terminals = self.screen.terminals
        return next((one for one in terminals if count_echoes(one.lines, command)), terminals[0])

    def is_running(self, command: str) -> bool:
        """Whether the terminal of *command* shows no prompt after it."""
        if not self.screen.terminals or (closes_shell(command) and not self.echoes(command)):
            return False
        return not is_idle(self.terminal_of(command))

    def typed_into(self, index: int) -> Place | None:
        """Place and text of the terminal in front before step *index* typed; None when not known."""
        calls = [call for call in self.turn.calls if call.name == "computer"]
        progresses = [Progress.of(call.call_id) for call in calls]
        typing = [n for n, then in enumerate(progresses) if then.step == index and then.typed]
        output = self.turn.result_of(calls[typing[0] - 1]) if typing and typing[0] else None
        screen = self.read(output.pictures[-1]) if output is not None and output.pictures else None
        return place_of(screen.terminals[0]) if screen is not None and screen.terminals else None

    def is_gone(self, index: int, command: str) -> bool:
        """Whether the terminal that *command* was typed into is on the screen no more."""
        if not self.screen.terminals:
            return True
        if any(count_echoes(terminal.lines, command) for terminal in self.screen.terminals):
            return False
        if closes_shell(command):
            return True
        earlier = self.typed_into(index)
        places = [terminal.origin for terminal in self.screen.terminals]
        return earlier is not None and earlier[0] not in places

    def reading(self, end: int) -> str:
        """What the last command before step *end* printed, or what the terminal in front shows."""
        index = self._last_run(end)
        command = _command_of(self.steps[index]) if index is not None else ""
        if index is not None and self.is_gone(index, command):
            return f"The terminal is gone since `{command}`, so there is no output I can read."
        if not self.screen.terminals:
            return "I see no terminal on the screen, so there is nothing I can read."
        if index is not None:
            return _output_text(self.terminal_of(command), command)
        text = visible_text(self.screen.terminals[0].lines)
        return f"It says:\n\n{fenced(text)}" if text else _SILENCE

    def _last_run(self, end: int) -> int | None:
        """The last command before step *end*, unless a terminal was opened since."""
        for index in reversed(range(end)):
            if isinstance(self.steps[index], Run):
                return index
            if isinstance(self.steps[index], OpenTerminal):
                return None
        return None


def _output_text(terminal: Terminal, command: str) -> str:
    """What *command* printed, and whether that is all."""
    is_ended = is_idle(terminal)
    text = output_of(terminal.lines, command, is_ended=is_ended)
    is_cut = text is None
    if text is None:
        text = visible_text(terminal.lines) if is_ended else "\n".join(terminal.lines).strip("\n")
    if text:
        return f"{_introduction(terminal, is_ended=is_ended, is_cut=is_cut)}:\n\n{fenced(text)}"
    return _SILENCE if is_ended else _STILL_SILENT


def _introduction(terminal: Terminal, *, is_ended: bool, is_cut: bool) -> str:
    missing = "The beginning is missing, it has scrolled off the screen" if terminal.is_full else ""
    if not is_ended:
        so_far = "It is still running (or waits for input); so far the screen shows"
        return f"{missing}. {so_far}" if is_cut and missing else so_far
    if not is_cut:
        return "It says"
    return f"{missing}. What is visible says" if missing else _UNCERTAIN


def is_idle(terminal: Terminal) -> bool:
    """Whether a prompt waits with nothing typed: the cursor is right after it."""
    # Without a cursor only a bare prompt is convincing.
    gap = terminal.cursor.gap if terminal.cursor is not None else 0
    return (gap in {0, 1} and has_prompt(terminal.lines)) or (gap == 1 and ends_in_sign(terminal.lines))


def place_of(terminal: Terminal) -> Place:
    """Where *terminal* is and what it shows."""
    return terminal.origin, terminal.lines


def _command_of(step: Step) -> str:
    return step.command if isinstance(step, Run) else ""
