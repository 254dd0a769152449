"""What is held, whatever a server calls its keys."""

from computer.display.held import HeldKeys
from computer.keys import Keysym

A, B, SHIFT = Keysym(0x41), Keysym(0x42), Keysym(0xFFE1)


def test_key_is_pressed_once_and_released_once() -> None:
    """Contract: pressing twice is pressing once."""
    held: HeldKeys[int] = HeldKeys()

    assert (held.press(A, (50, 38)), held.press(A, (50, 38))) == ((50, 38), ())
    assert held.down == (50, 38)
    assert (held.release(A), held.release(A)) == ((38, 50), ())
    assert held.down == ()


def test_modifier_goes_up_with_the_key_that_brought_it() -> None:
    """Ours: one that was down before stays down."""
    held: HeldKeys[int] = HeldKeys()
    held.press(SHIFT, (50,))
    held.press(A, (50, 38))

    assert held.release(A) == (38,)
    assert held.down == (50,)


def test_release_of_all_forgets_everything() -> None:
    """Required: in reverse, whoever owns what."""
    held: HeldKeys[int] = HeldKeys()
    held.press(A, (50, 38))
    held.press(B, (50, 56))

    assert held.release_all() == (56, 38, 50)
    assert (held.down, held.release(A), held.release(B)) == ((), (), ())
