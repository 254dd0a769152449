"""
How the rehearsal model works at a desktop: one decision per request.

Pure and stateless. Where it stands is written into the ids of its calls
(``Progress``), which come back with the next request; everything else is what
the last screenshot shows. An id that is not ours starts the program again, and
the cap on actions ends it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from chatd.rehearsal.conversation import Call, ComputerForm, Reply, ToolOutput, chunked
from chatd.rehearsal.language import OpenTerminal, Perform, Run, Say, Step, Tell
from chatd.rehearsal.progress import Progress
from chatd.rehearsal.screen import Screen, Terminal
from chatd.rehearsal.shell import closes_shell, is_fresh, wipes_screen
from chatd.rehearsal.sight import Reader, Sight, is_idle, place_of
from chatd.rehearsal.turn import Turn, action_error, is_outcome_unknown
from chatd.rehearsal.wording import done_text, imperative, undone_text
from computer.wire import Action, Click, Key, ScreenshotAction, Scroll, TypeText, Wait

__all__ = ["MAX_ACTIONS", "OPENING", "work"]

# Actions in one turn. A few runs of full patience and three openings fit; an endless loop does not.
MAX_ACTIONS = 150
# Looks, a second apart, until a new terminal shows its prompt; then the key is pressed again.
MAX_OPEN_LOOKS = 5
MAX_PRESSES = 3
# Looks until a command has ended: ten a second apart, ten five seconds apart, a minute in all.
MAX_RUN_LOOKS = 20
QUICK_LOOKS = 10
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
# Words of an error that came without a flag.
_COMPLAINT = re.compile(r"\b(?:missing|fail\w*|error|cannot|can't|could not|not)\b", re.IGNORECASE)


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
    sight = Sight(turn=turn, screen=screen or Screen(width=0, height=0), read=read)
    desk = _Desk(turn=turn, form=form, sight=sight)
    failure = desk.failed(progress)
    if failure is not None:
        return failure
    reply = desk.look_again(progress) if screen is None else desk.go_on(replace(progress, blind=0))
    if reply.calls and turn.action_count >= MAX_ACTIONS:
        return desk.stop(progress, f"I stopped after {MAX_ACTIONS} actions", rest=progress.step)
    return reply


def _blind_reason(turn: Turn) -> str:
    """Why there is no picture, in the tool's own words first."""
    blind = "I got no picture of the screen"
    told = turn.outputs[-1].text if turn.outputs else turn.note
    reason = (turn.errors[-1] if turn.errors else told)[:300].strip(" .\n")
    if turn.errors or _COMPLAINT.search(reason):
        return f"{reason}. {blind}"
    return f"{blind}. {reason}".rstrip(" .")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Desk:
    """One decision: the turn so far and what the screen shows now."""

    turn: Turn
    form: ComputerForm
    sight: Sight

    @property
    def steps(self) -> tuple[Step, ...]:
        """The program."""
        return self.turn.program.steps

    def look_again(self, progress: Progress) -> Reply:
        """Ask for a picture once more; give up after ``MAX_BLIND`` answers without one."""
        if progress.blind + self.turn.lost_since >= MAX_BLIND:
            return self.stop(progress, _blind_reason(self.turn), rest=progress.step)
        return _act(replace(progress, blind=progress.blind + 1), ScreenshotAction())

    def failed(self, progress: Progress) -> Reply | None:
        """The answer when the last action failed; None when it did not, or only a look did."""
        error, text = self.turn.lost_error, ""
        if not error and not self.turn.lost_since and self.turn.calls:
            output = self.turn.result_of(self.turn.calls[-1]) or ToolOutput(call_id="")
            # Looks and retries are no steps; the screen decides after them.
            is_step = not progress.looks and not progress.blind
            error, text = (action_error(output) or "") if is_step else "", output.text
        if not error or is_outcome_unknown(error):
            return None
        if self.turn.lost_error:
            first = self._lost_step(progress)
            return self._fail_in_batch(first, self._batch_end(first), error, done=0)
        if progress != Progress(step=progress.step):
            return self._fail_in_batch(progress.step, progress.step + 1, error, done=0)
        first = self._batch_start(progress.step)
        if first == progress.step:
            return None
        return self._fail_in_batch(first, progress.step, error, done=_done_actions(text))

    def _fail_in_batch(self, first: int, end: int, error: str, *, done: int) -> Reply:
        """Find the step that failed by the *done* actions; when none was, any of them may have."""
        if not done and end - first > 1:
            names = undone_text(self.steps[first:end])
            return self.stop(
                Progress(step=first), f"None of these steps was done, one of them failed: {names}: {error}"
            )
        for index in range(first, end):
            step = self.steps[index]
            done -= len(self._concrete(step.action)) if isinstance(step, Perform) else 0
            if done < 0:
                return self._fail_at(index, error)
        return self._fail_at(end - 1, error)

    def _fail_at(self, index: int, error: str) -> Reply:
        name = imperative(self.steps[index])
        return self.stop(Progress(step=index), f"This step failed: {name}: {error.rstrip('.')}")

    def _batch_start(self, end: int) -> int:
        """Where the simple steps before *end* begin that one call performed; *end* when it was none."""
        first = end
        while first and self._is_batch(first - 1) and (first == end or self.form.is_batched):
            first -= 1
        return first

    def _batch_end(self, first: int) -> int:
        """Where the steps end that one call performs from *first* on."""
        end = first + 1
        while (
            self.form.is_batched and self._is_batch(first) and end < len(self.steps) and self._is_batch(end)
        ):
            end += 1
        return end

    def _is_batch(self, index: int) -> bool:
        return isinstance(self.steps[index], Perform)

    def _lost_step(self, progress: Progress) -> int:
        """The step that a call without an id belonged to."""
        call = self.turn.lost_call
        for index in range(progress.step, len(self.steps)):
            match self.steps[index]:
                case OpenTerminal() if _TERMINAL_KEYS in call:
                    return index
                case Run() if not (index == progress.step and progress.typed):
                    return index
                case Perform():
                    return index
                case _:
                    pass
        return min(progress.step, len(self.steps) - 1)

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
        """Press the terminal's key until there is one more fresh terminal than before; None then."""
        if progress.presses == 0:
            return self._mark(progress) or _act(
                replace(progress, presses=1, looks=0, typed=0, before=self.sight.fresh_count),
                Key(text=_TERMINAL_KEYS),
            )
        if self.sight.fresh_count > progress.before:
            return None
        if progress.looks < MAX_OPEN_LOOKS:
            return _look(progress)
        if progress.presses < MAX_PRESSES:
            again = replace(progress, presses=progress.presses + 1, looks=0)
            return _act(again, Key(text=_TERMINAL_KEYS))
        pressed = f"after pressing {_TERMINAL_KEYS} {MAX_PRESSES} times"
        seen = "the screen shows no new prompt" if self.sight.screen.terminals else "no terminal appeared"
        return self.stop(progress, f"I could not confirm that a terminal opened: {pressed} {seen}")

    def _mark(self, progress: Progress) -> Reply | None:
        """
        Press Return in a fresh terminal in front; None when there is none, or it does not help.

        A new window would cover it and look the same; an empty line tells them apart.
        """
        front = self.sight.focused()
        if front is None or not is_idle(front) or not is_fresh(front.lines):
            return None
        if not progress.typed:
            return _act(replace(progress, typed=1), Key(text="Return"))
        return _look(progress) if progress.looks < MAX_SETTLE_LOOKS else None

    def _start(self, progress: Progress, step: Run) -> Reply | None:
        """Type the command where a prompt waits; open a terminal when there is none at all."""
        if progress.presses or not self.sight.screen.terminals:
            opening = self._open(progress)
            if opening is not None:
                return opening
        focused = self.sight.focused()
        terminal = focused or next(iter(self.sight.idle), None)
        if terminal is None or not is_idle(terminal):
            # The prompt may only be late.
            if progress.looks < MAX_SETTLE_LOOKS:
                return _look(progress)
            why = "the terminal in front shows no prompt that waits for a command"
            return self.stop(progress, f"I did not type `{step.command}`: {why}")
        if focused is None:
            return self._give_focus(progress, terminal, step)
        typed = replace(progress, typed=1, looks=0, before=self.sight.echoes(step.command))
        return _act(typed, TypeText(text=step.command + "\n"))

    def _give_focus(self, progress: Progress, terminal: Terminal, step: Run) -> Reply:
        if progress.clicks < MAX_CLICKS:
            click = Click(action="left_click", coordinate=terminal.center)
            return _act(replace(progress, clicks=progress.clicks + 1, looks=0), click)
        if progress.looks < MAX_SETTLE_LOOKS:
            return _look(progress)
        why = "its terminal does not have the keyboard, so the keys would go elsewhere"
        return self.stop(progress, f"I did not type `{step.command}`: {why}")

    def _watch(self, progress: Progress, step: Run, readings: list[str]) -> Reply | None:
        """Wait until the command has ended; run it again when its terminal or its keys were lost."""
        is_shown = self.sight.echoes(step.command) > progress.before
        if self.sight.is_running(step.command):
            if progress.looks < MAX_RUN_LOOKS:
                return self._look_longer(progress)
            if not isinstance(self._following(progress.step), Tell):
                readings.append(self.sight.reading(progress.step + 1))
            return None
        if self.sight.screen.terminals and is_shown:
            return None
        return _look(progress) if progress.looks < MAX_SETTLE_LOOKS else self._settle(progress, step)

    def _look_longer(self, progress: Progress) -> Reply:
        """Wait a second, or five when the command takes long."""
        seconds = 1 if progress.looks < QUICK_LOOKS else 5
        waits = self._concrete(Wait(duration_ms=seconds * 1_000))
        return _act(replace(progress, looks=progress.looks + 1), *waits)

    def _settle(self, progress: Progress, step: Run) -> Reply | None:
        """No echo, and none will come: the screen was cleared, or the terminal or its keys were lost."""
        if self._had_error(progress):
            if progress.reruns < MAX_RERUNS:
                return self._start(Progress(step=progress.step, reruns=progress.reruns + 1), step)
            return self.stop(progress, f"The terminal was lost while running `{step.command}`")
        if self.sight.is_gone(progress.step, step.command):
            if closes_shell(step.command):
                return None
            return self.stop(progress, f"The terminal is gone since I typed `{step.command}`")
        earlier = self.sight.typed_into(progress.step)
        front = self.sight.screen.terminals[0]
        is_wiped = is_fresh(front.lines) and wipes_screen(step.command)
        if earlier == place_of(front) and not is_wiped:
            why = "nothing appeared in the terminal"
            return self.stop(progress, f"I typed `{step.command}`, but {why}")
        return None

    def _had_error(self, progress: Progress) -> bool:
        """Whether a tool failed since the command was typed."""
        for output in self.turn.outputs:
            then = Progress.of(output.call_id)
            is_same = (then.step, then.typed, then.reruns) == (progress.step, 1, progress.reruns)
            if is_same and action_error(output) is not None:
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
            center = (self.sight.screen.width // 2, self.sight.screen.height // 2)
            return [action.model_copy(update={"coordinate": center})]
        if isinstance(action, Wait) and self.form is ComputerForm.OPENAI_TOOL:
            return [Wait()] * max(1, min(MAX_WAITS, round(action.duration_ms / 1_000)))
        return [action]

    def _tell(self, progress: Progress, readings: list[str]) -> Reply | None:
        before = self.steps[progress.step - 1] if progress.step else None
        if isinstance(before, Perform) and progress.looks == 0:
            return _look(progress)
        readings.append(self.sight.reading(progress.step))
        return None

    def _following(self, index: int) -> Step | None:
        return self.steps[index + 1] if index + 1 < len(self.steps) else None

    def stop(self, progress: Progress, failure: str, *, rest: int | None = None) -> Reply:
        """
        The final answer when *failure* keeps the program from going on.

        Args:
            progress: where it stands; the steps before are done.
            failure: why, a sentence without its full stop.
            rest: the first step that is named as not done; the one after the current by default.
        """
        left = undone_text(self.steps[progress.step + 1 if rest is None else rest :])
        return self.answer(progress, readings=[f"Not done: {left}."] if left else [], failure=failure)

    def answer(self, progress: Progress, *, readings: Sequence[str] = (), failure: str = "") -> Reply:
        """The final answer: what was done, what was read, what went wrong."""
        steps = [step for step in self.steps[: progress.step] if not isinstance(step, Say | Tell)]
        last = steps[-1] if steps else None
        is_running = isinstance(last, Run) and self.sight.is_running(last.command)
        done = done_text(steps, is_last_running=is_running)
        pieces = [f"I could not finish. {failure}."] if failure else []
        if done:
            pieces.append(f"Done{' before that' if failure else ''}: {done}.")
        pieces += [text for text in self.turn.said if text != OPENING]
        pieces += readings
        pieces += [f"A tool reported: {error}" for error in self._other_errors(failure)]
        pieces += [f"I did not understand: “{piece[:200]}”." for piece in self.turn.program.unknown[:5]]
        return Reply(chunks=chunked("\n\n".join(pieces)))

    def _other_errors(self, failure: str) -> list[str]:
        """What tools reported beside the reason of *failure*."""
        told = [error.split("Failed: ")[-1].strip(" .\n") for error in self.turn.errors[:5]]
        return [error for error, core in zip(self.turn.errors, told, strict=False) if core not in failure]


def _done_actions(text: str) -> int:
    """How many actions a failed answer reports as done: a line each, before the failure."""
    before = re.split(r"^(?:Error: )?Failed: ", text, maxsplit=1, flags=re.MULTILINE)
    lines = before[0].splitlines() if len(before) > 1 else []
    return sum(bool(line.strip()) and not line.startswith("Warning: ") for line in lines)


def _look(progress: Progress) -> Reply:
    return _act(replace(progress, looks=progress.looks + 1), Wait(duration_ms=1_000))


def _act(progress: Progress, *actions: Action, text: str = "") -> Reply:
    call = Call(name="computer", actions=actions, marker=progress.marker)
    return Reply(chunks=chunked(text), calls=(call,), finish="tool-calls")
