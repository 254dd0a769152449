"""Text that arrived in part."""

from collections.abc import Generator

import pytest

from computer.display import Typed, Way
from computer.display.partial import telling_how_far
from computer.errors import InvalidAction, NotConfirmed

TYPED = Typed(way=Way.PASTE)


class Bursts:
    """Types up to each of *counts*, then fails if it is told to."""

    def __init__(self, *counts: int, error: str | None = None) -> None:
        self.counts = counts
        self.error = error
        self.is_closed = False

    def run(self) -> Generator[int, None, Typed]:
        """Type."""
        try:
            yield from self.counts
            if self.error is not None:
                raise InvalidAction(self.error)
            return TYPED
        finally:
            self.is_closed = True


def test_text_that_arrives_whole_is_told_as_before() -> None:
    """Ours: the same counts, the same way."""
    bursts = telling_how_far(Bursts(2, 5).run())

    assert [next(bursts), next(bursts)] == [2, 5]
    with pytest.raises(StopIteration) as end:
        next(bursts)
    assert end.value.value == TYPED


def test_failure_before_the_first_character_is_a_refusal() -> None:
    """Required: "nothing was done" is said only where it is so."""
    with pytest.raises(InvalidAction, match="character 0"):
        list(telling_how_far(Bursts(error="character 0 was not delivered").run()))


def test_failure_in_the_middle_tells_what_was_delivered() -> None:
    """Required: the offset of the first character that could not be delivered, and that others were."""
    bursts = telling_how_far(Bursts(2, 5, error="character 5 was not delivered").run())

    assert [next(bursts), next(bursts)] == [2, 5]
    with pytest.raises(NotConfirmed, match=r"character 5 .* the first 5 characters were delivered, the rest"):
        next(bursts)


def test_leaving_off_closes_the_typing() -> None:
    """Ours: closing the outer iterator is enough to let every key go."""
    typing = Bursts(2, 5)
    bursts = telling_how_far(typing.run())
    next(bursts)
    bursts.close()

    assert typing.is_closed
