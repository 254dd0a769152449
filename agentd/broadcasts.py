"""Broadcasts of the daemon's desktops: begun with the first who needs one, ended with the last."""

import asyncio
from collections import defaultdict

import structlog

from agentd.desktops import Desktops
from agentd.feed import Feed
from agentd.wishes import Wishes
from computer.broadcast import Broadcast
from computer.errors import ComputerError
from computer.shielding import finish

__all__ = ["Broadcasts"]

log = structlog.get_logger("agentd.broadcasts")


class Broadcasts:
    """
    At most one broadcast for each desktop.

    Args:
        desktops: whose screens are shown.
    """

    def __init__(self, desktops: Desktops) -> None:
        self._desktops = desktops
        self._live: dict[str, Broadcast] = {}
        self._feeds: defaultdict[Broadcast, int] = defaultdict(int)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._ending: set[asyncio.Task[None]] = set()

    async def feed(self, name: str, wishes: Wishes) -> Feed | None:
        """A watcher's part of the broadcast of the desktop called *name*; None where there can be none."""
        async with self._locks[name]:
            broadcast = self._live.get(name)
            if broadcast is None or broadcast.is_over:
                try:
                    broadcast = await Broadcast.start(*await self._desktops.get(name).x_server())
                except ComputerError as exc:
                    log.warning("no broadcast", action="broadcast_failed", desktop=name, reason=str(exc))
                    return None
                log.info("broadcast begun", action="broadcast_begin", desktop=name)
                self._live[name] = broadcast
            self._feeds[broadcast] += 1
        return Feed(broadcast, wishes, lambda: self._release(name, broadcast))

    async def close(self) -> None:
        """End them all."""
        await asyncio.gather(*(broadcast.close() for broadcast in self._live.values()), *self._ending)

    def _release(self, name: str, broadcast: Broadcast) -> None:
        self._feeds[broadcast] -= 1
        if self._feeds[broadcast]:
            return
        del self._feeds[broadcast]
        if self._live.get(name) is broadcast:
            del self._live[name]
        task = asyncio.get_running_loop().create_task(finish(broadcast.close()), name=f"end broadcast {name}")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        log.info("broadcast ended", action="broadcast_end", desktop=name)
