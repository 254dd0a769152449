"""The commands about users, tokens and the audit log, on the database of a chatd that runs."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import cyclopts
import pytest

from chatd.cli import app
from chatd.sealing import KEY_FILE, Sealer
from chatd.store import catalog_rows, mcp_servers
from tests.integration.chatd.http.site import API, LIMIT_S, Site, bearer, serving

ROOT = Path(__file__).parents[4]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """A control plane that ``me`` administers."""
    async with serving(tmp_path / "data", admins=("me",)) as site:
        yield site


def start(site: Site, *arguments: str) -> list[str]:
    """A command line of ``chatd`` on the site's data."""
    data = str(site.plane.settings.data_dir)
    return [sys.executable, "-c", "from chatd.cli import main; main()", *arguments, "--data", data]


async def run(site: Site, *arguments: str, code: int = 0) -> str:
    """What a command prints: on standard output, or, where it fails, on standard error."""
    process = await asyncio.create_subprocess_exec(
        *start(site, *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "LOGNAME": "root"},
    )
    async with asyncio.timeout(LIMIT_S):
        out, log = await process.communicate()
    assert process.returncode == code, log.decode()
    return (log if code else out).decode()


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_users_and_tokens_are_made_beside_a_running_chatd(site: Site) -> None:
    """Ours: what the shell does counts with the next request; every step is in the audit log."""
    made = json.loads(await run(site, "users", "add", "ann", "--role", "admin", "--json"))
    token = (await run(site, "tokens", "create", "ci", "--user", "ann", "--scope", "read", "admin")).strip()
    assert await site.status("GET", f"{API}/users", bearer(token)) == 200
    url = (await run(site, "users", "login-url", "ann", "--url", site.plane.url + "/")).strip()
    assert await site.status("GET", url.removeprefix(site.plane.url), {}) == 303
    (listed,) = [
        one
        for one in json.loads(await run(site, "tokens", "list", "--user", "ann", "--json"))
        if one["kind"] == "api"
    ]
    await run(site, "tokens", "revoke", listed["id"])
    assert await site.status("GET", f"{API}/users", bearer(token)) == 401
    assert await run(site, "users", "untie", "ann") == "ann: 0 forgotten\n"
    lines = (await run(site, "audit", "--actor", "shell:root")).splitlines()

    assert (made["name"], listed["scopes"], "token" in listed) == ("ann", ["read", "admin"], False)
    assert [line.split("  ")[2] for line in lines] == [
        "user_made",
        "token_made",
        "login_url_made",
        "token_revoked",
        "identity_untied",
    ]
    assert not [line for line in lines if token.partition("_")[2] in line]


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_the_audit_log_is_followed(site: Site) -> None:
    """Ours: entries that come are printed once each, as lines of JSON."""
    process = await asyncio.create_subprocess_exec(
        *start(site, "audit", "--follow", "--json", "--action", "user_made"),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
    )
    assert process.stdout is not None
    names = [f"user{number}" for number in range(30)]
    found: list[str] = []
    try:
        async with asyncio.timeout(LIMIT_S):
            await site.ask("POST", "/users", status=201, json={"name": "first"})
            # Told from the table, or by following: from here on it looks.
            assert json.loads(await process.stdout.readline())["target"] == "first"
            for name in names:
                await site.ask("POST", "/users", status=201, json={"name": name})
            while len(found) < len(names):
                found.append(json.loads(await process.stdout.readline())["target"])
    finally:
        process.kill()
        await process.wait()

    assert found == names


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_keys_are_rotated_beside_a_running_chatd(site: Site) -> None:
    """Ours: links go on, new secrets are sealed with the new key, the old one is forgotten."""
    chat_id = await site.new_chat(who="owner")
    share = await site.ask("POST", f"/chats/{chat_id}/desktop/shares", who="owner", status=201, json={})
    key_file = site.plane.settings.data_dir / KEY_FILE
    (first,) = key_file.read_text().split()
    told = json.loads(await run(site, "secrets", "rotate", "--json"))
    kept = key_file.read_text().split()
    server = {"slug": "far", "url": "http://127.0.0.1:9/mcp", "headers": {"A": "hunter2"}, "enabled": False}
    await site.ask("POST", "/mcp-servers", status=201, json=server)
    await run(site, "secrets", "rotate", "--drop-old")
    (last,) = key_file.read_text().split()
    boxes = await site.store.read(mcp_servers.read_sealed)

    assert told == {"secrets": 1, "older_keys": 1}
    assert (kept[1], last in {first, *kept}, key_file.stat().st_mode & 0o777) == (first, False, 0o600)
    assert "hunter2" in Sealer([last]).open(next(iter(boxes.values())))
    # The workspace is away: the link itself was good.
    async with site.http.get(f"/{share['url']}/status") as answer:
        assert (await answer.json())["code"] == "agent_unavailable"


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_models_are_listed_as_the_last_chatd_left_them(site: Site) -> None:
    """Ours: the default first; one whose key is gone is told of when asked for, and marked."""
    known = json.loads(await run(site, "models", "--json"))
    lines = (await run(site, "models")).splitlines()
    await site.plane.services.store.write(catalog_rows.save_configs, (), now=site.store.now())
    left = json.loads(await run(site, "models", "--json"))
    gone = (await run(site, "models", "--all")).splitlines()

    told = {str(config.id) for config in site.plane.services.catalog.configs()}
    assert {one["id"] for one in known} == told
    assert [one["is_default"] for one in known] == [True] + [False] * (len(known) - 1)
    assert lines[0].split() == ["PROVIDER", "MODEL", "NAME", "ID"]
    assert " default" in lines[1]
    assert left == []
    assert len(gone) == len(lines)
    assert all(" gone" in line for line in gone[1:])


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_chatd_on_sqlite_is_in_no_registry(site: Site) -> None:
    """Ours: the list is empty rather than a failure."""
    assert json.loads(await run(site, "replicas", "--json")) == []


def commands(of: cyclopts.App = app, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command of ``chatd``, with those that it is below."""
    for name in of:
        if name.startswith("-"):
            continue
        if below := list(commands(of[name], (*before, name))):
            yield from below
        else:
            yield (*before, name)


@pytest.mark.parametrize("arguments", list(commands()), ids=" ".join)
def test_every_command_shows_an_example(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    """Ours: people copy the example before they read the options."""
    with pytest.raises(SystemExit) as ended:
        app([*arguments, "--help"])
    _, _, examples = capsys.readouterr().out.partition("For example:\n")

    assert ended.value.code == 0
    assert f"chatd {' '.join(arguments)}" in examples


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("users", "role", "nobody", "admin"), 1, "no such user: nobody; `chatd users list`"),
        (("users", "login-url", "nobody"), 1, "`chatd users add nobody`"),
        (("tokens", "list", "--user", "nobody"), 1, "`chatd users add nobody`"),
        (("audit", "--limit", "-1"), 2, "--limit is 1 to"),
        (("audit", "--limit", "0"), 2, "--limit is 1 to"),
        (("audit", "--limit", "9" * 30), 2, "--limit is 1 to"),
        (("users", "add", "a/b"), 1, "name"),
        (("tokens", "create", "x", "--user", "nobody"), 1, "no such user"),
        (("tokens", "create", "x", "--user", "me", "--kind", "agent"), 2, "workspace"),
        (("tokens", "create", "x", "--user", "me", "--expires-days", "-1"), 2, "expires_in_s"),
        (("tokens", "revoke", "7b0c1a52-8d3e-4a55-9a63-0d2a9f3a7a11"), 1, "no such token"),
    ],
)
def test_what_can_t_be_done_says_why(
    tmp_path: Path,
    sqlite_template: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    arguments: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    """Ours: 1 for what is refused, 2 for bad usage."""
    (tmp_path / "chatd.sqlite3").write_bytes(sqlite_template.read_bytes())
    with pytest.raises(SystemExit) as ended:
        app([*arguments, "--data", str(tmp_path)])

    assert ended.value.code == code
    assert message in capsys.readouterr().err


def test_a_database_that_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ours: none is made by asking; what to do is said."""
    with pytest.raises(SystemExit) as ended:
        app(["users", "list", "--data", str(tmp_path / "none")])

    assert ended.value.code == 1
    assert "chatd serve" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


def test_a_server_that_can_t_be_reached_is_no_wrong_database(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ours: who reads the line looks at the server, not at what is in it; exit code 3, one line."""
    with pytest.raises(SystemExit) as ended:
        app(["serve", "--data", str(tmp_path), "--database", "postgresql://chatd:hunter2@127.0.0.1:1/chatd"])
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]

    assert ended.value.code == 3
    assert "can't be reached: connection failed" in line
    assert line.endswith("Is it running, and may this user use it?")
    assert "no database of ours" not in line
    assert "hunter2" not in line
