"""What a wheel carries."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("agentd", "chatd", "computer", "mcp_bridge", "context_push")


def names_in_wheel(target: Path) -> set[str]:
    """Build the wheel and list it."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = target.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.mark.timeout(120)
def test_wheel_holds_the_page_the_types_and_the_migrations(tmp_path: Path) -> None:
    """An installed agentd serves the page and migrates its database without a checkout."""
    names = names_in_wheel(tmp_path)

    assert "chatd/page/index.html" in names
    assert any(name.startswith("chatd/page/assets/main") for name in names)
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    assert {"chatd/store/migrations/env.py", "chatd/store/migrations/versions/0001_first_schema.py"} <= names
    assert "chatd/rehearsal/glyphs_6x13.json" in names
    assert {f"agentd/systemd/system/{unit}" for unit in ("agentd.service", "chatd.service")} <= names
    assert not [name for name in names if name.startswith(("tests/", "web/", "script/"))]
