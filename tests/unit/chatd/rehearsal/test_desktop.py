"""The model at a desktop, decision by decision, on a pretended desktop."""

import pytest

from chatd.rehearsal.brain import decide
from chatd.rehearsal.conversation import ComputerForm, Conversation, Entry, Picture, ToolOutput, ToolUse
from chatd.rehearsal.desktop import MAX_ACTIONS
from chatd.rehearsal.progress import Progress
from computer.wire import Click, Key, ScreenshotAction, Scroll, TypeText, Wait
from tests.unit.chatd.rehearsal.desk import Desk, kinds, run_to_end


def test_the_whole_errand_is_done_and_told() -> None:
    """Ours: open, run, read and report in one go."""
    desk = Desk(outputs={"uname -s": ["Linux"]}, open_after=3)

    reply = run_to_end(desk, "open a terminal, then run `uname -s`, then tell me what it says")

    assert kinds(desk) == ["screenshot", "key", "type"]
    assert desk.performed[-1] == TypeText(text="uname -s\n")
    assert reply.text == "Done: opened a terminal, ran `uname -s`.\n\nIt says:\n\n```text\nLinux\n```"


def test_running_without_a_terminal_opens_one() -> None:
    """Ours: a command needs a prompt, so one is made."""
    desk = Desk(outputs={"id": ["root"]})

    reply = run_to_end(desk, "run id and tell me what it says")

    assert kinds(desk) == ["screenshot", "key", "type"]
    assert "root" in reply.text


def test_running_uses_a_prompt_that_is_there() -> None:
    """Ours: no second terminal is opened."""
    desk = Desk(lines=["$"])

    run_to_end(desk, "run true")

    assert kinds(desk) == ["screenshot", "type"]


def test_a_terminal_without_focus_is_clicked_first() -> None:
    """Ours: a hollow cursor means that keys go elsewhere."""
    desk = Desk(lines=["$"], is_focused=False)

    run_to_end(desk, "run true")

    assert kinds(desk) == ["screenshot", "left_click", "type"]
    assert desk.performed[1] == Click(action="left_click", coordinate=(250, 176))


def test_the_key_is_pressed_again_and_then_given_up() -> None:
    """Ours: three presses with five looks each, then honesty."""
    desk = Desk(ignores_keys=True)

    reply = run_to_end(desk, "open a terminal and run ls")

    assert desk.performed.count(Key(text="ctrl+alt+t")) == 3
    assert desk.performed.count(Wait(duration_ms=1_000)) == 15
    assert reply.text == (
        "I could not finish. I could not confirm that a terminal opened: after pressing ctrl+alt+t "
        "3 times no terminal appeared.\n\nNot done: run `ls`."
    )


def test_a_slow_command_is_waited_for() -> None:
    """Ours: the output is read when the prompt is back."""
    desk = Desk(lines=["$"], outputs={"make": ["built"]}, slow={"make": 7})

    reply = run_to_end(desk, "run make; tell me what it says")

    assert "built" in reply.text


def test_an_endless_command_is_reported_as_running() -> None:
    """Ours: after a minute the answer says so, and that it was only started."""
    desk = Desk(lines=["$"], slow={"top": 1_000})

    reply = run_to_end(desk, "run top")

    assert sum(wait.duration_ms for wait in desk.performed if isinstance(wait, Wait)) == 60_000
    assert reply.text == (
        "Done: started `top`.\n\nIt is still running (or waits for input); so far it has printed nothing."
    )


@pytest.mark.parametrize("command", ["clear", "exit"])
def test_a_command_that_wipes_its_echo_is_done(command: str) -> None:
    """Ours: a cleared screen or a closed terminal is no loss when that was asked for."""
    desk = Desk(lines=["$"])

    reply = run_to_end(desk, f"run {command}")

    assert kinds(desk) == ["screenshot", "type"]
    assert reply.text == f"Done: ran `{command}`."


def test_a_command_lost_to_a_restart_is_run_again() -> None:
    """Ours: after an unknown outcome the screen decides; here the terminal is gone."""
    desk = Desk(
        lines=["$"], outputs={"id": ["root"]}, errors={2: "the outcome is unknown: the daemon restarted"}
    )
    desk_answer = desk.answer

    def forget(call_id: str, actions: tuple) -> object:
        output = desk_answer(call_id, actions)
        if output.is_error:
            desk.lines = None
        return output

    desk.answer = forget

    reply = run_to_end(desk, "run id; tell me what it says")

    assert kinds(desk) == ["screenshot", "screenshot", "key", "type"]
    assert "```text\nroot\n```" in reply.text
    assert "A tool reported: the outcome is unknown" in reply.text


def test_keys_lost_to_an_error_are_typed_again() -> None:
    """Ours: the prompt is still bare, so the command never arrived."""
    desk = Desk(lines=["$"], outputs={"id": ["root"]}, errors={2: '{"error": "the outcome is unknown"}'})

    reply = run_to_end(desk, "run id; tell me what it says")

    assert kinds(desk) == ["screenshot", "screenshot", "type"]
    assert "root" in reply.text


def test_the_same_command_twice_is_run_twice() -> None:
    """Ours: the echo of the first run is not taken for the second's."""
    desk = Desk(lines=["$"], outputs={"date": ["now"]})

    run_to_end(desk, "run date; run `date`")

    assert kinds(desk).count("type") == 2


def test_no_picture_ends_in_an_honest_answer() -> None:
    """Ours: a dead desktop does not loop."""
    desk = Desk(is_blind=True)

    reply = run_to_end(desk, "press x")

    assert reply.text.startswith("I could not finish. I got no picture")
    assert kinds(desk) == ["screenshot"] * 6


def test_the_actions_are_capped() -> None:
    """Ours: a program that would go on for long is ended."""
    desk = Desk(slow={"a": 9_999})

    reply = run_to_end(desk, "open a terminal\nrun `a`\n" * 10)

    assert len(desk.performed) == MAX_ACTIONS
    assert reply.text.startswith(f"I could not finish. I stopped after {MAX_ACTIONS} actions")


def test_simple_steps_are_single_calls_at_anthropic_and_batched_at_openai() -> None:
    """Ours: each vendor's way; a scroll gets a place, a wait without a length is repeated."""
    text = "press ctrl+l; scroll down 2; wait 2 seconds; click 1 2"
    single, batched = Desk(), Desk()

    run_to_end(single, text)
    run_to_end(batched, text, ComputerForm.OPENAI_TOOL)

    assert (single.asked, batched.asked) == (5, 2)
    assert batched.performed[1:] == [
        Key(text="ctrl+l"),
        Scroll(scroll_direction="down", scroll_amount=2, coordinate=(640, 400)),
        Wait(duration_ms=1_000),
        Wait(duration_ms=1_000),
        Click(action="left_click", coordinate=(1, 2)),
    ]


def test_every_reading_is_in_the_final_answer() -> None:
    """Ours: what was read on the way is not lost, nor what was not understood."""
    desk = Desk(lines=["$"], outputs={"a": ["one"], "b": ["two"]})

    reply = run_to_end(desk, "run `a`\ntell me what it says\nrun `b`\ntell me what it says\nsay bye\njump")

    assert reply.text.index("one") < reply.text.index("two") < reply.text.index("bye")
    assert "I did not understand: “jump”." in reply.text


def test_telling_without_a_terminal_says_so() -> None:
    """Ours: nothing is made up."""
    assert "I see no terminal" in run_to_end(Desk(), "press x; tell me what it says").text


def test_a_foreign_call_id_starts_the_program_again() -> None:
    """Ours: progress is read from ids that are ours only."""
    progress = Progress(step=3, presses=1, looks=2, typed=1, before=4, clicks=1, reruns=2, blind=5)

    assert Progress.of(f"toolu_{progress.marker}_ab12") == progress
    assert Progress.of("toolu_01ABC") == Progress()


def _lost(number: int) -> list[Entry]:
    """A call that the protocol could not replay, from both sides."""
    return [
        Entry(role="assistant", text=f'[earlier tool call: computer {{"number": {number}}}]'),
        Entry(role="user", text="[earlier tool call computer, failed] the desktop is gone"),
    ]


@pytest.mark.parametrize(("lost", "calls"), [(1, 1), (4, 1), (5, 0)])
def test_calls_that_came_back_as_prose_end_in_an_honest_answer(lost: int, calls: int) -> None:
    """Ours: without call ids too, a dead desktop is given up after five looks."""
    entries = [Entry(role="user", text="press x"), *(entry for n in range(lost) for entry in _lost(n))]
    conversation = Conversation(model="m", entries=tuple(entries), computer=ComputerForm.OPENAI_TOOL)

    reply = decide(conversation, lambda _: None)

    assert len(reply.calls) == calls
    assert reply.text.startswith("I could not finish. the desktop is gone. I got no") is (calls == 0)


def test_a_picture_from_before_a_lost_call_is_not_trusted() -> None:
    """Ours: the screen is looked at again before the step is done."""
    use = ToolUse(call_id="call_rh_0_0_0_0_0_0_0_0_n", name="computer")
    output = ToolOutput(call_id=use.call_id, pictures=(Picture(media_type="image/png", data="old"),))
    entries = (
        Entry(role="user", text="press x"),
        Entry(role="assistant", calls=(use,)),
        Entry(role="tool", outputs=(output,)),
        *_lost(1),
    )

    reply = decide(
        Conversation(model="m", entries=entries, computer=ComputerForm.OPENAI_TOOL), lambda _: None
    )

    assert reply.calls[0].actions == (ScreenshotAction(),)
