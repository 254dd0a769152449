"""Pushing over a connection that fails, refuses, or takes nothing."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from context_push.errors import PushRefused, PushUnavailable
from context_push.push import RETRY_FIRST_S, RETRY_MAX_S, Pusher
from context_push.wire.push import ContextPush, PushAnswer
from tests.integration.context_push.desk import LIMIT_S, desk


@dataclass
class Plane:
    """A control plane that answers by a script, then accepts; sleeping takes no time."""

    script: list[PushAnswer | Exception] = field(default_factory=list)
    taken: asyncio.Queue[ContextPush] = field(default_factory=asyncio.Queue)
    slept: list[float] = field(default_factory=list)

    async def send(self, push: ContextPush) -> PushAnswer:
        """Take one push."""
        self.taken.put_nowait(push)
        answer = self.script.pop(0) if self.script else PushAnswer(accepted=True)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def sleep(self, delay_s: float) -> None:
        """Remember how long."""
        self.slept.append(delay_s)

    async def push(self) -> ContextPush:
        """The next push, whatever was answered."""
        async with asyncio.timeout(LIMIT_S):
            return await self.taken.get()


async def test_the_first_push_of_a_connection_is_initial(tmp_path: Path) -> None:
    """Spec 5.5: the current snapshot first; the next connection starts over."""
    planes = Plane(), Plane()
    async with desk(tmp_path) as here:
        for plane in planes:
            pushing = asyncio.ensure_future(Pusher(here.manager, plane.send).run())
            first = await plane.push()
            (here.work / "AGENTS.md").write_text(f"{id(plane)}")
            second = await plane.push()
            pushing.cancel()

            assert (first.initial, second.initial) == (True, False)
            assert second.version == first.version + 1
            assert first.directory == str(here.work)
            assert first.os


async def test_what_fails_for_now_is_tried_again_later_and_later(tmp_path: Path) -> None:
    """Spec 5.5: 250 ms, doubled up to 30 s; what is sent is always the newest."""
    plane = Plane([PushUnavailable("busy")] * 9)
    async with desk(tmp_path) as here:
        await here.push()
        pushing = asyncio.ensure_future(Pusher(here.manager, plane.send, sleep=plane.sleep).run())
        pushes = [await plane.push() for _ in range(10)]
        pushing.cancel()

    assert plane.slept == [min(RETRY_FIRST_S * 2**n, RETRY_MAX_S) for n in range(9)]
    assert all(push.initial for push in pushes)


async def test_a_retry_sends_what_is_newest(tmp_path: Path) -> None:
    """Ours: nobody wants the old one any more."""
    plane = Plane([PushUnavailable("busy")])
    gate = asyncio.Event()

    async def sleep(_: float) -> None:
        await gate.wait()

    async with desk(tmp_path) as here:
        await here.push()
        pushing = asyncio.ensure_future(Pusher(here.manager, plane.send, sleep=sleep).run())
        await plane.push()
        (here.work / "AGENTS.md").write_text("newest")
        await here.push()
        gate.set()
        retried = await plane.push()
        pushing.cancel()

    assert here.texts(retried) == {"work/AGENTS.md": "newest"}


async def test_a_rejection_is_final_until_the_next_change(tmp_path: Path) -> None:
    """Spec 5.5; ours: the first accepted push is the initial one, since nothing of this life is known yet."""
    plane = Plane([PushAnswer(accepted=False, reason="too much")])
    async with desk(tmp_path) as here:
        pushing = asyncio.ensure_future(Pusher(here.manager, plane.send, sleep=plane.sleep).run())
        rejected = await plane.push()
        (here.work / "AGENTS.md").write_text("x")
        next_one = await plane.push()
        pushing.cancel()

    assert (rejected.version, next_one.version) == (1, 2)
    assert (rejected.initial, next_one.initial, plane.slept) == (True, True, [])


async def test_a_control_plane_that_takes_no_pushes_is_left_alone(tmp_path: Path) -> None:
    """Spec 5.5: unimplemented stops pushing for that connection."""
    plane = Plane([PushRefused("unknown method")])
    async with desk(tmp_path) as here:
        async with asyncio.timeout(LIMIT_S):
            await Pusher(here.manager, plane.send).run()

    assert plane.taken.qsize() == 1


async def test_a_push_that_would_be_refused_is_not_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: the sender checks the receiver's bounds."""
    plane = Plane()
    monkeypatch.setattr("context_push.push.push_problem", lambda push: "bad" if push.version == 1 else None)
    async with desk(tmp_path) as here:
        await here.manager.wait_newer(0)
        pushing = asyncio.ensure_future(Pusher(here.manager, plane.send).run())
        await asyncio.sleep(0)
        (here.work / "AGENTS.md").write_text("x")
        push = await plane.push()
        pushing.cancel()

    assert (push.version, push.initial) == (2, True)
