"""The daemon's desktops by name."""

from pathlib import Path
from typing import Any

import pytest

from agentd.desktops import Desktops, workspace_environment
from agentd.errors import NotFound, ShuttingDown
from agentd.settings import AgentdSettings
from computer.session import SessionSettings
from computer.wire import DesktopStatus


class FakeSession:
    """A session that only counts."""

    def __init__(self, settings: SessionSettings) -> None:
        self.settings = settings
        self.stops = 0

    def status(self) -> DesktopStatus:
        """Always stopped."""
        return DesktopStatus(name=self.settings.name, state="stopped", backend="xvnc", geometry="1x1")

    async def stop(self) -> None:
        """Count."""
        self.stops += 1


@pytest.fixture
def made() -> list[FakeSession]:
    """Sessions that were made."""
    return []


@pytest.fixture
def desktops(tmp_path: Path, made: list[FakeSession]) -> Desktops:
    """Desktops of fakes."""

    def make(settings: SessionSettings) -> Any:
        made.append(FakeSession(settings))
        return made[-1]

    settings = AgentdSettings(runtime_dir=tmp_path, desktop_width=1024, desktop_height=768)
    return Desktops(settings, make=make)


def test_session_is_made_once_from_the_settings(
    desktops: Desktops, made: list[FakeSession], tmp_path: Path
) -> None:
    """Ours: on first need."""
    assert made == []
    assert desktops.get() is desktops.get("main")

    (session,) = made
    assert session.settings.geometry == "1024x768"
    assert session.settings.runtime_dir == tmp_path / "desktop-main"


@pytest.mark.parametrize("name", ["", "Main", "other", "../main"])
def test_unknown_desktop_is_refused(desktops: Desktops, made: list[FakeSession], name: str) -> None:
    """Ours: typed, and nothing is made."""
    with pytest.raises(NotFound, match="'main'"):
        desktops.get(name)

    assert made == []


def test_viewers_are_counted_while_they_watch(desktops: Desktops) -> None:
    """Ours: each of them, until it leaves."""
    with desktops.viewing("main"):
        with desktops.viewing("main"):
            both = desktops.status().viewers
        one = desktops.status().viewers

    assert (both, one, desktops.status().viewers) == (2, 1, 0)


async def test_close_stops_every_session_and_refuses_more(
    desktops: Desktops, made: list[FakeSession]
) -> None:
    """Ours: nothing starts while the daemon ends."""
    desktops.get()
    await desktops.close()

    assert [session.stops for session in made] == [1]
    with pytest.raises(ShuttingDown):
        desktops.get()


def test_programs_at_the_desktop_see_no_keys_and_no_settings() -> None:
    """Ours: an agent could print them."""
    kept = {"PATH": "/bin", "HOME": "/", "LANG": "C.UTF-8", "TOKENS": "3"}
    secret = {
        "ANTHROPIC_API_KEY": "x", "GH_TOKEN": "x", "AGENTD_NAME": "x", "CHATD_PORT": "1", "DB_PASSWORD": "x",
    }  # fmt: skip

    assert workspace_environment(kept | secret) == kept
