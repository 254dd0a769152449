"""Offered names: legal for every vendor, the same every time, never two alike."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bridge.naming import offered_name, split_name

# Each vendor's rule for the name of a function, as its API checks it.
VENDORS = {
    "anthropic": re.compile(r"[a-zA-Z0-9_-]{1,128}"),
    "openai": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "google": re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"),
}


@pytest.mark.parametrize("vendor", VENDORS)
@given(server=st.text(min_size=1, max_size=120), tool=st.text(min_size=1, max_size=300))
def test_any_name_becomes_legal_for_every_vendor(vendor: str, server: str, tool: str) -> None:
    """Whatever servers call themselves and their tools."""
    name = offered_name(server, tool)

    assert VENDORS[vendor].fullmatch(name)
    assert name == offered_name(server, tool)


@pytest.mark.parametrize(
    ("server", "tool"), [("github", "create__issue"), ("a", "b"), ("x-1", "_y"), ("S", "-")]
)
def test_a_legal_name_stays_and_the_first_separator_splits_it(server: str, tool: str) -> None:
    """``github__create__issue`` is tool ``create__issue`` of ``github`` (vector 55)."""
    name = offered_name(server, tool)

    assert f"{server}__{tool}" == name
    assert (server, tool) == split_name(name)


@given(st.lists(st.tuples(st.text(min_size=1, max_size=40), st.text(min_size=1, max_size=90)), unique=True))
def test_no_two_tools_get_one_name(tools: list[tuple[str, str]]) -> None:
    """Names that differ only in what had to be changed stay apart."""
    names: list[str] = []
    for server, tool in tools:
        names.append(offered_name(server, tool, names))

    assert len(tools) == len(set(names))


@pytest.mark.parametrize("name", ["plain", "__x", "x__", "", "_"])
def test_a_name_without_two_parts_is_none(name: str) -> None:
    """Neither part may be empty."""
    assert split_name(name) is None
