"""SECURITY.md names a test for each threat; they exist, and each runs with ``pytest -m attack``."""

import ast
import re
from collections.abc import Iterator

from tests.threats import ROOT, named_tests

KINDS = set("STRIDE")


def rows() -> Iterator[tuple[str, list[str]]]:
    """Cells of each threat's row, behind the boundary's heading."""
    boundary = ""
    for line in (ROOT / "SECURITY.md").read_text().splitlines():
        if line.startswith("### "):
            boundary = line.removeprefix("### ")
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if boundary and len(cells) == 4 and cells[0] in KINDS:
            yield boundary, cells


def existing() -> set[str]:
    """Every test function there is."""
    return {
        node.name
        for path in (ROOT / "tests").rglob("test_*.py")
        if "node_modules" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def marked() -> set[str]:
    """Tests whose module or function says that it attacks."""
    found: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = "" if "node_modules" in path.parts else path.read_text()
        if "mark.attack" not in text:
            continue
        is_whole = re.search(r"^pytestmark = pytest\.mark\.attack$", text, re.MULTILINE) is not None
        for node in ast.parse(text).body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith(
                "test"
            ):
                continue
            marks = [ast.unparse(mark) for mark in node.decorator_list]
            if is_whole or "pytest.mark.attack" in marks:
                found.add(node.name)
    return found


def test_every_threat_has_a_defence_and_a_test_that_exists() -> None:
    """The issue: the threat model, and how each threat is tested."""
    found, tests = list(rows()), existing()
    untested = [cells[1] for _, cells in found if not re.findall(r"`(test_\w+)`", cells[3])]

    assert len(found) > 50
    assert [cells[1] for _, cells in found if not cells[2]] == []
    assert untested == []
    assert named_tests() - tests == set()


def test_every_boundary_looks_at_most_kinds_of_threat() -> None:
    """STRIDE: for each boundary at least three of the six, all six over all of them."""
    kinds: dict[str, set[str]] = {}
    for boundary, cells in rows():
        kinds.setdefault(boundary, set()).add(cells[0])

    assert len(kinds) == 6
    assert all(len(found) >= 3 for found in kinds.values()), kinds
    assert set().union(*kinds.values()) == KINDS


def test_what_is_marked_is_in_the_threat_model() -> None:
    """Ours: an attack that nobody listed is a threat that nobody wrote down."""
    assert marked() - named_tests() == set()
