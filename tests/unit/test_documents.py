"""Documents that must agree with the code."""

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


SCRIPTS = ["render_api.py", "render_matrix.py", "render_reload.py", "render_tools.py"]


@pytest.mark.parametrize("script", SCRIPTS)
def test_generated_parts_of_documents_are_up_to_date(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Running the generator would change nothing."""
    monkeypatch.setattr(sys, "argv", [script, "--check"])

    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "script" / script), run_name="__main__")

    assert ended.value.code == 0


def test_lock_files_are_clean_and_the_changelog_names_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ``script/check`` says of locks and changelog."""
    monkeypatch.chdir(ROOT)

    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / "script" / "check_locks.py"), run_name="__main__")

    assert ended.value.code == 0


def test_every_runtime_dependency_has_a_reason() -> None:
    """CONTRIBUTING.md names each package of pyproject.toml."""
    import tomllib  # noqa: PLC0415 -- only here

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    reasons = (ROOT / "CONTRIBUTING.md").read_text()
    names = [line.split(">=")[0].split("[")[0] for line in project["dependencies"]]

    assert [name for name in names if name not in reasons] == []
