"""The small imperative language."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.rehearsal.language import HELP, OpenTerminal, Perform, Run, Say, Tell, parse
from computer.wire import Click, Key, ScreenshotAction, Scroll, TypeText, Wait

_CLICK = Click(action="left_click", coordinate=(1, 2))


def _short(step: object) -> object:
    match step:
        case Perform(action=action):
            return action
        case Run(command=command):
            return f"run {command}"
        case Say(text=text):
            return f"say {text}"
        case _:
            return type(step)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("open a terminal", [OpenTerminal]),
        ("Please open a new terminal window.", [OpenTerminal]),
        ("run `uname -a`", ["run uname -a"]),
        ("RUN uname -a", ["run uname -a"]),
        ("run `a; b and c` in it", ["run a; b and c"]),
        ("run ls; pwd", ["run ls; pwd"]),
        ("run cat a and b, then tell me what it says", ["run cat a and b", Tell]),
        ("run ls ..", ["run ls .."]),
        ("type “héllo”", [TypeText(text="héllo")]),
        ("type 'a b' then press Enter", [TypeText(text="a b"), Key(text="Return")]),
        ('type "don\'t"', [TypeText(text="don't")]),
        ("press ctrl + l", [Key(text="ctrl+l")]),
        ("click 100 200", [Click(action="left_click", coordinate=(100, 200))]),
        ("double-click at (0, 0)", [Click(action="double_click", coordinate=(0, 0))]),
        ("right click 7, 9", [Click(action="right_click", coordinate=(7, 9))]),
        ("scroll down", [Scroll(scroll_direction="down", scroll_amount=3)]),
        ("scroll up 1000", [Scroll(scroll_direction="up", scroll_amount=100)]),
        ("wait 2 seconds", [Wait(duration_ms=2_000)]),
        ("wait for 250 ms", [Wait(duration_ms=250)]),
        ("wait 99 minutes", [Wait(duration_ms=300_000)]),
        ("take a screenshot", [ScreenshotAction()]),
        ("Tell me what it says.", [Tell]),
        ("say hello world", ["say hello world"]),
        ("say it and press x", ["say it", Key(text="x")]),
        ("Open a terminal. Run `date`!\nThen tell me the output", [OpenTerminal, "run date", Tell]),
        ("open a terminal, press ctrl+l, click 1, 2", [OpenTerminal, Key(text="ctrl+l"), _CLICK]),
        ("open a terminal and then run `x`;tell me what it says", [OpenTerminal, "run x", Tell]),
    ],
)
def test_instructions_become_steps(text: str, expected: list[object]) -> None:
    """Ours: every form of the grammar is understood, and quotes protect separators."""
    program = parse(text)

    assert expected == [_short(step) for step in program.steps]
    assert program.unknown == ()


def test_what_is_not_understood_is_kept() -> None:
    """Ours: nothing is dropped silently."""
    program = parse("open a terminal; fly to the moon\nrun `ls`. Thanks a lot!")

    assert [OpenTerminal, "run ls"] == [_short(step) for step in program.steps]
    assert program.unknown == ("fly to the moon", "Thanks a lot!")


@pytest.mark.parametrize("text", ["", "   ", "What is the capital of France?", "type ''", "run ``", "say"])
def test_other_text_has_no_steps(text: str) -> None:
    """Ours: a question is not an instruction, and empty arguments are none."""
    assert parse(text).steps == ()


def test_only_saying_needs_no_desktop() -> None:
    """Ours: a root chat answers "say" itself and delegates the rest."""
    assert not parse("say hi").needs_desktop
    assert parse("say hi; press x").needs_desktop


def test_everything_in_the_help_is_understood() -> None:
    """Ours: what the model claims to understand, it understands."""
    for line in HELP.splitlines():
        for example in line.removeprefix("- ").split(", "):
            assert parse(example).steps, example


def test_steps_are_bounded() -> None:
    """Ours: a long text cannot make a long program."""
    assert len(parse("press x\n" * 5_000).steps) == 50


@given(st.text(alphabet=st.sampled_from("abx `'\"“”;,.!?\n\tand then run type say click 12 press ctrl+")))
def test_any_text_is_parsed(text: str) -> None:
    """Ours: parsing is total."""
    parse(text)
