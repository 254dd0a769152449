"""Bridges to real processes, and the proof that nothing of them is left."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mcp_bridge.bridge import Bridge
from tests.integration.mcp_bridge.setting import marked_processes, place


@pytest.fixture
def mark(tmp_path: Path) -> str:
    """A mark that only this test's processes carry."""
    return f"test:{tmp_path}"


@pytest.fixture
async def bridge(mark: str) -> AsyncIterator[Bridge]:
    """A bridge; nothing of it may be left afterwards."""
    made = Bridge(place(mark))
    yield made
    await made.close()
    assert marked_processes(mark) == set()
