"""
Whether this process lives, and whether it may be sent work; asked by load balancers, so without a token.

The answers name parts and use a closed set of words: nothing of users, models or addresses.
"""

import asyncio
import time
from typing import Literal

import structlog
from aiohttp import web

from chatd.store.probing import prove_writable
from chatd.store.store import Store

__all__ = ["READINESS", "Readiness", "routes"]

Word = Literal["ok", "slow", "failing", "stopped"]

# Seconds that an answer serves everybody who asks: a flood of questions is one look at the database.
FRESH_S = 1.0
# Seconds after which a database that has not answered is slow. Its own limits end the question.
SLOW_S = 5.0

routes = web.RouteTableDef()
log = structlog.get_logger("chatd.health")


class Readiness:
    """Looks at the parts that every request needs: both ends of the database, and what runs beside it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tasks: list[asyncio.Task[None]] = []
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._lock = asyncio.Lock()
        self._seen: dict[str, Word] = {}
        self._seen_at = float("-inf")
        self.is_stopping = False

    def watch(self, task: asyncio.Task[None]) -> None:
        """Count *task* among what must not end."""
        self._tasks.append(task)

    async def look(self) -> dict[str, Word]:
        """How each part is; at most as old as FRESH_S."""
        async with self._lock:
            if time.monotonic() - self._seen_at > FRESH_S:
                self._seen = await self._look()
                self._seen_at = time.monotonic()
        process: Word = "stopped" if self.is_stopping else "ok"
        return {"process": process, **self._seen}

    async def _look(self) -> dict[str, Word]:
        # A question that was not answered yet is not asked again.
        if "reading" not in self._asking:
            self._asking["reading"] = asyncio.ensure_future(self._store.read(_nothing))
        if "writing" not in self._asking:
            self._asking["writing"] = asyncio.ensure_future(self._store.write(prove_writable))
        await asyncio.wait(self._asking.values(), timeout=SLOW_S)
        words = {name: self._word(name) for name in tuple(self._asking)}
        ended = [task.get_name() for task in self._tasks if task.done()]
        if ended:
            log.error("a part of chatd ended", action="part_ended", parts=ended)
        return {**words, "work": "stopped" if ended else "ok"}

    def _word(self, name: str) -> Word:
        task = self._asking[name]
        if not task.done():
            return "slow"
        del self._asking[name]
        if (failure := task.exception()) is None:
            return "ok"
        log.warning(
            "the database fails", action="not_ready", part=name, reason=str(failure).partition("\n")[0]
        )
        return "failing"

    async def close(self) -> None:
        """Let go of questions under way."""
        for task in self._asking.values():
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)


READINESS: web.AppKey[Readiness] = web.AppKey("readiness", Readiness)


def _nothing(_: object) -> None:
    """A transaction that begins and ends: the server answers."""


@routes.get("/healthz")
async def health(_: web.Request) -> web.Response:
    """Alive: the event loop runs. Whoever gets no answer may start us again."""
    return web.json_response({"status": "ok"})


@routes.get("/readyz")
async def ready(request: web.Request) -> web.Response:
    """Ready for work, part by part; 503 while some part is not."""
    checks = await request.app[READINESS].look()
    is_ready = all(word == "ok" for word in checks.values())
    body = {"status": "ok" if is_ready else "unavailable", "checks": checks}
    return web.json_response(body, status=200 if is_ready else 503)
