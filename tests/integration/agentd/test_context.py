"""Context: from a daemon's files to the control plane, its readiness, its local API and commands."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import psutil
import pytest

from agentd.app import Daemon
from agentd.cli.commands import context as commands
from agentd.settings import AgentdSettings
from agentd.wire.jsonrpc import BUSY, INVALID_PARAMS, METHOD_NOT_FOUND
from agentd.wire.peer import RpcError
from context_push.wire.push import ContextPush, PushAnswer
from tests.integration.agentd.control_plane import LIMIT_S, TOKEN, ControlPlane, control_plane

CONTEXT = "/api/v0/context"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a working directory that has instructions."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "AGENTS.md").write_text("Be kind.")
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@asynccontextmanager
async def started(home: Path, runtime_dir: Path, **fields: Any) -> AsyncIterator[Daemon]:
    """A daemon in *home*."""
    settings = AgentdSettings(runtime_dir=runtime_dir, working_dir=home / "work", **fields)
    daemon = Daemon(settings)
    await daemon.start()
    try:
        async with asyncio.timeout(LIMIT_S):
            yield daemon
    finally:
        await daemon.stop()


class Taking(ControlPlane):
    """A control plane that takes pushes, answering by a script first."""

    def __init__(self, *script: RpcError) -> None:
        super().__init__()
        self.script = list(script)
        self.pushes: asyncio.Queue[ContextPush] = asyncio.Queue()

    async def take(self, params: dict[str, Any]) -> PushAnswer:
        """Take one push."""
        self.pushes.put_nowait(ContextPush.model_validate(params))
        if self.script:
            raise self.script.pop(0)
        return PushAnswer(accepted=True)


@asynccontextmanager
async def plane_and_daemon(
    home: Path, runtime_dir: Path, *script: RpcError, **fields: Any
) -> AsyncIterator[tuple[Taking, Daemon]]:
    """Both, linked."""
    plane = Taking(*script)
    plane.handlers["context/push"] = plane.take
    async with (
        control_plane(plane),
        started(home, runtime_dir, control_url=plane.url, agent_token=TOKEN, **fields) as daemon,
    ):
        yield plane, daemon


def sources(push: ContextPush) -> list[str]:
    """What was pushed, by place."""
    return [resource.source for resource in push.resources]


async def test_a_connection_begins_with_the_whole_context(home: Path, runtime_dir: Path) -> None:
    """Spec 5.5: said in hello, pushed after it; again after a reconnect, and after a change."""
    async with plane_and_daemon(home, runtime_dir) as (plane, _):
        first = await plane.pushes.get()
        link = await plane.links.get()
        assert link.hello.pushes_context
        await link.drop()
        second = await plane.pushes.get()
        (home / "work" / "CLAUDE.md").write_text("x")
        third = await plane.pushes.get()

    here = f"{home}/work/AGENTS.md"
    assert (first.initial, first.directory, sources(first)) == (True, f"{home}/work", [here])
    assert (second.initial, second.version) == (True, first.version)
    assert (third.initial, sources(third)) == (False, [here, f"{home}/work/CLAUDE.md"])


async def test_what_the_control_plane_answers_decides(home: Path, runtime_dir: Path) -> None:
    """Spec 5.5: busy is tried again; refused parameters wait for a change; an unknown method ends it."""
    script = [
        RpcError(BUSY, "busy"), RpcError(INVALID_PARAMS, "no"), RpcError(METHOD_NOT_FOUND, "unknown"),
    ]  # fmt: skip
    async with plane_and_daemon(home, runtime_dir, *script) as (plane, daemon):
        pushes = [await plane.pushes.get() for _ in range(2)]
        (home / "work" / "CLAUDE.md").write_text("x")
        pushes.append(await plane.pushes.get())
        (home / "work" / "CLAUDE.md").write_text("y")
        await daemon.context.wait_newer(2)
        await (await plane.links.get()).drop()
        pushes.append(await plane.pushes.get())

    assert [push.version for push in pushes] == [1, 1, 2, 3]


async def test_nothing_is_pushed_before_the_start_up_script_has_ended(home: Path, runtime_dir: Path) -> None:
    """Issue: the script may write the instructions; failing ends it too, and its output is kept."""
    script = 'echo "$AGENTD_AGENT_TOKEN" preparing; echo ready > AGENTS.md; exit 3'
    async with plane_and_daemon(home, runtime_dir, startup_script=script) as (plane, daemon):
        push = await plane.pushes.get()

    assert push.resources[0].body.text == "ready\n"  # type: ignore[union-attr]
    assert push.version == 1
    assert daemon.startup.readiness.model_dump() == {"ready": True, "script": "failed", "exit_code": 3}
    assert (runtime_dir / "startup.log").read_text() == " preparing\n"


async def test_a_script_that_hangs_is_overruled_and_stopped(home: Path, runtime_dir: Path) -> None:
    """Ours: `agentd ready` ends the wait; nothing of the script outlives the daemon."""
    script = "trap '' TERM; echo $$ > pid; mkfifo gate; read _ < gate"
    async with plane_and_daemon(home, runtime_dir, startup_script=script) as (plane, daemon):
        daemon.startup.mark_ready()
        await plane.pushes.get()
        assert daemon.startup.readiness.script == "running"

    assert not psutil.pid_exists(int((home / "work" / "pid").read_text()))


@asynccontextmanager
async def local(daemon: Daemon) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of the local API."""
    connector = aiohttp.UnixConnector(path=str(daemon.socket_path))
    async with aiohttp.ClientSession("http://agentd", connector=connector) as session:
        yield session


async def ask(client: aiohttp.ClientSession, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Status and JSON of one request."""
    async with client.request(method, path, json=body) as answer:
        return answer.status, await answer.json() if answer.status != 204 else None


async def test_readiness_can_be_asked_for_and_said(home: Path, runtime_dir: Path) -> None:
    """Issue: nothing is scanned before `agentd ready` where that is wanted."""
    async with started(home, runtime_dir, wait_ready=True) as daemon, local(daemon) as client:
        before = await ask(client, "GET", "/api/v0/ready")
        unscanned = await ask(client, "POST", f"{CONTEXT}/resync")
        said = await ask(client, "POST", "/api/v0/ready")
        scanned = await ask(client, "POST", f"{CONTEXT}/resync")

    assert before == (200, {"ready": False, "script": "none", "exit_code": None})
    assert said[1]["ready"] is True
    assert (unscanned[1]["version"], unscanned[1]["ready"], unscanned[1]["resources"]) == (0, False, [])
    assert [resource["source"] for resource in scanned[1]["resources"]] == [f"{home}/work/AGENTS.md"]


async def test_sources_come_and_go(home: Path, runtime_dir: Path) -> None:
    """Spec 5.5: 201, 400, 404, 204; the identity is the cleaned path, percent-encoded in the address."""
    (home / "more").mkdir()
    (home / "more" / "CLAUDE.md").write_text("more")
    path = quote(f"{home}/more", safe="")
    async with started(home, runtime_dir) as daemon, local(daemon) as client:
        added = await ask(client, "POST", f"{CONTEXT}/sources", {"path": "~/x/../more/"})
        resynced = await ask(client, "POST", f"{CONTEXT}/resync")
        listed = await ask(client, "GET", f"{CONTEXT}/sources")
        one = await ask(client, "GET", f"{CONTEXT}/sources/{path}")
        removed = await ask(client, "DELETE", f"{CONTEXT}/sources/{path}")
        again = await ask(client, "DELETE", f"{CONTEXT}/sources/{path}")
        unknown = await ask(client, "GET", f"{CONTEXT}/sources/{path}")
        refused = [
            await ask(client, "POST", f"{CONTEXT}/sources", body)
            for body in ({"path": "/etc"}, {"path": "relative"}, {"path": ""}, {}, {"path": 1}, [])
        ]

    assert added == (201, {"path": f"{home}/more"})
    assert [r["source"] for r in resynced[1]["resources"]] == [
        f"{home}/more/CLAUDE.md",
        f"{home}/work/AGENTS.md",
    ]
    assert (listed[1]["sources"], listed[1]["roots"][0]) == ([f"{home}/more"], f"{home}/more")
    assert (one, removed) == ((200, {"path": f"{home}/more"}), (204, None))
    assert (again[0], again[1]["code"], unknown[0]) == (404, "source_not_found", 404)
    assert {status for status, _ in refused} == {400}


async def test_the_commands_show_and_say_it(
    home: Path, runtime_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: what is found, excluded, and why."""
    monkeypatch.setenv("AGENTD_RUNTIME_DIR", str(runtime_dir))
    (home / "work" / "CLAUDE.md").symlink_to("/etc/hostname")
    async with started(home, runtime_dir, wait_ready=True):
        await asyncio.to_thread(commands.context)
        unready = capsys.readouterr().out
        await asyncio.to_thread(commands.ready)
        await asyncio.to_thread(commands.context, resync=True, as_json=True)
        *_, said, found = capsys.readouterr().out.splitlines()
        await asyncio.to_thread(commands.context)
        shown = capsys.readouterr().out

    assert "agentd ready" in unready
    assert said == "ready"
    statuses = [(r["kind"], r["status"]) for r in json.loads(found)["resources"]]
    assert statuses == [("instruction_file", "ok"), ("instruction_file", "invalid")]
    assert "leads out of" in shown
    assert f"{home}/.coder" in shown
    assert "does not exist" in shown


@pytest.mark.parametrize(
    ("answers", "outcome", "said"),
    [
        ([], "accepted", "pushed: version 1"),
        ([RpcError(INVALID_PARAMS, "too much")], "rejected", "did not take version 1: too much"),
        ([RpcError(METHOD_NOT_FOUND, "unknown")], "refused", "takes no context: unknown"),
        (
            [RpcError(BUSY, "busy")] * 20,
            "waiting",
            "version 1 could not be pushed yet, it is tried again: busy",
        ),
    ],
)
async def test_the_command_shows_what_became_of_the_push(
    home: Path,
    runtime_dir: Path,
    *,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    answers: list[RpcError],
    outcome: str,
    said: str,
) -> None:
    """A push that was not taken leaves chats with what they had: that must not look like success."""
    monkeypatch.setenv("AGENTD_RUNTIME_DIR", str(runtime_dir))
    async with plane_and_daemon(home, runtime_dir, *answers) as (_, daemon):
        while daemon.context.last_push is None:  # noqa: ASYNC110 -- set by an answer over the link
            await asyncio.sleep(0.01)
        await asyncio.to_thread(commands.context)
        shown = capsys.readouterr().out
        async with local(daemon) as client:
            _, found = await ask(client, "GET", CONTEXT)

    assert said in shown
    assert ("warning: " in shown) == (outcome != "accepted")
    assert found["last_push"]["outcome"] == outcome


@pytest.mark.parametrize(("text", "expected"), [("", ()), ("~/a, /b ,", ("~/a", "/b"))])
def test_sources_are_set_as_a_list_with_commas(
    monkeypatch: pytest.MonkeyPatch, text: str, expected: tuple[str, ...]
) -> None:
    """Spec 5.5: seeding by the environment."""
    monkeypatch.setenv("AGENTD_CONTEXT_SOURCES", text)

    assert AgentdSettings().context_sources == expected


def test_a_relative_source_is_a_bad_setting() -> None:
    """Ours: told at the start, with the name of the setting."""
    with pytest.raises(ValueError, match="context_sources"):
        AgentdSettings(context_sources=("relative",))
