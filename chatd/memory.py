"""
Memory goes back to the system after a storm.

Thousands of connections that end leave garbage in circles, which Python collects when it happens to make
more, and free pages, which the allocator keeps. Both are let go once a storm is over, and not at any other
time: a collection of everything stops the process for some tenths of a second.
"""

import asyncio
import ctypes
import gc
from collections.abc import Callable

__all__ = ["give_back", "give_back_after_storms"]

# Seconds between two looks.
LOOK_S = 20.0
# Connections that have ended since there were most of them, from which on it was a storm.
STORM = 500


def give_back() -> None:
    """Collect everything, and give free pages to the system where the C library can."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


async def give_back_after_storms(count: Callable[[], int], *, let_go: Callable[[], None] = give_back) -> None:
    """Watch how many connections there are until cancelled; *let_go* when STORM of them have ended."""
    most = 0
    while True:
        await asyncio.sleep(LOOK_S)
        now = count()
        most = max(most, now)
        if most - now >= STORM:
            let_go()
            most = now
