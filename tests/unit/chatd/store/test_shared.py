"""Reads that are made once for all who want them at the same moment."""

import asyncio
from typing import Any

import pytest

from chatd.store.shared import SharedReads


class Source:
    """Something that changes, and is read slowly."""

    def __init__(self) -> None:
        self.value = 0
        self.reads = 0
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.failure: Exception | None = None
        self.shared = SharedReads(self.read)

    async def read(self, run: Any, *args: Any, **kwargs: Any) -> Any:
        """What was true when the read began."""
        self.reads += 1
        seen = run(self.value, *args, **kwargs)
        await self.may_end.wait()
        if self.failure is not None:
            raise self.failure
        return seen


def plus(value: int, more: int, *, times: int = 1) -> int:
    """A query."""
    return value + more * times


async def test_who_asks_together_gets_one_answer() -> None:
    """Ours: and who asks for something else another."""
    source = Source()
    found = await asyncio.gather(
        *(source.shared.read(plus, 1) for _ in range(1000)),
        *(source.shared.read(plus, 1, times=2) for _ in range(10)),
        source.shared.read(plus, 3),
    )

    assert found == [1] * 1000 + [2] * 10 + [3]
    assert source.reads == 3


async def test_nobody_joins_a_read_that_has_begun() -> None:
    """Ours: it may miss what somebody was just woken for."""
    source = Source()
    source.may_end.clear()
    first = asyncio.create_task(source.shared.read(plus, 0))
    while not source.reads:  # noqa: ASYNC110 -- some turns of the loop
        await asyncio.sleep(0)
    source.value = 7
    second = asyncio.create_task(source.shared.read(plus, 0))
    await asyncio.sleep(0)
    source.may_end.set()

    assert [await first, await second] == [0, 7]


async def test_one_who_leaves_takes_nothing_from_the_others() -> None:
    """Ours: nor when all leave is anything left behind."""
    source = Source()
    source.may_end.clear()
    tasks = [asyncio.create_task(source.shared.read(plus, 5)) for _ in range(3)]
    while not source.reads:  # noqa: ASYNC110 -- some turns of the loop
        await asyncio.sleep(0)
    tasks[0].cancel()
    source.may_end.set()

    assert await asyncio.gather(*tasks[1:]) == [5, 5]
    assert tasks[0].cancelled()
    alone = asyncio.create_task(source.shared.read(plus, 6))
    await asyncio.sleep(0)
    alone.cancel()
    assert await source.shared.read(plus, 6) == 6
    assert source.shared._gathering == {}


async def test_a_failure_reaches_everybody() -> None:
    """Ours: and the next read is another."""
    source = Source()
    source.failure = OSError("no disk")
    found = await asyncio.gather(*(source.shared.read(plus, 1) for _ in range(3)), return_exceptions=True)
    source.failure = None

    assert found == [source.failure or found[0]] * 3
    assert isinstance(found[0], OSError)
    assert await source.shared.read(plus, 1) == 1
    with pytest.raises(TypeError):
        await source.shared.read(plus, [])
