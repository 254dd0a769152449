"""Front matter, MCP configurations, manifests."""

from typing import Any

import pytest

from context_push.classify import (
    PLUGIN_SCHEMA,
    Invalid,
    Manifest,
    SkillMeta,
    check_mcp_config,
    decode_text,
    parse_manifest,
    parse_skill,
)
from tests.unit.context_push.vectors import load


@pytest.mark.parametrize("vector", load("context_skills"))
def test_front_matter_is_read_as_the_vectors_say(vector: dict[str, Any]) -> None:
    """Spec 5.2: optional BOM, fences, a YAML map, a name that is the directory's."""
    text = vector["text"].replace("{nested}", "[" * vector.get("nest", 0))
    meta = parse_skill(text, "deploy")

    if "meta" in vector:
        assert meta == SkillMeta(name=vector["meta"][0], description=vector["meta"][1])
    else:
        assert isinstance(meta, Invalid)
        assert vector["problem"] in meta.problem


@pytest.mark.parametrize("data", [b"\xff\xfe", b"a\0b"])
def test_bytes_that_are_no_text_are_invalid(data: bytes) -> None:
    """Ours: what a database can't keep or a model can't read is told, not mended."""
    assert isinstance(decode_text(data), Invalid)


def test_text_is_kept_verbatim() -> None:
    """Ours: the hash of the text must be that of the bytes, byte-order mark and line ends included."""
    assert decode_text(b"\xef\xbb\xbfa\r\n") == "\ufeffa\r\n"


@pytest.mark.parametrize(
    ("data", "is_valid"),
    [
        (b"{}", True),
        (b'{"mcpServers": {"a": {"command": "x", "env": {"KEY": "hunter2"}}}}', True),
        (b"[]", False),
        (b'{"mcpServers": []}', False),
        (b'{"mcpServers": {"a": "hunter2"}}', False),
        (b"hunter2", False),
        (b"[" * 100_000, False),
    ],
)
def test_mcp_configurations_are_checked_for_shape(data: bytes, *, is_valid: bool) -> None:
    """Spec 5.2: an object of objects; a problem never quotes the content, which holds secrets."""
    problem = check_mcp_config(data)

    assert (problem is None) is is_valid
    assert "hunter2" not in str(problem)


def test_manifests_declare_our_schema() -> None:
    """Spec 5.2: a specific schema, a name; unknown keys are told."""
    head = b'{"$schema": "%s", ' % PLUGIN_SCHEMA.encode()

    assert parse_manifest(b'{"name": "x"}') is None
    assert parse_manifest(b"nonsense") is None
    assert parse_manifest(head + b'"name": "x", "version": "1", "zeal": 1}') == Manifest(
        name="x", version="1", unknown=("zeal",)
    )
    assert isinstance(parse_manifest(head + b'"name": "X"}'), Invalid)
    assert isinstance(parse_manifest(head + b'"name": "x", "version": 1}'), Invalid)
