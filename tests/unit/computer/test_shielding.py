"""Finishing under cancellation."""

import asyncio

import pytest

from computer.shielding import finish


async def test_work_ends_before_the_cancellation_arrives() -> None:
    """Ours: cancelled twice, finished once."""
    started, gate, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        started.set()
        await gate.wait()
        done.set()

    task = asyncio.create_task(finish(work()))
    await started.wait()
    for _ in range(2):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert done.is_set()


async def test_result_and_error_pass_through() -> None:
    """Ours: without a cancellation nothing changes."""

    async def give() -> int:
        return 7

    async def fail() -> None:
        raise LookupError

    assert await finish(give()) == 7
    with pytest.raises(LookupError):
        await finish(fail())


async def test_cancellation_outranks_the_failure_of_the_work() -> None:
    """Ours: a cancelled caller sees the cancellation, and no warning about the failure."""
    started, gate = asyncio.Event(), asyncio.Event()

    async def fail() -> None:
        started.set()
        await gate.wait()
        raise LookupError

    task = asyncio.create_task(finish(fail()))
    await started.wait()
    task.cancel()
    await asyncio.sleep(0)
    gate.set()

    with pytest.raises(asyncio.CancelledError):
        await task
