"""Each of the bugs of others that chats must not repeat has its test, and only one."""

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
BUGS = 21


def marked() -> Iterator[tuple[int, str]]:
    """Number and name of each test that is marked with one."""
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.past_bug":
                    yield ast.literal_eval(mark.args[0]), node.name


def test_every_past_bug_has_one_test() -> None:
    """Issue: 21 bugs, 21 named tests."""
    found = sorted(marked())

    assert [number for number, _ in found] == list(range(1, BUGS + 1)), found
