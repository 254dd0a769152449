"""Which functions a model is told of, in which order, and what finds no room."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.provider.protocol import ComputerSpec, FunctionTool
from chatd.tools.offering import MAX_TOOLS, ORDER, by_name, offer
from chatd.tools.policy import Origin
from chatd.tools.toolset import CallContext, LocalTool, ToolOutcome, Toolset

COMPUTER = ComputerSpec(model_size=(1, 1), description="", input_schema={})


async def _run(_: CallContext) -> ToolOutcome:
    raise AssertionError("nothing is run here")


def function(name: str, description: str = "") -> FunctionTool:
    """A function of that name."""
    return FunctionTool(name=name, description=description, input_schema={})


def tool(name: str, origin: Origin = Origin.OURS, **traits: bool) -> LocalTool:
    """A tool of that name and origin."""
    return LocalTool(definition=function(name, origin), run=_run, origin=origin, **traits)


def names(tools: list[LocalTool], *client: str, **request: bool) -> tuple[list[str], list[str]]:
    """What is told and what is left out."""
    told, left_out = offer(Toolset(tools=by_name(tools)), [function(name) for name in client], **request)
    return [one.name for one in told], list(left_out)


def test_every_origin_has_its_place() -> None:
    """Ours: an origin without one would fail at the first chat that has it."""
    assert sorted(ORDER) == sorted(Origin)


def test_a_flood_of_mcp_tools_takes_nothing_of_ours() -> None:
    """Brief: whatever comes first in a listing, the built-in tools are told, then the client's."""
    flood = [tool(f"far__{n}", Origin.DEPLOYMENT_MCP) for n in range(200)]
    near = [tool(f"near__{n}", Origin.WORKSPACE_MCP) for n in range(5)]
    built_in = [tool("execute", Origin.WORKSPACE), tool("wait_agent")]
    told, left_out = names([*near, *flood, *built_in], "ask")

    assert told == ["wait_agent", "execute", "ask", *(f"far__{n}" for n in range(MAX_TOOLS - 3))]
    assert left_out == [
        *(f"far__{n}" for n in range(MAX_TOOLS - 3, 200)), *(f"near__{n}" for n in range(5)),
    ]  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(list(Origin)))), st.randoms())
def test_the_order_does_not_hang_on_who_was_asked_first(
    found: list[tuple[str, Origin]], random: st.randoms
) -> None:
    """Ours: origins keep their order among each other however their lists arrive (the vendor's cache)."""
    unique = list(dict.fromkeys(found))
    tools = [tool(name, origin) for name, origin in sorted(unique)]
    groups = {origin: [one for one in tools if one.origin is origin] for origin in Origin}
    shuffled = list(Origin)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert names([one for origin in shuffled for one in groups[origin]]) == names(tools)


def test_of_two_with_one_name_the_first_in_order_is_the_one() -> None:
    """Ours: no server puts its own tool in the place of a built-in one."""
    chosen = by_name([tool("execute", Origin.DEPLOYMENT_MCP), tool("execute", Origin.WORKSPACE)])

    assert chosen["execute"].origin is Origin.WORKSPACE


def test_a_tool_of_the_client_is_told_in_place_of_ours() -> None:
    """Ours: its calls go to the client, so the model must know the client's schema, once."""
    told, left_out = offer(Toolset(tools=by_name([tool("execute")])), [function("execute", "of the client")])

    assert [(one.name, one.description) for one in told] == [("execute", "of the client")]
    assert left_out == ()


@pytest.mark.parametrize(("has_search", "computer", "room"), [(False, None, 128), (True, COMPUTER, 126)])
def test_the_vendors_own_tools_take_room_too(
    room: int, computer: ComputerSpec | None, *, has_search: bool
) -> None:
    """Vendor: 128 counts every entry of the list."""
    toolset = Toolset(tools=by_name([tool(f"t{n}") for n in range(130)]), computer=computer)
    told, left_out = offer(toolset, has_search=has_search)

    assert (len(told), len(left_out)) == (room, 130 - room)


def test_a_hidden_tool_takes_no_room() -> None:
    """Ours: it is answered, not told of."""
    told, _ = names([tool("close_agent", is_hidden=True), *(tool(f"t{n}") for n in range(MAX_TOOLS))])

    assert len(told) == MAX_TOOLS
    assert "close_agent" not in told
