"""`agentd ask`: one job in the terminal, with and without a running `agentd up`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from tests.e2e.conftest import MAIN, Up, clean_environment


@pytest.mark.timeout(120)
@pytest.mark.parametrize("model", ["anthropic:rehearsal", "google:rehearsal"])
def test_ask_uses_the_running_daemon_and_saves_the_last_screenshot(up: Up, model: str) -> None:
    """One JSON object on stdout, the picture on disk, exit code 0."""
    shot = up.home / "shot.png"
    done = up.agentd(
        "ask",
        "open a terminal and run `echo 6*7`, then tell me what it says",
        "--json",
        "--model",
        model,
        "--screenshot",
        str(shot),
    )

    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["status"] == "done"
    assert "6*7" in answer["answer"]
    assert answer["tool_calls"] >= 4
    assert answer["screenshot"] == str(shot)
    with Image.open(shot) as picture:
        assert picture.size == (1280, 800)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("model", ["openai-compat:rehearsal"])
def test_ask_starts_its_own_and_leaves_nothing(tmp_path: Path, model: str) -> None:
    """Without a running daemon it starts all of it, does the job and stops it."""
    environment = clean_environment(tmp_path) | {"AGENTD_RUNTIME_DIR": f"/tmp/agentd-ask-{tmp_path.name}"}
    done = subprocess.run(
        [sys.executable, "-c", MAIN, "ask", "say hello", "--model", model, "--json"],
        env=environment, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert "hello" in json.loads(done.stdout)["answer"]
    run = Path(environment["AGENTD_RUNTIME_DIR"])
    assert [path for path in run.rglob("*") if not path.is_dir()] == []


@pytest.mark.timeout(60)
def test_ask_refuses_an_unknown_model_and_lists_the_others(up: Up) -> None:
    """The error says what there is; exit code 1."""
    done = up.agentd("ask", "say hello", "--model", "nonsense:9", "--json")

    assert done.returncode == 1
    assert "anthropic:rehearsal" in json.loads(done.stdout)["error"]
