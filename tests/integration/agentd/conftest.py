"""Daemons for integration tests; nothing is taken from the environment of the test run."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings, no keys of whoever runs the tests."""
    for name in list(os.environ):
        if name.startswith(("AGENTD_", "CHATD_", "XDG_")) or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def runtime_dir() -> Iterator[Path]:
    """A directory with a path short enough for sockets."""
    directory = Path(tempfile.mkdtemp(prefix="agd-"))
    yield directory
    shutil.rmtree(directory, ignore_errors=True)
