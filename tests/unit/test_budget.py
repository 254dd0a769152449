"""
The size budget, measured: raising a limit is a reviewed diff here.

Modules that hold only data are exempt from the module limit. Lines of a body are
physical lines less the docstring.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("agentd", "chatd", "computer", "mcp_bridge", "context_push")
MODULE_LINES = 600
BODY_LINES = 50
COMPLEXITY = 10
PARAMETERS = 7
CLASS_LINES = 450
TEST_BODY_LINES = 50

Function = ast.FunctionDef | ast.AsyncFunctionDef
BRANCHES = (
    ast.If, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.IfExp, ast.comprehension, ast.match_case,
)  # fmt: skip


def _modules(*roots: str) -> Iterator[Path]:
    for root in roots:
        yield from sorted(
            path for path in (ROOT / root).rglob("*.py") if "migrations/versions" not in str(path)
        )


def _functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def _body_lines(node: Function) -> int:
    body = node.body[1:] if ast.get_docstring(node) is not None and len(node.body) > 1 else node.body
    return (node.end_lineno or 0) - body[0].lineno + 1


def _own_nodes(function: Function) -> Iterator[ast.AST]:
    """Nodes of a function, without those of functions inside it: they are measured by themselves."""
    pending: list[ast.AST] = list(ast.iter_child_nodes(function))
    while pending:
        node = pending.pop()
        if isinstance(node, Function):
            continue
        yield node
        pending.extend(ast.iter_child_nodes(node))


def _complexity(function: Function) -> int:
    """Branches and one, as the style counts them."""
    return 1 + sum(isinstance(node, BRANCHES) for node in _own_nodes(function))


def _parameters(function: Function) -> int:
    args = function.args
    names = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return len([name for name in names if name not in {"self", "cls"}])


def _offenders(path: Path) -> Iterator[str]:
    text = path.read_text()
    tree = ast.parse(text)
    where = path.relative_to(ROOT)
    if text.count("\n") > MODULE_LINES:
        yield f"{where}: {text.count(chr(10))} lines"
    for function in _functions(tree):
        at = f"{where}:{function.lineno} {function.name}"
        if _body_lines(function) > BODY_LINES:
            yield f"{at}: body of {_body_lines(function)} lines"
        if _complexity(function) > COMPLEXITY:
            yield f"{at}: complexity {_complexity(function)}"
        if _parameters(function) > PARAMETERS:
            yield f"{at}: {_parameters(function)} parameters"
    for node in ast.walk(tree):
        lines = (getattr(node, "end_lineno", 0) or 0) - getattr(node, "lineno", 0) + 1
        if isinstance(node, ast.ClassDef) and lines > CLASS_LINES:
            yield f"{where}:{node.lineno} class {node.name}: {lines} lines"


@pytest.mark.parametrize("package", PACKAGES)
def test_code_stays_within_the_budget(package: str) -> None:
    """No module, body, branch count, parameter list or class is larger than the style allows."""
    offenders = [line for path in _modules(package) for line in _offenders(path)]

    assert not offenders, "\n".join(offenders)


def test_test_functions_fit_on_a_screen() -> None:
    """A test is at most 50 lines, unless its docstring lists its steps."""
    offenders = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}: {_body_lines(function)} lines"
        for path in _modules("tests")
        for function in _functions(ast.parse(path.read_text()))
        if function.name.startswith("test_")
        and _body_lines(function) > TEST_BODY_LINES
        and "Steps:" not in (ast.get_docstring(function) or "")
    ]

    assert not offenders, "\n".join(offenders)


def _undocumented(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    for node in (tree, *tree.body):
        name = getattr(node, "name", "module")
        is_public = isinstance(node, ast.Module | ast.ClassDef | Function) and not name.startswith("_")
        if is_public and ast.get_docstring(node) is None:
            yield f"{path.relative_to(ROOT)}: {name}"


def test_public_names_are_documented() -> None:
    """Every module and every public function or class of the packages has a docstring."""
    modules = [path for path in _modules(*PACKAGES) if "migrations" not in path.parts]
    undocumented = [line for path in modules for line in _undocumented(path)]

    assert not undocumented, "\n".join(undocumented)
