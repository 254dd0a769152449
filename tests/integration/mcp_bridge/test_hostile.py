"""Servers that misbehave harm themselves only."""

import asyncio
import json
import os
import signal

import pytest

from mcp_bridge.bridge import Bridge
from mcp_bridge.errors import BridgeError, ProtocolBroken, ServerExited, ServerNotReady, ServerSilent
from mcp_bridge.hosting import connection as connection_module
from mcp_bridge.wire import ServerStatus
from tests.integration.mcp_bridge.setting import config, entry, marked_processes, text_of, until


def _status(bridge: Bridge, name: str) -> ServerStatus:
    return next(status for status in bridge.statuses() if status.name == name)


async def test_noise_on_stdout_is_logged_and_the_session_goes_on(bridge: Bridge) -> None:
    """A banner, bytes that are no text, half a line, JSON that is no message: BUGS 44."""
    await bridge.apply(config({"h": entry("noise")}))
    outcome = await bridge.call("h__echo", {"a": 1})
    noise = [line.text for line in bridge.logs("h") if line.origin == "stdout"]

    assert text_of(outcome) == '{"a": 1}'
    assert "Welcome to my server!" in noise
    assert "debug: got something" in noise


async def test_a_server_that_dies_fails_its_calls_at_once_and_touches_nobody_else(bridge: Bridge) -> None:
    """Every call that waits for it ends with how it ended; the other server's call goes on; it comes back."""
    await bridge.apply(config({"h": entry(), "other": entry()}))
    waiting = [asyncio.create_task(bridge.call("h__hang", {})) for _ in range(5)]
    other = asyncio.create_task(bridge.call("other__slow", {"steps": 20}))
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        outcomes = await asyncio.gather(bridge.call("h__exit", {}), *waiting, return_exceptions=True)

    assert all(isinstance(outcome, ServerExited) for outcome in outcomes)
    assert "exit code 7" in str(outcomes[0])
    assert text_of(await other) == "done"
    assert _status(bridge, "other").starts == 1
    await until(lambda: _status(bridge, "h").state == "ready" and _status(bridge, "h").starts == 2)
    assert text_of(await bridge.call("h__echo", {})) == "{}"


async def test_a_killed_server_is_not_ready_until_it_is_back(bridge: Bridge) -> None:
    """Its tools stay listed; a call says why it can't be done."""
    await bridge.apply(config({"h": entry()}))
    pid = _status(bridge, "h").pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await until(lambda: _status(bridge, "h").state == "waiting")
    with pytest.raises(ServerNotReady) as refusal:
        await bridge.call("h__echo", {})

    assert "signal 9" in str(refusal.value)
    assert any(tool.name == "h__echo" for tool in bridge.tools())
    await until(lambda: _status(bridge, "h").state == "ready")


async def test_a_giant_answer_fails_only_its_call(bridge: Bridge) -> None:
    """One message over the limit is dropped; large ones below it arrive, cut to what a chat takes."""
    await bridge.apply(config({"h": entry()}))
    waiting = asyncio.create_task(bridge.call("h__slow", {"steps": 10}))
    with pytest.raises(ProtocolBroken) as refusal:
        await bridge.call("h__giant", {"bytes": 20_000_000})
    large = await bridge.call("h__giant", {"bytes": 8_000_000})

    assert "too long" in str(refusal.value)
    assert "left out" in text_of(large)
    assert text_of(await waiting) == "done"
    assert _status(bridge, "h").starts == 1


async def test_grandchildren_that_left_the_group_are_ended_too(bridge: Bridge, mark: str) -> None:
    """A daemon of its own session that ignores SIGTERM, of a server that ignores it as well."""
    await bridge.apply(config({"h": entry("stubborn", "start-fork")}))
    grandchild = int(text_of(await bridge.call("h__fork", {})))
    assert grandchild in marked_processes(mark)
    await bridge.close()

    assert marked_processes(mark) == set()


async def test_what_a_killed_bridge_left_behind_is_swept(bridge: Bridge, mark: str) -> None:
    """The next bridge of the same mark ends only what carries it."""
    await bridge.apply(config({"h": entry("stubborn", "start-fork")}))
    before = marked_processes(mark)
    swept = await Bridge(bridge._place).sweep()

    assert len(before) >= 2
    assert swept == len(before)
    assert marked_processes(mark) & before == set()


async def test_ten_thousand_tools_and_endless_pages_are_bounded(bridge: Bridge) -> None:
    """The list is cut with a visible reason; a cursor that repeats ends it."""
    await bridge.apply(config({"many": entry("many"), "pages": entry("pages")}))

    assert _status(bridge, "many").tools == 1_000
    assert _status(bridge, "pages").tools == 15
    assert len(bridge.tools()) == 100
    assert "100 MCP tools in all" in _status(bridge, "many").rejected[-1].reason
    assert text_of(await bridge.call("many__echo", {})) == "{}"


async def test_tools_that_lie_are_set_aside_and_results_that_lie_are_shown(bridge: Bridge) -> None:
    """Bad schemas are named with a reason; an outcome keeps what can be shown of it."""
    await bridge.apply(config({"h": entry("liar")}))
    outcome = await bridge.call("h__lie", {})

    assert {tool.tool for tool in _status(bridge, "h").rejected} == {"bad", "loop", "None"}
    assert any(tool.name == "h__odd" for tool in bridge.tools())
    assert "hologram" in text_of(outcome)
    assert outcome.structured == {"value": [1]}
    assert not outcome.is_error


async def test_a_server_that_never_answers_does_not_hold_up_the_others(
    bridge: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own limit passes; the others serve meanwhile."""
    monkeypatch.setattr(connection_module, "CONNECT_TIMEOUT_S", 1.0)
    reload = asyncio.create_task(bridge.apply(config({"silent": entry("silent"), "h": entry()})))
    await until(lambda: any(status.state == "ready" for status in bridge.statuses()))
    assert not bridge.settled.is_set()
    assert text_of(await bridge.call("h__echo", {})) == "{}"
    await reload

    assert _status(bridge, "silent").state == "failed"
    assert "no answer" in (_status(bridge, "silent").last_error or "")


async def test_a_call_ends_in_time_and_the_server_is_told(bridge: Bridge) -> None:
    """A timeout cancels the server's work; so does a caller that goes away."""
    await bridge.apply(config({"h": entry()}))
    with pytest.raises(ServerSilent):
        await bridge.call("h__hang", {}, timeout_s=0.2)
    leaving = asyncio.create_task(bridge.call("h__hang", {}))
    await asyncio.sleep(0.1)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)

    assert len(json.loads(text_of(await bridge.call("h__cancelled", {})))) == 2


async def test_progress_extends_the_limit_and_reaches_the_caller(bridge: Bridge) -> None:
    """A tool that works and says so may take longer than one that is silent."""
    await bridge.apply(config({"h": entry()}))
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    outcome = await bridge.call("h__slow", {"steps": 8, "pause_s": 0.2}, timeout_s=1.0, on_progress=hear)

    assert text_of(outcome) == "done"
    assert heard == [float(step) for step in range(8)]


@pytest.mark.parametrize("tool", ["sample", "elicit"])
async def test_what_a_server_asks_of_a_model_or_a_person_is_refused_clearly(
    bridge: Bridge, tool: str
) -> None:
    """The server gets an error at once and can go on."""
    await bridge.apply(config({"h": entry()}))
    answer = json.loads(text_of(await bridge.call(f"h__{tool}", {})))

    assert "not supported" in answer["message"].lower() or "not found" in answer["message"].lower()


async def test_a_server_that_does_not_read_fails_its_calls_in_time(bridge: Bridge) -> None:
    """Its pipe fills; calls end by their limit, and closing is not held up."""
    await bridge.apply(config({"h": entry()}))
    calls = [bridge.call("h__deaf", {"pad": "x" * 100_000}, timeout_s=0.5) for _ in range(5)]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)

    assert all(isinstance(outcome, ServerSilent) for outcome in outcomes)


async def test_older_servers_are_spoken_to_as_they_understand(bridge: Bridge) -> None:
    """The oldest protocol; and a server that ends when the first message is not its handshake."""
    await bridge.apply(config({"old": entry("old"), "picky": entry("picky")}))

    assert _status(bridge, "old").protocol_version == "2024-11-05"
    assert _status(bridge, "picky").state == "ready"
    assert text_of(await bridge.call("old__echo", {"a": 1})) == '{"a": 1}'
    assert text_of(await bridge.call("picky__echo", {"a": 1})) == '{"a": 1}'


async def test_a_failing_tool_is_a_result_for_the_model(bridge: Bridge) -> None:
    """Not an error of the bridge."""
    await bridge.apply(config({"h": entry()}))
    outcome = await bridge.call("h__fail", {})

    assert (outcome.is_error, text_of(outcome)) == (True, "it failed")


async def test_no_secret_is_in_an_error_or_a_log(bridge: Bridge) -> None:
    """Env values that the server itself repeats are taken out; the server got them."""
    script = "echo cannot use planted-argument >&2; exit 1"
    gone = {"command": "sh", "args": ["-c", script, "planted-argument"]}
    await bridge.apply(config({"h": entry("noise", env={"KEY": "s3cret-value"}), "gone": gone}))
    given = await bridge.call("h__env", {"name": "KEY"})
    said = repr(bridge.statuses()) + repr(bridge.logs("h")) + repr(bridge.logs("gone"))

    assert text_of(given) == "s3cret-value"
    assert "a warning with ***" in said
    assert "cannot use ***" in said
    assert "s3cret-value" not in said
    assert "planted-argument" not in said


async def test_cancelling_a_connect_a_hundred_times_leaves_nothing(bridge: Bridge, mark: str) -> None:
    """Whenever it is cancelled: no process, no descriptor, no complaint about cancel scopes (BUGS 48)."""
    await bridge.apply(config({}))
    descriptors = len(os.listdir("/proc/self/fd"))  # noqa: PTH208

    async def cancel_after(delay_s: float) -> None:
        opening = asyncio.create_task(
            connection_module.Connection.open(
                config({"h": entry()}).servers[0], bridge._place, _log(), lambda: None
            )
        )
        await asyncio.sleep(delay_s)
        opening.cancel()
        for ended in await asyncio.gather(opening, return_exceptions=True):
            if isinstance(ended, connection_module.Connection):
                await ended.close()

    # Ten at a time, since most of it is waiting for processes to end.
    for step in range(0, 100, 10):
        await asyncio.gather(*(cancel_after((step + each) * 0.001) for each in range(10)))

    assert marked_processes(mark) == set()
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 1  # noqa: PTH208


def _log() -> connection_module.ServerLog:
    return connection_module.ServerLog(lambda text: text)


def test_errors_of_the_bridge_have_a_word_for_programs() -> None:
    """``code`` is what callers decide by."""
    assert BridgeError.code
    assert ServerSilent.code == "server_silent"
