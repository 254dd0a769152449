"""The ``chatd`` command and the start and stop of a control plane."""

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import aiohttp
import pytest

from chatd.app import ControlPlane, PortInUse, ScenarioUnusable
from chatd.cli import app
from chatd.convert import convert_messages
from chatd.datadir import DataDir, DataDirBusy
from chatd.settings import ChatdSettings
from chatd.store import queries
from chatd.store.database import DatabaseBusy
from tests.databases import NewDatabase
from tests.integration.chatd.http.site import API, LIMIT_S, Site, bearer, text


@contextlib.asynccontextmanager
async def chatd(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A ``chatd`` process; ended, one way or the other."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from chatd.cli import main; main()", "serve", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[4],
        env={"PATH": os.environ.get("PATH", ""), "HOME": "/nonexistent", "LOGNAME": "tester"},
    )
    try:
        async with asyncio.timeout(LIMIT_S):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.mark.slow
async def test_serve_prints_one_line_and_stops_when_told(tmp_path: Path) -> None:
    """Ours: standard output is one line of JSON; a signal ends it cleanly."""
    arguments = ("--data", str(tmp_path / "d"), "--port", "0")
    async with chatd(*arguments) as process:
        assert process.stdout is not None
        line = json.loads(await process.stdout.readline())
        async with (
            aiohttp.ClientSession(line["url"]) as http,
            http.get(f"{API}/me", headers=bearer(line["token"])) as answer,
        ):
            me = await answer.json()
        process.send_signal(signal.SIGTERM)
        rest, log = await process.communicate()
        code = process.returncode

    assert me["user"]["name"] == "tester"
    assert (rest, code) == (b"", 0)
    assert [json.loads(line)["action"] for line in log.splitlines()] == ["ready"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--data", "x", "--port", "70000"), 2, "error: setting port"),
        (("--port", "0"), 2, "error: setting data_dir"),
        (("--data", "busy", "--port", "0"), 3, "in use by process"),
        (("--data", "x", "--database", "mysql://me:secret@h/x"), 2, "error: setting database"),
        (("--data", "x", "--database", "postgresql://me:secret@/x?host=/nowhere"), 3, "Is it running"),
    ],
)
def test_what_can_t_start_says_why(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    arguments: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    """Ours: 2 for bad usage with the setting's name, 3 for a place that is taken."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("chatd.cli._log_to_stderr", lambda: None)
    held = DataDir(tmp_path / "busy")
    with pytest.raises(SystemExit) as ended:
        app(["serve", *arguments])
    held.release()
    printed = capsys.readouterr()

    assert ended.value.code == code
    assert (printed.out, message in printed.err, "secret" in printed.err) == ("", True, False)


def settings(path: Path, **fields: object) -> ChatdSettings:
    """Settings of a small control plane."""
    return ChatdSettings.model_validate({"data_dir": path, "port": 0, "rehearsal": "always", **fields})


@pytest.mark.parametrize("new_database", ["postgresql"], indirect=True)
async def test_chats_on_postgresql_outlive_their_process(tmp_path: Path, new_database: NewDatabase) -> None:
    """Ours: the same chats from another data directory; who wants the database alone waits."""
    url = new_database()
    first = ControlPlane(settings(tmp_path / "1", database=url))
    second = ControlPlane(settings(tmp_path / "2", database=url))
    await first.start()
    try:
        with pytest.raises(DatabaseBusy):
            await convert_messages(settings(tmp_path / "3", database=url), apply=False)
        site = Site(first)
        await site.prepare()
        chat_id = await site.quiet_chat()
        await site.close()
    finally:
        await first.stop()
    await second.start()
    try:
        row = await second.services.store.read(queries.read_row, UUID(chat_id))
    finally:
        await second.stop()

    assert row["status"] == "waiting"


async def test_a_start_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    """Ours: busy directory, busy port, unreadable scenario; afterwards the directory is free."""
    plane = ControlPlane(settings(tmp_path / "a"))
    await plane.start()
    scenario = tmp_path / "scenario.json"
    scenario.write_text("{")
    cases = [
        (DataDirBusy, settings(tmp_path / "a")),
        (PortInUse, settings(tmp_path / "b", port=plane.port)),
        (ScenarioUnusable, settings(tmp_path / "b", rehearsal_scenario=scenario)),
        (ScenarioUnusable, settings(tmp_path / "b", rehearsal_scenario=tmp_path / "none")),
    ]
    for error, wish in cases:
        with pytest.raises(error):
            await ControlPlane(wish).start()
    await plane.stop()
    again = ControlPlane(settings(tmp_path / "b"))
    await again.start()
    await again.stop()


async def test_a_restart_ends_old_tokens_and_goes_on_with_the_chats(tmp_path: Path) -> None:
    """Ours: api, agent and login tokens are renewed, sessions and chats live on."""
    wish = settings(tmp_path)
    plane = ControlPlane(wish)
    await plane.start()
    old = await plane.issue_local_tokens("box")
    async with aiohttp.ClientSession(plane.url, cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        async with http.get(f"/login?token={old.login}", allow_redirects=False) as answer:
            session = answer.cookies["agentd_session"].value
        async with http.post(f"{API}/chats", headers=bearer(old.api), json=text("say hi")) as answer:
            chat = await answer.json()
    await plane.stop()
    plane = ControlPlane(wish)
    await plane.start()
    new = await plane.issue_local_tokens("box")
    found = {}
    async with aiohttp.ClientSession(plane.url) as http:
        cookie = {"Cookie": f"agentd_session={session}"}
        for name, headers in (("old", bearer(old.api)), ("new", bearer(new.api)), ("cookie", cookie)):
            async with http.get(f"{API}/chats/{chat['id']}", headers=headers) as answer:
                found[name] = (answer.status, (await answer.json()).get("status"))
    await plane.stop()

    assert found == {"old": (401, None), "new": (200, "running"), "cookie": (200, "running")}
