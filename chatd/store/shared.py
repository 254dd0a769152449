"""One read for all who want the same at the same moment: a thousand watchers of a chat wake together."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

__all__ = ["SharedReads"]

T = TypeVar("T")


class SharedReads:
    """
    Reads that are joined by whoever asks for the same before they begin.

    Never joined once under way: such a read may miss what somebody was just woken for.

    Args:
        read: makes a read of its own.
    """

    def __init__(self, read: Callable[..., Awaitable[Any]]) -> None:
        self._read = read
        self._gathering: dict[tuple[object, ...], asyncio.Task[Any]] = {}

    async def read(self, run: Callable[..., T], *args: Any, **kwargs: Any) -> T:  # noqa: ANN401 -- those of run
        """
        What *run(connection, …)* returns; several have the same object, so it must not be changed.

        Cancellation: the others go on.
        """
        key = (run, args, *sorted(kwargs.items()))
        task = self._gathering.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._begin(key, run, args, kwargs))
            task.add_done_callback(_retrieve)
            self._gathering[key] = task
        found: T = await asyncio.shield(task)
        return found

    async def _begin(
        self, key: tuple[object, ...], run: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> T:
        # Whoever was woken by the same event asks in this turn of the loop.
        await asyncio.sleep(0)
        del self._gathering[key]
        found: T = await self._read(run, *args, **kwargs)
        return found


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Nobody may be left to hear of a failure."""
    if not task.cancelled():
        task.exception()
