"""
The daemon's recordings: started, limited, stopped and kept.

Owns which recordings run, when one has been idle for too long, and what becomes of its film. No lock is
held while a recorder starts or stops: an action never waits for a recording.
"""

import asyncio
import base64
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import structlog

from agentd.acting import Deed, Origin
from agentd.desktops import Desktops, Use
from agentd.errors import NotFound, ShuttingDown, TooMany
from agentd.recording.shelf import Shelf
from agentd.settings import AgentdSettings
from agentd.wire.recordings import RecordingInfo, RecordingPiece, RecordingStopped
from computer.errors import ComputerError
from computer.recording.orders import FinishOrder, RecordOrder, Report
from computer.recording.process import Recorder, run_finish
from computer.wire import ComputerResult

__all__ = ["RecordingLimits", "Recordings", "make_recordings"]

log = structlog.get_logger("agentd.recordings")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingLimits:
    """Bounds of recordings; each is a setting of the daemon."""

    active: int = 5
    idle_s: float = 600
    duration_s: float = 3600
    size_bytes: int = 100 * 2**20
    frames_per_s: int = 15
    idle_speedup: float = 20


@dataclass(slots=True, kw_only=True)
class _Active:
    """A recording that runs, or is about to; *task* ends with its film described as ended."""

    info: RecordingInfo
    used_at: float
    ready: asyncio.Future[None]
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    why: str = "asked"
    task: asyncio.Task[None] | None = None


class Recordings:
    """
    All recordings of one daemon; sees every action, since actions keep a recording going.

    Args:
        desktops: what is recorded.
        shelf: where films are kept.
        limits: see there.
        start: starts a recorder.
        process: finishes a film.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        desktops: Desktops,
        shelf: Shelf,
        limits: RecordingLimits,
        *,
        start: Callable[[RecordOrder], Awaitable[Recorder]] = Recorder.start,
        process: Callable[[FinishOrder], Awaitable[Report]] = run_finish,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._desktops, self._shelf, self._limits = desktops, shelf, limits
        self._start, self._process, self._clock = start, process, clock
        self._known: dict[UUID, RecordingInfo] = {}
        self._active: dict[UUID, _Active] = {}
        self._finishing: dict[UUID, asyncio.Task[None]] = {}
        self._one_at_a_time = asyncio.Lock()
        self._is_closed = False

    async def load(self) -> None:
        """Learn of earlier recordings; those that a crash cut off are finished now."""
        self._known = await asyncio.to_thread(self._shelf.load)
        for info in list(self._known.values()):
            if info.state == "recording":
                cut = info.model_copy(update={"reason": "killed", "stopped_at": datetime.now(UTC)})
                await self._settle(cut)
            elif info.state == "processing":
                await self._settle(info)

    async def start(
        self,
        number: UUID | None = None,
        *,
        desktop: str | None = None,
        chat_id: str | None = None,
        agent_chat_id: str | None = None,
    ) -> RecordingInfo:
        """
        Record; returns once the first fragment of the film is on disk.

        An active recording of this id goes on; one that has ended is deleted and made anew.

        Raises:
            NotFound: there is no such desktop.
            TooMany: as many recordings run as may.
            StartFailed: nothing can be recorded; says why.

        Cancellation:
            the recording goes on: others may have asked for it.
        """
        number = number or uuid4()
        if self._is_closed:
            raise ShuttingDown("the daemon is shutting down")
        active = self._active.get(number)
        if active is None:
            name = desktop or self._desktops.name_for(chat_id, agent_chat_id)
            self._desktops.get(name) if desktop is not None else self._desktops.ensure(name)
            active = self._begin(number, name, chat_id)
        await asyncio.shield(active.ready)
        return await self._described(active.info)

    async def stop(self, number: UUID, *, settle_s: float = 0) -> RecordingStopped:
        """
        End a recording; answers once the film is whole, before its stills are sped up.

        With *settle_s* it waits that long for those, too.

        Raises:
            NotFound: there is no such recording.
        """
        active = self._active.get(number)
        if active is not None and active.task is not None:
            active.stop.set()
            await asyncio.shield(active.task)
        if settle_s and number in self._finishing:
            await asyncio.wait({self._finishing[number]}, timeout=settle_s)
        info = await self.get(number)
        picture = None
        with suppress(OSError):
            picture = base64.b64encode(await asyncio.to_thread(self._shelf.thumbnail(number).read_bytes))
        return RecordingStopped(recording=info, thumbnail=picture.decode() if picture else None)

    async def get(self, number: UUID) -> RecordingInfo:
        """One recording as it is now; raises NotFound."""
        info = self._known.get(number)
        if info is None:
            msg = f"no recording {number}; `agentd desktop record list` shows those there are"
            raise NotFound(msg)
        return await self._described(info)

    async def every(self) -> tuple[RecordingInfo, ...]:
        """All recordings, newest first."""
        newest = sorted(self._known.values(), key=lambda info: info.started_at, reverse=True)
        return tuple([await self._described(info) for info in newest])

    async def film(self, number: UUID) -> Path:
        """Where the film of a recording is; raises NotFound when there is none."""
        info = await self.get(number)
        if info.size_bytes is None:
            msg = f"recording {number} has no film"
            raise NotFound(msg)
        return self._shelf.film(number)

    async def thumbnail(self, number: UUID) -> Path:
        """Where the small picture of a recording is; raises NotFound when there is none."""
        info = await self.get(number)
        if not info.has_thumbnail:
            msg = f"recording {number} has no thumbnail"
            raise NotFound(msg)
        return self._shelf.thumbnail(number)

    async def read(self, number: UUID, offset: int, length: int) -> RecordingPiece:
        """Bytes of a film from *offset* on, at most *length*; raises NotFound."""
        path = await self.film(number)
        data, total = await asyncio.to_thread(_read_piece, path, offset, length)
        return RecordingPiece(data=base64.b64encode(data).decode(), offset=offset, total_bytes=total)

    async def begin(self, desktop: str, deed: Deed, origin: Origin) -> "Recordings":  # noqa: ARG002
        """An action: recordings of its desktop are not idle."""
        for active in self._active.values():
            if active.info.desktop == desktop:
                active.used_at = self._clock()
        return self

    async def ended(self, result: ComputerResult | None, error: BaseException | None) -> None:
        """Nothing more to do."""

    async def close(self) -> None:
        """End every recording well, then stop finishing films: that goes on at the next start."""
        self._is_closed = True
        running = [active.task for active in self._active.values() if active.task is not None]
        for active in self._active.values():
            active.why = "shutdown"
            active.stop.set()
        await asyncio.gather(*running, return_exceptions=True)
        for task in self._finishing.values():
            task.cancel()
        await asyncio.gather(*self._finishing.values(), return_exceptions=True)

    def _begin(self, number: UUID, desktop: str, chat_id: str | None) -> _Active:
        if len(self._active) >= self._limits.active:
            msg = f"{self._limits.active} recordings run already; stop one first"
            raise TooMany(msg)
        info = RecordingInfo(
            id=number, desktop=desktop, chat_id=chat_id, state="recording", started_at=datetime.now(UTC)
        )
        loop = asyncio.get_running_loop()
        active = _Active(info=info, used_at=self._clock(), ready=loop.create_future())
        active.ready.add_done_callback(_retrieve)
        self._active[number] = active
        active.task = loop.create_task(self._run(active), name=f"recording {number}")
        return active

    async def _run(self, active: _Active) -> None:
        """Start, wait for an end, describe it; whoever waits for the start learns how that went."""
        number = active.info.id
        try:
            with self._desktops.using(active.info.desktop, Use.RECORDING):
                recorder = await self._start_film(active)
                report = await self._film(active, recorder)
            await self._end(active, report)
        except Exception as exc:  # noqa: BLE001 -- told to whoever asked for it
            self._known.pop(number, None)
            await asyncio.to_thread(self._shelf.delete, number)
            if not active.ready.done():
                active.ready.set_exception(exc)
            log.warning("recording failed", action="recording_failed", recording=str(number), reason=str(exc))
        finally:
            self._active.pop(number, None)

    async def _start_film(self, active: _Active) -> Recorder:
        number, limits = active.info.id, self._limits
        if (finishing := self._finishing.pop(number, None)) is not None:
            finishing.cancel()
            await asyncio.wait({finishing})
        await self._make_room(number)
        session = self._desktops.get(active.info.desktop)
        await session.ensure_running()
        variables = session.environment()
        self._known[number] = active.info
        await asyncio.to_thread(self._shelf.save, active.info)
        recorder = await self._start(
            RecordOrder(
                display=variables["DISPLAY"],
                authority=variables.get("XAUTHORITY"),
                path=str(self._shelf.film(number)),
                frames_per_s=limits.frames_per_s,
                max_duration_s=limits.duration_s,
                max_bytes=limits.size_bytes,
            )
        )
        size = {"width": recorder.started.width, "height": recorder.started.height}
        self._known[number] = active.info = active.info.model_copy(update=size)
        active.ready.set_result(None)
        return recorder

    async def _film(self, active: _Active, recorder: Recorder) -> Report | None:
        """Wait until it is stopped, idle, or has ended by itself."""
        active.used_at = self._clock()
        ending = asyncio.ensure_future(recorder.wait())
        stopping = asyncio.ensure_future(active.stop.wait())
        try:
            while not ending.done() and not stopping.done():
                left_s = active.used_at + self._limits.idle_s - self._clock()
                if left_s <= 0:
                    active.why = "idle"
                    break
                await asyncio.wait({ending, stopping}, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
            stopping.cancel()
            report = await recorder.stop()
        return report

    async def _end(self, active: _Active, report: Report | None) -> None:
        reason = report.reason if report is not None else "killed"
        update = {
            "stopped_at": datetime.now(UTC),
            "reason": active.why if reason == "asked" else reason,
            "duration_s": report.duration_s if report is not None else None,
            "error": (report.detail or None) if report is not None else None,
        }
        await self._settle(active.info.model_copy(update=update))

    async def _settle(self, info: RecordingInfo) -> None:
        """A film is whole: say so, and finish it behind everybody's back."""
        described = await self._described(info.model_copy(update={"state": "processing"}))
        if not described.size_bytes:
            described = described.model_copy(update={"state": "failed"})
        self._known[info.id] = described
        await asyncio.to_thread(self._shelf.save, described)
        if described.state == "processing" and not self._is_closed:
            task = asyncio.get_running_loop().create_task(self._finish(described), name=f"finish {info.id}")
            self._finishing[info.id] = task

    async def _finish(self, info: RecordingInfo) -> None:
        """Speed the stills up; a film for which that fails stays as it was recorded."""
        update: dict[str, object] = {"state": "ready"}
        try:
            async with self._one_at_a_time:
                order = FinishOrder(path=str(self._shelf.film(info.id)), speedup=self._limits.idle_speedup)
                report = await self._process(order)
            update["duration_s"] = report.duration_s
        except (ComputerError, TimeoutError) as exc:
            update["error"] = str(exc)
            log.warning(
                "film not finished", action="film_unfinished", recording=str(info.id), reason=str(exc)
            )
        ready = await self._described(info.model_copy(update=update))
        self._known[info.id] = ready
        await asyncio.to_thread(self._shelf.save, ready)
        self._finishing.pop(info.id, None)

    async def _make_room(self, number: UUID) -> None:
        """Delete what is kept too long or too large, and an ended recording of the same id."""
        gone = [*self._shelf.surplus(self._known, datetime.now(UTC)), number]
        for each in gone:
            self._known.pop(each, None)
            await asyncio.to_thread(self._shelf.delete, each)

    async def _described(self, info: RecordingInfo) -> RecordingInfo:
        return await asyncio.to_thread(self._shelf.describe, info)


def make_recordings(settings: AgentdSettings, desktops: Desktops) -> Recordings:
    """Recordings as *settings* want them."""
    shelf = Shelf(
        settings.data_dir / "recordings",
        max_bytes=settings.recordings_total_mb * 2**20,
        max_age=timedelta(hours=settings.recordings_keep_h),
    )
    limits = RecordingLimits(
        active=settings.recording_max,
        idle_s=settings.recording_idle_s,
        duration_s=settings.recording_duration_s,
        size_bytes=settings.recording_size_mb * 2**20,
        frames_per_s=settings.recording_fps,
        idle_speedup=settings.recording_speedup,
    )
    return Recordings(desktops, shelf, limits)


def _read_piece(path: Path, offset: int, length: int) -> tuple[bytes, int]:
    with path.open("rb") as file:
        file.seek(offset)
        data = file.read(length)
        return data, path.stat().st_size


def _retrieve(future: "asyncio.Future[None]") -> None:
    """Mark the outcome as seen: nobody may be waiting any more."""
    if not future.cancelled():
        future.exception()
