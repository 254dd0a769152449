"""Sources and the places they may lie in."""

from pathlib import Path

import pytest

from context_push.errors import SourceNotFound, SourceRefused
from context_push.sources import MAX_SOURCES, Sources


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    """Sources of a user whose home is empty but for a working directory elsewhere."""
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    return Sources(home=tmp_path / "home", working_dir=tmp_path / "work")


def test_added_sources_come_first_and_the_working_directory_last(sources: Sources, tmp_path: Path) -> None:
    """Spec 5.2: order is priority."""
    home = tmp_path / "home"
    for path in ("~/b", f"{home}/a/../a/", "~/b"):
        sources.add(path)

    assert sources.roots() == (
        f"{home}/b",
        f"{home}/a",
        f"{home}/.coder",
        f"{home}/.coder/skills",
        f"{home}/.claude/plugins/cache",
        f"{tmp_path}/work",
    )


def test_seeds_are_trusted_and_kept_once(tmp_path: Path) -> None:
    """Spec 5.5: whoever sets the daemon's environment may name any place."""
    sources = Sources(home=tmp_path, working_dir=tmp_path, seeds=["/etc/agents/", "/etc/agents"])

    assert sources.added == ("/etc/agents",)


@pytest.mark.parametrize("path", ["relative", "", "~root/x", "/x\0y", "/" + "x" * 1024, "/\udcff"])
def test_paths_that_make_no_sense_are_refused(sources: Sources, path: str) -> None:
    """Spec 5.5: absolute or ~/."""
    with pytest.raises(SourceRefused):
        sources.add(path)


@pytest.mark.parametrize("path", ["/etc", "~/../other", "~/link/x", "/"])
def test_places_of_others_are_refused(sources: Sources, tmp_path: Path, path: str) -> None:
    """Spec 5.5: what counts is where the path resolves to."""
    (tmp_path / "home" / "link").symlink_to("/etc")

    with pytest.raises(SourceRefused):
        sources.add(path)
    assert sources.added == ()


def test_a_link_into_an_allowed_place_is_allowed(sources: Sources, tmp_path: Path) -> None:
    """Spec 5.5: identity is the lexical path all the same."""
    (tmp_path / "home" / "link").symlink_to(tmp_path / "work")

    assert sources.add("~/link") == f"{tmp_path}/home/link"


def test_sources_are_found_and_removed_by_identity(sources: Sources, tmp_path: Path) -> None:
    """Spec 5.5: 404 for what was not added."""
    sources.add("~/a")
    assert sources.get(f"{tmp_path}/home/./a") == f"{tmp_path}/home/a"
    sources.remove("~/a/")

    for ask in (sources.get, sources.remove):
        with pytest.raises(SourceNotFound):
            ask("~/a")


def test_sources_are_bounded(sources: Sources) -> None:
    """Ours."""
    for number in range(MAX_SOURCES):
        sources.add(f"~/{number}")

    with pytest.raises(SourceRefused):
        sources.add("~/more")
