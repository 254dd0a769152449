"""What a configuration file means."""

import json
from typing import Any

import pytest

from mcp_bridge.config import ConfigFile, expand, merge, parse_config

ENVIRONMENT = {"TOKEN": "t-123", "EMPTY": ""}


def _parse(servers: Any, source: str = "a.json") -> ConfigFile:
    return parse_config(json.dumps({"mcpServers": servers}), source=source, environment=ENVIRONMENT)


def _problem(entry: Any, name: str = "x") -> str:
    return _parse({name: entry}).problems[0].reason


@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({"command": "run"}, "stdio"),
        ({"url": "http://localhost/mcp"}, "http"),
        ({"type": "sse", "url": "https://example.org/sse"}, "sse"),
        ({"type": "streamable-http", "url": "https://example.org"}, "http"),
        ({"type": "http", "url": "http://[::1]:80/mcp", "command": "ignored"}, "http"),
        ({"command": "run", "url": "http://localhost"}, "stdio"),
    ],
)
def test_the_transport_is_said_or_follows_from_what_there_is(entry: Any, transport: str) -> None:
    """An explicit type counts, else a command, else a url (specification 6.1)."""
    (server,) = _parse({"one": entry}).servers

    assert transport == server.transport


@pytest.mark.parametrize("name", ["a__b", "_x", "x_", "", "n" * 101, "tab\tbed"])
def test_a_bad_name_costs_only_its_entry(name: str) -> None:
    """A name that would be ambiguous in tool names is rejected, siblings load (vector 56)."""
    file = _parse({name: {"command": "run"}, "good": {"command": "run"}})

    assert [server.name for server in file.servers] == ["good"]
    assert len(file.problems) == 1


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"args": ["x"]},
        {"type": "carrier-pigeon", "command": "x"},
        {"type": "http", "command": "x"},
        {"type": "stdio", "url": "http://x"},
        {"command": ["a"]},
        {"command": "x", "args": "one string"},
        {"command": "x", "args": [1]},
        {"command": "x\0"},
        {"command": "x", "env": {"A=B": "c"}},
        {"command": "x", "env": {"A": 1}},
        {"url": "ftp://example.org"},
        {"url": "http://"},
        {"url": "http://example.org:port"},
        {"url": "http://example.org", "headers": {"A\n": "b"}},
        {"url": "http://example.org", "headers": {"A": "b\r\nC: d"}},
        {"command": "x", "timeout_s": -1},
        "a string",
        None,
        [],
    ],
)
def test_an_entry_that_can_not_run_is_told_and_its_siblings_load(entry: Any) -> None:
    """Neither command nor url, wrong types, addresses that are none (vector 57)."""
    file = _parse({"bad": entry, "good": {"command": "run"}})

    assert [server.name for server in file.servers] == ["good"]
    assert file.problems[0].name == "bad"


def test_a_problem_never_quotes_a_value() -> None:
    """What is wrong with an entry is shown to people; its values may be secrets."""
    assert "s3cret" not in _problem({"command": "x", "env": {"A": ["s3cret"]}})
    assert "s3cret" not in _problem({"url": "http://x", "headers": {"A": "s3cret\n"}})


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "null", '{"mcpServers": []}', "[" * 100_000, " " * 1_100_000]
)
def test_a_file_that_is_none_is_one_problem(text: str) -> None:
    """Not JSON, not an object, too deep, too large: told once, with the file's name."""
    file = parse_config(text, source="a.json", environment={})

    assert (file.servers, file.problems[0].source, file.problems[0].name) == ((), "a.json", "")


def test_a_byte_order_mark_and_null_lists_are_read_over() -> None:
    """Editors write the mark, generators write null for nothing."""
    text = '\ufeff{"mcpServers": {"a": {"command": "x", "args": null, "env": null, "headers": null}}}'
    file = parse_config(text, source="a.json", environment={})

    assert (file.servers[0].args, dict(file.servers[0].env)) == ((), {})


def test_variables_expand_in_env_values_only() -> None:
    """``${VAR}`` and ``$VAR`` mean the agent's environment there, and themselves elsewhere."""
    (server,) = _parse({"a": {"command": "$TOKEN", "args": ["${TOKEN}"], "env": {"K": "<${TOKEN}>"}}}).servers

    assert (server.command, server.args, server.env) == ("$TOKEN", ("${TOKEN}",), {"K": "<t-123>"})


def test_variables_that_are_not_set_are_noted_by_name() -> None:
    """Each once; one that is empty is set, and a fallback is an answer."""
    env = {"A": "$GONE and ${GONE}", "B": "${LOST}/$EMPTY", "C": "${MISSING:-x}${OTHER:-}", "D": "$TOKEN"}
    (server,) = _parse({"a": {"command": "x", "args": ["$ARGUMENT"], "env": env}}).servers

    assert server.unset == ("GONE", "LOST")


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$TOKEN", "t-123"),
        ("${TOKEN}-${TOKEN}", "t-123-t-123"),
        ("${MISSING}", ""),
        ("${MISSING:-fallback}", "fallback"),
        ("${EMPTY:-fallback}", "fallback"),
        ("$ {TOKEN} $1 $", "$ {TOKEN} $1 $"),
        ("${TOKEN", "${TOKEN"),
    ],
)
def test_expansion(text: str, expanded: str) -> None:
    """Shell-like, one pass, nothing is executed."""
    assert expanded == expand(text, ENVIRONMENT)


def test_of_two_files_with_one_name_the_first_counts() -> None:
    """Duplicate names: first file wins, the other is told (specification 6.1)."""
    first, second = _parse({"a": {"command": "1"}}, "1.json"), _parse({"a": {"command": "2"}}, "2.json")
    merged = merge([first, second])

    assert [server.command for server in merged.servers] == ["1"]
    assert (merged.problems[0].source, merged.problems[0].name) == ("2.json", "a")
