"""Which settings a running daemon takes up: tables that name only what there is."""

import pytest
from pydantic import BaseModel

from agentd import reloading as agentd_reloading
from agentd.settings import AgentdSettings
from agentd.wire.reload import Reload, plan_reload
from chatd import reloading as chatd_reloading
from chatd.settings import ChatdSettings

# What holds a file, a port, a lock, a key or another process: none of it changes under way.
FIXED_OF_CHATD = {"data_dir", "database", "host", "port", "secret_keys", "rehearsal", "rehearsal_scenario"}
FIXED_OF_AGENTD = {"data_dir", "runtime_dir", "working_dir", "mcp_port", "stream_listen", "desktop_scope"}


@pytest.mark.parametrize(
    ("settings", "reloadable", "fixed"),
    [
        (ChatdSettings, chatd_reloading.RELOADABLE, FIXED_OF_CHATD),
        (AgentdSettings, agentd_reloading.RELOADABLE, FIXED_OF_AGENTD),
    ],
)
def test_the_tables_name_settings(
    settings: type[BaseModel], reloadable: frozenset[str], fixed: set[str]
) -> None:
    """Ours: a setting that was renamed is not forgotten here, and what is built in is not promised."""
    names = set(settings.model_fields)

    assert reloadable <= names
    assert fixed <= names - reloadable


class Settings(BaseModel):
    """Two settings."""

    live: int = 1
    fixed: int = 1


@pytest.mark.parametrize(
    ("new", "expected", "text"),
    [
        ({}, Reload(), "no setting changed"),
        ({"live": 2}, Reload(taken=("live",)), "reloaded: live"),
        ({"fixed": 2}, Reload(wait=("fixed",)), "a restart is needed for: fixed"),
        (
            {"live": 2, "fixed": 2},
            Reload(taken=("live",), wait=("fixed",)),
            "reloaded: live; a restart is needed for: fixed",
        ),
    ],
)
def test_each_change_is_taken_or_waits(new: dict[str, int], expected: Reload, text: str) -> None:
    """Ours: nothing that changed goes unmentioned."""
    plan = plan_reload(Settings(), Settings(**new), frozenset({"live"}))

    assert (plan, str(plan)) == (expected, text)
    assert plan.postponed({"live"}).taken == ()
    assert set(plan.postponed({"live"}).wait) == set(new)
