"""
How the rehearsal model works at a desktop: one decision per request.

Pure and stateless. Where it stands is written into the ids of its calls
(``Progress``), which come back with the next request; everything else is what
the last screenshot shows. An id that is not ours starts the program again, and
the cap on actions ends it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import assert_never

from chatd.rehearsal.conversation import Call, ComputerForm, Picture, Reply, chunked
from chatd.rehearsal.language import OpenTerminal, Perform, Run, Say, Step, Tell
from chatd.rehearsal.screen import Screen, Terminal
from chatd.rehearsal.shell import count_echoes, has_prompt, output_of, visible_text
from chatd.rehearsal.turn import Turn, error_text
from computer.wire import Action, Click, Key, ScreenshotAction, Scroll, TypeText, Wait

__all__ = ["MAX_ACTIONS", "OPENING", "Progress", "work"]

# Actions in one turn. A run of 20 looks and three openings fits; an endless loop does not.
MAX_ACTIONS = 60
# Looks, a second apart, until a new terminal shows its prompt; then the key is pressed again.
MAX_OPEN_LOOKS = 5
MAX_PRESSES = 3
# Looks, a second apart, until a command has ended.
MAX_RUN_LOOKS = 20
# Looks until we believe that the screen will not change: nothing was echoed, or no terminal is left.
MAX_SETTLE_LOOKS = 3
MAX_RERUNS = 2
MAX_CLICKS = 2
# Answers in a row without a picture, after which the desktop counts as gone.
MAX_BLIND = 5
# OpenAI's wait has no length and takes about a second; a longer one is several.
MAX_WAITS = 10

OPENING = "Let me look at the screen."
_TERMINAL_KEYS = "ctrl+alt+t"
_MARKER = re.compile(r"rh((?:_\d{1,4}){8})(?:_|$)")

Reader = Callable[[Picture], Screen | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """
    Where the program stands, as an id can carry it.

    The counters belong to the current *step*: *presses* of the terminal's key,
    *looks* since the last press or typing, whether the command was *typed*, the
    prompts or echoes seen *before*, *clicks* for focus, *reruns*. *blind* counts
    answers without a picture.
    """

    step: int = 0
    presses: int = 0
    looks: int = 0
    typed: int = 0
    before: int = 0
    clicks: int = 0
    reruns: int = 0
    blind: int = 0

    @property
    def marker(self) -> str:
        """The text for a call's id."""
        return "rh" + "".join(f"_{min(number, 9_999)}" for number in astuple(self))

    @staticmethod
    def of(call_id: str) -> "Progress":
        """Read a call's id; the beginning when it is not ours."""
        match = _MARKER.search(call_id)
        if match is None:
            return Progress()
        step, presses, looks, typed, before, clicks, reruns, blind = map(int, match[1][1:].split("_"))
        return Progress(
            step=step,
            presses=presses,
            looks=looks,
            typed=typed,
            before=before,
            clicks=clicks,
            reruns=reruns,
            blind=blind,
        )


def work(turn: Turn, form: ComputerForm, read: Reader) -> Reply:
    """
    Decide the next action of *turn*, or its final answer.

    Args:
        turn: has at least one step.
        form: how the computer is offered; batched forms get consecutive simple steps in one call.
        read: reads a screenshot; None when it cannot.
    """
    calls = [call for call in turn.calls if call.name == "computer"]
    if not calls and not turn.lost:
        return _act(Progress(), ScreenshotAction(), text=OPENING)
    progress = Progress.of(calls[-1].call_id) if calls else Progress()
    # A picture from before a lost call shows a screen that is no more.
    picture = None if turn.lost_since else turn.picture
    screen = read(picture) if picture else None
    desk = _Desk(turn=turn, form=form, screen=screen or Screen(width=0, height=0))
    if turn.action_count >= MAX_ACTIONS:
        return desk.answer(progress, failure=f"I stopped after {MAX_ACTIONS} actions")
    if screen is None:
        if progress.blind + turn.lost_since >= MAX_BLIND:
            detail = turn.note or (turn.outputs[-1].text if turn.outputs else "")
            return desk.answer(
                progress, failure=f"I got no picture of the screen. {detail[:300]}".rstrip(" .")
            )
        return _act(replace(progress, blind=progress.blind + 1), ScreenshotAction())
    return desk.go_on(replace(progress, blind=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Desk:
    """One decision: the turn so far and the screen as it is now."""

    turn: Turn
    form: ComputerForm
    screen: Screen

    @property
    def steps(self) -> tuple[Step, ...]:
        """The program."""
        return self.turn.program.steps

    @property
    def prompts(self) -> tuple[Terminal, ...]:
        """Terminals that wait for a command, the focused one first."""
        return tuple(terminal for terminal in self.screen.terminals if has_prompt(terminal.lines))

    def go_on(self, progress: Progress) -> Reply:
        """Pass the steps that are done and ask for the next action."""
        readings: list[str] = []
        while progress.step < len(self.steps):
            reply = self._step(progress, readings)
            if reply is not None:
                return replace(reply, chunks=chunked("\n\n".join([*readings, reply.text]).strip()))
            progress = Progress(step=progress.step + 1)
        return self.answer(progress, readings=readings)

    def _step(self, progress: Progress, readings: list[str]) -> Reply | None:
        """What the current step needs; None when it is done."""
        step = self.steps[progress.step]
        match step:
            case OpenTerminal():
                return self._open(progress)
            case Run():
                return (
                    self._watch(progress, step, readings) if progress.typed else self._start(progress, step)
                )
            case Perform():
                return self._perform(progress)
            case Tell():
                return self._tell(progress, readings)
            case Say():
                readings.append(step.text)
                return None
            case _:
                assert_never(step)

    def _open(self, progress: Progress) -> Reply | None:
        count = len(self.prompts)
        if progress.presses == 0:
            return _act(Progress(step=progress.step, presses=1, before=count), Key(text=_TERMINAL_KEYS))
        if count > progress.before or (count and progress.looks >= MAX_OPEN_LOOKS):
            return None
        if progress.looks < MAX_OPEN_LOOKS:
            return _look(progress)
        if progress.presses < MAX_PRESSES:
            again = replace(progress, presses=progress.presses + 1, looks=0)
            return _act(again, Key(text=_TERMINAL_KEYS))
        return self.answer(
            progress, failure=f"No terminal appeared after pressing {_TERMINAL_KEYS} {MAX_PRESSES} times"
        )

    def _start(self, progress: Progress, step: Run) -> Reply | None:
        """Type the command where a prompt waits; open a terminal when none does."""
        if not self.prompts:
            # After a key or a click the prompt may only be late.
            is_late = progress.step > 0 and progress.presses == 0 and progress.looks < MAX_SETTLE_LOOKS - 1
            return _look(progress) if is_late and self.screen.terminals else self._open(progress)
        terminal = self.prompts[0]
        if terminal.cursor is not None and not terminal.cursor.is_solid and progress.clicks < MAX_CLICKS:
            return _act(
                replace(progress, clicks=progress.clicks + 1),
                Click(action="left_click", coordinate=terminal.center),
            )
        typed = replace(progress, typed=1, looks=0, before=self._echoes(step.command))
        return _act(typed, TypeText(text=step.command + "\n"))

    def _watch(self, progress: Progress, step: Run, readings: list[str]) -> Reply | None:
        """Wait until the command has ended; run it again when its terminal or its keys were lost."""
        is_shown = self._echoes(step.command) > progress.before
        if self.screen.terminals and not self.prompts:
            if progress.looks < MAX_RUN_LOOKS:
                return _look(progress)
            readings.append(f"`{step.command}` was still running after {MAX_RUN_LOOKS} seconds.")
            return None
        if self.prompts and is_shown:
            return None
        return _look(progress) if progress.looks < MAX_SETTLE_LOOKS else self._settle(progress, step)

    def _settle(self, progress: Progress, step: Run) -> Reply | None:
        """No echo, and none will come: the screen was cleared, or the terminal or its keys were lost."""
        is_lost = self._had_error(progress) if self.prompts else step.command not in {"exit", "logout"}
        if not is_lost:
            return None
        if progress.reruns < MAX_RERUNS:
            return self._start(Progress(step=progress.step, reruns=progress.reruns + 1), step)
        return self.answer(progress, failure=f"The terminal was lost while running `{step.command}`")

    def _echoes(self, command: str) -> int:
        return sum(count_echoes(terminal.lines, command) for terminal in self.screen.terminals)

    def _had_error(self, progress: Progress) -> bool:
        """Whether a tool failed since the command was typed."""
        for output in self.turn.outputs:
            then = Progress.of(output.call_id)
            is_same = (then.step, then.typed, then.reruns) == (progress.step, 1, progress.reruns)
            if is_same and error_text(output) is not None:
                return True
        return False

    def _perform(self, progress: Progress) -> Reply:
        actions: list[Action] = []
        step = progress.step
        while step < len(self.steps) and (not actions or self.form.is_batched):
            current = self.steps[step]
            if not isinstance(current, Perform):
                break
            actions.extend(self._concrete(current.action))
            step += 1
        return _act(Progress(step=step), *actions)

    def _concrete(self, action: Action) -> Sequence[Action]:
        """Fill in what vendors insist on: where to scroll, and waits of a second each."""
        if isinstance(action, Scroll) and action.coordinate is None:
            center = (self.screen.width // 2, self.screen.height // 2)
            return [action.model_copy(update={"coordinate": center})]
        if isinstance(action, Wait) and self.form is ComputerForm.OPENAI_TOOL:
            return [Wait()] * max(1, min(MAX_WAITS, round(action.duration_ms / 1_000)))
        return [action]

    def _tell(self, progress: Progress, readings: list[str]) -> Reply | None:
        before = self.steps[progress.step - 1] if progress.step else None
        if isinstance(before, Perform) and progress.looks == 0:
            return _look(progress)
        readings.append(self._reading(progress))
        return None

    def _reading(self, progress: Progress) -> str:
        if not self.screen.terminals:
            return "I see no terminal on the screen, so there is nothing I can read."
        commands = [step.command for step in self.steps[: progress.step] if isinstance(step, Run)]
        text = None
        for terminal in self.screen.terminals if commands else ():
            text = text if text is not None else output_of(terminal.lines, commands[-1])
        if text is None:
            text = visible_text(self.screen.terminals[0].lines)
        if not text:
            return "It says nothing: there is no output."
        fence = max(["``", *re.findall(r"`+", text)], key=len) + "`"
        return f"It says:\n\n{fence}text\n{text}\n{fence}"

    def answer(self, progress: Progress, *, readings: Sequence[str] = (), failure: str = "") -> Reply:
        """The final answer: what was done, what was read, what went wrong."""
        done = ", ".join(
            _past_tense(step) for step in self.steps[: progress.step] if not isinstance(step, Say | Tell)
        )
        pieces = [f"I could not finish. {failure}."] if failure else []
        if done:
            pieces.append(f"Done{' before that' if failure else ''}: {done}.")
        pieces += [text for text in self.turn.said if text != OPENING]
        pieces += readings
        pieces += [f"A tool reported: {error}" for error in self.turn.errors[:5]]
        pieces += [f"I did not understand: “{piece[:200]}”." for piece in self.turn.program.unknown[:5]]
        return Reply(chunks=chunked("\n\n".join(pieces)))


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


def _look(progress: Progress) -> Reply:
    return _act(replace(progress, looks=progress.looks + 1), Wait(duration_ms=1_000))


def _act(progress: Progress, *actions: Action, text: str = "") -> Reply:
    call = Call(name="computer", actions=actions, marker=progress.marker)
    return Reply(chunks=chunked(text), calls=(call,), finish="tool-calls")
