"""A whole control plane on a free port, with the rehearsal model and three users."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.chatd.http.site import Site, serving


@pytest.fixture(autouse=True)
def _no_inherited_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("CHATD_") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """The control plane and its users."""
    async with serving(tmp_path / "data") as site:
        yield site
