"""Discovery, on real file trees."""

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context_push.bounds import bound
from context_push.discover import discover
from context_push.wire.hashing import aggregate_hash, body_content_hash, content_hash
from context_push.wire.push import ContextPush, push_problem
from context_push.wire.resources import InstructionBody, Resource, SkillBody
from tests.unit.context_push.tree import plant, relative
from tests.unit.context_push.vectors import load


def _found(folder: Path, resources: tuple[Resource, ...]) -> list[list[str]]:
    return [[str(r.kind), relative(r.source, folder), str(r.status)] for r in resources]


@pytest.mark.parametrize("vector", load("context_discovery"))
def test_trees_give_the_resources_of_the_vectors(tmp_path: Path, vector: dict[str, Any]) -> None:
    """Spec 5.2; what is not ok carries nothing."""
    plant(tmp_path, vector["files"])
    found = discover([str(tmp_path / root) for root in vector.get("roots", ["w"])]).resources

    assert sorted(_found(tmp_path, found)) == sorted(vector["found"])
    for resource in found:
        assert resource.is_ok or resource.body == type(resource.body)()
        assert resource.is_ok or resource.error
        assert body_content_hash(resource) in {None, resource.content_hash}


def test_an_oversize_file_hashes_its_first_64_kib(tmp_path: Path) -> None:
    """Spec 5.3."""
    plant(tmp_path, {"AGENTS.md": {"size": 100_000}})
    (resource,) = discover([str(tmp_path)]).resources

    assert (resource.content_hash, resource.size_bytes) == (content_hash(b"x" * 65536), 100_000)


def test_bodies_are_verbatim(tmp_path: Path) -> None:
    """Ours: the control plane must be able to check the hash; text is made safe where it is used."""
    text = "\ufeff# Rules<!-- hidden -->\r\n"
    skill = "---\nname: a\ndescription: Does a.\n---\n# A\n"
    plant(tmp_path, {"AGENTS.md": text, "skills/a/SKILL.md": skill})
    instructions, found = discover([str(tmp_path)]).resources

    assert instructions.body == InstructionBody(text=text)
    assert found.body == SkillBody(name="a", description="Does a.", text=skill)


def test_a_skill_carries_its_files_while_they_fit(tmp_path: Path) -> None:
    """Ours: read_skill_file works with the workspace gone; what doesn't fit is named with its size."""
    plant(
        tmp_path,
        {
            "skills/a/SKILL.md": "---\nname: a\n---\n",
            "skills/a/reference/one.md": "one",
            "skills/a/big.txt": {"size": 70_000},
            "skills/a/fits.txt": {"size": 60_000},
            "skills/a/more.txt": {"size": 60_000},
            "skills/a/picture.png": {"hex": "89ff00"},
            "skills/a/.hidden": "x",
            "skills/a/link": {"link": "/etc/passwd"},
            "skills/a/1/2/3/4/too-deep": "x",
        },
    )
    (skill,) = discover([str(tmp_path)]).resources
    assert isinstance(skill.body, SkillBody)

    assert [(f.path, f.size_bytes, (f.text or "")[:3]) for f in skill.body.files] == [
        ("big.txt", 70_000, ""),
        ("fits.txt", 60_000, "xxx"),
        ("more.txt", 60_000, ""),
        ("picture.png", 3, ""),
        ("reference/one.md", 3, "one"),
    ]


def test_only_the_roots_are_read(tmp_path: Path) -> None:
    """Ours: the trees around may be large; interest names what to watch, and never the root's own listing."""
    plant(
        tmp_path, {"AGENTS.md": "x", "skills/a/SKILL.md": "---\nname: a\n---\n", "src/deep/AGENTS.md": "no"}
    )
    root = str(tmp_path.resolve())
    interest = discover([root]).interest

    assert interest.listed == {f"{root}/skills", f"{root}/skills/a"}
    assert {f"{root}/AGENTS.md", f"{root}/.agents", f"{root}/.agents/skills", root} <= interest.named
    assert not any("src" in path for path in interest.named)


def test_secrets_of_mcp_configurations_stay(tmp_path: Path) -> None:
    """Spec 5.2: env and headers hold secrets; nothing that is pushed quotes them, valid or not."""
    plant(
        tmp_path,
        {
            "a/.mcp.json": '{"mcpServers": {"hunter2": {"env": {"KEY": "hunter2"}}}}',
            "b/.mcp.json": '{"mcpServers": {"x": "hunter2"}}',
            "c/.mcp.json": "hunter2",
        },
    )
    found = discover([str(tmp_path / name) for name in "abc"])

    assert [str(r.status) for r in found.resources] == ["ok", "invalid", "invalid"]
    assert "hunter2" not in "".join(r.model_dump_json() for r in found.resources)
    assert "hunter2" not in repr(found.notes)


def test_names_that_have_no_encoding_are_left_out(tmp_path: Path) -> None:
    """Ours: JSON can't carry them."""
    odd = os.fsdecode(b"od\xff")
    (tmp_path / "skills" / odd).mkdir(parents=True)
    (tmp_path / "skills" / odd / "SKILL.md").write_text("x")
    (tmp_path / odd).mkdir()
    found = discover([str(tmp_path), str(tmp_path / odd)])

    assert found.resources == ()
    assert all(note.path.encode() for note in found.notes)


# -- a naive oracle ----------------------------------------------------------------

NAMES = ["a", "b", "c-d", "Bad", "e--f"]
TEXTS = [
    "plain", "", "---\nname: a\n---\n", "---\nname: b\ndescription: x\n---\nbody", "---\nname: c-d\n---\n",
    "{}", "[]",
]  # fmt: skip
PLACES = [
    *(f"{root}/{name}" for root in ("r1", "r2") for name in ("AGENTS.md", "CLAUDE.md", ".cursorrules")),
    *(f"{root}/{name}" for root in ("r1", "r2") for name in (".mcp.json", "x")),
    *(
        f"{root}/{container}/{name}/{file}"
        for root in ("r1", "r2")
        for container in ("skills", ".agents/skills", ".claude/skills", ".codex/skills", "other")
        for name in NAMES
        for file in ("SKILL.md", "skill.md")
    ),
]  # fmt: skip
trees = st.dictionaries(st.sampled_from(PLACES), st.sampled_from(TEXTS), max_size=25)


def _oracle(files: dict[str, str]) -> set[tuple[str, str, str, str]]:
    """What must be ok, and what invalid, by the words of the specification and from the tree alone."""
    expected: set[tuple[str, str, str, str]] = set()
    for path, text in files.items():
        if re.fullmatch(r"r[12]/(AGENTS\.md|CLAUDE\.md|\.cursorrules)", path):
            expected.add(("instruction_file", path, "ok", text))
        if re.fullmatch(r"r[12]/\.mcp\.json", path):
            expected.add(("mcp_config", path, "ok" if text == "{}" else "invalid", text))
    for name in NAMES:
        skills = [
            (source, text, text.startswith(f"---\nname: {name}\n") and name in {"a", "b", "c-d"})
            for root in ("r1", "r2")
            for container in ("skills", ".agents/skills", ".claude/skills", ".codex/skills")
            if (text := files.get(f"{(source := f'{root}/{container}/{name}')}/SKILL.md")) is not None
        ]
        valid = [skill for skill in skills if skill[2]]
        for source, text, is_valid in valid[:1] or skills:
            hashed = text + _beside(files.get(f"{source}/skill.md")) if is_valid else text
            expected.add(("skill", source, "ok" if is_valid else "invalid", hashed))
    return expected


def _beside(text: str | None) -> str:
    """What ``skill.md`` adds to the hash, framed as in the aggregate: length, colon, bytes; then NUL."""
    size = str(len(text or ""))
    return "" if text is None else f"8:skill.md{len(size)}:{size}{size}:{text}\0"


@settings(max_examples=60, deadline=None)
@given(trees, trees)
def test_discovery_agrees_with_a_naive_oracle(before: dict[str, str], edits: dict[str, str]) -> None:
    """Ours: random trees, then random edits of them; the hash depends on what is there and nothing else."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        tree: dict[str, str] = {}
        for step in (before, edits):
            plant(folder, step)
            tree |= step
            found = discover([str(folder / "r1"), str(folder / "r2")]).resources
            summary = {
                (str(r.kind), relative(r.source, folder), str(r.status), r.content_hash) for r in found
            }

            assert summary == {(k, p, s, content_hash(t.encode())) for k, p, s, t in _oracle(tree)}
        bounded = bound(found).resources
        push = ContextPush(version=1, aggregate_hash=aggregate_hash(found), resources=bounded)

        assert push_problem(push) is None
        assert aggregate_hash(reversed(bounded)) == push.aggregate_hash
