"""Caps, and which resources they leave out."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_push.bounds import MAX_COUNT, MAX_TOTAL_BYTES, bound, payload_bytes
from context_push.wire.hashing import aggregate_hash, content_hash, skill_hash
from context_push.wire.push import (
    MAX_BODY_BYTES,
    MAX_ERROR_BYTES,
    MAX_RESOURCES,
    MAX_SOURCE_BYTES,
    ContextPush,
    push_problem,
)
from context_push.wire.resources import (
    InstructionBody,
    McpServerBody,
    Resource,
    ResourceStatus,
    SkillBody,
    SkillFile,
)


def instruction(source: str, text: str = "x", **fields: object) -> Resource:
    """An ok instruction file."""
    resource = Resource(
        source=source,
        content_hash=content_hash(text.encode()),
        size_bytes=len(text.encode()),
        body=InstructionBody(text=text),
    )
    return resource.model_copy(update=fields)


def skill(source: str, text: str = "x", *files: SkillFile) -> Resource:
    """An ok skill."""
    return Resource(
        source=source,
        content_hash=skill_hash(text.encode(), files),
        size_bytes=len(text),
        body=SkillBody(name="s", text=text, files=files),
    )


def push_of(*resources: Resource, **fields: object) -> ContextPush:
    """A push of *resources*."""
    push = ContextPush(version=1, aggregate_hash=aggregate_hash(resources), resources=resources)
    return push.model_copy(update=fields)


def test_what_is_too_many_is_excluded_by_kind_and_source() -> None:
    """Spec 5.3: (kind, source) ascending, so instructions come before skills."""
    found = [skill(f"/s/{n:03}") for n in range(300)] + [instruction(f"/i/{n:03}") for n in range(300)]
    resources = bound(found).resources

    excluded = [r.source for r in resources if r.status is ResourceStatus.EXCLUDED]
    assert excluded == [f"/s/{n}" for n in range(200, 300)]
    assert all(r.body == SkillBody() and r.error for r in resources[MAX_COUNT:])
    assert push_problem(push_of(*resources)) is None


def test_what_is_too_much_is_excluded_and_smaller_ones_still_fit() -> None:
    """Spec 5.3: 2 MiB together."""
    found = [instruction(f"/{n:02}", "x" * 65_000) for n in range(33)] + [skill("/small", "y" * 100)]
    resources = bound(found).resources

    statuses = [str(r.status) for r in resources]
    assert statuses == ["ok"] * 32 + ["excluded"] + ["ok"]
    assert sum(payload_bytes(r.body) for r in resources) <= MAX_TOTAL_BYTES


def test_appended_resources_crowd_nothing_out() -> None:
    """Spec 5.3: MCP servers come after the files' bounds."""
    servers = [
        Resource(
            source=f"mcp:{n}", content_hash=content_hash(b""), size_bytes=0, body=McpServerBody(name="x")
        )
        for n in range(20)
    ]
    resources = bound([instruction(f"/{n:03}") for n in range(MAX_COUNT)], servers).resources

    assert [str(r.status) for r in resources] == ["ok"] * (MAX_COUNT + 20)
    assert resources[MAX_COUNT:] == tuple(servers)


def test_what_can_not_be_named_is_dropped() -> None:
    """Ours: a push that names it would be refused whole."""
    long = "/" + "x" * MAX_SOURCE_BYTES
    many = [instruction(f"/{n:04}") for n in range(MAX_RESOURCES + 5)]
    bounded = bound([*many, instruction(long)])

    assert len(bounded.resources) == MAX_RESOURCES
    assert bounded.dropped == (*(f"/{n:04}" for n in range(MAX_RESOURCES, MAX_RESOURCES + 5)), long)
    assert push_problem(push_of(*bounded.resources)) is None


def test_a_body_that_swells_as_json_is_oversize() -> None:
    """Ours: 64 KiB of controls are 384 KiB of JSON, more than the control plane takes of one."""
    (resource,) = bound([instruction("/a", "\x01" * 65_536)]).resources

    assert (resource.status, resource.body) == (ResourceStatus.OVERSIZE, InstructionBody())


@given(
    st.lists(
        st.builds(
            instruction,
            st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=600),
            st.sampled_from(["x", "\x01" * 60_000, "é" * 30_000, "y" * 65_536]),
            error=st.none() | st.just("é" * 3000),
        ),
        unique_by=lambda r: r.source,
        max_size=60,
    ),
    st.randoms(use_true_random=False),
)
def test_what_is_bounded_is_never_refused(found: list[Resource], rng: random.Random) -> None:
    """Ours: the sender's bounds are the receiver's or lower, in any order of discovery."""
    shuffled = list(found)
    rng.shuffle(shuffled)
    bounded = bound(found)

    assert push_problem(push_of(*bounded.resources)) is None
    assert bound(shuffled).resources == bounded.resources


@pytest.mark.parametrize(
    ("push", "word"),
    [
        (push_of(*(instruction(f"/{n}") for n in range(MAX_RESOURCES + 1))), "more than 1000"),
        (push_of(instruction("/a"), skill("/a")), "same source"),
        (push_of(instruction("/" * (MAX_SOURCE_BYTES + 1))), "source"),
        (push_of(instruction("/a", source_path="/" * (MAX_SOURCE_BYTES + 1))), "source"),
        (push_of(instruction("/a\0")), "NUL"),
        (push_of(instruction("/a", "b\0")), "NUL"),
        (push_of(skill("/a", "b", SkillFile(path="p", size_bytes=1, text="\0"))), "NUL"),
        (push_of(instruction("/a", "x" * MAX_BODY_BYTES)), "body"),
        (push_of(*(instruction(f"/{n}", "x" * 250_000) for n in range(17))), "together"),
        (push_of(instruction("/a", error="é" * MAX_ERROR_BYTES)), "error"),
        (push_of(snapshot_error="é" * MAX_ERROR_BYTES), "snapshot_error"),
        (push_of(instruction("/a"), aggregate_hash="0" * 64), "aggregate"),
        (push_of(instruction("/a", content_hash="00" * 32)), "content hash"),
    ],
)
def test_a_push_beyond_the_bounds_is_refused(push: ContextPush, word: str) -> None:
    """Spec 5.3: a violation rejects the whole push; ours: so does a hash that is not that of the text."""
    assert word in (push_problem(push) or "")


def test_backslash_u_is_no_nul() -> None:
    """Ours: a text may write about NUL."""
    assert push_problem(push_of(instruction("/a", "\\u0000"))) is None
