"""The command line, as the shell sees it: exit codes, sentences, JSON."""

import json
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.agentd.command import Command, Running

pytestmark = pytest.mark.slow


@pytest.fixture
def command(runtime_dir: Path) -> Command:
    """A command in an empty home: nothing runs."""
    return Command(runtime_dir)


@pytest.fixture(scope="module")
def up() -> Iterator[Command]:
    """A command in a home where `agentd up` runs, on ``state/agentd``."""
    home = Path(tempfile.mkdtemp(prefix="agd-"))
    command = Command(home)
    running = Running(command, "up", "--json", "--port", "0")
    try:
        assert running.read_json()["pid"] == running.process.pid
        yield command
    finally:
        running.close()
        shutil.rmtree(home, ignore_errors=True)


def _path_with(home: Path, *programs: str) -> str:
    """A PATH that holds only *programs*."""
    directory = home / "bin"
    directory.mkdir()
    for program in programs:
        found = shutil.which(program)
        assert found is not None
        (directory / program).symlink_to(found)
    return str(directory)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["frobnicate"], "frobnicate"),
        (["desktop", "frobnicate"], "frobnicate"),
        (["up", "--colour"], "--colour"),
        (["desktop", "do"], "action"),
        (["desktop", "screenshot"], "file"),
        (["ask"], "text"),
    ],
)
def test_command_that_does_not_exist_is_refused(command: Command, arguments: list[str], words: str) -> None:
    """Ours: non-zero, and what was wrong is named."""
    ended = command(*arguments)

    assert ended.code != 0
    assert words.lower() in (ended.out + ended.err).lower()
    assert "Traceback" not in ended.err


def test_help_and_version_are_no_errors(command: Command) -> None:
    """Ours: the first things that people type."""
    helped, versioned = command("--help"), command("--version")

    assert (helped.code, versioned.code) == (0, 0)
    assert all(word in helped.out for word in ("up", "ask", "desktop", "doctor", "daemon", "login-url"))


@pytest.mark.parametrize(
    "arguments",
    [
        *([name] for name in ("up", "ask", "doctor", "login-url", "daemon")),
        *(["desktop", name] for name in ("up", "down", "status", "screenshot", "do", "open")),
        *(["desktop", name] for name in ("windows", "focus", "move", "resize", "close")),
    ],
    ids=" ".join,
)
def test_every_command_shows_an_example(command: Command, arguments: list[str]) -> None:
    """Ours: people copy the example before they read the options."""
    helped = command(*arguments, "--help")

    assert helped.code == 0
    assert "For example:" in helped.out
    assert f"agentd {' '.join(arguments)}" in helped.out


def test_database_that_is_none_is_told_in_one_line(command: Command) -> None:
    """Ours: a damaged file can't be opened; exit code 3, no traceback."""
    data = command.home / "damaged"
    data.mkdir()
    (data / "chatd.sqlite3").write_text("garbage\n" * 1000)
    ended = command("up", "--port", "0", "--data", str(data))

    assert ended.code == 3
    assert "chatd.sqlite3 is no database of ours" in ended.err
    assert "Traceback" not in ended.err


def test_runtime_directory_too_long_for_sockets_is_told(command: Command) -> None:
    """Ours: the kernel's limit is 107 bytes; the advice names the setting."""
    ended = command("up", "--port", "0", AGENTD_RUNTIME_DIR=f"/tmp/{'x' * 120}")

    assert ended.code == 3
    assert "AGENTD_RUNTIME_DIR" in ended.err


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["desktop", "status"], 4, "not_running"),
        (["desktop", "do", '{"action":"screenshot"}'], 4, "not_running"),
        (["desktop", "do", "click"], 2, "bad_json"),
        (["desktop", "do", "[1]"], 2, "bad_json"),
        (["login-url"], 4, "not_running"),
    ],
)
def test_failure_without_a_daemon_has_its_code(
    command: Command, arguments: list[str], code: int, word: str
) -> None:
    """Ours: sentence on stderr, JSON on stdout, number for the shell."""
    ended = command(*arguments, "--json")
    told = json.loads(ended.out)

    assert (code, word) == (ended.code, told["code"])
    assert ended.err == f"error: {told['error']}\n"


@pytest.mark.parametrize(
    ("arguments", "name", "value"),
    [
        (["up"], "CHATD_PORT", "70000"),
        (["daemon"], "AGENTD_LOG_LEVEL", "loud"),
        (["desktop", "status"], "AGENTD_DESKTOP_BACKEND", "wayland"),
        (["doctor"], "AGENTD_DESKTOP_HEIGHT", "0"),
    ],
)
def test_bad_setting_is_named(command: Command, arguments: list[str], name: str, value: str) -> None:
    """Ours: exit 2, before anything is started."""
    ended = command(*arguments, **{name: value})

    assert ended.code == 2
    assert ended.err.startswith(f"error: setting {name.split('_', 1)[1].lower()}: ")


@pytest.mark.parametrize(("name", "text"), [("daemon", "desktop_width = "), ("up", 'colour = "red"')])
def test_bad_configuration_file_is_told(command: Command, name: str, text: str) -> None:
    """Ours: no TOML, or a key that does not exist."""
    file = command.home / "agentd.toml"
    file.write_text(text)
    ended = command(name, AGENTD_CONFIG=str(file))

    assert ended.code == 2
    assert ended.err.startswith("error: ")
    assert "Traceback" not in ended.err


def test_port_in_use_is_named(command: Command) -> None:
    """Ours: exit 3; nothing is left behind."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        ended = command("up", "--port", str(port))

    assert ended.code == 3
    assert f"127.0.0.1:{port}" in ended.err
    assert "--port" in ended.err
    assert list(command.runtime_dir.iterdir()) == []
    assert not (command.home / "state" / "agentd" / "lock").exists()


def test_data_directory_that_cannot_be_made_is_named(command: Command) -> None:
    """Ours: exit 3; below a file nobody can make one, not even root."""
    (command.home / "file").write_text("a file")
    unusable = str(command.home / "file" / "dir")
    ended = command("up", "--port", "0", "--data", unusable)

    assert ended.code == 3
    assert unusable in ended.err
    assert "--data" in ended.err


def test_daemon_whose_directory_cannot_be_made_tells_it(command: Command) -> None:
    """Ours: the same for the daemon alone."""
    (command.home / "file").write_text("a file")
    ended = command("daemon", AGENTD_RUNTIME_DIR=str(command.home / "file" / "dir"))

    assert ended.code == 3
    assert "Traceback" not in ended.err


def test_run_file_is_private_and_the_data_too(up: Command) -> None:
    """Ours: the token in it is worth a shell."""
    run_file = up.runtime_dir / "up.json"

    assert run_file.stat().st_mode & 0o777 == 0o600
    assert (up.home / "state" / "agentd").stat().st_mode & 0o777 == 0o700
    assert set(json.loads(run_file.read_text())) == {"url", "api", "token", "pid", "data_dir"}


def test_data_directory_in_use_names_its_owner(up: Command) -> None:
    """Ours: exit 3, with the pid to look at."""
    pid = json.loads((up.runtime_dir / "up.json").read_text())["pid"]
    ended = up("up", "--port", "0", AGENTD_RUNTIME_DIR=str(up.home / "other"))

    assert ended.code == 3
    assert f"process {pid}" in ended.err


def test_runtime_directory_in_use_is_refused(up: Command) -> None:
    """Ours: exit 3; the one that runs is not disturbed."""
    ended = up("up", "--port", "0", "--data", str(up.home / "other data"))

    assert ended.code == 3
    assert "agentd.sock" in ended.err
    assert up("desktop", "status", "--json").code == 0
    assert (up.runtime_dir / "up.json").exists()


def test_action_that_changed_nothing_says_so_beside_its_output(up: Command) -> None:
    """Ours: an effect that was not confirmed must not read as success; a program finds it in the JSON."""
    call = '{"actions":[{"action":"left_click","coordinate":[640,400]},{"action":"screenshot"}]}'
    ended = up("desktop", "do", call)
    as_json = up("desktop", "do", call, "--json")

    assert (ended.code, as_json.code) == (0, 0)
    assert ended.out == "Left-clicked at (640, 400).\nTook a screenshot.\n"
    assert "warning: nothing on the screen changed within" in ended.err
    assert as_json.err == ""
    assert json.loads(as_json.out)["reports"][0]["warning"]


def test_unknown_action_is_a_failed_job(up: Command) -> None:
    """Ours: exit 1, with the word of the daemon's answer."""
    ended = up("desktop", "do", '{"action":"explode"}', "--json")

    assert (ended.code, json.loads(ended.out)["code"]) == (1, "bad_request")


def test_unknown_desktop_is_a_failed_job(up: Command) -> None:
    """Ours: exit 1; the text names the one there is."""
    ended = up("desktop", "screenshot", "shot.png", "--name", "other")

    assert ended.code == 1
    assert "main" in ended.err


def test_window_is_moved_and_closed_by_its_number(up: Command) -> None:
    """Ours: a place may be beyond the edge, so a number with a minus sign is no option."""
    window = json.loads(up("desktop", "open", "--json", "--", "xterm", "-T", "mine").out)["window"]
    number = str(window["id"])
    moved = json.loads(up("desktop", "move", number, "-20", "90", "--json").out)
    listed = up("desktop", "windows")
    closed = up("desktop", "close", number, "--json")
    again = up("desktop", "close", number, "--json")

    assert moved["window"]["bounds"][:2] == [-20, 90]
    assert [number, "mine"] == [listed.out.split("\n")[1].split()[0], listed.out.split()[-1]]
    assert number not in [str(left["id"]) for left in json.loads(closed.out)]
    assert (again.code, json.loads(again.out)["code"]) == (1, "window_not_found")


def test_unknown_model_lists_those_there_are(up: Command) -> None:
    """Ours: exit 1; nobody has to look them up."""
    ended = up("ask", "hello", "--model", "no-such-model")

    assert ended.code == 1
    assert "rehearsal" in ended.err


def test_ask_uses_what_runs(up: Command) -> None:
    """Ours: an answer on stdout, counted; no second server is started."""
    ended = up("ask", "take a screenshot", "--json", "--screenshot", "shot.png")
    told = json.loads(ended.out)

    assert (ended.code, told["status"]) == (0, "done")
    assert told["steps"] >= 2
    assert told["tool_calls"] >= 1
    assert (up.home / "shot.png").read_bytes().startswith(b"\x89PNG")


def test_login_url_is_printed(up: Command) -> None:
    """Ours: for a second browser."""
    ended = up("login-url", "--json")

    assert ended.code == 0
    assert json.loads(ended.out)["url"].startswith("http://127.0.0.1:")


def test_missing_x_server_is_named_with_its_package(command: Command) -> None:
    """Ours: exit 3 when a desktop is wanted; the daemon itself starts."""
    command.path = _path_with(command.home, "sh")
    running = Running(command, "up", "--json", "--port", "0")
    try:
        running.read_json()
        ended = command("desktop", "up")
    finally:
        running.close()

    assert ended.code == 3
    assert "tigervnc-standalone-server" in ended.err


def test_doctor_tells_a_missing_x_server(command: Command) -> None:
    """Ours: exit 1, with what to install."""
    command.path = _path_with(command.home, "sh")
    ended = command("doctor", "--json")
    checks = {check["name"]: check for check in json.loads(ended.out)}

    assert ended.code == 1
    assert checks["X server"]["status"] == "missing"
    assert checks["X server"]["advice"] == "apt-get install tigervnc-standalone-server"
