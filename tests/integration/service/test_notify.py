"""Both daemons beside a service manager: what they tell on a real notify socket, and what a reload does."""

import json
import os
import signal
import socket
from pathlib import Path

import aiohttp
import pytest

from agentd.cli.app import app as agentd_app
from chatd import cli as chatd_cli
from tests.support.manager import Service, starting

CHATD = ("chatd", "serve", "--port", "0")
AGENTD = ("agentd", "daemon")


def actions(log: str) -> list[str]:
    """The actions of a log of JSON lines."""
    return [json.loads(line)["action"] for line in log.splitlines()]


async def url_of(service: Service) -> str:
    """Where a chatd says that it serves."""
    assert service.process.stdout is not None
    return str(json.loads(await service.process.stdout.readline())["url"])


@pytest.mark.slow
@pytest.mark.parametrize("command", [CHATD, AGENTD], ids=["chatd", "agentd"])
async def test_ready_alive_and_stopping_are_told(tmp_path: Path, command: tuple[str, ...]) -> None:
    """sd_notify(3): READY once it serves, WATCHDOG again and again with a status, STOPPING at the end."""
    async with starting(tmp_path, *command, CHATD_DATA_DIR=str(tmp_path / "data")) as service:
        ready = await service.hear_field("READY")
        alive = [await service.hear_field("WATCHDOG") for _ in range(3)]
        code, _, log = await service.stop()
        stopping = await service.hear_field("STOPPING")

    assert ("READY" in service.heard[0], ready["STATUS"] != "") == (True, True)
    assert all(notice["STATUS"] for notice in alive)
    assert (code, stopping["STATUS"], actions(log)[0]) == (0, "stopping", "ready")


@pytest.mark.slow
async def test_nothing_is_told_when_it_can_t_start(tmp_path: Path) -> None:
    """Ours: a start that fails is no READY, and the exit code says that restarting at once is no use."""
    config = tmp_path / "chatd.toml"
    config.write_text("max_stepps = 3\n")
    variables = {"CHATD_CONFIG": str(config), "CHATD_DATA_DIR": str(tmp_path / "data")}
    async with starting(tmp_path, *CHATD, **variables) as service:
        code, _, err = await service.ended()

    assert code == 2
    assert "error: setting max_stepps: Extra inputs are not permitted" in err


@pytest.mark.slow
async def test_a_busy_event_loop_is_no_sign_of_life(tmp_path: Path) -> None:
    """Ours: the watchdog is fed by the loop that serves; one that is stopped goes silent."""
    async with starting(tmp_path, *AGENTD, watchdog_s=0.3) as service:
        await service.hear_field("WATCHDOG")
        service.process.send_signal(signal.SIGSTOP)
        await service.hear_silence(1.0)
        service.process.send_signal(signal.SIGCONT)
        await service.hear_field("WATCHDOG")


@pytest.mark.slow
async def test_chatd_takes_up_new_settings_and_keeps_the_old_ones_of_a_bad_file(tmp_path: Path) -> None:
    """Ours: SIGHUP; what can be taken up is, what can't is named, and a bad file changes nothing."""
    config = tmp_path / "chatd.toml"
    config.write_text("max_steps = 30\n")
    variables = {"CHATD_CONFIG": str(config), "CHATD_DATA_DIR": str(tmp_path / "data")}
    async with starting(tmp_path, *CHATD, **variables) as service, aiohttp.ClientSession() as http:
        url = await url_of(service)
        await service.hear_field("READY")

        async def status(host: str) -> int:
            async with http.get(f"{url}/healthz", headers={"Host": host}) as answer:
                return answer.status

        before = await status("chat.example")
        config.write_text('max_steps = 40\npublic_hosts = ["chat.example"]\nfetch_streams = true\n')
        told = await service.reload()
        after = await status("chat.example")
        config.write_text("max_steps = 'many'\n")
        refused = await service.reload()
        config.unlink()
        gone = await service.reload()
        kept = await status("chat.example")
        _, _, log = await service.stop()

    assert told == "reloaded: max_steps, public_hosts; a restart is needed for: fetch_streams"
    assert (before, after, kept) == (400, 200, 200)
    assert refused.startswith("the old settings go on: setting max_steps: Input should be a valid integer")
    assert gone.startswith("the old settings go on: the configuration file can't be used: ")
    assert actions(log) == ["ready", "reloaded", "reload_failed", "reload_failed"]


@pytest.mark.slow
async def test_chatd_takes_up_a_model_s_new_key(tmp_path: Path) -> None:
    """Ours: a key that is replaced, and a vendor that comes, need no restart; the last one that goes does."""
    config = tmp_path / "chatd.toml"
    config.write_text('anthropic_api_key = "sk-one"\n')
    variables = {"CHATD_CONFIG": str(config), "CHATD_DATA_DIR": str(tmp_path / "data")}
    async with starting(tmp_path, *CHATD, **variables) as service, aiohttp.ClientSession() as http:
        assert service.process.stdout is not None
        line = json.loads(await service.process.stdout.readline())
        headers = {"Authorization": f"Bearer {line['token']}"}

        async def vendors() -> list[str]:
            async with http.get(f"{line['url']}/api/experimental/chats/models", headers=headers) as answer:
                return [model["provider"] for model in await answer.json()]

        before = await vendors()
        config.write_text('anthropic_api_key = "sk-two"\nopenai_api_key = "sk-three"\n')
        told = await service.reload()
        after = await vendors()
        config.write_text("")
        last = await service.reload()
        kept = await vendors()
        _, out, log = await service.stop()

    assert (before, after, kept) == (["anthropic"], ["anthropic", "openai"], ["anthropic", "openai"])
    assert told == "reloaded: anthropic_api_key, openai_api_key"
    assert last == "a restart is needed for: anthropic_api_key, openai_api_key"
    assert "sk-" not in out + log


@pytest.mark.slow
async def test_chatd_serves_on_the_socket_that_it_is_given(tmp_path: Path) -> None:
    """sd_listen_fds(3): a restart then loses no connection: they wait in the socket's queue."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        async with starting(
            tmp_path, "chatd", "serve", listener=listener, CHATD_DATA_DIR=str(tmp_path / "data")
        ) as service:
            url = await url_of(service)
            async with aiohttp.ClientSession() as http, http.get(f"{url}/readyz") as answer:
                body = await answer.json()
            code, _, _ = await service.stop()

    assert (url, code) == (f"http://127.0.0.1:{port}", 0)
    parts = ("process", "reading", "writing", "work")
    assert body == {"status": "ok", "checks": dict.fromkeys(parts, "ok")}


@pytest.mark.slow
async def test_agentd_takes_up_a_new_token(tmp_path: Path) -> None:
    """Ours: a token that is replaced is dialled with at once, and nothing else is interrupted."""
    config, data = tmp_path / "agentd.toml", {"CHATD_DATA_DIR": str(tmp_path / "data")}
    (tmp_path / "c").mkdir()
    async with starting(tmp_path / "c", *CHATD, **data) as chatd:
        assert chatd.process.stdout is not None
        line = json.loads(await chatd.process.stdout.readline())
        # Nobody listens there yet.
        config.write_text('control_url = "http://127.0.0.1:9"\nagent_token = "agent_old"\n')
        async with starting(tmp_path, *AGENTD, AGENTD_CONFIG=str(config)) as service:
            first = await service.hear_field("READY")
            config.write_text(
                f'control_url = "{line["url"]}"\nagent_token = "{line["agent_token"]}"\nlog_level = "debug"\n'
                "mcp_port = 0\n"
            )
            told = await service.reload()
            linked = await service.hear(lambda notice: notice.get("STATUS", "").startswith("linked"))
            config.write_text("log_level = 'loud'\n")
            refused = await service.reload()
            code, _, log = await service.stop()

    assert first["STATUS"].startswith("not linked")
    assert told == "reloaded: agent_token, control_url, log_level; a restart is needed for: mcp_port"
    assert linked["STATUS"] == "linked; desktops running: 0, viewers: 0"
    assert refused.startswith("the old settings go on: setting log_level: ")
    assert (code, line["agent_token"] in log) == (0, False)


LOGIN = {
    "CHATD_DATA_DIR": "x",
    "CHATD_PUBLIC_URL": "https://chats.example",
    "CHATD_OIDC_ISSUER": "https://id.example",
    "CHATD_OIDC_CLIENT_ID": "chatd",
}
CHECKS: list[tuple[str, dict[str, str], int, str]] = [
    ("chatd", {"CHATD_DATA_DIR": "x"}, 0, "the settings are well: environment and arguments"),
    (
        "chatd",
        {"CHATD_DATA_DIR": "x", "CHATD_ADMNS": "x"},
        0,
        "CHATD_ADMNS is no setting; CHATD_ADMINS is one",
    ),
    ("chatd", {"CHATD_DATA_DIR": "x", "CHATD_SECRET_KEYS": '["s3cret"]'}, 2, "32 bytes"),
    ("chatd", {"CHATD_DATA_DIR": "x", "CHATD_REHEARSAL_SCENARIO": "/no"}, 2, "can't read"),
    ("chatd", {"CHATD_DATA_DIR": "x", "CHATD_CONFIG": "/no"}, 2, "No such file"),
    ("chatd", {}, 2, "setting data_dir: Field required"),
    ("chatd", {**LOGIN, "CHATD_OIDC_CLIENT_SECRET": "s3cret"}, 0, "the settings are well"),
    (
        "chatd",
        {**LOGIN, "CHATD_OIDC_ISSUER": "http://id.example"},
        2,
        "setting oidc_issuer: an https",
    ),
    ("chatd", {**LOGIN, "CHATD_PUBLIC_URL": "http://a.example"}, 2, "setting public_url: https"),
    ("chatd", {**LOGIN, "CHATD_PUBLIC_URL": ""}, 2, "settings: oidc_issuer needs public_url"),
    ("chatd", {"CHATD_DATA_DIR": "x", "CHATD_OIDC_CLIENT_SECRET": "s3cret"}, 2, "without oidc_issuer"),
    ("agentd", {}, 0, "the settings are well: environment"),
    ("agentd", {"AGENTD_DESKTOP_WIDTH": "1"}, 2, "setting desktop_width"),
    ("agentd", {"AGENTD_CONFIG": "/no"}, 2, "/no can't be read: No such file"),
]


@pytest.mark.parametrize(("name", "variables", "code", "told"), CHECKS)
def test_settings_are_checked_without_a_start(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    name: str,
    variables: dict[str, str],
    code: int,
    told: str,
) -> None:
    """Ours: ``--check-config`` says what a start would say, starts nothing, and shows no secret."""
    for variable in [name for name in os.environ if name.startswith(("CHATD_", "AGENTD_"))]:
        monkeypatch.delenv(variable)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr("chatd.cli._log_to_stderr", lambda: None)
    app, command = (chatd_cli.app, "serve") if name == "chatd" else (agentd_app, "daemon")
    with pytest.raises(SystemExit) as ended:
        app([command, "--check-config"])
    printed = capsys.readouterr()

    assert ended.value.code == code
    assert told in (printed.out if code == 0 else printed.err)
    assert "s3cret" not in printed.out + printed.err


@pytest.mark.slow
@pytest.mark.parametrize("command", [("chatd", "serve"), ("agentd", "daemon")], ids=["chatd", "agentd"])
async def test_credentials_are_settings(tmp_path: Path, command: tuple[str, str]) -> None:
    """Ours: a file of the unit's credentials is a setting; a directory that was never made holds none."""
    (tmp_path / f"{command[0]}_{'port' if command[0] == 'chatd' else 'mcp_port'}").write_text("seven")
    codes = []
    for directory in (tmp_path, tmp_path / "absent"):
        variables = {"CREDENTIALS_DIRECTORY": str(directory), "CHATD_DATA_DIR": str(tmp_path)}
        async with starting(tmp_path, *command, "--check-config", **variables) as service:
            code, out, err = await service.ended()
        codes.append((code, "port: Input should be a valid integer" in err, out != ""))

    assert codes == [(2, True, False), (0, False, True)]
