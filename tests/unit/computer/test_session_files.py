"""Files and settings of a session."""

import stat
import subprocess
import threading
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from Xlib.xauth import Xauthority

from computer.display.x11.authority import read_cookie
from computer.errors import DisplayLost, StartFailed
from computer.session import SessionSettings
from computer.session.cookie import create_cookie, write_authority
from computer.session.openbox import render_browser, render_menu, render_rc, render_terminal
from computer.session.portabledesktop import _parse
from computer.session.process import find_program, read_tail


def test_authority_file_is_private_and_has_both_entries(tmp_path: Path) -> None:
    """Ours: python-xlib looks for the host, libxcb takes the wildcard."""
    path, cookie = tmp_path / "Xauthority", create_cookie()
    write_authority(path, 12, b"old" * 5)
    write_authority(path, 12, cookie)
    entries = Xauthority(str(path)).entries

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [(entry[0], entry[2]) for entry in entries] == [(256, b"12"), (65_535, b"")]
    assert {cookie} == {entry[4] for entry in entries}
    assert len(cookie) == 16


def test_openbox_files_are_well_formed_with_any_path() -> None:
    """Ours: a path with & and < breaks nothing."""
    command = "sh '/run/a & b/<terminal>.sh'"
    rc = ET.fromstring(render_rc(terminal=command, menu="/run/a & b/menu.xml"))  # noqa: S314  our own
    menu = ET.fromstring(render_menu(terminal=command, browser=command))  # noqa: S314

    commands = [node.text for tree in (rc, menu) for node in tree.iter() if node.tag.endswith("command")]
    assert commands == [command] * 4


def test_menu_lists_the_browser_only_where_there_is_one() -> None:
    """Ours: no dead entry."""
    assert "Browser" not in render_menu(terminal="t", browser=None)
    assert "Browser" in render_menu(terminal="t", browser="b")


@pytest.mark.parametrize("has_bash", [True, False])
def test_scripts_are_valid_shell(has_bash: bool) -> None:
    """Ours: parsed by sh itself."""
    scripts = [
        render_terminal(has_bash=has_bash),
        render_browser(["/opt/a b/chrome", "--user-data-dir=/run/x y"]),
    ]

    for script in scripts:
        subprocess.run(["sh", "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "a/b"},
        {"name": ""},
        {"name": "-x"},
        {"width": 0},
        {"height": 40_000},
        {"runtime_dir": Path("/tmp") / ("d" * 100)},
    ],
)
def test_settings_that_cannot_work_are_refused(fields: dict[str, object]) -> None:
    """Ours: before anything is started."""
    with pytest.raises(StartFailed):
        SessionSettings(**({"runtime_dir": Path("/run/x")} | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "output",
    [
        b'{"display": 5, "vncPort": 5905, "xvncPid": 77, "openboxPid": 78, "geometry": "1x1"}\n',
        b'{"display": 5, "vncPort": 5905, "xvncPid": 77}\nlater lines of a foreground run\n',
    ],
)
def test_report_of_up_is_read_from_its_first_object(output: bytes) -> None:
    """Spec: 1.2."""
    report = _parse(output)

    assert (report.display, report.vnc_port, report.xvnc_pid) == (5, 5905, 77)


@pytest.mark.parametrize(
    "output",
    [b"", b"warning\n{}", b"[]", b"{}", b'{"display": 5, "vncPort": 0, "xvncPid": 77}', b"\xff"],
)
def test_report_that_makes_no_sense_is_refused(output: bytes) -> None:
    """Spec: port 0 is refused."""
    with pytest.raises(StartFailed):
        _parse(output)


def test_tail_of_a_log_is_bounded(tmp_path: Path) -> None:
    """Ours: an error message is no log file."""
    log = tmp_path / "log"
    log.write_bytes(b"x" * 9_000 + b"\xff end\n")

    assert read_tail(log).endswith("\N{REPLACEMENT CHARACTER} end")
    assert len(read_tail(log)) < 2_100
    assert read_tail(tmp_path / "none") == ""


def test_missing_program_names_its_package() -> None:
    """Ours: one sentence to copy."""
    with pytest.raises(StartFailed, match=r"missing: install openbox \(apt-get install openbox\)"):
        find_program("openbox", "openbox", {"PATH": "/nonexistent"})


def test_the_authority_file_is_whole_at_every_moment(tmp_path: Path) -> None:
    """Ours: a server that finds none, or an empty one, lets every local user in from then on."""
    path, is_over, faults = tmp_path / "Xauthority", threading.Event(), []
    write_authority(path, 12, b"a" * 16)

    def look() -> None:
        while not is_over.is_set():
            try:
                read_cookie(path, ":12")
            except DisplayLost as exc:
                faults.append(str(exc))

    looking = threading.Thread(target=look)
    looking.start()
    for number in range(500):
        write_authority(path, 12, bytes([number % 256]) * 16)
    is_over.set()
    looking.join()

    assert faults == []
    assert path.stat().st_mode & 0o777 == 0o600
    assert [found.name for found in tmp_path.iterdir()] == ["Xauthority"]
