"""
One suite for every ``Display``: the fake must behave like the real ones, VNC like X11.

What arrives of input is judged in ``test_display_input``, by others than the display.
"""

from collections.abc import Callable, Iterator

import pytest

from computer.display import Display, Patience
from computer.display.rest import wait_settled
from computer.display.vnc import VncDisplay, paste
from computer.errors import DisplayClosed, DisplayLost, InvalidAction, OutOfBounds
from computer.geometry import Point, Rect
from computer.keys import parse_chord
from computer.wire import Held
from tests.contract.computer.kinds import KINDS, running

PATIENCE = Patience(first_change_s=0.05, quiet_s=0.05, cap_s=2.0)


@pytest.fixture(scope="module", params=KINDS)
def connect(request: pytest.FixtureRequest) -> Iterator[Callable[[], Display]]:
    """Opens displays of one kind, all on one server; 1280x800, but for QEMU's firmware."""
    with running(request.param) as kind:
        yield kind.connect


@pytest.fixture
def display(connect: Callable[[], Display]) -> Iterator[Display]:
    """An open display."""
    display = connect()
    yield display
    display.close()


async def test_capture_has_the_shape_of_the_screen(display: Display) -> None:
    """Contract: (height, width, 4) uint8."""
    size = display.size()
    frame = display.capture()

    assert (frame.shape, frame.dtype.name) == ((size.height, size.width, 4), "uint8")


async def test_capture_is_a_copy_that_may_be_changed(display: Display) -> None:
    """Contract: two captures never share memory."""
    first = display.capture()
    second = display.capture()
    first[:] = 77

    assert not (second[:, :, :3] == 77).all()
    assert not (display.capture()[:, :, :3] == 77).all()


async def test_region_is_a_part_of_the_screen_without_the_pointer(display: Display) -> None:
    """Contract: the pointer's place makes no difference to what is read."""
    size = display.size()
    middle = Point(x=size.width // 2, y=size.height // 2)
    region = Rect(left=middle.x - 40, top=middle.y - 20, right=middle.x + 40, bottom=middle.y + 20)
    display.move_pointer(Point(x=5, y=6))
    away = display.read_pixels(region)
    display.move_pointer(middle)
    under = display.read_pixels(region)

    assert away.shape == (40, 80, 4)
    assert (away[..., :3] == under[..., :3]).all()
    with pytest.raises(OutOfBounds):
        display.read_pixels(Rect(left=0, top=0, right=size.width + 1, bottom=1))


async def test_title_is_told_or_said_to_be_unknown(display: Display) -> None:
    """Contract: "" where no window is active, None where it can't be known."""
    assert display.active_title() == (None if isinstance(display, VncDisplay) else "")


async def test_pointer_is_where_it_was_moved(display: Display) -> None:
    """Contract: corners are places."""
    width, height = display.size().width, display.size().height
    for x, y in ((0, 0), (width - 1, height - 1), (width // 2, height // 2)):
        display.move_pointer(Point(x=x, y=y))

        assert display.pointer() == Point(x=x, y=y)


async def test_pointer_never_leaves_the_screen(display: Display) -> None:
    """Contract: outside is refused, and the pointer stays."""
    display.move_pointer(Point(x=5, y=6))
    size = display.size()

    for x, y in ((-1, 0), (0, -1), (size.width, 0), (0, size.height)):
        with pytest.raises(OutOfBounds):
            display.move_pointer(Point(x=x, y=y))
    assert display.pointer() == Point(x=5, y=6)


async def test_releasing_what_is_up_is_harmless(display: Display) -> None:
    """Contract: releases are idempotent."""
    display.release_button(1)
    display.release_chord(parse_chord("ctrl+l"))
    display.release_all()
    display.press_button(1)
    display.press_button(1)
    display.press_chord(parse_chord("shift"))
    display.press_chord(parse_chord("shift"))
    held = display.read_held()
    display.release_all()
    display.release_all()

    assert (len(held.keys), held.buttons) == (1, (1,))
    assert display.read_held() == Held()


@pytest.mark.parametrize("text", ["a", "hello\tworld\n", "x" * 450, "漢字 and ascii"])
async def test_typing_counts_up_to_the_end(
    display: Display, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contract: each burst tells how far it got."""
    if isinstance(display, VncDisplay) and not text.isascii():
        # No window takes a paste here, however long it is waited for, and RFB has no other way.
        monkeypatch.setattr(paste, "TAKE_LIMIT_S", 0.1)
        with pytest.raises(InvalidAction, match="character 0 "):
            list(display.type_text(text))
        return
    counts = list(display.type_text(text))

    assert counts == sorted(set(counts))
    assert counts[-1] == len(text)


async def test_typing_may_be_abandoned(display: Display) -> None:
    """Contract: closing the iterator is enough."""
    bursts = display.type_text("y" * 1_000)
    next(bursts)
    bursts.close()  # type: ignore[attr-defined]
    display.release_all()

    assert display.pointer() is not None


async def test_still_screen_settles_without_a_change(display: Display) -> None:
    """Contract: nothing happened, nothing to wait for."""
    for _ in range(50):
        display.mark()
        settled, boxes = wait_settled(display, PATIENCE), display.take_changes()
        # Firmware is slow: it may still take in what another test has typed; and its caret blinks.
        if not settled.changed and not boxes:
            break

    assert (settled.changed, settled.is_settled, boxes) == (False, True, ())


async def test_closed_display_refuses(display: Display) -> None:
    """Contract: closing twice is harmless, using it after that is our bug."""
    display.close()
    display.close()

    for use in (display.size, display.capture, display.pointer, display.release_all, display.mark):
        with pytest.raises(DisplayClosed):
            use()
    with pytest.raises(DisplayClosed):
        next(display.type_text("a"))


async def test_aborted_display_is_lost(display: Display) -> None:
    """Contract: abort ends every later call in DisplayLost."""
    display.abort()

    with pytest.raises(DisplayLost):
        display.capture()
    with pytest.raises(DisplayLost):
        display.pointer()
