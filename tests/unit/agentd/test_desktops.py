"""The daemon's desktops by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentd.desktops import MAX_DESKTOPS, Desktops, Use, workspace_environment
from agentd.errors import BadRequest, NotFound, ShuttingDown, TooMany
from agentd.settings import AgentdSettings
from computer.pixels import EncodingSettings
from computer.session import SessionSettings
from computer.settling import SettleSettings
from computer.wire import DesktopState, DesktopStatus

CHAT = "6f2d1f3e-8d0a-4c39-9d5e-0a9a1d3f7b11"


class FakeSession:
    """A session that only counts."""

    def __init__(self, settings: SessionSettings, on_change: Callable[[DesktopStatus], None]) -> None:
        self.settings = settings
        self.stops = 0
        self.state: DesktopState = "running"
        self._on_change = on_change

    def status(self) -> DesktopStatus:
        """As the test has set it."""
        return DesktopStatus(name=self.settings.name, state=self.state, backend="xvnc", geometry="1x1")

    async def stop(self) -> None:
        """Count and tell."""
        self.stops += 1
        self.state = "stopped"
        self._on_change(self.status())


class World:
    """Desktops of fakes, at a time that the test sets."""

    def __init__(self, runtime_dir: Path, **settings: Any) -> None:
        self.now = 1_000.0
        self.made: dict[str, FakeSession] = {}
        self.desktops = Desktops(
            AgentdSettings(runtime_dir=runtime_dir, **settings), make=self._make, clock=lambda: self.now
        )

    def _make(self, settings: SessionSettings, on_change: Callable[[DesktopStatus], None]) -> Any:
        self.made[settings.name] = FakeSession(settings, on_change)
        return self.made[settings.name]


@pytest.fixture
def world(tmp_path: Path) -> World:
    """One desktop for all chats, idle after a minute."""
    return World(tmp_path, desktop_width=1024, desktop_height=768, desktop_idle_stop_s=60)


@pytest.fixture
def apart(tmp_path: Path) -> World:
    """One desktop for each chat."""
    return World(tmp_path, desktop_scope="chat")


def test_session_is_made_once_from_the_settings(world: World, tmp_path: Path) -> None:
    """Ours: on first need."""
    assert world.made == {}
    assert world.desktops.get() is world.desktops.get("main")

    settings = world.made["main"].settings
    assert settings.geometry == "1024x768"
    assert settings.runtime_dir == tmp_path / "desktop-main"


def test_patience_and_pictures_come_from_the_settings(tmp_path: Path) -> None:
    """Ours: what the driver can be told, whoever runs the daemon can set."""
    world = World(
        tmp_path, settle_quiet_ms=50, settle_patient=True, settle_long_quiet_ms=700,
        settle_cap_ms=900, picture_format="webp", picture_quality=60, picture_max_bytes=100_000,
    )  # fmt: skip
    world.desktops.get()

    wanted = world.made["main"].settings
    assert wanted.settle == SettleSettings(quiet_ms=50, long_quiet_ms=700, is_patient=True, cap_ms=900)
    assert wanted.encoding == EncodingSettings(format="webp", quality=60, max_bytes=100_000)


@pytest.mark.parametrize("name", ["", "Main", "other", "../main"])
def test_unknown_desktop_is_refused(world: World, name: str) -> None:
    """Ours: typed, and nothing is made."""
    with pytest.raises(NotFound, match="'main'"):
        world.desktops.get(name)

    assert world.made == {}


@pytest.mark.parametrize("name", ["", "../main", "a/b", "a b", "-x", "x" * 65, "\0"])
def test_name_that_could_leave_its_directory_is_refused(world: World, name: str) -> None:
    """Ours: it becomes a directory."""
    with pytest.raises(BadRequest):
        world.desktops.ensure(name)

    assert world.made == {}


def test_named_desktop_is_made_on_demand_and_listed_after_the_main_one(world: World) -> None:
    """Required: named sessions."""
    world.desktops.ensure("work")
    world.desktops.ensure("main")

    assert world.desktops.names() == ["main", "work"]
    assert world.desktops.get("work") is world.desktops.ensure("work")


def test_all_chats_share_the_main_desktop_by_default(world: World) -> None:
    """Required: AGENTD_DESKTOP_SCOPE=workspace."""
    assert {world.desktops.name_for(CHAT), world.desktops.name_for(None)} == {"main"}


def test_each_chat_has_its_own_desktop_where_that_is_set(apart: World, tmp_path: Path) -> None:
    """Required: AGENTD_DESKTOP_SCOPE=chat; its directory stays short enough for sockets."""
    name = apart.desktops.name_for(CHAT)
    apart.desktops.ensure(name)

    assert (name, apart.desktops.name_for(None)) == (f"chat-{CHAT}", "main")
    directory = apart.made[name].settings.runtime_dir
    assert directory.parent == tmp_path
    assert len(directory.name) == len("desktop-") + 12


def test_each_agent_has_its_own_desktop_where_that_is_set(tmp_path: Path) -> None:
    """The issue: several agents, one desktop each; whoever asks for a chat alone means the chat's."""
    desktops = World(tmp_path, desktop_scope="agent").desktops

    assert desktops.name_for(CHAT, "1") == "chat-1"
    assert desktops.name_for(CHAT) == f"chat-{CHAT}"
    assert desktops.name_for(None, "1") == "main"
    assert desktops.status_for(CHAT, "2").name == "chat-2"


@pytest.mark.parametrize("scope", ["workspace", "chat"])
def test_agents_of_one_chat_share_a_desktop_elsewhere(tmp_path: Path, scope: Any) -> None:
    """The issue: then they take turns."""
    desktops = World(tmp_path, desktop_scope=scope).desktops

    assert desktops.name_for(CHAT, "1") == desktops.name_for(CHAT, "2") == desktops.name_for(CHAT)


async def test_what_an_agent_has_left_makes_room_the_oldest_first(tmp_path: Path) -> None:
    """Ours: it runs on, to be looked at or gone on with, for as long as nobody else needs the room."""
    world = World(tmp_path, desktop_scope="agent")
    for number in range(MAX_DESKTOPS):
        world.now += 1
        world.desktops.ensure(f"chat-{number}")
    for number in (5, 3, 4):
        world.desktops.leave(str(number))
    world.desktops.ensure("chat-3")
    with world.desktops.using("chat-4", Use.WATCHING):
        world.desktops.ensure("chat-more")
        with pytest.raises(TooMany):
            world.desktops.ensure("chat-even-more")
    await world.desktops.close()

    assert world.made["chat-5"].stops == 1
    assert {"chat-3", "chat-4", "chat-more"} < set(world.desktops.names())


def test_asking_how_a_chats_desktop_is_does_not_make_one(apart: World) -> None:
    """Ours: looking is not making."""
    status = apart.desktops.status_for(CHAT)

    assert status.name == f"chat-{CHAT}"
    assert apart.desktops.names() == ["main"]


def test_desktops_are_bounded_and_stopped_ones_make_room(world: World) -> None:
    """Ours: everything is bounded; the refusal says what to do."""
    for number in range(MAX_DESKTOPS):
        world.desktops.ensure(f"d{number}")
    with pytest.raises(TooMany, match="agentd desktop down"):
        world.desktops.ensure("more")
    world.made["d3"].state = "stopped"
    world.desktops.ensure("more")

    assert "d3" not in world.desktops.names()
    assert "more" in world.desktops.names()


def test_viewers_are_counted_while_they_watch(world: World) -> None:
    """Ours: each of them, until it leaves."""
    with world.desktops.viewing("main"):
        with world.desktops.viewing("main"):
            both = world.desktops.status().viewers
        one = world.desktops.status().viewers

    assert (both, one, world.desktops.status().viewers) == (2, 1, 0)


@pytest.mark.parametrize("why", Use)
async def test_desktop_in_use_is_not_idle_whatever_the_use(world: World, why: Use) -> None:
    """BUGS 77: watching, holding control and recording count."""
    world.desktops.ensure("main")
    with world.desktops.using("main", why):
        world.now += 1_000
        while_used = await world.desktops.stop_idle()
    world.now += 59
    soon_after = await world.desktops.stop_idle()
    world.now += 1
    later = await world.desktops.stop_idle()

    assert (while_used, soon_after, later) == ((), (), ("main",))
    assert world.made["main"].stops == 1


async def test_asking_for_the_status_is_no_use(world: World) -> None:
    """Ours: a page that polls does not keep a desktop up."""
    world.desktops.ensure("main")
    world.now += 60
    world.desktops.status()

    assert await world.desktops.stop_idle() == ("main",)
    assert await world.desktops.stop_idle() == ()


async def test_nothing_is_stopped_unless_the_settings_say_so(apart: World) -> None:
    """Required: optional."""
    apart.desktops.ensure("main")
    apart.now += 1_000_000

    assert await apart.desktops.stop_idle() == ()


async def test_listeners_hear_of_every_change_until_they_leave(world: World) -> None:
    """Ours: the stream and the recorder follow a session."""
    heard: list[DesktopStatus] = []
    leave = world.desktops.subscribe(heard.append)
    session = world.desktops.ensure("work")
    await session.stop()
    leave()
    await session.stop()

    assert [(status.name, status.state) for status in heard] == [("work", "stopped")]


async def test_close_stops_every_session_and_refuses_more(world: World) -> None:
    """Ours: nothing starts while the daemon ends."""
    world.desktops.get()
    world.desktops.ensure("work")
    await world.desktops.close()

    assert {name: session.stops for name, session in world.made.items()} == {"main": 1, "work": 1}
    with pytest.raises(ShuttingDown):
        world.desktops.get()


def test_programs_at_the_desktop_see_no_keys_and_no_settings() -> None:
    """Ours: an agent could print them."""
    kept = {"PATH": "/bin", "HOME": "/", "LANG": "C.UTF-8", "TOKENS": "3"}
    secret = {
        "ANTHROPIC_API_KEY": "x", "GH_TOKEN": "x", "AGENTD_NAME": "x", "CHATD_PORT": "1", "DB_PASSWORD": "x",
    }  # fmt: skip

    assert workspace_environment(kept | secret) == kept
