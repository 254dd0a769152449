"""The unit files: systemd understands every line, and says how exposed each service is."""

import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNITS = Path(__file__).parents[3] / "systemd"
INSTALLED = "/opt/agentd/current/bin"
# What `systemd-analyze security` may say at most; 10 is no protection at all. Set by systemd 252.
EXPOSURE = {"chatd": 1.5, "agentd": 3.1}
# Each line that confines something stands below a comment of its own that says why.
CONFINING = re.compile(
    r"^(Ambient|Capability|Device|Keyring|Lock|MemoryDeny|NoNew|Private|Proc|Protect|RemoveIPC|Restrict[A-Z]"
    r"|SystemCall|UMask)"
)


@pytest.fixture
def analyze() -> str:
    """``systemd-analyze``; ``script/bootstrap --dev`` installs it."""
    found = shutil.which("systemd-analyze")
    assert found is not None, "systemd-analyze is missing: run script/bootstrap --dev"
    return found


def with_our_programs(kind: str, target: Path) -> list[str]:
    """Copies of the units of one kind that start the programs of this environment."""
    copies = []
    for unit in sorted((UNITS / kind).iterdir()):
        copy = target / unit.name
        copy.write_text(unit.read_text().replace(INSTALLED, str(Path(sys.executable).parent)))
        copies.append(str(copy))
    return copies


@pytest.mark.parametrize("kind", ["system", "user"])
def test_systemd_has_nothing_to_say_of_the_units(tmp_path: Path, analyze: str, kind: str) -> None:
    """Ours: no unknown directive, no program that is not there, no order that can't be kept."""
    scope = ["--user"] if kind == "user" else []
    units = with_our_programs(kind, tmp_path)
    found = subprocess.run(
        [analyze, "verify", *scope, "--man=no", "--recursive-errors=no", *units],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(tmp_path)},
    )

    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")


@pytest.mark.parametrize("name", ["chatd", "agentd"])
def test_exposure_is_as_recorded(tmp_path: Path, analyze: str, name: str) -> None:
    """Ours: a line that goes, or that this systemd does not know, shows here."""
    with_our_programs("system", tmp_path)
    found = subprocess.run(
        [analyze, "security", "--offline=true", str(tmp_path / f"{name}.service")],
        capture_output=True,
        text=True,
        check=True,
    )
    overall = re.search(rf"Overall exposure level for {name}.service: ([\d.]+)", found.stdout)

    assert overall is not None
    assert float(overall[1]) <= EXPOSURE[name]


def test_configurations_and_accounts_are_understood(tmp_path: Path) -> None:
    """Ours: sysusers and tmpfiles take our files, in a root of their own."""
    (tmp_path / "etc").mkdir()
    commands = [["systemd-sysusers", f"--root={tmp_path}", str(UNITS / "sysusers.d/agentd.conf")]]
    # Only root gives directories away.
    if os.getuid() == 0:
        tmpfiles = UNITS / "tmpfiles.d/agentd.conf"
        commands.append(["systemd-tmpfiles", f"--root={tmp_path}", "--create", str(tmpfiles)])
    for command in commands:
        subprocess.run(command, check=True, capture_output=True)

    users = (tmp_path / "etc/passwd").read_text()
    assert {line.split(":")[0] for line in users.splitlines()} >= {"chatd", "agent"}
    for made in ("etc/chatd/credentials", "home/agent") if os.getuid() == 0 else ():
        assert (tmp_path / made).stat().st_mode & 0o777 == 0o700


SERVICES = pytest.mark.parametrize(
    "unit", sorted(UNITS.glob("*/*.service")), ids=lambda unit: f"{unit.parent.name}/{unit.stem}"
)


@SERVICES
def test_every_confinement_has_a_reason(unit: Path) -> None:
    """Issue: each line's reason, right above it; what is said of the line before does not count."""
    lines = unit.read_text().splitlines()
    confining = [number for number, line in enumerate(lines) if CONFINING.match(line)]
    bare = [lines[number] for number in confining if not re.match(r"# \w.{10,}", lines[number - 1])]

    assert len(confining) >= 6
    assert bare == []


@SERVICES
def test_services_tell_and_are_watched(unit: Path) -> None:
    """Ours: ready when they serve, restarted when they are stuck, asked before a reload, never in a loop."""
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(unit)
    service = parser["Service"]

    assert (service["Type"], service["NotifyAccess"], service["WatchdogSec"]) == ("notify", "main", "30")
    assert (service["Restart"], service["RestartPreventExitStatus"]) == ("always", "2")
    assert "--check-config" in unit.read_text()
    assert service["ExecStart"].startswith(INSTALLED)
