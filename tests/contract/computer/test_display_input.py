"""
What a ``Display`` does with pointer, keys and clipboard, seen by others and never told by itself.

QEMU's firmware is left out: nobody there can be asked what arrived.
x11vnc, seen from outside: it has no horizontal wheel, lifts Shift for keys that are no letters, puts
text where only old programs look for it, and seldom tells what others copied.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator

import pytest

from computer.display import Display
from computer.display.vnc import VncDisplay
from computer.errors import InvalidAction
from computer.geometry import Point
from computer.keys import parse_chord
from tests.contract.computer.kinds import KINDS, Kind, running
from tests.contract.computer.witness import LIMIT_S, Seen, Witness, looking_on, spelled, without_motion

PLACE = Point(x=333, y=222)
ASCII = "Hello_World-42 (a>b) [~|\\]\tTab\nend\n"


@pytest.fixture(scope="module", params=[name for name in KINDS if name != "qemu"])
def kind(request: pytest.FixtureRequest) -> Iterator[Kind]:
    """Each kind of display that somebody else can watch."""
    with running(request.param) as kind:
        yield kind


@pytest.fixture
def display(kind: Kind) -> Iterator[Display]:
    """An open display."""
    display = kind.connect()
    yield display
    display.close()


@pytest.fixture
async def witness(kind: Kind, display: Display) -> AsyncIterator[Witness]:
    """Somebody who looks on, and has seen nothing yet."""
    async with looking_on(kind, display) as witness:
        await witness.take()
        yield witness


def _click(button: int) -> list[Seen]:
    return [("press", button), ("release", button)]


def _has_side_buttons(display: Display) -> bool:
    """Whether there are buttons beyond the wheel: RFB's mask has no room for them."""
    return not isinstance(display, VncDisplay)


async def test_pointer_goes_where_it_is_moved(display: Display, witness: Witness) -> None:
    """Contract: a window under the pointer sees it come, at each place and in order."""
    places = [(0, 0), (1279, 799), (640, 400), (17, 788)]
    for x, y in places:
        display.move_pointer(Point(x=x, y=y))
        display.press_button(1)
        display.release_button(1)
    seen = await witness.take(2 * len(places))

    # x11vnc is first put where it is believed to be.
    seen = seen[-3 * len(places) :]
    assert [detail for kind, detail in seen if kind == "motion"] == places
    assert [kind for kind, _ in seen] == ["motion", "press", "release"] * len(places)


@pytest.mark.parametrize("button", [1, 2, 3, 8, 9])
async def test_button_is_pressed_and_released(display: Display, witness: Witness, button: int) -> None:
    """Contract: left, middle, right, and back and forward where the protocol has them."""
    display.move_pointer(PLACE)
    if button > 7 and not _has_side_buttons(display):
        with pytest.raises(InvalidAction, match=r"alt\+Left"):
            display.press_button(button)
        display.release_button(button)
        display.press_button(1)
        assert without_motion(await witness.take(1)) == [("press", 1)]
        return
    display.press_button(button)
    pressed = without_motion(await witness.take(1))
    display.release_button(button)
    released = without_motion(await witness.take(1))

    assert pressed + released == _click(button)
    assert pressed == [("press", button)]


@pytest.mark.parametrize("button", [4, 5, 6, 7])
async def test_wheel_turns_by_notches(kind: Kind, display: Display, witness: Witness, button: int) -> None:
    """Contract: up, down, left, right; every notch arrives."""
    for _ in range(3):
        display.press_button(button)
        display.release_button(button)
    expected = [] if kind.name == "x11vnc" and button > 5 else _click(button) * 3
    display.press_button(1)
    display.release_button(1)

    assert without_motion(await witness.take(len(expected) + 2)) == expected + _click(1)


async def test_drag_moves_with_the_button_down(display: Display, witness: Witness) -> None:
    """Contract: press, motion, release, in this order."""
    display.move_pointer(Point(x=100, y=100))
    display.press_button(1)
    for x in (120, 140, 160):
        display.move_pointer(Point(x=x, y=100))
    display.release_button(1)
    seen = await witness.take(2)

    begin, end = seen.index(("press", 1)), seen.index(("release", 1))
    assert seen[begin + 1 : end] == [("motion", (x, 100)) for x in (120, 140, 160)]


async def test_chord_goes_down_in_order_and_up_in_reverse(display: Display, witness: Witness) -> None:
    """Contract: modifiers first, the key last; all of it is down in between."""
    names = ["Control_L", "Shift_L", "T"]
    display.press_chord(parse_chord("ctrl+shift+t"))
    pressed = await witness.take(3)
    keys, _ = await witness.down()
    display.release_chord(parse_chord("ctrl+shift+t"))
    released = await witness.take(3)

    assert pressed == [("key_press", name) for name in names]
    assert keys == 3
    assert released == [("key_release", name) for name in reversed(names)]
    assert await witness.down() == (0, 0)


async def test_pressing_twice_is_pressing_once(display: Display, witness: Witness) -> None:
    """Contract: what is down stays down, and goes up once."""
    for _ in range(2):
        display.press_button(1)
        display.press_chord(parse_chord("shift"))
    pressed = without_motion(await witness.take(2))
    for _ in range(2):
        display.release_button(1)
        display.release_chord(parse_chord("shift"))
    released = without_motion(await witness.take(2))

    assert pressed == [("press", 1), ("key_press", "Shift_L")]
    assert released == [("release", 1), ("key_release", "Shift_L")]


async def test_releasing_what_is_up_is_harmless(display: Display, witness: Witness) -> None:
    """Contract: nobody sees anything of it."""
    display.release_button(1)
    display.release_chord(parse_chord("ctrl+l"))
    display.release_all()
    display.press_button(3)
    display.release_button(3)

    assert without_motion(await witness.take(2)) == _click(3)


async def test_release_all_lets_everything_go(display: Display, witness: Witness) -> None:
    """Contract: keys and buttons, and the server has nothing down afterwards."""
    display.press_chord(parse_chord("ctrl+F9"))
    display.press_button(1)
    display.press_button(3)
    await witness.take(4)
    before = await witness.down()
    display.release_all()
    released = await witness.take(4)

    assert before == (2, 2)
    assert sorted(without_motion(released), key=str) == [
        ("key_release", "Control_L"), ("key_release", "F9"), ("release", 1), ("release", 3)
    ]  # fmt: skip
    assert await witness.down() == (0, 0)


async def test_closing_lets_everything_go(display: Display, witness: Witness) -> None:
    """Contract: whoever closes holds nothing any more."""
    display.press_chord(parse_chord("shift"))
    display.press_button(1)
    await witness.take(2)
    before = await witness.down()
    display.close()
    await witness.take(2)

    assert before == (1, 1)
    assert await witness.down() == (0, 0)


async def test_typed_text_arrives_as_it_is(display: Display, witness: Witness) -> None:
    """Contract: every character once and in order; a line feed is Return, a tab is Tab."""
    list(display.type_text(ASCII))
    seen = await witness.take(2 * len(ASCII))

    assert spelled(seen) == ASCII
    assert await witness.down() == (0, 0)


async def test_abandoned_text_has_arrived_as_far_as_it_was_told(display: Display, witness: Witness) -> None:
    """Contract: so many characters and no more; no key stays down."""
    bursts = display.type_text("y" * 1_000)
    count = next(bursts)
    bursts.close()
    display.release_all()
    seen = await witness.take(2 * count)

    assert spelled(seen) == "y" * count
    assert await witness.down() == (0, 0)


async def test_pasted_text_arrives_and_the_clipboard_comes_back(
    kind: Kind, display: Display, witness: Witness
) -> None:
    """Contract: in one piece; what was copied before can be pasted again. Refused where it can't be done."""
    if kind.name == "x11vnc":
        # It never asks for a text that it is offered.
        with pytest.raises(InvalidAction, match="did not take the paste"):
            display.paste_text("漢字 é\n")
        assert "漢字 é\n" not in await _take_pastes(witness)
        return
    await witness.copy("kept")
    await _until_read(display, "kept")
    display.paste_text("漢字 é\n")

    assert await _take_pastes(witness) == ["漢字 é\n"]
    assert await witness.read_clipboard() == "kept"


async def test_text_put_on_the_clipboard_is_there_for_others(
    kind: Kind, display: Display, witness: Witness
) -> None:
    """Contract: another program reads it."""
    if kind.name != "x11vnc":
        await witness.copy("old")
        await _until_read(display, "old")
    display.set_clipboard("new één")

    assert await _until_other_reads(witness, "new één") == "new één"


async def test_text_that_another_program_copied_is_read(
    kind: Kind, display: Display, witness: Witness
) -> None:
    """Contract: the latest of them."""
    if kind.name == "x11vnc":
        display.set_clipboard("one één")
        assert (await _until_other_reads(witness, "one één"), display.get_clipboard()) == ("one één",) * 2
        return
    for text in ("one één", "two"):
        await witness.copy(text)

        assert await _until_read(display, text) == text


async def _until_read(display: Display, text: str) -> str:
    """What the display reads, at last: a VNC server tells of a new owner when it gets round to it."""
    deadline = time.monotonic() + LIMIT_S
    while (found := display.get_clipboard()) != text and time.monotonic() < deadline:
        display.capture()
        await asyncio.sleep(0.01)
    return found


async def _until_other_reads(witness: Witness, text: str) -> str | None:
    deadline = time.monotonic() + LIMIT_S
    while (found := await witness.read_clipboard()) != text and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    return found


async def _take_pastes(witness: Witness) -> list[object]:
    seen: list[Seen] = []
    deadline = time.monotonic() + LIMIT_S
    while not any(kind == "paste" for kind, _ in seen) and time.monotonic() < deadline:
        seen += await witness.take(1)
    return [detail for kind, detail in seen if kind == "paste"]
