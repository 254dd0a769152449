"""A pretended desktop that does what the rehearsal model asks, for tests without pixels."""

from dataclasses import dataclass, field

from chatd.rehearsal.brain import decide
from chatd.rehearsal.conversation import (
    ComputerForm,
    Conversation,
    Entry,
    Picture,
    Reply,
    ToolOutput,
    ToolUse,
)
from chatd.rehearsal.screen import Cursor, Screen, Terminal
from computer.wire import Action, Click, Key, TypeText, Wait

ROWS = 24


@dataclass
class Desk:
    """
    Windows of a desktop; *outputs* maps commands to lines, *slow* commands to looks they take.

    A new terminal covers the one there was exactly, and *below* keeps that. *unended* commands
    print a last line without its end. *refusals* are what actions fail with, by kind, with
    a picture and *is_flagged* or not. *is_deaf* windows get no keys, and a click gives the
    focus if the desk *takes_focus*.
    """

    outputs: dict[str, list[str]] = field(default_factory=dict)
    slow: dict[str, int] = field(default_factory=dict)
    open_after: int = 0
    ignores_keys: bool = False
    errors: dict[int, str] = field(default_factory=dict)
    is_blind: bool = False
    is_focused: bool = True
    lines: list[str] | None = None
    below: list[str] | None = None
    unended: frozenset[str] = frozenset()
    refusals: dict[str, str] = field(default_factory=dict)
    is_flagged: bool = False
    is_deaf: bool = False
    takes_focus: bool = True
    performed: list[Action] = field(default_factory=list)
    seen: list[Screen] = field(default_factory=list)
    asked: int = 0
    opening: int | None = None
    pending: tuple[int, list[str]] | None = None

    def perform(self, action: Action) -> None:
        """Do one action; time passes by a look."""
        self.performed.append(action)
        self._pass_time()
        match action:
            case Key(text="ctrl+alt+t") if not self.ignores_keys and self.opening is None:
                self.opening = self.open_after
                self._pass_time(looks=0)
            case Key(text="Return") if self.lines and self.lines[-1] == "$":
                self.lines.append("$")
            case TypeText(text=text) if self.lines and not self.is_deaf and text.endswith("\n"):
                self._run(text[:-1])
            case Click():
                self.is_focused = self.takes_focus
            case _:
                pass

    def _pass_time(self, looks: int = 1) -> None:
        if self.opening is not None:
            self.opening -= looks
            if self.opening <= 0:
                self.opening, self.pending = None, None
                self.below, self.lines = self.lines, ["$"]
        if self.pending is not None and self.lines:
            left, output = self.pending
            self.pending = (left - 1, output) if left > 1 else None
            if self.pending is None:
                self.lines += [*output, "$"]

    def _run(self, command: str) -> None:
        assert self.lines
        self.lines[-1] = f"$ {command}"
        output = self.outputs.get(command, [])
        if command in self.slow:
            self.pending = (self.slow[command], output)
        elif command == "clear":
            self.lines = ["$"]
        elif command == "exit":
            self.lines, self.below = self.below, None
        elif command in self.unended:
            self.lines += [*output[:-1], f"{output[-1]}$"]
        else:
            self.lines += [*output, "$"]

    def screen(self) -> Screen:
        """What the model reads."""
        if self.lines is None:
            return Screen(width=1280, height=800)
        lines = self.lines[-ROWS:]
        gap = 1 if lines[-1].endswith("$") and self.pending is None else None
        cursor = Cursor(column=2, row=len(lines) - 1, is_solid=self.is_focused, gap=gap)
        terminal = Terminal(origin=(10, 20), columns=80, rows=ROWS, lines=tuple(lines), cursor=cursor)
        return Screen(width=1280, height=800, terminals=(terminal,))

    def answer(self, call_id: str, actions: tuple[Action, ...]) -> ToolOutput:
        """Do the actions of one call, or fail as *errors* says (by number of the call)."""
        self.asked += 1
        error = self.errors.get(self.asked)
        if error is not None:
            return ToolOutput(call_id=call_id, text=error, is_error=True)
        text: list[str] = []
        for action in actions:
            refusal = self.refusals.get(action.action)
            text.append(f"Failed: {refusal}" if refusal else f"Did {action.action}.")
            if refusal:
                break
            self.perform(action)
        pictures = () if self.is_blind else (Picture(media_type="image/png", data=self._snapshot()),)
        is_error = self.is_flagged and text[-1].startswith("Failed: ")
        return ToolOutput(call_id=call_id, text="\n".join(text), pictures=pictures, is_error=is_error)

    def _snapshot(self) -> str:
        self.seen.append(self.screen())
        return str(len(self.seen) - 1)

    def read(self, picture: Picture) -> Screen:
        """The screen as it was in *picture*."""
        return self.seen[int(picture.data)]


def run_to_end(desk: Desk, text: str, form: ComputerForm = ComputerForm.ANTHROPIC_TOOL) -> Reply:
    """Ask the model until it answers; at most 300 times."""
    entries = [Entry(role="user", text=text)]
    for number in range(300):
        conversation = Conversation(
            model="rehearsal", entries=tuple(entries), tools=frozenset({"computer"}), computer=form
        )
        reply = decide(conversation, desk.read)
        if not reply.calls:
            return reply
        (call,) = reply.calls
        call_id = f"toolu_{call.marker}_{number}"
        use = ToolUse(call_id=call_id, name="computer", action_count=len(call.actions))
        entries.append(Entry(role="assistant", text=reply.text, calls=(use,)))
        entries.append(Entry(role="tool", outputs=(desk.answer(call_id, call.actions),)))
    raise AssertionError("the model never answered")


def kinds(desk: Desk) -> list[str]:
    """The actions performed, in short; waits are left out."""
    return [action.action for action in desk.performed if not isinstance(action, Wait)]
