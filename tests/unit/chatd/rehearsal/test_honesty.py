"""The model at a desktop reports what happened, and nothing that did not."""

import pytest

from chatd.rehearsal.brain import MAX_TITLE_CHARACTERS, SPAWN_TOOL, decide
from chatd.rehearsal.conversation import ComputerForm, Conversation, Entry, Picture, ToolOutput, ToolUse
from chatd.rehearsal.screen import Cursor, Screen, Terminal
from computer.wire import Key, TypeText
from tests.unit.chatd.rehearsal.desk import ROWS, Desk, kinds, run_to_end

OUTSIDE = "(99999, 1) is outside the screen: x is 0 to 1279, y is 0 to 799"
FORMS = list(ComputerForm)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("is_flagged", [True, False])
def test_a_failed_click_is_no_success_and_ends_the_program(form: ComputerForm, is_flagged: bool) -> None:
    """Ours: the step, the reason and what was left undone are named, flag or not."""
    desk = Desk(lines=["$"], refusals={"left_click": OUTSIDE}, is_flagged=is_flagged)

    reply = run_to_end(desk, "press ctrl+l; click 99999 1; press x; run `ls`", form)

    assert reply.text == (
        f"I could not finish. This step failed: left-click at 99999 1: {OUTSIDE}.\n\n"
        f"Done before that: pressed ctrl+l.\n\nNot done: press x, run `ls`."
    )
    assert desk.performed[-1] == Key(text="ctrl+l")


def test_an_unknown_key_is_told_without_a_picture() -> None:
    """Ours: a call that was refused as a whole is a failed step too."""
    desk = Desk(errors={2: "unknown key 'foo'"})

    reply = run_to_end(desk, "press ctrl+foo")

    assert reply.text == "I could not finish. This step failed: press ctrl+foo: unknown key 'foo'."
    assert kinds(desk) == ["screenshot"]


def test_a_batch_that_was_refused_as_a_whole_blames_no_single_step() -> None:
    """Ours: nothing was done, and which step was at fault is not known."""
    desk = Desk(refusals={"key": "unknown key 'foo'"})

    reply = run_to_end(desk, "press ctrl+foo; click 1 2; tell me what it says", ComputerForm.FUNCTION)

    assert reply.text.startswith("I could not finish. None of these steps was done, one of them failed: ")
    assert "press ctrl+foo, left-click at 1 2: unknown key 'foo'." in reply.text
    assert "Done" not in reply.text


@pytest.mark.parametrize("text", ["Failed: unknown key 'foo'", "[computer] Failed: unknown key 'foo'"])
def test_a_note_after_the_picture_can_tell_a_failure(text: str) -> None:
    """Ours: where an answer has room for a picture only, its words come as a user's message."""
    use = ToolUse(call_id="call_rh_1_0_0_0_0_0_0_0_n", name="computer")
    picture = (Picture(media_type="image/png", data="x"),)
    is_note = text.startswith("[")
    output = ToolOutput(call_id=use.call_id, text="" if is_note else text, pictures=picture)
    entries = [
        Entry(role="user", text="press ctrl+foo"),
        Entry(role="assistant", calls=(use,)),
        Entry(role="tool", outputs=(output,)),
        *([Entry(role="user", text=text)] if is_note else []),
    ]
    conversation = Conversation(model="m", entries=tuple(entries), computer=ComputerForm.OPENAI_TOOL)

    reply = decide(conversation, lambda _: Screen(width=1280, height=800))

    assert reply.text == "I could not finish. This step failed: press ctrl+foo: unknown key 'foo'."


def test_a_failed_call_that_came_back_as_prose_ends_the_program() -> None:
    """Ours: it is not tried again and again, and the step is named."""
    entries = (
        Entry(role="user", text="press ctrl+foo; run `ls`"),
        Entry(
            role="assistant",
            text='[earlier tool call: computer {"actions": [{"action": "key", "text": "ctrl+foo"}]}]',
        ),
        Entry(role="user", text="[earlier tool call computer, failed] unknown key 'foo'"),
    )

    reply = decide(Conversation(model="m", entries=entries, computer=ComputerForm.OPENAI_TOOL))

    assert reply.calls == ()
    assert reply.text == (
        "I could not finish. This step failed: press ctrl+foo: unknown key 'foo'.\n\nNot done: run `ls`."
    )


def test_a_key_that_opens_nothing_is_no_opened_terminal() -> None:
    """Ours: a prompt that was there before proves nothing, and no command goes to it."""
    desk = Desk(lines=["old", "$"], ignores_keys=True)

    reply = run_to_end(desk, "open a terminal and run `rm x`")

    assert "I could not confirm that a terminal opened" in reply.text
    assert "Not done: run `rm x`." in reply.text
    assert "type" not in kinds(desk)


@pytest.mark.parametrize("lines", [["old", "$"], ["$"]])
def test_a_terminal_that_covers_another_is_recognised(lines: list[str]) -> None:
    """Ours: also when the one below was as fresh as the new one."""
    desk = Desk(lines=lines, outputs={"id": ["root"]})

    reply = run_to_end(desk, "open a terminal and run `id`, then tell me what it says")

    assert desk.performed.count(Key(text="ctrl+alt+t")) == 1
    assert reply.text == "Done: opened a terminal, ran `id`.\n\nIt says:\n\n```text\nroot\n```"
    assert desk.below is not None


@pytest.mark.parametrize("line", ["$ half a comma", "top - 12:00:00 up", "$ vi"])
def test_nothing_is_typed_where_no_prompt_waits(line: str) -> None:
    """Ours: a busy program, or something typed already, would get the keys."""
    desk = Desk(lines=["text", line])

    reply = run_to_end(desk, "run `ls`; press x")

    assert kinds(desk) == ["screenshot"]
    assert reply.text.startswith("I could not finish. I did not type `ls`: the terminal in front shows no")
    assert "Not done: press x." in reply.text


def test_nothing_is_typed_without_the_focus() -> None:
    """Ours: after two clicks the keys would still go elsewhere."""
    desk = Desk(lines=["$"], is_focused=False, takes_focus=False)

    reply = run_to_end(desk, "run `ls`")

    assert kinds(desk) == ["screenshot", "left_click", "left_click"]
    assert "does not have the keyboard" in reply.text


def test_a_command_that_left_no_trace_was_not_run() -> None:
    """Ours: the screen is as it was before typing."""
    reply = run_to_end(Desk(lines=["$"], is_deaf=True), "run `ls`")

    assert reply.text == "I could not finish. I typed `ls`, but nothing appeared in the terminal."


def test_output_so_far_is_shown_while_a_command_runs() -> None:
    """Ours: silence is not claimed for a program that has not ended."""
    desk = Desk(lines=["$"], slow={"read x": 9_999})
    desk_run = desk._run

    def ask(command: str) -> None:
        desk_run(command)
        desk.lines.append("name?")

    desk._run = ask

    reply = run_to_end(desk, "run `read x` and tell me what it says")

    so_far = "It is still running (or waits for input); so far the screen shows"
    assert reply.text == f"Done: started `read x`.\n\n{so_far}:\n\n```text\nname?\n```"


def test_unreadable_characters_are_admitted() -> None:
    """Ours: they are shown as what they are."""
    desk = Desk(lines=["$"], outputs={"x": ["caf\ufffd\ufffd"]})

    reply = run_to_end(desk, "run `x` and tell me what it says")

    assert "```text\ncaf\ufffd\ufffd\n```\n\nSome characters could not be read" in reply.text


def test_output_whose_beginning_scrolled_away_is_called_incomplete() -> None:
    """Ours: what is visible is not passed off as all."""
    desk = Desk(lines=["$"], outputs={"seq 99": [str(number) for number in range(1, 100)]})

    reply = run_to_end(desk, "run `seq 99` and tell me what it says")

    shown = "\n".join(str(number) for number in range(101 - ROWS, 100))
    assert "The beginning is missing, it has scrolled off the screen" in reply.text
    assert f"```text\n{shown}\n```" in reply.text


def test_a_prompt_glued_to_the_output_is_not_output() -> None:
    """Ours: a last line need not end, and the next command still finds its prompt."""
    desk = Desk(lines=["$"], outputs={"a": ["~^_"], "b": ["two words"]}, unended=frozenset("ab"))

    reply = run_to_end(desk, "run `a`\ntell me what it says\nrun `b`\ntell me what it says")

    assert "```text\n~^_\n```" in reply.text
    assert "```text\ntwo words\n```" in reply.text


@pytest.mark.parametrize("lines", [["$"], ["$ other", "of another window", "$"]])
def test_a_closed_terminal_is_gone(lines: list[str]) -> None:
    """Ours: the text of the window below is not the output."""
    desk = Desk(lines=lines)

    reply = run_to_end(desk, "open a terminal, run `exit`, then tell me what it says")

    assert reply.text == (
        "Done: opened a terminal, ran `exit`.\n\n"
        "The terminal is gone since `exit`, so there is no output I can read."
    )


def test_a_terminal_that_vanished_is_not_opened_again() -> None:
    """Ours: without an error the command itself ended it, so running it again would do so again."""
    desk = Desk(lines=["$"])
    desk._run = lambda _: setattr(desk, "lines", None)

    reply = run_to_end(desk, "run `kill -9 $$`")

    assert desk.performed.count(TypeText(text="kill -9 $$\n")) == 1
    assert reply.text == "I could not finish. The terminal is gone since I typed `kill -9 $$`."


def test_a_missing_program_is_named_first() -> None:
    """Ours: the tool knows better than we why there is no picture."""
    error = "missing: install xterm (apt-get install xterm)"
    desk = Desk(errors=dict.fromkeys(range(1, 9), error))

    reply = run_to_end(desk, "open a terminal")

    assert reply.text == (
        f"I could not finish. {error}. I got no picture of the screen.\n\nNot done: open a terminal."
    )


def test_without_a_cursor_only_a_bare_prompt_counts() -> None:
    """Ours: the end of some output may look like a prompt; after clicks the focus must be seen."""
    cursor: Cursor | None = None
    terminal = Terminal(origin=(0, 0), columns=80, rows=24, lines=("costs 5 $",), cursor=cursor)
    use = ToolUse(call_id="call_rh_0_0_3_0_0_0_0_0_n", name="computer")
    output = ToolOutput(call_id=use.call_id, pictures=(Picture(media_type="image/png", data="x"),))
    entries = (
        Entry(role="user", text="run `ls`"),
        Entry(role="assistant", calls=(use,)),
        Entry(role="tool", outputs=(output,)),
    )
    conversation = Conversation(model="m", entries=entries, computer=ComputerForm.ANTHROPIC_TOOL)

    reply = decide(conversation, lambda _: Screen(width=1280, height=800, terminals=(terminal,)))

    assert "I did not type `ls`" in reply.text


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("open a terminal and run `ls`", "run `ls`"),
        ("Open a terminal, then run `ls`", "run `ls`"),
        ("open a terminal", "open a terminal"),
        (
            "open a terminal and run `uname -a | tee /some/where/out.txt`, then tell me what it says",
            "run `uname -a | tee /some/where/out.txt`, then tell me what…",
        ),
        ("run `" + "x" * 80 + "`", "run `" + "x" * 54 + "…"),
    ],
)
def test_a_title_is_what_tells_an_errand_from_others(text: str, title: str) -> None:
    """Ours: cut at a word, at most sixty characters."""
    conversation = Conversation(
        model="m", entries=(Entry(role="user", text=text),), tools=frozenset({SPAWN_TOOL})
    )

    (call,) = decide(conversation).calls

    assert call.arguments == {"prompt": text, "title": title}
    assert len(title) <= MAX_TITLE_CHARACTERS
