"""When memory is given back."""

import asyncio
from collections.abc import Iterator

import pytest

from chatd import memory


@pytest.mark.parametrize(
    ("counts", "times"),
    [
        ([0, 10, 400, 0], 0),
        ([0, 600, 600, 101], 0),
        ([0, 600, 600, 100, 90, 0], 1),
        ([600, 0, 600, 0], 2),
        ([9_000, 8_000, 7_600, 0], 2),
    ],
)
async def test_memory_is_given_back_after_storms_only(
    monkeypatch: pytest.MonkeyPatch, counts: list[int], times: int
) -> None:
    """Ours: each time that many connections have ended, and never for a few."""
    monkeypatch.setattr(memory, "LOOK_S", 0)
    done: list[int] = []
    left: Iterator[int] = iter(counts)
    watching = asyncio.create_task(
        memory.give_back_after_storms(lambda: next(left), let_go=lambda: done.append(1))
    )
    with pytest.raises(RuntimeError):  # the counts have ended
        await watching

    assert len(done) == times


def test_giving_back_is_harmless() -> None:
    """Ours: the C library has it or not."""
    memory.give_back()
