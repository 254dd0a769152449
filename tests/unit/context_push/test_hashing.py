"""Hashes of contents and sets."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_push.wire.hashing import aggregate_hash, body_content_hash, content_hash, skill_hash
from context_push.wire.resources import (
    InstructionBody,
    McpConfigBody,
    Resource,
    ResourceStatus,
    SkillBody,
    SkillFile,
)
from tests.unit.context_push.vectors import load

BODIES = {"instruction_file": InstructionBody, "skill": SkillBody, "mcp_config": McpConfigBody}


def _resource(row: dict[str, Any]) -> Resource:
    body = BODIES[row["kind"]]()
    return Resource(
        source=row["source"],
        status=row.get("status", "ok"),
        content_hash=content_hash(row["text"].encode()),
        size_bytes=len(row["text"].encode()),
        body=body.model_copy(update={"text": row["text"]}) if row["kind"] != "mcp_config" else body,
    )


@pytest.mark.parametrize("vector", load("context_hashes"))
def test_hashes_are_those_of_the_vectors(vector: dict[str, Any]) -> None:
    """Spec 5.4, vectors 41 to 45."""
    resources = [_resource(row) for row in vector["resources"]]

    assert aggregate_hash(resources) == vector["aggregate"]
    for resource, expected in zip(resources, vector.get("content", []), strict=False):
        assert resource.content_hash == expected == body_content_hash(resource)


def test_a_skill_without_other_files_hashes_as_its_bytes() -> None:
    """Spec 5.4: the content hash is that of the original bytes; files beside it add to it."""
    files = (SkillFile(path="a.md", size_bytes=1, text="x"),)

    assert skill_hash(b"body", ()) == content_hash(b"body")
    assert skill_hash(b"body", files) != content_hash(b"body")


resources = st.lists(
    st.builds(
        lambda number, text, status: Resource(
            source=f"/w/{number}",
            status=status,
            content_hash=content_hash(text.encode()),
            size_bytes=len(text.encode()),
            body=InstructionBody(text=text),
        ),
        st.integers(0, 10**6),
        st.text(st.characters(codec="utf-8"), max_size=20),
        st.sampled_from(ResourceStatus),
    ),
    unique_by=lambda resource: resource.source,
    max_size=12,
)


@given(resources, st.randoms(use_true_random=False))
def test_the_order_of_a_scan_does_not_matter(resources: list[Resource], rng: random.Random) -> None:
    """Spec 5.4: sorted by identity, so every machine and file system gives the same."""
    shuffled = list(resources)
    rng.shuffle(shuffled)

    assert aggregate_hash(shuffled) == aggregate_hash(resources)


@given(resources.filter(bool), st.data())
def test_any_change_changes_the_aggregate(resources: list[Resource], data: st.DataObject) -> None:
    """Ours: source, content and status are all covered."""
    at = data.draw(st.integers(0, len(resources) - 1))
    changes: dict[str, Any] = data.draw(
        st.sampled_from(
            [
                {"source": "/other"},
                {"content_hash": content_hash(b"\xff")},
                {"status": next(status for status in ResourceStatus if status is not resources[at].status)},
            ]
        )
    )
    changed = [*resources[:at], resources[at].model_copy(update=changes), *resources[at + 1 :]]

    assert aggregate_hash(changed) != aggregate_hash(resources)


def test_a_body_that_is_not_ok_tells_no_hash() -> None:
    """Ours: its text is blank, so nobody can check it."""
    excluded = _resource({"kind": "skill", "source": "/s", "text": "x", "status": "excluded"})
    config = _resource({"kind": "mcp_config", "source": "/c", "text": "x"})

    assert (body_content_hash(excluded), body_content_hash(config)) == (None, None)
