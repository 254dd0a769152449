"""
Fifty watchers of one moving desktop: ``script/bench vnc --crowd``.

Most are quick, ten take 50 kbit/s, five take nothing after their first picture. Told: what part of the
quick ones' due frames came, cores, memory, and how long a click takes meanwhile.
"""

# ruff: noqa: T201 -- a program that prints
import asyncio
import json
import statistics
import sys
import time

import aiohttp

from tests.bench.vnc.viewers import FIRST_PICTURE_S, Viewer, Wire, open_wire, run

WATCHERS, SLOW, STALLED = 50, 10, 5
SLOW_BYTES_PER_S = 50_000 / 8
# Frames a second that animate.py draws.
FPS = 30
CLICKS = 40


class Slow:
    """A wire at the end of a slow line, or of none once *is_stalled*."""

    def __init__(self, wire: Wire, *, is_stalled: bool) -> None:
        self._wire, self._is_stalled = wire, is_stalled
        self._received = 0

    async def send(self, data: bytes) -> None:
        """Send bytes."""
        await self._wire.send(data)

    async def receive(self) -> bytes:
        """The next bytes, after the time that they take."""
        data = await self._wire.receive()
        self._received += len(data)
        if self._is_stalled and self._received > 100_000:
            await asyncio.Event().wait()
        await asyncio.sleep(0 if self._is_stalled else len(data) / SLOW_BYTES_PER_S)
        return data


async def click(client: aiohttp.ClientSession, base: str) -> float:
    """Milliseconds until a click has been done and answered."""
    body = {"action": "left_click", "coordinate": [1000, 700]}
    began = time.perf_counter()
    async with client.post(f"{base}/desktop/main/action", json=body) as answer:
        await answer.read()
        assert answer.status == 200, await answer.text()
    return (time.perf_counter() - began) * 1e3


async def measure(seconds: float, socket: str) -> dict[str, float]:
    """Watch; figures of *seconds* after all have come."""
    connector = aiohttp.UnixConnector(socket, limit=0)
    async with aiohttp.ClientSession(connector=connector) as client:
        viewers = [Viewer() for _ in range(WATCHERS)]
        tasks = []
        for number, viewer in enumerate(viewers):
            wire = await open_wire("ws://agentd/api/v0/desktop/main/vnc?view_only=true", client)
            if number < SLOW + STALLED:
                wire = Slow(wire, is_stalled=number < STALLED)
            tasks.append(asyncio.create_task(run(viewer, wire)))
        quick = viewers[SLOW + STALLED :]
        async with asyncio.timeout(FIRST_PICTURE_S):
            while not all(viewer.updates for viewer in quick):  # noqa: ASYNC110 -- figures
                await asyncio.sleep(0.05)
        await asyncio.sleep(2)
        print("ready", flush=True)
        before, began = [viewer.updates for viewer in quick], time.perf_counter()
        clicks = []
        while time.perf_counter() < began + seconds:
            clicks.append(await click(client, "http://agentd/api/v0"))
            await asyncio.sleep(seconds / CLICKS)
        took = time.perf_counter() - began
        after = [viewer.updates for viewer in quick]
        print("done", flush=True)
        await asyncio.sleep(1)
        rates = [(b - a) / took for a, b in zip(before, after, strict=True)]
        for task in tasks:
            task.cancel()
        return {
            "slowest_quick": min(rates),
            "mean_quick": statistics.mean(rates),
            "frames": 100 * statistics.mean(rates) / FPS,
            "click_median_ms": statistics.median(clicks),
            "click_worst_ms": max(clicks),
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(float(sys.argv[1]), sys.argv[2]))))
