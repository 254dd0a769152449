"""A whole control plane on a free port, with the rehearsal model and three users."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chatd.app import ControlPlane
from chatd.settings import ChatdSettings
from tests.integration.chatd.http.site import Site


@pytest.fixture(autouse=True)
def _no_inherited_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("CHATD_") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    """The control plane and its users."""
    plane = ControlPlane(ChatdSettings(data_dir=tmp_path / "data", port=0, rehearsal="always"))
    await plane.start()
    site = Site(plane)
    try:
        await site.prepare()
        yield site
    finally:
        await site.close()
        await plane.stop()
