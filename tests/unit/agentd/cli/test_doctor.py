"""`agentd doctor`: what it finds missing, and what it advises."""

import os
import socket
from pathlib import Path

import pytest

from agentd.cli import doctor
from agentd.cli.doctor import Check, run_checks
from agentd.settings import AgentdSettings
from chatd.settings import ChatdSettings

PROGRAMS = ("Xvnc", "openbox", "xterm", "xkbcomp", "setpriv", "grep")
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "CHATD_COMPAT_BASE_URL")


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine that lacks nothing but model keys; returns its only PATH directory."""
    programs, fonts = tmp_path / "bin", tmp_path / "fonts"
    for directory in (programs, fonts):
        directory.mkdir()
    for name in PROGRAMS:
        _install(programs, name)
    for name in ("6x13.pcf.gz", "Sans.ttf"):
        (fonts / name).touch()
    monkeypatch.setattr(doctor, "FONT_DIRS", (fonts, tmp_path / "no such fonts"))
    monkeypatch.setattr(doctor, "KEYMAP_RULES", fonts / "6x13.pcf.gz")
    monkeypatch.setattr(doctor, "check_socket_directory", lambda: None)
    monkeypatch.setenv("PATH", str(programs))
    for variable in [*KEYS, *(name for name in os.environ if name.startswith(("AGENTD_", "CHATD_")))]:
        monkeypatch.delenv(variable, raising=False)
    return programs


def _install(directory: Path, name: str) -> None:
    (directory / name).write_text("#!/bin/sh\n")
    (directory / name).chmod(0o755)


def _checks(tmp_path: Path, *, port: int = 0, **more: object) -> dict[str, Check]:
    agentd = AgentdSettings.model_validate({"runtime_dir": tmp_path / "run" / "agentd", **more})
    chatd = ChatdSettings(data_dir=tmp_path / "data", port=port)
    return {check.name: check for check in run_checks(agentd, chatd)}


def test_machine_that_lacks_nothing_is_told_so(tmp_path: Path) -> None:
    """Ours: no key is a warning only, since the rehearsal model needs none."""
    checks = _checks(tmp_path)
    checks.pop("browser page")

    assert {name for name, check in checks.items() if check.status != "ok"} == {"model keys"}
    assert checks["model keys"].status == "warning"
    assert "rehearsal" in checks["model keys"].detail


@pytest.mark.parametrize(
    ("program", "name", "package"),
    [
        ("Xvnc", "X server", "tigervnc-standalone-server"),
        ("xkbcomp", "keymaps", "x11-xkb-utils"),
        ("xterm", "terminal", "xterm"),
    ],
)
def test_missing_program_is_named_with_its_package(
    machine: Path, tmp_path: Path, program: str, name: str, package: str
) -> None:
    """Ours: advice that can be pasted."""
    (machine / program).unlink()
    check = _checks(tmp_path)[name]

    assert check.status == "missing"
    assert program in check.detail
    assert check.advice == f"apt-get install {package}"
    assert set(check.as_json()) == {"name", "status", "detail", "advice"}


def test_desktop_without_a_window_manager_is_a_warning(machine: Path, tmp_path: Path) -> None:
    """Ours: it works, and says what it can't do."""
    (machine / "openbox").unlink()
    check = _checks(tmp_path)["window manager"]

    assert (check.status, check.advice) == ("warning", "apt-get install openbox")


def test_missing_keymaps_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """BUGS 46: the file, and its package; portabledesktop brings its own."""
    monkeypatch.setattr(doctor, "KEYMAP_RULES", tmp_path / "none" / "evdev")
    check = _checks(tmp_path)["keymaps"]

    assert (check.status, check.advice) == ("missing", "apt-get install xkb-data")
    assert str(tmp_path / "none" / "evdev") in check.detail
    assert _checks(tmp_path, desktop_backend="portabledesktop")["keymaps"].status == "ok"


def test_socket_directory_that_cannot_be_used_comes_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BUGS 45: the sentence of a failed start, before the start."""
    sentence = "/x belongs to user 0; run: sudo chmod 1777 /x"
    monkeypatch.setattr(doctor, "check_socket_directory", lambda: sentence)
    check = _checks(tmp_path)["display sockets"]

    assert (check.status, check.detail, check.advice) == (
        "missing", "/x belongs to user 0", "sudo chmod 1777 /x",
    )  # fmt: skip


@pytest.mark.parametrize("program", ["setpriv", "grep"])
def test_programs_that_may_outlive_the_daemon_are_a_warning(
    machine: Path, tmp_path: Path, program: str
) -> None:
    """Ours: only where the daemon is killed."""
    (machine / program).unlink()

    assert _checks(tmp_path)["clean end"].status == "warning"


def test_wallpaper_that_cannot_be_read_is_a_warning(tmp_path: Path) -> None:
    """Ours: a desktop comes up without it."""
    check = _checks(tmp_path, desktop_wallpaper=tmp_path / "none.png")["wallpaper"]

    assert check.status == "warning"
    assert "none.png" in check.detail


def test_portabledesktop_takes_the_place_of_xvnc(machine: Path, tmp_path: Path) -> None:
    """Ours: the same order as the session's."""
    (machine / "Xvnc").unlink()
    _install(machine, "portabledesktop")

    assert _checks(tmp_path)["X server"].status == "ok"
    assert _checks(tmp_path, desktop_backend="xvnc")["X server"].status == "missing"


def test_portabledesktop_that_is_no_command_is_told(tmp_path: Path) -> None:
    """Ours: a wrong setting, not a missing package."""
    check = _checks(tmp_path, portabledesktop="/nonexistent/portabledesktop")["X server"]

    assert check.status == "missing"
    assert "AGENTD_PORTABLEDESKTOP" in check.advice


@pytest.mark.parametrize(("font", "status"), [("6x13.pcf.gz", "missing"), ("Sans.ttf", "warning")])
def test_missing_fonts_are_told(tmp_path: Path, font: str, status: str) -> None:
    """Ours: terminals need bitmap fonts, browsers scalable ones."""
    (tmp_path / "fonts" / font).unlink()
    check = _checks(tmp_path)["fonts"]

    assert check.status == status
    assert check.advice.startswith("apt-get install ")


def test_port_in_use_is_a_warning_with_its_number(tmp_path: Path) -> None:
    """Ours: it may be our own `agentd up`."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        check = _checks(tmp_path, port=port)["port"]

    assert check.status == "warning"
    assert str(port) in check.detail
    assert "--port" in check.advice


def test_directory_below_a_file_is_missing(tmp_path: Path) -> None:
    """Ours: tried, not guessed; true for root as well."""
    (tmp_path / "data").write_text("a file")
    (tmp_path / "run").write_text("a file")
    checks = _checks(tmp_path)

    assert checks["runtime directory"].status == "missing"
    assert "AGENTD_RUNTIME_DIR" in checks["runtime directory"].advice
    assert checks["data directory"].status == "missing"
    assert "--data" in checks["data directory"].advice


def test_checks_leave_nothing_behind(tmp_path: Path) -> None:
    """Ours: looking is not making."""
    _checks(tmp_path)

    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "fonts"]


def test_model_key_is_found_and_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: the model's name, never the key."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    check = _checks(tmp_path)["model keys"]

    assert check.status == "ok"
    assert check.detail.startswith("anthropic:")
    assert "sk-secret" not in check.detail
