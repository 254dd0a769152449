"""Which schema a process works with, cell by cell."""

import pytest

from chatd.store.migrating import Migration, Phase, SchemaUnfit, Versions, known_migrations

KNOWN = (
    Migration("1", "pre"),
    Migration("2", "pre"),
    Migration("3", "post", "2"),
    Migration("4", "pre"),
)


def versions(current: str | None, floor: str | None = None) -> Versions:
    """A database at *current*."""
    return Versions(current=current, known=KNOWN, floor=floor)


@pytest.mark.parametrize(
    ("current", "phase", "target"),
    [
        (None, "all", "4"),
        (None, "pre", "2"),
        ("1", "pre", "2"),
        ("2", "pre", None),
        ("2", "post", "4"),
        ("2", "all", "4"),
        ("3", "pre", "4"),
        ("4", "all", None),
        ("9", "all", None),
    ],
)
def test_a_phase_ends_where_the_other_begins(current: str | None, phase: Phase, target: str | None) -> None:
    """Ours: pre never runs what old code could not bear."""
    assert versions(current).target(phase) == target


def test_post_waits_for_pre() -> None:
    """Ours: it says what to run first."""
    with pytest.raises(SchemaUnfit, match="--phase pre"):
        versions("1").target("post")


@pytest.mark.parametrize(
    ("current", "floor", "says"),
    [
        (None, None, "lacks 1, 2, 4"),
        ("1", None, "lacks 2, 4"),
        ("2", None, "lacks 4"),
        ("3", None, "lacks 4"),
        ("4", None, None),
        # Newer code migrated: what it only added does not harm us, what it took away does.
        ("9", None, None),
        ("9", "4", None),
        ("9", "5", "upgrade this chatd"),
    ],
)
def test_a_schema_fits_or_is_told_why_not(current: str | None, floor: str | None, says: str | None) -> None:
    """Issue: old code on a new schema works, or refuses clearly."""
    problem = versions(current, floor).problem()

    assert (problem is None) == (says is None)
    assert says is None or says in str(problem)


def test_every_migration_says_its_phase() -> None:
    """Ours: post ones say the oldest code that works afterwards, pre ones need nothing."""
    known = known_migrations()
    revisions = [one.revision for one in known]

    assert revisions == sorted(revisions)
    assert all(one.needs in revisions if one.phase == "post" else one.needs is None for one in known)
