"""How many may watch: places are taken when somebody is let in, not when their stream runs."""

import asyncio
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import pytest

from agentd.errors import TooMany
from agentd.viewers import Admission, Viewers
from agentd.wire.control import ViewerGrant
from computer.rfb.messages import CAPTURE_FORMAT

LIMIT_S = 10
GRANT = ViewerGrant(seat="a", name="ann", may="view")


class Desktop:
    """One whose server greets once *door* is open, or hangs up."""

    def __init__(self) -> None:
        self.door, self.is_gone = asyncio.Event(), False
        self._servers: list[asyncio.Server] = []
        self._writers: list[asyncio.StreamWriter] = []
        self._greeting: set[asyncio.Task[None]] = set()

    def viewing(self, _: str) -> AbstractContextManager[None]:
        """Nothing to hold."""
        return nullcontext()

    def get(self, _: str) -> "Desktop":
        """The only one."""
        return self

    async def connect_rfb(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to a server that speaks as Xvnc does."""
        server = await asyncio.start_server(self._greet, "127.0.0.1")
        self._servers.append(server)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        self._writers.append(writer)
        return reader, writer

    async def close(self) -> None:
        """Wait until every connection has ended."""
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*self._greeting)
        await asyncio.gather(*(writer.wait_closed() for writer in self._writers))
        for server in self._servers:
            server.close()
            await server.wait_closed()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._greeting.add(task)
        self._writers.append(writer)
        await self.door.wait()
        if not self.is_gone:
            writer.write(b"RFB 003.008\n")
            await reader.readexactly(12)
            writer.write(b"\x01\x01")
            await reader.readexactly(1)
            writer.write(bytes(4))
            await reader.readexactly(1)
            size = (64).to_bytes(2, "big") * 2
            writer.write(size + CAPTURE_FORMAT + bytes(4))
            await reader.read()
        writer.close()


async def test_viewers_who_come_at_the_same_time_do_not_pass_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """
    Ours: none of them has a stream yet, and still only so many are let in.

    A place is free again when its admission is given up (twice is once), and when letting in failed.
    """
    monkeypatch.setattr("agentd.viewers.MAX_VIEWERS", 2)
    desktop = Desktop()
    viewers = Viewers(cast("Any", desktop), cast("Any", None))
    async with asyncio.timeout(LIMIT_S):
        coming = [asyncio.create_task(viewers.admit("main", GRANT)) for _ in range(4)]
        while sum(task.done() for task in coming) < 2:  # noqa: ASYNC110 -- nothing tells of it
            await asyncio.sleep(0)
        desktop.door.set()
        came = await asyncio.gather(*coming, return_exceptions=True)
        inside = [one for one in came if isinstance(one, Admission)]
        refused = [one for one in came if isinstance(one, TooMany)]
        inside[0].close()
        inside[0].close()
        again = await viewers.admit("main", GRANT)
        with pytest.raises(TooMany):
            await viewers.admit("main", GRANT)
        again.close()
        desktop.is_gone = True
        for _ in range(3):
            with pytest.raises(Exception, match=r".") as failed:
                await viewers.admit("main", GRANT)
            assert not isinstance(failed.value, TooMany)
        inside[1].close()
        await desktop.close()

    assert (len(inside), len(refused)) == (2, 2)
