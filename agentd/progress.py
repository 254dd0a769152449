"""
What calls under way have to tell: the newest word of each, for whoever listens.

A call may be listened to by nobody, or from another connection than the one that it came over.
"""

import asyncio
from collections.abc import Awaitable, Callable

__all__ = ["Progress"]

# Seconds between two words of one call: people read no faster, and the link carries clicks as well.
GAP_S = 0.5


class Progress:
    """The words of one daemon's calls."""

    def __init__(self) -> None:
        self._listeners: dict[str, list[Callable[[str], None]]] = {}

    def tell(self, call_id: str, text: str) -> None:
        """The call goes on; *text* takes the place of what it told before."""
        for listener in tuple(self._listeners.get(call_id, ())):
            listener(text)

    async def forward(self, call_id: str, send: Callable[[str], Awaitable[None]]) -> None:
        """
        Send the call's newest word whenever there is one, until cancelled.

        What a slow connection has no time for is left out.
        """
        newest: list[str] = []
        came = asyncio.Event()

        def listen(text: str) -> None:
            newest[:] = [text]
            came.set()

        self._listeners.setdefault(call_id, []).append(listen)
        try:
            while True:
                await came.wait()
                came.clear()
                await send(newest.pop())
                await asyncio.sleep(GAP_S)
        finally:
            self._listeners[call_id].remove(listen)
            if not self._listeners[call_id]:
                del self._listeners[call_id]
