"""Servers through reloads, and what is left when all is closed."""

import asyncio
import os
import sys

import psutil

from mcp_bridge.bridge import Bridge
from mcp_bridge.wire import ServerStatus
from tests.integration.mcp_bridge.setting import config, entry, marked_processes, place, text_of, until

BROKEN = {"command": sys.executable, "args": ["-c", "raise SystemExit('broken on purpose')"]}


def _status(bridge: Bridge, name: str) -> ServerStatus:
    return next(status for status in bridge.statuses() if status.name == name)


async def test_a_reload_leaves_equal_servers_alone_and_ends_those_that_are_gone(bridge: Bridge) -> None:
    """Equal config keeps the session, changed reconnects, removed is closed (specification 6.2)."""
    await bridge.apply(config({"same": entry(), "changed": entry(), "gone": entry()}))
    before = {status.name: status.pid for status in bridge.statuses()}
    await bridge.apply(config({"same": entry(), "changed": entry(env={"A": "2"}), "new": entry()}))
    after = {status.name: status.pid for status in bridge.statuses()}

    assert after["same"] == before["same"]
    assert after["changed"] != before["changed"]
    assert "gone" not in after
    assert after["new"] is not None
    assert text_of(await bridge.call("changed__env", {"name": "A"})) == "2"


async def test_a_changed_entry_that_fails_leaves_the_old_session_serving(bridge: Bridge) -> None:
    """The old server answers on, and its status says what is wrong with the new one (vector 58)."""
    await bridge.apply(config({"h": entry()}))
    pid = _status(bridge, "h").pid
    await bridge.apply(config({"h": BROKEN}))

    assert (_status(bridge, "h").state, _status(bridge, "h").pid) == ("ready", pid)
    assert "broken on purpose" in (_status(bridge, "h").last_error or "")
    assert text_of(await bridge.call("h__pid", {})) == str(pid)


async def test_a_broken_server_is_replaced_by_whatever_its_entry_becomes(bridge: Bridge) -> None:
    """There is nothing to keep."""
    await bridge.apply(config({"h": BROKEN}))
    assert _status(bridge, "h").state == "failed"
    await bridge.apply(config({"h": entry()}))

    assert text_of(await bridge.call("h__echo", {})) == "{}"


async def test_a_reload_is_not_cancelled_with_whoever_asked_for_it(bridge: Bridge) -> None:
    """Single flight: the last wish counts, and each server is started once."""
    asking = asyncio.create_task(bridge.apply(config({"h": entry()})))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.gather(
        asking,
        *(bridge.apply(config({"h": entry(), "two": entry()})) for _ in range(5)),
        return_exceptions=True,
    )

    assert {status.name: (status.state, status.starts) for status in bridge.statuses()} == {
        "h": ("ready", 1),
        "two": ("ready", 1),
    }


async def test_a_changed_list_of_tools_is_read_again(bridge: Bridge) -> None:
    """The server says so; whoever offers the tools is told."""
    await bridge.apply(config({"h": entry()}))
    before = len(bridge.tools())
    await bridge.call("h__grow", {})
    await until(lambda: len(bridge.tools()) == before + 1)

    assert bridge.tools()[-1].name.startswith("h__grown")


async def test_names_that_vendors_refuse_are_offered_legally_and_called_truly(bridge: Bridge) -> None:
    """The server is called by its own names, whatever models see."""
    await bridge.apply(config({"my server.1": entry()}))
    (name,) = [tool.name for tool in bridge.tools() if tool.tool == "echo"]

    assert name.startswith("my_server_1__echo_")
    assert text_of(await bridge.call(name, {"a": 1})) == '{"a": 1}'
    assert text_of(await bridge.call("my server.1__echo", {"a": 1})) == '{"a": 1}'


async def test_fifty_openings_of_ten_servers_leave_nothing(mark: str) -> None:
    """No process, no descriptor, no task; five rounds here, fifty with MCP_ROUNDS=50."""
    rounds = int(os.environ.get("MCP_ROUNDS", "5"))
    me = psutil.Process()
    servers = config({f"h{number}": entry() for number in range(10)})

    async def one_round() -> None:
        bridge = Bridge(place(mark))
        await bridge.apply(servers)
        assert {status.state for status in bridge.statuses()} == {"ready"}
        await bridge.close()

    await one_round()
    before = (me.num_fds(), len(asyncio.all_tasks()), len(me.children(recursive=True)))
    for _ in range(rounds):
        await one_round()

    assert (me.num_fds(), len(asyncio.all_tasks()), len(me.children(recursive=True))) == before
    assert marked_processes(mark) == set()


async def test_a_variable_that_is_not_set_is_told_with_its_server(bridge: Bridge) -> None:
    """A token that nobody exported would be an empty one, and the server's own refusal the only trace."""
    await bridge.apply(config({"h": entry(env={"KEY": "${NOBODY_EXPORTED_THIS}"})}))
    (status,) = bridge.statuses()

    assert status.state == "ready"
    assert ["NOBODY_EXPORTED_THIS" in warning for warning in status.warnings] == [True]
