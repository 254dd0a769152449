"""A secret is black in pictures for as long as it may be seen."""

import numpy as np
import pytest
from numpy.typing import NDArray

from agentd.trace.shade import Shade

Pixels = NDArray[np.uint8]
DICE = np.random.default_rng(7)
# As text: about every third pixel is ink.
SECRET, OTHER, PROMPT = ((DICE.random((12, 80)) < 0.35) for _ in range(3))


def _screen(*lines: tuple[NDArray[np.bool_], int]) -> Pixels:
    """White with lines of black ink, each at a height."""
    pixels = np.full((160, 200, 3), 255, np.uint8)
    for ink, top in lines:
        pixels[top : top + 12, 40:120][ink] = 0
    return pixels


def _shows(pixels: Pixels, top: int) -> bool:
    """Whether any ink of the line at this height can be told from black."""
    return bool(pixels[top : top + 12, 40:120].any())


def _typed(before: Pixels, after: Pixels) -> Shade:
    shade = Shade(before)
    shade.cover(after, is_typed=True)
    return shade


def test_what_the_secret_changed_is_black_and_the_rest_is_not() -> None:
    """Required: secrets never appear."""
    covered = _typed(_screen(), _screen((SECRET, 64))).cover(
        _screen((SECRET, 64), (OTHER, 16)), is_typed=True
    )

    assert not _shows(covered, 64)
    assert np.array_equal(covered[16:28, 40:120], _screen((OTHER, 16))[16:28, 40:120])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_shows_while_it_is_typed_is_black_too(count: int) -> None:
    """Ours: programs show what was typed a moment later, in parts."""
    shade = Shade(_screen())
    half = SECRET.copy()
    half[:, 40:] = False
    for _ in range(count):
        assert not shade.cover(_screen((half, 64)), is_typed=False)[64:76, 40:80].any()
        assert not shade.is_over
    shade.cover(_screen((SECRET, 64)), is_typed=True)

    assert not _shows(shade.cover(_screen((SECRET, 64)), is_typed=True), 64)


def test_other_text_in_its_place_is_shown_again() -> None:
    """Ours: a log that stays black tells nothing."""
    shade = _typed(_screen(), _screen((SECRET, 64)))
    now = _screen((OTHER, 64))
    covered = shade.cover(now, is_typed=True)

    assert np.array_equal(covered, now)
    assert shade.is_over


@pytest.mark.parametrize("to", [16, 51, 90])
def test_secret_that_is_scrolled_stays_black(to: int) -> None:
    """Ours: in a terminal the line goes up with the next ones."""
    shade = _typed(_screen((PROMPT, 40)), _screen((PROMPT, 40), (SECRET, 64)))
    now = _screen((SECRET, to), (OTHER, 64) if to != 51 else (OTHER, 100))
    covered = shade.cover(now, is_typed=True)
    again = shade.cover(_screen((SECRET, to - 13)), is_typed=True)

    assert not _shows(covered, to)
    assert not _shows(again, to - 13)
    assert not shade.is_over


def test_nothing_that_changed_is_nothing_to_cover() -> None:
    """Ours: a password that is not shown, as by `sudo`."""
    shade = _typed(_screen((PROMPT, 40)), _screen((PROMPT, 40)))

    assert shade.is_over


@pytest.mark.parametrize("before", [None, np.zeros((10, 10, 3), np.uint8)], ids=["unknown", "another size"])
def test_all_is_black_where_it_is_not_known_how_it_was(before: Pixels | None) -> None:
    """Ours: better nothing than a secret."""
    shade = Shade(before)

    assert not shade.cover(_screen((SECRET, 64)), is_typed=True).any()
    assert not shade.is_over


def test_another_size_begins_anew() -> None:
    """Ours: nothing is known of where it is on a screen of another size."""
    shade = _typed(_screen(), _screen((SECRET, 64)))

    assert not shade.cover(_screen((SECRET, 64))[:100], is_typed=True).any()


def test_second_secret_hides_the_first_as_well() -> None:
    """Ours: user and password, one after the other."""
    shade = _typed(_screen(), _screen((SECRET, 64)))
    shade.reopen()
    now = _screen((SECRET, 64), (OTHER, 96))
    shade.cover(now, is_typed=True)
    covered = shade.cover(now, is_typed=True)

    assert not _shows(covered, 64)
    assert not _shows(covered, 96)


def test_lossy_pictures_are_compared_as_such() -> None:
    """Ours: JPEG."""
    noise = DICE.integers(0, 10, (160, 200, 3), np.uint8)
    shade = Shade(_screen() - noise, is_lossy=True)
    now = np.maximum(_screen((SECRET, 64)), noise)
    shade.cover(now, is_typed=True)
    covered = shade.cover(_screen((SECRET, 64)), is_typed=True)

    assert not _shows(covered, 64)
    assert covered[:60].all()
