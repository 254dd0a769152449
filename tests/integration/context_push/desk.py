"""A workspace's context under test: real files, real inotify, quick timing."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from context_push.discover import Discovery, discover
from context_push.errors import PushRefused
from context_push.manager import ContextManager, Timing
from context_push.push import Pusher
from context_push.sources import Sources
from context_push.wire.push import ContextPush, PushAnswer
from context_push.wire.resources import InstructionBody, Resource, SkillBody

# Seconds for anything that might hang.
LIMIT_S = 20
# Looks by the clock are rare enough that no test passes because of them.
TIMING = Timing(quiet_s=0.25, busy_limit_s=10, poll_s=0.2, recheck_s=600)


@dataclass
class Desk:
    """A manager and every push that it gave."""

    home: Path
    manager: ContextManager
    pushes: asyncio.Queue[ContextPush] = field(default_factory=asyncio.Queue)
    scans: int = 0
    scanned: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def work(self) -> Path:
        """The working directory."""
        return self.home / "work"

    async def scans_reach(self, count: int) -> None:
        """Wait until so many passes have read the sources."""
        async with asyncio.timeout(LIMIT_S):
            while self.scans < count:
                self.scanned.clear()
                await self.scanned.wait()

    async def push(self) -> dict[str, str]:
        """The next push, as texts by path below the home directory."""
        async with asyncio.timeout(LIMIT_S):
            return self.texts(await self.pushes.get())

    def texts(self, push: ContextPush) -> dict[str, str]:
        """A push in short."""
        return self.texts_of(push.resources)

    def texts_of(self, resources: Sequence[Resource]) -> dict[str, str]:
        """Texts by path below the home directory; what is not ok is told by its status."""
        home = str(self.home.resolve())
        return {
            resource.source.removeprefix(home + "/"): resource.body.text
            if isinstance(resource.body, InstructionBody | SkillBody) and resource.is_ok
            else str(resource.status)
            for resource in resources
        }

    async def settled(self) -> list[dict[str, str]]:
        """
        Every push that the changes so far give: up to that of a mark, which is left out.

        The mark is made once those changes were published, so that it is a push of its own.
        """
        version = self.manager.snapshot.version
        async with asyncio.timeout(LIMIT_S):
            await self.manager.wait_newer(version)
        return await self.pushes_until_mark()

    async def pushes_until_mark(self) -> list[dict[str, str]]:
        """Every push up to that of a mark that is made now."""
        (self.work / ".cursorrules").write_text("mark")
        pushes: list[dict[str, str]] = []
        while (push := await self.push()).get("work/.cursorrules") != "mark":
            pushes.append(push)
        return pushes


@asynccontextmanager
async def desk(
    home: Path, *, timing: Timing = TIMING, ready: bool = True, seeds: Sequence[str] = (), **more: Any
) -> AsyncIterator[Desk]:
    """A running manager whose pushes are all accepted."""
    (home / "work").mkdir(parents=True, exist_ok=True)
    loop = asyncio.get_running_loop()
    scan: Callable[[Sequence[str]], Discovery] = more.pop("scan", discover)

    def counted(roots: Sequence[str]) -> Discovery:
        found = scan(roots)
        here.scans += 1
        loop.call_soon_threadsafe(here.scanned.set)
        return found

    sources = Sources(home=home, working_dir=home / "work", seeds=seeds)
    here = Desk(home, ContextManager(sources, timing=timing, scan=counted, **more))

    async def send(push: ContextPush) -> PushAnswer:
        here.pushes.put_nowait(push)
        return PushAnswer(accepted=True)

    if ready:
        here.manager.mark_ready()
    tasks = [
        asyncio.ensure_future(here.manager.run()),
        asyncio.ensure_future(Pusher(here.manager, send).run()),
    ]
    try:
        yield here
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(r, asyncio.CancelledError | PushRefused) for r in results), results
