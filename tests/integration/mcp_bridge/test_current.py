"""Servers of the SDK's current version, and of the older protocols beside them."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp_types.version import LATEST_MODERN_VERSION

from mcp_bridge.bridge import Bridge
from mcp_bridge.hosting import connection as connection_module
from tests.integration.mcp_bridge.setting import config, free_port, listening, text_of, until

MODERN = [sys.executable, str(Path(__file__).parent / "modern.py")]


class Wire:
    """
    A TCP relay to a server, that can be cut.

    ``granted`` counts streams of changes; a wish for one waits until ``may_listen`` is set.
    """

    def __init__(self, port: int) -> None:
        self._to = port
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.granted = 0
        self.may_listen = asyncio.Event()
        self.may_listen.set()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[int]:
        """Relay; the port to connect to."""
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        try:
            yield port
        finally:
            self._server.close()
            self.cut()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Break every connection, as a network does."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to)
        self._writers += [writer, far_writer]
        for pair in ((reader, far_writer), (far_reader, writer)):
            task = asyncio.get_running_loop().create_task(self._copy(*pair))
            self._tasks.add(task)

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                if b'"subscriptions/listen"' in data:
                    await self.may_listen.wait()
                self.granted += data.count(b"subscriptions/acknowledged")
                writer.write(data)
        except ConnectionError:
            pass
        finally:
            writer.close()


def _has(bridge: Bridge, *names: str) -> bool:
    offered = {tool.tool for tool in bridge.tools()}
    return offered.issuperset(names)


async def test_a_server_of_the_current_sdk_over_stdio(bridge: Bridge) -> None:
    """The newest protocol; its list of tools is read again when it says that it changed (BUGS MCP 49)."""
    await bridge.apply(config({"new": {"command": MODERN[0], "args": MODERN[1:]}}))
    (status,) = bridge.statuses()
    await bridge.call("new__grow", {"name": "first"})
    await until(lambda: _has(bridge, "first"))

    assert (status.state, status.protocol_version) == ("ready", LATEST_MODERN_VERSION)
    assert status.server_version == "modern 2"
    assert text_of(await bridge.call("new__first", {})) == "first says hello"


async def test_a_stream_of_changes_that_drops_is_opened_again(
    bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over HTTP; what changed meanwhile is seen as well, and the session goes on."""
    monkeypatch.setattr(connection_module, "RELISTEN_S", 0.05)
    port = free_port()
    wire = Wire(port)
    async with listening([*MODERN, str(port)], port), wire.open() as way:
        await bridge.apply(config({"new": {"url": f"http://127.0.0.1:{way}/mcp"}}))
        assert bridge.statuses()[0].protocol_version == LATEST_MODERN_VERSION, bridge.statuses()
        await until(lambda: wire.granted == 1)
        await bridge.call("new__grow", {"name": "first"})
        await until(lambda: _has(bridge, "first"))
        await bridge.call("new__grow_silently", {"name": "second"})
        wire.cut()
        await until(lambda: wire.granted == 2 and _has(bridge, "second"))
        await bridge.call("new__grow", {"name": "third"})
        await until(lambda: _has(bridge, "third"))
        (status,) = bridge.statuses()
        await bridge.close()

    assert (status.state, status.starts, status.last_error) == ("ready", 1, None)


async def test_a_change_before_the_stream_is_granted_is_seen(bridge: Bridge) -> None:
    """The list is read while the stream is asked for: nobody tells what changes in between."""
    port = free_port()
    wire = Wire(port)
    wire.may_listen.clear()
    async with listening([*MODERN, str(port)], port), wire.open() as way:
        await bridge.apply(config({"new": {"url": f"http://127.0.0.1:{way}/mcp"}}))
        await bridge.call("new__grow", {"name": "early"})
        wire.may_listen.set()
        await until(lambda: _has(bridge, "early"))
        await bridge.close()
