"""Which servers and tools of the deployment a chat has."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from chatd.mcp_wire import Availability, McpServer

ME, OTHER = UUID(int=1), UUID(int=2)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _server(**fields: Any) -> McpServer:
    return McpServer(
        id=ME, slug="x", display_name="X", url="http://x/", created_at=NOW, updated_at=NOW, **fields
    )


@pytest.mark.parametrize(
    ("availability", "unchosen", "among", "not_among"),
    [("force_on", True, True, True), ("default_on", True, True, False), ("default_off", False, True, False)],
)
def test_a_chat_has_what_it_chose_or_what_is_on(
    availability: Availability, unchosen: bool, among: bool, not_among: bool
) -> None:
    """Every cell, by availability and choice."""
    server = _server(availability=availability)

    assert [server.is_on(chosen) for chosen in (None, (OTHER, ME), (OTHER,))] == [unchosen, among, not_among]


@pytest.mark.parametrize("availability", ["force_on", "default_on", "default_off"])
def test_a_disabled_server_and_one_without_the_flag_in_plan_mode_are_off(availability: Availability) -> None:
    """Whatever was chosen."""
    assert not _server(availability=availability, enabled=False).is_on((ME,))
    assert not _server(availability=availability).is_on((ME,), plan_mode=True)
    assert _server(availability=availability, allow_in_plan_mode=True).is_on((ME,), plan_mode=True)


@pytest.mark.parametrize(
    ("allowed", "denied", "tools"),
    [((), (), "ab"), (("a",), (), "a"), ((), ("a",), "b"), (("a", "b"), ("a",), "b"), (("c",), (), "")],
)
def test_allow_and_deny_lists(allowed: tuple[str, ...], denied: tuple[str, ...], tools: str) -> None:
    """None allowed means all; what is denied is denied."""
    server = _server(tool_allow_list=allowed, tool_deny_list=denied)

    assert "".join(tool for tool in "ab" if server.allows(tool)) == tools
