"""The daemon's settings: environment, TOML file, defaults; read in processes of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SHOW = """
import json
from pydantic import ValidationError
from agentd.settings import AgentdSettings, default_data_dir
try:
    settings = AgentdSettings()
    more = {"data": str(default_data_dir()), "repr": repr(settings)}
    print(json.dumps(settings.model_dump(mode="json") | more))
except ValidationError as exc:
    print(json.dumps([list(problem["loc"]) for problem in exc.errors()]))
"""


def _read(tmp_path: Path, toml: str | None = None, **environment: str) -> dict[str, str] | list[list[str]]:
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **environment}
    if toml is not None:
        file = tmp_path / "agentd.toml"
        file.write_text(toml)
        variables["AGENTD_CONFIG"] = str(file)
    shown = subprocess.run(
        [sys.executable, "-c", SHOW], env=variables, cwd=ROOT, check=True, capture_output=True, text=True
    )
    value: dict[str, str] | list[list[str]] = json.loads(shown.stdout)
    return value


def test_without_environment_everything_has_a_default(tmp_path: Path) -> None:
    """Ours: a newcomer sets nothing."""
    settings = _read(tmp_path)

    assert isinstance(settings, dict)
    assert settings["runtime_dir"] == f"/tmp/agentd-{os.getuid()}"
    assert settings["data"] == str(tmp_path / ".local/state/agentd")
    assert (settings["desktop_width"], settings["desktop_height"]) == (1280, 800)
    assert (settings["control_url"], settings["agent_token"]) == (None, None)
    assert settings["name"]


def test_xdg_directories_are_used(tmp_path: Path) -> None:
    """XDG base directory specification."""
    settings = _read(tmp_path, XDG_RUNTIME_DIR="/run/user/7", XDG_STATE_HOME="/state")

    assert isinstance(settings, dict)
    assert settings["runtime_dir"] == "/run/user/7/agentd"
    assert settings["data"] == "/state/agentd"


def test_environment_beats_the_file_and_the_file_the_default(tmp_path: Path) -> None:
    """Ours: the nearest to the command wins."""
    toml = 'name = "from file"\ndesktop_width = 1024\n'
    settings = _read(tmp_path, toml, AGENTD_NAME="from environment")

    assert isinstance(settings, dict)
    assert (settings["name"], settings["desktop_width"]) == ("from environment", 1024)
    assert settings["desktop_height"] == 800


def test_token_is_not_shown(tmp_path: Path) -> None:
    """Ours: secrets never reach a log."""
    settings = _read(tmp_path, AGENTD_AGENT_TOKEN="agent_secret")

    assert isinstance(settings, dict)
    assert settings["agent_token"] == "agent_secret"
    assert "agent_secret" not in settings["repr"]


@pytest.mark.parametrize(
    ("toml", "environment", "where"),
    [
        ('colour = "red"', {}, ["colour"]),
        ("[desktop]\nwidth = 1024", {}, ["desktop"]),
        ("desktop_width = 10", {}, ["desktop_width"]),
        (None, {"AGENTD_DESKTOP_WIDTH": "wide"}, ["desktop_width"]),
        (None, {"AGENTD_DESKTOP_HEIGHT": "99999"}, ["desktop_height"]),
        (None, {"AGENTD_DESKTOP_BACKEND": "wayland"}, ["desktop_backend"]),
        (None, {"AGENTD_LOG_LEVEL": "loud"}, ["log_level"]),
    ],
)
def test_setting_that_makes_no_sense_is_refused(
    tmp_path: Path, toml: str | None, environment: dict[str, str], where: list[str]
) -> None:
    """Style: unknown keys are errors; the field is named."""
    assert _read(tmp_path, toml, **environment) == [where]


def test_daemon_starts_without_the_model_vendors_and_the_database() -> None:
    """Ours: a workspace needs neither, and they take seconds to load."""
    code = (
        "import sys, agentd.app; "
        "print([name for name in ('anthropic', 'openai', 'sqlalchemy', 'chatd') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)

    assert shown.stdout.strip() == "[]"
