"""Lists of tools, good and bad."""

from typing import Any

from mcp_bridge.listing import MAX_DESCRIPTION, MAX_REJECTED, MAX_TOOLS, Listing, read_tools, readable_entries


def _read(entries: list[Any]) -> Listing:
    kept, rejected = readable_entries(entries)
    return read_tools("s", kept, rejected)


def _tool(name: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **fields}


def test_one_bad_tool_does_not_cost_the_others() -> None:
    """Of 421 tools one has a schema that fails every request: it is set aside with a reason."""
    bad = [
        _tool("boolean", inputSchema=False),
        _tool("loop", inputSchema={"$ref": "#"}),
        _tool("huge", inputSchema={"type": "object", "description": "x" * 200_000}),
        {"name": 7, "inputSchema": {}},
        "nothing",
        _tool("good"),
    ]
    listing = _read([_tool("good"), *bad])

    assert [offered.tool.name for offered in listing.tools] == ["s__good"]
    assert {"boolean", "loop", "huge", "7", "None", "good"} == {tool.tool for tool in listing.rejected}
    assert all(tool.reason for tool in listing.rejected)


def test_ten_thousand_tools_are_cut_and_the_reasons_with_them() -> None:
    """A server that offers more than anybody can use fills neither the model's window nor our memory."""
    listing = _read([_tool(f"t{number}") for number in range(10_000)])

    assert len(listing.tools) == MAX_TOOLS
    assert len(listing.rejected) == MAX_REJECTED + 1
    assert listing.rejected[-1].tool.startswith("8,950 more")


def test_names_that_differ_only_in_odd_characters_stay_apart() -> None:
    """``a.b`` and ``a b`` are two tools."""
    names = [offered.tool.name for offered in _read([_tool("a.b"), _tool("a b"), _tool("a_b")]).tools]

    assert len(set(names)) == 3
    assert names[-1] == "s__a_b"


def test_a_long_description_goes_on_in_the_schema() -> None:
    """A vendor takes 1,024 characters; nothing of the rest is lost."""
    words = " ".join(f"word{number}" for number in range(600))
    tool = _read([_tool("a", description=words)]).tools[0].tool
    whole = f"{tool.description.removesuffix('…')} {tool.input_schema['description'].removeprefix('…')}"

    assert len(tool.description) <= MAX_DESCRIPTION
    assert words == whole


def test_hints_count_only_as_booleans() -> None:
    """What the server claims about a tool is a hint, and may be nonsense."""
    tools = [
        _tool("a", annotations={"readOnlyHint": True, "title": "T"}),
        _tool("b", annotations={"readOnlyHint": "yes"}),
        _tool("c", annotations=[]),
    ]

    assert [offered.tool.read_only for offered in _read(tools).tools] == [True, None, None]
