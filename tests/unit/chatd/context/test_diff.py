"""What a refresh would change."""

import random

from chatd.context.diff import MAX_DIFF, diff_resources, resource_metadata
from context_push.wire.hashing import aggregate_hash, skill_hash
from context_push.wire.resources import PluginBody, Resource, ResourceStatus, SkillBody, SkillFile
from tests.contract.store.context import config, instruction, random_push, skill


def test_added_removed_and_changed_are_told_apart() -> None:
    """Issue: modified with a unified text diff; MCP configurations are left out, as of the hash."""
    before = [instruction("/w/AGENTS.md", "one\ntwo\n"), skill("gone"), skill("same"), config("a")]
    after = [instruction("/w/AGENTS.md", "one\n2\n"), skill("new"), skill("same"), config("b")]
    difference = diff_resources(before, after)

    assert [r.source for r in difference.added] == ["/w/skills/new"]
    assert [r.skill_name for r in difference.removed] == ["gone"]
    (changed,) = difference.modified
    assert changed.diff == "--- /w/AGENTS.md\n+++ /w/AGENTS.md\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert (changed.before.size_bytes, changed.after.size_bytes, changed.truncated) == (8, 6, False)


def test_a_missing_newline_is_told() -> None:
    """Ours: otherwise two lines would run together."""
    (changed,) = diff_resources([instruction(text="a")], [instruction(text="a\n")]).modified

    assert changed.diff.endswith("-a\n\\ No newline at end of file\n+a\n")


def test_a_status_that_changed_is_a_change() -> None:
    """Ours: with the reason; the text that was is shown as removed."""
    broken = instruction().model_copy(
        update={"status": ResourceStatus.UNREADABLE, "error": "gone", "body": type(instruction().body)()}
    )
    (changed,) = diff_resources([instruction()], [broken]).modified

    assert (changed.before.status, changed.after.status, changed.after.error) == ("ok", "unreadable", "gone")
    assert "-Be kind." in changed.diff


def test_a_skill_s_files_are_compared_too() -> None:
    """Ours: they are carried and hashed."""

    def with_file(text: str | None) -> Resource:
        files = (SkillFile(path="a.md", size_bytes=3, text=text),)
        body = SkillBody(name="s", text="x", files=files)
        hashed = skill_hash(b"x", files)
        return skill("s").model_copy(update={"body": body, "content_hash": hashed})

    (changed,) = diff_resources([with_file(None)], [with_file("now\n")]).modified

    assert "--- /w/skills/s/a.md" in changed.diff
    assert "-[3 bytes]\n+now\n" in changed.diff


def test_long_diffs_are_cut_and_long_texts_only_counted() -> None:
    """Ours: difflib takes quadratic time."""
    long = diff_resources([instruction(text="a\n" * 4000)], [instruction(text="b\n" * 4000)]).modified[0]
    wide = diff_resources([instruction(text="a" * MAX_DIFF)], [instruction(text="b" * MAX_DIFF)]).modified[0]

    assert "4000 lines became 4000 lines" in long.diff
    assert (len(wide.diff), wide.truncated) == (MAX_DIFF, True)


def test_metadata_has_no_text() -> None:
    """Spec: clients see metadata only; a line says what it is about."""
    told = resource_metadata(instruction(text="\n# Rules <!-- x -->of the house\nsecret"))
    plugin = instruction().model_copy(update={"body": PluginBody(name="p", description="Tools.")})

    assert (told.description, told.skill_name, told.kind) == ("Rules of the house", None, "instruction_file")
    assert "secret" not in told.model_dump_json()
    assert resource_metadata(skill("deploy")).skill_name == "deploy"
    assert resource_metadata(plugin).description == "Tools."
    assert resource_metadata(config("x")).description is None


def test_there_is_a_difference_if_and_only_if_the_hashes_differ() -> None:
    """Ours: dirty and the diff can't contradict each other."""
    rng = random.Random(7)  # noqa: S311 -- the same trees every time
    pushes = [random_push(rng, 1, initial=True).resources for _ in range(40)]
    for before in pushes:
        for after in pushes[:10]:
            difference = diff_resources(before, after)
            is_empty = not (difference.added or difference.removed or difference.modified)

            assert is_empty is (aggregate_hash(before) == aggregate_hash(after))
