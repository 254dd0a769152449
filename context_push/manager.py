"""
Keeps the workspace's snapshot true: scans, watches, scans again.

Nothing is scanned before the workspace is ready. A pass has an epoch; one that ends
after a newer one began is discarded, so a late pass never overwrites a newer one.

Invariant: versions rise, one for each change; a version names one content for ever.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from pathlib import Path
from typing import Literal, ParamSpec, TypeVar

import structlog
from asyncinotify import Inotify

from context_push.bounds import bound
from context_push.discover import Discovery, Note, discover
from context_push.errors import PassTimedOut
from context_push.sources import Sources
from context_push.watch import EXHAUSTED_TEXT, Watcher, quiet
from context_push.wire.hashing import aggregate_hash
from context_push.wire.resources import Resource

__all__ = ["ContextManager", "LastPush", "Snapshot", "Timing"]

# Passes until new directories to watch must have come to an end; each finds what appeared meanwhile.
MAX_ROUNDS = 8

# Threads that read: a pass that hangs leaves one for the next, and then no more.
THREADS = 2

P = ParamSpec("P")
T = TypeVar("T")
log = structlog.get_logger("context_push")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds."""

    # Editors save in several steps; a person does not notice this.
    quiet_s: float = 0.25
    # A file that never rests must not hide what else changed.
    busy_limit_s: float = 5.0
    # Without inotify: between looks.
    poll_s: float = 2.0
    # With it: network file systems tell nothing, and a moved ancestor takes its watches along.
    recheck_s: float = 60.0
    # A pass reads a few files; longer is a file system that hangs.
    pass_s: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The workspace's context at one time; version 0 is before the first pass and is never pushed."""

    version: int = 0
    aggregate_hash: str = field(default_factory=lambda: aggregate_hash(()))
    resources: tuple[Resource, ...] = ()
    error: str | None = None
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LastPush:
    """
    How the newest push went.

    ``accepted``: chats can be pinned to it. ``rejected``: this version is not taken, the next change is
    pushed again. ``refused``: the control plane takes none. ``waiting``: not now; it is tried again.
    """

    version: int
    outcome: Literal["accepted", "rejected", "refused", "waiting"]
    reason: str | None
    at: datetime


class ContextManager:
    """One workspace's context; ``last_push`` is told by whoever pushes it, None before the first."""

    def __init__(
        self,
        sources: Sources,
        *,
        timing: Timing | None = None,
        scan: Callable[[Sequence[str]], Discovery] = discover,
        open_inotify: Callable[[], Inotify] = Inotify,
    ) -> None:
        self.sources = sources
        self.snapshot = Snapshot()
        self.last_push: LastPush | None = None
        self._timing = timing or Timing()
        self._scan = scan
        self._watcher = Watcher(self._on_change, open_inotify=open_inotify)
        self._ready = asyncio.Event()
        self._changed = asyncio.Event()
        self._changed_at = 0.0
        self._published = asyncio.Condition()
        self._epoch = 0
        self._resync = asyncio.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="context")

    @property
    def is_ready(self) -> bool:
        """Whether the workspace is; before that nothing is scanned."""
        return self._ready.is_set()

    def mark_ready(self) -> None:
        """The workspace is ready: its start-up has ended, one way or the other."""
        self._ready.set()

    def touch(self) -> None:
        """Something may have changed that no watch tells of: look again."""
        self._on_change()

    async def wait_newer(self, version: int) -> Snapshot:
        """The newest snapshot, once it is newer than *version*."""
        async with self._published:
            await self._published.wait_for(lambda: self.snapshot.version > version)
            return self.snapshot

    async def resync(self) -> Snapshot:
        """
        Scan now; the snapshot that is at least as new as this call. Before readiness: version 0.

        Raises:
            PassTimedOut: a file system hangs.

        Cancellation: the loop looks again, since the pass it left may have been the newest.
        """
        if not self.is_ready:
            return self.snapshot
        async with self._resync:
            try:
                while await self._pass(lambda: False) is not _Outcome.PUBLISHED:
                    continue
            except BaseException:
                self._on_change()
                raise
            return self.snapshot

    async def run(self) -> None:
        """
        Scan once the workspace is ready, then after every change, until cancelled.

        Cancellation: the watches are dropped; a pass in its thread ends by itself.
        """
        await self._ready.wait()
        watching = self._watch()
        try:
            while True:
                if watching.done():
                    watching = self._watch()
                # Let it open its instance, so that the pass can set its watches.
                await asyncio.sleep(0)
                await self._look()
                await self._wait_change()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _watch(self) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(self._watcher.run(), name="context watch")

    # -- when ------------------------------------------------------------------

    def _on_change(self) -> None:
        self._changed_at = asyncio.get_running_loop().time()
        self._changed.set()

    async def _wait_change(self) -> None:
        timing = self._timing
        try:
            async with asyncio.timeout(timing.poll_s if self._is_degraded else timing.recheck_s):
                await self._changed.wait()
        except TimeoutError:
            return
        await self._settle()

    async def _settle(self) -> None:
        """Until nothing has changed for a while and no git holds its index, but not for ever."""
        timing, loop = self._timing, asyncio.get_running_loop()
        deadline = loop.time() + timing.busy_limit_s
        while True:
            rest = max(deadline - loop.time(), 0)
            await quiet(lambda: self._changed_at, quiet_s=timing.quiet_s, limit_s=rest)
            if not rest or not await self._in_thread(_is_git_busy, self.sources.roots()):
                return
            await asyncio.sleep(timing.quiet_s / 5)

    async def _look(self) -> None:
        """One pass that is published; while it is overtaken by changes it settles and starts again."""
        loop = asyncio.get_running_loop()
        started = loop.time()

        def is_overtaken() -> bool:
            return self._changed.is_set() and loop.time() - started < self._timing.busy_limit_s

        while True:
            self._changed.clear()
            try:
                outcome = await self._pass(is_overtaken)
            except PassTimedOut as exc:
                log.warning("scan failed", action="context_scan_failed", reason=str(exc))
                return
            if outcome is not _Outcome.OVERTAKEN:
                # One that was superseded leaves publishing to the newer.
                return
            await self._settle()

    # -- what ------------------------------------------------------------------

    @property
    def _is_degraded(self) -> bool:
        return self._watcher.is_exhausted or not self._watcher.is_running

    async def _pass(self, is_overtaken: Callable[[], bool]) -> "_Outcome":
        """Scan, watch what was found, and publish, unless the world moved on meanwhile."""
        self._epoch += 1
        epoch = self._epoch
        try:
            async with asyncio.timeout(self._timing.pass_s):
                found = await self._scan_watched(epoch)
        except TimeoutError:
            text = f"the sources could not be read within {self._timing.pass_s:g} s; does a file system hang?"
            raise PassTimedOut(text) from None
        if epoch != self._epoch:
            return _Outcome.SUPERSEDED
        if is_overtaken():
            return _Outcome.OVERTAKEN
        await self._publish(found)
        return _Outcome.PUBLISHED

    async def _scan_watched(self, epoch: int) -> Discovery:
        """Scan until nothing is read that was not watched before it was read."""
        roots = self.sources.roots()
        found = await self._in_thread(self._scan, roots)
        for _ in range(MAX_ROUNDS):
            if epoch != self._epoch or not await self._in_thread(self._watcher.update, found.interest, epoch):
                break
            found = await self._in_thread(self._scan, roots)
        return found

    async def _in_thread(self, work: Callable[P, T], *args: P.args, **_: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *args)

    async def _publish(self, found: Discovery) -> None:
        bounded = bound(found.resources)
        errors = [EXHAUSTED_TEXT.format(poll_s=self._timing.poll_s)] if self._is_degraded else []
        if bounded.dropped:
            errors.append(f"{len(bounded.dropped)} resources were left out: too many, or too long a path")
        before = self.snapshot
        error = "; ".join(errors) or None
        is_same = bool(before.version) and (bounded.resources, error) == (before.resources, before.error)
        async with self._published:
            self.snapshot = Snapshot(
                version=before.version if is_same else before.version + 1,
                aggregate_hash=aggregate_hash(bounded.resources),
                resources=bounded.resources,
                error=error,
                notes=found.notes + tuple(Note(path, "can't be named in a push") for path in bounded.dropped),
            )
            self._published.notify_all()


class _Outcome(Enum):
    """How a pass ended: its result is the snapshot, or a newer pass began, or things changed meanwhile."""

    PUBLISHED = auto()
    SUPERSEDED = auto()
    OVERTAKEN = auto()


def _is_git_busy(roots: Sequence[str]) -> bool:
    """Whether a checkout is under way in one of *roots*: then the files are neither old nor new."""
    return any(Path(f"{root}/.git/index.lock").exists() for root in roots)
