"""Recordings on a recorder that films nothing."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentd.acting import LOCAL
from agentd.desktops import Desktops
from agentd.errors import NotFound, TooMany
from agentd.recording.recordings import RecordingLimits, Recordings
from agentd.recording.shelf import Shelf
from agentd.settings import AgentdSettings
from agentd.wire.recordings import RecordingInfo
from computer.errors import StartFailed
from computer.recording.orders import FinishOrder, RecordOrder, Report
from computer.wire import ComputerCall

# Seconds for anything that might hang.
LIMIT_S = 5
LOOK = ComputerCall.model_validate({"actions": [{"action": "screenshot"}]})


class _Session:
    async def ensure_running(self) -> None:
        """It runs."""

    def environment(self) -> dict[str, str]:
        """A display that nobody looks at."""
        return {"DISPLAY": ":99"}


@dataclass
class _Recorder:
    """Writes a file, and ends when it is told to or by itself."""

    order: RecordOrder
    report: Report | None = field(
        default_factory=lambda: Report(event="stopped", reason="asked", duration_s=2)
    )
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    started: Report = field(default_factory=lambda: Report(event="started", width=640, height=480))

    async def wait(self) -> Report | None:
        """Wait for the end."""
        await self.ended.wait()
        return self.report

    async def stop(self) -> Report | None:
        """End."""
        self.ended.set()
        return self.report


@dataclass
class Studio:
    """Recordings, their recorders, a clock, and a gate before a film is finished."""

    directory: Path
    limits: RecordingLimits = field(default_factory=lambda: RecordingLimits(active=2))
    recorders: list[_Recorder] = field(default_factory=list)
    now: float = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    problem: Exception | None = None

    def make(self) -> Recordings:
        """Recordings as a daemon that starts has them."""
        make: Any = lambda *_: _Session()  # noqa: E731
        desktops = Desktops(AgentdSettings(runtime_dir=self.directory / "run"), make=make)
        shelf = Shelf(self.directory / "films", max_bytes=100, max_age=timedelta(hours=1))
        start: Any = self.start
        return Recordings(
            desktops, shelf, self.limits, start=start, process=self.finish, clock=lambda: self.now
        )

    async def start(self, order: RecordOrder) -> _Recorder:
        """Start a recorder, unless there is a problem."""
        if self.problem is not None:
            raise self.problem
        Path(order.path).write_bytes(b"film")  # noqa: ASYNC240 -- four bytes
        Path(order.path).with_suffix(".thumb.jpg").write_bytes(b"jpeg")
        self.recorders.append(_Recorder(order))
        return self.recorders[-1]

    async def finish(self, order: FinishOrder) -> Report:
        """Finish a film once the gate is open."""
        await self.gate.wait()
        Path(order.path).write_bytes(b"short")  # noqa: ASYNC240
        return Report(event="finished", duration_s=1)


@pytest.fixture
def studio(tmp_path: Path) -> Studio:
    """A studio of its own."""
    return Studio(tmp_path)


@pytest.fixture
async def recordings(studio: Studio) -> AsyncIterator[Recordings]:
    """Its recordings."""
    recordings = studio.make()
    async with asyncio.timeout(LIMIT_S):
        yield recordings
        await recordings.close()


async def _until(recordings: Recordings, number: UUID, state: str) -> RecordingInfo:
    async with asyncio.timeout(LIMIT_S):
        while (info := await recordings.get(number)).state != state:  # noqa: ASYNC110 -- turns of the loop
            await asyncio.sleep(0)
    return info


async def test_starting_twice_is_one_recording(studio: Studio, recordings: Recordings) -> None:
    """Spec: row 33, one process, both answered."""
    number = uuid4()
    first, second = await asyncio.gather(recordings.start(number), recordings.start(number))

    assert len(studio.recorders) == 1
    assert first == second
    assert (first.state, first.width, first.desktop) == ("recording", 640, "main")


async def test_one_too_many_is_refused(recordings: Recordings) -> None:
    """Spec: row 34."""
    await recordings.start()
    await recordings.start()

    with pytest.raises(TooMany):
        await recordings.start()


async def test_unknown_recording_is_not_found(recordings: Recordings) -> None:
    """Spec: row 35."""
    with pytest.raises(NotFound):
        await recordings.stop(uuid4())


async def test_stop_answers_before_the_film_is_finished(studio: Studio, recordings: Recordings) -> None:
    """Spec 8.5: the film is whole; its stills are sped up behind everybody's back."""
    info = await recordings.start()
    stopped = await recordings.stop(info.id)
    again = await recordings.stop(info.id)
    studio.gate.set()
    ready = await _until(recordings, info.id, "ready")

    assert (stopped.recording.state, stopped.recording.reason) == ("processing", "asked")
    assert stopped.thumbnail == "anBlZw=="
    assert again == stopped
    assert (ready.duration_s, ready.size_bytes) == (1, 5)


async def test_recording_without_actions_stops_itself(studio: Studio, recordings: Recordings) -> None:
    """Spec: row 36, the last action counts."""
    studio.limits = RecordingLimits(idle_s=0.02)
    short = studio.make()
    info = await short.start()
    studio.now = 0.01
    await short.begin("main", LOOK, LOCAL)
    studio.now = 0.03
    studio.gate.set()
    ready = await _until(short, info.id, "recording")
    studio.now = 0.05
    ready = await _until(short, info.id, "ready")
    await short.close()

    assert ready.reason == "idle"


async def test_recorder_that_ends_by_itself_is_described(studio: Studio, recordings: Recordings) -> None:
    """Ours: a killed recorder leaves a film, and the list says what happened."""
    info = await recordings.start()
    studio.recorders[0].report = None
    studio.recorders[0].ended.set()
    studio.gate.set()
    ready = await _until(recordings, info.id, "ready")

    assert ready.reason == "killed"


async def test_recording_that_does_not_start_leaves_nothing(studio: Studio, recordings: Recordings) -> None:
    """Ours: the reason goes to whoever asked."""
    studio.problem = StartFailed("no display")
    with pytest.raises(StartFailed):
        await recordings.start()

    assert await recordings.every() == ()


async def test_ended_recording_of_the_same_id_is_made_anew(studio: Studio, recordings: Recordings) -> None:
    """Spec 2.4: deleted and restarted."""
    number = uuid4()
    await recordings.start(number)
    await recordings.stop(number)
    again = await recordings.start(number)

    assert again.state == "recording"
    assert len(studio.recorders) == 2


async def test_next_daemon_finishes_what_the_last_one_left(studio: Studio, recordings: Recordings) -> None:
    """Ours: a film that was being made or finished when the daemon died is not lost."""
    info = await recordings.start()
    await recordings.close()
    studio.gate.set()
    second = studio.make()
    await second.load()
    ready = await _until(second, info.id, "ready")
    await second.close()

    assert ready.size_bytes == 5


def test_old_and_large_recordings_make_room(studio: Studio, tmp_path: Path) -> None:
    """Ours: bounded by bytes and by age, oldest first; what runs stays."""
    shelf = Shelf(tmp_path, max_bytes=10, max_age=timedelta(hours=1))
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def kept(minutes: int, state: Any) -> RecordingInfo:
        at = now - timedelta(minutes=minutes)
        info = RecordingInfo(id=uuid4(), desktop="main", state=state, started_at=at, stopped_at=at)
        shelf.save(info)
        shelf.film(info.id).write_bytes(b"123456")
        return info

    new, middle, old = kept(1, "ready"), kept(2, "ready"), kept(90, "failed")
    running = kept(95, "recording")
    known = {info.id: info for info in (new, middle, old, running)}

    assert shelf.surplus(known, now) == [middle.id, old.id]
    assert set(shelf.load()) == set(known)
