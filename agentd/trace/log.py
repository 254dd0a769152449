"""
Watch every call on every desktop and write it down.

Owns the thread in which that happens, and what is looked at before a call. A log that can't be written is
told once in the daemon's own log; the call goes on.
"""

import asyncio
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import structlog

from agentd.acting import Chore, Deed, Origin
from agentd.desktops import Desktops
from agentd.errors import AgentError
from agentd.settings import AgentdSettings
from agentd.trace.entry import LogEntry, describe_actions, fill_result, origin_fields
from agentd.trace.pixels import changed_box
from agentd.trace.shading import Shading
from agentd.trace.storage import LogStorage
from computer.errors import ComputerError
from computer.geometry import Size
from computer.secrets import secrets_of
from computer.shielding import finish
from computer.wire import ComputerCall, ComputerResult, ScreenshotData, Zoom

__all__ = ["ActionLog", "make_action_log"]

T = TypeVar("T")
Region = tuple[int, int, int, int]

# Desktops whose logs are kept besides those of this boot: where each chat has its own there may be many.
MAX_LOGS = 32
# Seconds between two pictures before calls that ask for no picture themselves.
PICTURE_PAUSE_S = 1.0
# Seconds until the picture after such a call, unless the next call comes first.
AFTER_S = 0.3
LOOKING = frozenset({"screenshot", "zoom", "cursor_position"})

log = structlog.get_logger("agentd.actions")


@dataclass(frozen=True, slots=True)
class _Following:
    """The picture after a call that asked for none: when it is due, and whether it was taken."""

    due: asyncio.Event = field(default_factory=asyncio.Event)
    looked: asyncio.Event = field(default_factory=asyncio.Event)


class ActionLog:
    """
    The action logs of all desktops.

    Args:
        desktops: what is looked at before a call.
        directory: one log below it for each desktop.
        max_picture_bytes: of one desktop's pictures.
    """

    def __init__(self, desktops: Desktops, directory: Path, *, max_picture_bytes: int) -> None:
        self._desktops, self._directory = desktops, directory
        self._max_picture_bytes = max_picture_bytes
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="actionlog")
        self._storages: dict[str, LogStorage] = {}
        self._numbers: dict[str, int] = {}
        self._looked_at: dict[str, float] = {}
        self._is_failing = False
        self._shading = Shading()
        self._following: dict[str, _Following] = {}
        self._chores: set[asyncio.Task[None]] = set()

    async def begin(self, desktop: str, deed: Deed, origin: Origin) -> "_Watched":
        """Look at the screen before anything is done, unless nothing will be."""
        call = None if isinstance(deed, Chore) else deed
        is_secret = call is not None and bool(secrets_of(call))
        if (following := self._following.get(desktop)) is not None:
            # What comes now must not be on the picture after the last call.
            following.due.set()
            await following.looked.wait()
        wants = self._wants_picture(desktop, call)
        # A secret's must be known whoever is in a hurry, and is native.
        before = await self._look(desktop, None if is_secret else call) if wants or is_secret else None
        if is_secret:
            await self._shading.begin(desktop, before)
        size = Size(width=before.native_size[0], height=before.native_size[1]) if before is not None else None
        entry = LogEntry(
            number=0,
            id=origin.call_id or uuid4().hex,
            at=datetime.now(UTC),
            desktop=desktop,
            model_size=call.model_size if call is not None else None,
            native_size=before.native_size if before is not None else None,
            actions=describe_actions(deed, size),
            **origin_fields(origin),
        )
        return _Watched(
            log=self, call=call, entry=entry, before=before, began=time.monotonic(), is_secret=is_secret
        )

    async def look(self, desktop: str) -> ScreenshotData | None:
        """The screen as it is, where it can be seen, without secrets."""
        return await self._look(desktop, None)

    def may_keep(self, desktop: str) -> bool:
        """Whether pictures of others may be kept: they show no secret."""
        return not self._shading.covers(desktop)

    def secret_typed(self, desktop: str) -> None:
        """A call that types one has ended."""
        self._shading.end(desktop)

    def follow(self, call: ComputerCall, entry: LogEntry, before: ScreenshotData) -> None:
        """Look at the screen once *call*, written down already, may be seen there; write that down too."""
        following = self._following[entry.desktop] = _Following()
        task = asyncio.create_task(
            self._follow(following, call, entry, before), name=f"picture after {entry.number}"
        )
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)

    async def _follow(
        self, following: _Following, call: ComputerCall, entry: LogEntry, before: ScreenshotData
    ) -> None:
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(AFTER_S):
                    await following.due.wait()
            after = await self._look(entry.desktop, call)
        finally:
            following.looked.set()
            if self._following.get(entry.desktop) is following:
                del self._following[entry.desktop]
        if after is not None:
            box = await asyncio.to_thread(changed_box, before, after)
            changed = entry.changed if box is None else (box,)
            await self.write(entry.model_copy(update={"changed": changed}), before, after, None)

    async def write(
        self,
        entry: LogEntry,
        before: ScreenshotData | None,
        after: ScreenshotData | None,
        region: Region | None,
    ) -> LogEntry | None:
        """
        Write one entry and its pictures, *region* being what the last shows; a failure is only logged.

        Returns it with the number that it got; one that has a number stands for the earlier one of that.
        """
        try:
            written = await finish(self._in_thread(lambda: self._write(entry, before, after, region)))
            self._is_failing = False
            return written
        except OSError as exc:
            if not self._is_failing:
                log.warning("the action log can't be written", action="action_log_failed", reason=str(exc))
            self._is_failing = True
            return None

    async def entries(
        self, desktop: str, *, chat_id: str | None = None, last: int | None = None
    ) -> list[LogEntry]:
        """Entries of one desktop, oldest first; those of one chat, the *last* so many."""
        if self._chores:
            await asyncio.wait(self._chores)
        every = await self._in_thread(lambda: self._storage(desktop).entries())
        chosen = [entry for entry in every if chat_id is None or entry.chat_id == chat_id]
        return chosen[-last:] if last else chosen

    async def with_storage(self, desktop: str, work: Callable[[LogStorage], T]) -> T:
        """Do *work* in the log's thread."""
        return await self._in_thread(lambda: work(self._storage(desktop)))

    async def close(self) -> None:
        """Write what is still to be written; harmless when repeated."""
        chores = tuple(self._chores)
        for chore in chores:
            chore.cancel()
        await asyncio.gather(*chores, return_exceptions=True)
        # With nothing to wait for but the jobs in its queue, the thread ends by itself.
        await asyncio.to_thread(self._thread.shutdown)

    def _wants_picture(self, desktop: str, call: ComputerCall | None) -> bool:
        """Whether a picture is worth its time: a caller that wants none is in a hurry, if it comes often."""
        if call is not None and all(action.action in LOOKING for action in call.actions):
            return False
        now = time.monotonic()
        is_hurried = call is not None and not call.screenshot
        if is_hurried and now - self._looked_at.get(desktop, -PICTURE_PAUSE_S) < PICTURE_PAUSE_S:
            return False
        self._looked_at[desktop] = now
        return True

    async def _look(self, desktop: str, call: ComputerCall | None) -> ScreenshotData | None:
        try:
            session = self._desktops.get(desktop)
        except AgentError:
            return None
        if session.status().state != "running":
            return None
        is_covered = self._shading.covers(desktop)
        size = call.model_size if call is not None and not is_covered else None
        try:
            picture = await session.screenshot(size)
        except ComputerError:
            return None
        if is_covered and self._shading.covers(desktop):
            return await self._shading.cover(desktop, picture)
        # A secret may have begun meanwhile.
        return picture if is_covered or not self._shading.covers(desktop) else None

    def _write(
        self,
        entry: LogEntry,
        before: ScreenshotData | None,
        after: ScreenshotData | None,
        region: Region | None,
    ) -> LogEntry:
        storage = self._storage(entry.desktop)
        update: dict[str, object] = {"number": entry.number or self._next_number(entry.desktop, storage)}
        if before is not None:
            update["before"] = storage.keep(before)
        if after is not None:
            update["after"] = storage.keep(after, region)
        written = entry.model_copy(update=update)
        storage.append(written)
        return written

    def _next_number(self, desktop: str, storage: LogStorage) -> int:
        number = self._numbers.get(desktop)
        self._numbers[desktop] = number = (storage.last_number() if number is None else number) + 1
        return number

    def _storage(self, desktop: str) -> LogStorage:
        if desktop not in self._storages:
            self._forget_oldest()
            directory = self._directory / desktop
            self._storages[desktop] = LogStorage(directory, max_picture_bytes=self._max_picture_bytes)
        return self._storages[desktop]

    def _forget_oldest(self) -> None:
        """Make room for one more log among those of earlier desktops."""
        logs = [path for path in self._directory.glob("*") if path.name not in self._storages]
        logs.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in logs[MAX_LOGS - 1 :]:
            shutil.rmtree(path, ignore_errors=True)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def make_action_log(settings: AgentdSettings, desktops: Desktops) -> ActionLog:
    """The action log as *settings* want it."""
    limit = settings.action_log_pictures_mb * 2**20
    return ActionLog(desktops, settings.data_dir / "actions", max_picture_bytes=limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watched:
    """One call that goes on."""

    log: ActionLog
    call: ComputerCall | None
    entry: LogEntry
    before: ScreenshotData | None
    began: float
    is_secret: bool

    async def ended(self, result: ComputerResult | None, error: BaseException | None) -> None:
        """Write it down."""
        entry, after, region = self.entry, None, None
        if self.is_secret:
            self.log.secret_typed(entry.desktop)
        if self.call is not None and result is not None:
            entry = fill_result(entry, self.call, result)
            after = result.screenshot
            region = _region(self.call, after) if after is not None else None
        if self.call is None or (after is not None and not self.log.may_keep(entry.desktop)):
            after, region = await self.log.look(entry.desktop), None
        if error is not None:
            code = getattr(error, "code", type(error).__name__)
            entry = entry.model_copy(update={"error": str(error) or code, "error_code": code})
        update: dict[str, object] = {"took_ms": round((time.monotonic() - self.began) * 1000, 1)}
        if self.is_secret:
            # The screen may show what was typed.
            update["hidden"], after = "secret", None
        written = await self.log.write(entry.model_copy(update=update), self.before, after, region)
        is_unseen = result is not None and after is None and not self.is_secret
        if is_unseen and written is not None and self.call is not None and self.before is not None:
            self.log.follow(self.call, written, self.before)


def _region(call: ComputerCall, after: ScreenshotData) -> Region | None:
    last = call.actions[-1]
    is_whole = after.model_size == (call.model_size or after.native_size)
    return last.region if isinstance(last, Zoom) and not is_whole else None
