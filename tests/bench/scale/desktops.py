"""What a desktop costs whose stream goes through a replica: opened, still, and frame by frame."""

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    from tests.bench.scale.__main__ import Bench

__all__ = ["StreamEnds", "measure_desktops"]

# An update of a desktop at work; a still one sends nothing.
FRAME_BYTES = 20_000
FRAMES = 100
# Seconds between two frames of one viewer.
PACE_S = 0.05
LIMIT_S = 120


class StreamEnds:
    """The workspaces' ends of streams; each is dialled back to *url*, as an agentd does it."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http
        self.open: list[aiohttp.ClientWebSocketResponse] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def dial(self, url: str, token: str, stream_id: str) -> None:
        """Dial one, and read what the viewer says, for as long as it is there."""
        task = asyncio.create_task(self._carry(f"{url}/api/agent/streams/{stream_id}", token))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, url: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        async with self._http.ws_connect(url, headers=headers, max_msg_size=0) as socket:
            self.open.append(socket)
            async for _ in socket:
                pass
            self.open.remove(socket)

    async def paint(self) -> None:
        """As many frames for each as ``FRAMES``, at the pace of a desktop that moves."""
        frame = bytes(FRAME_BYTES)
        for _ in range(FRAMES):
            await asyncio.gather(*(socket.send_bytes(frame) for socket in self.open))
            await asyncio.sleep(PACE_S)


async def measure_desktops(
    bench: "Bench", idle: dict[str, float], count: int, seconds: float
) -> dict[str, float]:
    """
    Constants of a viewer of a desktop, at the replica that the workspace is linked to, and at another.

    *idle* is what *seconds* without viewers used; each of *count* viewers has a workspace of its own.
    """
    here = await _watch_from(bench, bench.first.url, idle, count, seconds)
    there = await _watch_from(bench, bench.second.url, idle, count, seconds)
    return {
        "desktop_rss_kb": here["first_rss"] / count / 1e3,
        "desktop_open_cpu_ms": here["open_first_cpu_s"] / count * 1e3,
        "desktop_idle_cpu_us_per_s": here["still_first_cpu_s"] / seconds / count * 1e6,
        "desktop_idle_transactions_per_s": here["still_transactions"] / seconds / count,
        "desktop_frame_cpu_us": here["paint_first_cpu_s"] / count / FRAMES * 1e6,
        # Both replicas together.
        "desktop_elsewhere_frame_cpu_us": (
            (there["paint_first_cpu_s"] + there["paint_second_cpu_s"]) / count / FRAMES * 1e6
        ),
    }


async def _watch_from(
    bench: "Bench", url: str, idle: dict[str, float], count: int, seconds: float
) -> dict[str, float]:
    async with AsyncExitStack() as stack, asyncio.timeout(LIMIT_S + seconds):
        got: list[int] = [0] * count

        async def follow(number: int, socket: aiohttp.ClientWebSocketResponse) -> None:
            async for message in socket:
                got[number] += len(message.data)

        async def open_all() -> None:
            for number in range(count):
                headers = {"Authorization": f"Bearer {bench.watchers[number]}"}
                path = f"{url}/api/experimental/agents/a{number}/desktop?view_only=true"
                socket = await stack.enter_async_context(
                    bench.http.ws_connect(path, headers=headers, protocols=("binary",), max_msg_size=0)
                )
                _stop_later(stack, asyncio.create_task(follow(number, socket)))

        async def paint() -> None:
            await bench.streams.paint()
            while min(got) < FRAMES * FRAME_BYTES:  # noqa: ASYNC110 -- of a measurement
                await asyncio.sleep(0.05)

        opened = await bench.over(open_all())
        still = await bench.over(asyncio.sleep(seconds))
        painted = await bench.over(paint())
    rest = {f"still_{name}": max(0.0, still[name] - idle[name]) for name in still}
    return {
        **{f"open_{name}": value for name, value in opened.items()},
        **rest,
        **{f"paint_{name}": value for name, value in painted.items()},
        "first_rss": max(0.0, opened["first_rss"] + still["first_rss"] + painted["first_rss"]),
    }


def _stop_later(stack: AsyncExitStack, task: "asyncio.Task[Any]") -> None:
    async def stop() -> None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    stack.push_async_callback(stop)
