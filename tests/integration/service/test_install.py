"""``agentd install``: every step in a root of its own, where the system's own tools do their part."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from agentd.cli.app import app
from agentd.cli.enrolling import Enrolment, enrol
from agentd.cli.exits import CliError
from agentd.cli.installing import Options, perform, plan_install, plan_uninstall, units_dir

PROGRAMS = Path("/opt/agentd/current/bin")

as_root = pytest.mark.skipif(os.getuid() != 0, reason="accounts and directories are made by root")


def run(*arguments: str) -> int:
    """The exit code of ``agentd``."""
    with pytest.raises(SystemExit) as ended:
        app(list(arguments))
    assert isinstance(ended.value.code, int)
    return ended.value.code


def tree(root: Path) -> dict[str, str]:
    """Every file and link below *root*, and what is in it."""
    found = [path for path in sorted(root.rglob("*")) if path.is_symlink() or path.is_file()]
    return {
        str(path.relative_to(root)): str(path.readlink() if path.is_symlink() else path.read_text("latin-1"))
        for path in found
    }


@as_root
def test_an_image_gets_services_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ours: units, accounts, directories, links and example settings; a second run changes nothing."""
    codes = [run("install", "--root", str(tmp_path), "--bin", str(PROGRAMS))]
    first = tree(tmp_path)
    told = capsys.readouterr()
    (tmp_path / "etc/chatd/chatd.toml").write_text("port = 7090\n")
    codes.append(run("install", "--root", str(tmp_path), "--bin", str(PROGRAMS), "--json"))
    again = json.loads(capsys.readouterr().out)

    assert codes == [0, 0]
    assert "the services start when this system boots" in told.err
    assert f"ExecStart={PROGRAMS}/chatd serve" in first["etc/systemd/system/chatd.service"]
    assert first["usr/local/bin/agentd"] == f"{PROGRAMS}/agentd"
    enabled = "etc/systemd/system/multi-user.target.wants"
    assert {f"{enabled}/agentd.service", f"{enabled}/chatd.service"} <= set(first)
    assert re.search(r"^agent:x:\d+:\d+:", first["etc/passwd"], re.MULTILINE)
    assert (tmp_path / "home/agent").is_dir()
    # Commands are run again; they see that nothing is left to do.
    assert [step for step in again["changed"] if step.startswith("/")] == []
    assert (tmp_path / "etc/chatd/chatd.toml").read_text() == "port = 7090\n"
    assert tree(tmp_path) == first | {"etc/chatd/chatd.toml": "port = 7090\n"}


@as_root
def test_uninstalling_keeps_settings_until_they_are_purged(tmp_path: Path) -> None:
    """Ours: what install made goes; what people wrote goes only when they say so."""
    run("install", "--root", str(tmp_path), "--bin", str(PROGRAMS))
    (tmp_path / "var/lib/chatd").mkdir(parents=True)
    (tmp_path / "var/lib/chatd/chatd.sqlite3").write_text("chats")
    codes = [run("uninstall", "--root", str(tmp_path))]
    kept = tree(tmp_path)
    codes.append(run("uninstall", "--root", str(tmp_path), "--purge"))
    codes.append(run("uninstall", "--root", str(tmp_path), "--purge"))
    purged = tree(tmp_path)

    assert codes == [0, 0, 0]
    assert [name for name in kept if "systemd/system" in name or "local/bin" in name] == []
    assert {"etc/chatd/chatd.toml", "etc/agentd/agentd.toml", "var/lib/chatd/chatd.sqlite3"} <= set(kept)
    assert [name for name in purged if "chatd" in name.replace("passwd", "").split("/")] == []


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_a_dry_run_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    """Ours: it says what would be done, in order, and does none of it."""
    assert run(command, "--root", str(tmp_path), "--dry-run") == 0
    lines = capsys.readouterr().out.splitlines()

    assert list(tmp_path.iterdir()) == []
    assert lines
    assert all(line.startswith("would be ") for line in lines)


def test_a_user_s_services_are_below_the_home_directory(tmp_path: Path) -> None:
    """Ours: no file of the system, no account, settings that only the user reads."""
    options = Options(units=units_dir(), programs=PROGRAMS, home=tmp_path, is_booted=False)
    steps = [step for step in plan_install(options) if step.kind != "run"]
    perform(steps, tell=lambda *_: None)
    made = set(tree(tmp_path))
    commands = [str(step) for step in plan_install(options) if step.kind == "run"]

    units = {f".config/systemd/user/{name}.service" for name in ("agentd", "chatd")}
    assert made == units | {".config/agentd/agentd.toml", ".config/chatd/chatd.toml"}
    assert (tmp_path / ".config/agentd/agentd.toml").stat().st_mode & 0o777 == 0o600
    assert commands == ["systemctl --user enable chatd.service agentd.service"]


def test_services_are_started_last_and_one_after_the_other(tmp_path: Path) -> None:
    """Ours: a restart waits until the service says that it serves; the control plane comes first."""
    options = Options(units=units_dir(), programs=PROGRAMS, is_booted=True)
    commands = [str(step) for step in plan_install(options) if step.kind == "run"]
    stopping = [str(step) for step in plan_uninstall(options) if step.kind == "try"]

    assert commands[-4:] == [
        "systemctl daemon-reload",
        "systemctl enable chatd.service agentd.service",
        "systemctl restart chatd.service",
        "systemctl restart agentd.service",
    ]
    assert stopping[0] == "systemctl stop chatd.service agentd.service chatd.socket"


def test_a_step_that_fails_says_which_and_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: no systemd, a command that refuses, a place that can't be written."""
    options = Options(units=units_dir(), programs=PROGRAMS, home=tmp_path, is_booted=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CliError, match="systemctl is not there: is this a machine with systemd"):
        perform(plan_install(options), tell=lambda *_: None)
    (tmp_path / "systemctl").write_text("#!/bin/sh\necho no such unit >&2\nexit 5\n")
    (tmp_path / "systemctl").chmod(0o755)
    with pytest.raises(CliError, match=r"enable chatd\.service agentd\.service` failed with 5: no such unit"):
        perform(plan_install(options), tell=lambda *_: None)
    (tmp_path / "file").touch()
    elsewhere = Options(units=units_dir(), programs=PROGRAMS, home=tmp_path / "file", is_booted=False)
    with pytest.raises(CliError, match="Not a directory"):
        perform(plan_install(elsewhere), tell=lambda *_: None)


def test_the_installer_explains_itself() -> None:
    """Ours: ``script/install --help`` and bad usage need no root and change nothing."""
    script = Path(__file__).parents[3] / "script/install"
    helped = subprocess.run([script, "--help"], capture_output=True, text=True, check=True)
    wrong = subprocess.run([script, "--wheel", "/nowhere.whl"], capture_output=True, text=True, check=False)

    assert "--uninstall" in helped.stdout
    assert (wrong.returncode, "/nowhere.whl" in wrong.stderr) == (2, True)


# In place of chroot: commands of the new system are noted; its Python makes an environment of stubs, and a
# wheel that says it is broken makes an agentd that does not run.
CHROOT = """#!/bin/sh
root=$1; shift
echo "$*" >> "$root/commands"
case "$*" in
  "python3 -m venv "*)
    mkdir -p "$root$4/bin"
    printf '#!/bin/sh\\n' > "$root$4/bin/python"
    cp "$root$4/bin/python" "$root$4/bin/uv"
    chmod +x "$root$4/bin/python" "$root$4/bin/uv" ;;
  *"--no-deps "*.whl)
    for wheel; do :; done
    { echo '#!/bin/sh'; cat "$root$wheel"; } > "$root${1%/uv}/agentd"
    chmod +x "$root${1%/uv}/agentd" ;;
  /opt/*)
    program=$1; shift
    case "$program" in
      /opt/agentd/current/*) program=$(readlink "$root/opt/agentd/current")${program#/opt/agentd/current} ;;
    esac
    exec "$root$program" "$@" ;;
esac
"""


class Machine:
    """A root that ``script/install`` installs into."""

    def __init__(self, folder: Path) -> None:
        self.root, self.wheels = folder / "root", folder / "wheels"
        for place in (self.root / "usr", self.wheels, folder / "bin"):
            place.mkdir(parents=True)
        (folder / "bin/chroot").write_text(CHROOT)
        (folder / "bin/chroot").chmod(0o755)
        self.place = self.root / "opt/agentd"
        self._path = f"{folder}/bin:{os.environ['PATH']}"

    def install(self, version: str, does: str = "exit 0") -> int:
        """Install the wheel of *version*, whose agentd *does* that; the exit code."""
        wheel = self.wheels / f"agentd-{version}-py3-none-any.whl"
        wheel.write_text(f"# {version}\n{does}\n")
        script = Path(__file__).parents[3] / "script/install"
        command = [script, "--root", str(self.root), "--wheel", str(wheel)]
        environment = {**os.environ, "PATH": self._path}
        return subprocess.run(command, env=environment, check=False, capture_output=True).returncode

    @property
    def current(self) -> str:
        """The version that counts."""
        program = self.root / str((self.place / "current").readlink()).lstrip("/") / "bin/agentd"
        return program.read_text().splitlines()[1].removeprefix("# ")

    def releases(self) -> dict[str, bool]:
        """What is there, by version, and whether it is whole."""
        return {
            next(one.glob("*.whl")).name.split("-")[1]: (one / ".whole").exists()
            for one in (self.place / "releases").iterdir()
        }

    def commands(self) -> list[str]:
        """What was run in the new system since the last look."""
        lines = (self.root / "commands").read_text().splitlines()
        (self.root / "commands").unlink()
        return lines


@as_root
def test_an_upgrade_changes_the_link_last_and_keeps_the_version_before(tmp_path: Path) -> None:
    """
    Issue: upgrade; a release is made, tried, then linked, and services are made of the link's programs.

    The same again makes nothing anew, and of three versions the oldest goes.
    """
    machine = Machine(tmp_path)
    codes = [machine.install("1")]
    first = machine.commands()
    codes.append(machine.install("1"))
    again = machine.commands()
    codes += [machine.install("2"), machine.install("3")]

    assert codes == [0, 0, 0, 0]
    (tried,) = [number for number, line in enumerate(first) if line.endswith("agentd --version")]
    assert first[tried + 1 :] == ["/opt/agentd/current/bin/agentd install --bin /opt/agentd/current/bin"]
    assert [line for line in again if "-m venv" in line or "pip" in line] == []
    assert machine.current == "3"
    assert machine.releases() == {"2": True, "3": True}


@as_root
def test_an_upgrade_that_fails_leaves_the_version_that_counts(tmp_path: Path) -> None:
    """
    Ours: a release that does not run is not linked, and never pushes one out that does.

    Two that failed were newer than the one that counts: by age alone it would have gone.
    """
    machine = Machine(tmp_path)
    codes = [machine.install("1"), machine.install("2", "exit 3"), machine.install("3", "exit 3")]
    after = (machine.current, machine.releases())
    codes.append(machine.install("1"))
    swept = (machine.current, machine.releases())
    codes += [machine.install("4", "exit 3"), machine.install("5")]

    assert codes == [0, 3, 3, 0, 3, 0]
    assert after == ("1", {"1": True, "2": False, "3": False})
    assert swept == ("1", {"1": True})
    assert (machine.current, machine.releases()) == ("5", {"1": True, "5": True})


@as_root
def test_a_way_back_by_hand_is_the_version_before(tmp_path: Path) -> None:
    """Ours: docs/howto/service.md; who went back to the old one keeps that one at the next upgrade."""
    machine = Machine(tmp_path)
    codes = [machine.install("1")]
    old = (machine.place / "current").readlink()
    codes.append(machine.install("2"))
    (machine.place / "current").unlink()
    (machine.place / "current").symlink_to(old)
    codes.append(machine.install("3"))

    assert codes == [0, 0, 0]
    assert (machine.current, machine.releases()) == ("3", {"1": True, "3": True})


def enrolment(tmp_path: Path, chatd: str) -> Enrolment:
    """A plan whose chatd is a script."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/chatd").write_text(f"#!/bin/sh\n{chatd}\n")
    (tmp_path / "bin/systemctl").write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/systemctl.log\n')
    for program in ("chatd", "systemctl"):
        (tmp_path / "bin" / program).chmod(0o755)
    (tmp_path / "agentd.toml").write_text("# settings\n")
    return Enrolment(
        user="ann",
        workspace="box",
        programs=tmp_path / "bin",
        settings=tmp_path / "agentd.toml",
        credential=tmp_path / "credentials/agent_token",
        other_database=tmp_path / "database",
        chatd=("env",),
    )


def test_the_services_of_one_machine_are_introduced_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ours: a user that exists is no failure; the token is a credential that only root reads."""
    script = 'echo "$@" >> ' + str(tmp_path / "asked") + '; [ "$1" = users ] && exit 1; echo agent_secret'
    plan = enrolment(tmp_path, script)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    wanted = plan.is_wanted
    enrol(plan, tell=lambda *_: None)

    assert (wanted, plan.is_wanted) == (True, False)
    assert plan.credential.read_text() == "agent_secret"
    assert plan.credential.stat().st_mode & 0o777 == 0o600
    assert plan.settings.read_text() == '# settings\n\ncontrol_url = "http://127.0.0.1:7080"\n'
    assert (tmp_path / "systemctl.log").read_text() == "restart agentd.service\n"
    assert (tmp_path / "asked").read_text().splitlines() == [
        "users add ann --role admin",
        "tokens create agentd on box --user ann --kind agent --workspace box --expires-days 0",
    ]


def test_an_introduction_that_fails_says_what_chatd_said(tmp_path: Path) -> None:
    """Ours: nothing is written, and the next installation tries again."""
    plan = enrolment(tmp_path, "echo error: nothing is there >&2; exit 3")
    with pytest.raises(CliError, match="tokens create` failed: error: nothing is there"):
        enrol(plan, tell=lambda *_: None)

    assert plan.is_wanted
