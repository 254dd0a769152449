"""A world with a worker in it."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.chatd.core.world import World


@pytest.fixture(autouse=True)
def _no_inherited_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("CHATD_") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)


@pytest.fixture
async def world(tmp_path: Path, database_url: str) -> AsyncIterator[World]:
    """A running worker over a fresh database of each kind."""
    world = World(tmp_path, database_url)
    await world.prepare()
    world.start()
    try:
        yield world
    finally:
        await world.close()
