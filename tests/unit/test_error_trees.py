"""Each package's error tree is the one that its module docstring draws."""

import inspect
import re
from types import ModuleType

import pytest

import agentd.errors
import chatd.errors
import computer.errors
import mcp_bridge.errors

TREES = [
    (agentd.errors, agentd.errors.AgentError),
    (computer.errors, computer.errors.ComputerError),
    (chatd.errors, chatd.errors.ChatdError),
    (mcp_bridge.errors, mcp_bridge.errors.BridgeError),
]


def _drawn(module: ModuleType) -> set[tuple[str, str]]:
    """Parent and child of each line that names an error; a remark may follow after two spaces."""
    rows = re.findall(r"^( *)([A-Z]\w+)(?: {2,}.*)?$", inspect.getdoc(module) or "", re.MULTILINE)
    above: list[tuple[int, str]] = []
    edges = set()
    for indent, name in rows:
        above = [(depth, parent) for depth, parent in above if depth < len(indent)]
        edges.add((above[-1][1] if above else "", name))
        above.append((len(indent), name))
    return edges


def _made(kind: type[BaseException], module: ModuleType, parent: str = "") -> set[tuple[str, str]]:
    """The same from the classes; subclasses in other modules are those modules' business."""
    edges = {(parent, kind.__name__)}
    for child in kind.__subclasses__():
        if child.__module__ == module.__name__:
            edges |= _made(child, module, kind.__name__)
    return edges


@pytest.mark.parametrize(("module", "base"), TREES, ids=[module.__name__ for module, _ in TREES])
def test_docstring_draws_the_tree_that_the_classes_make(
    module: ModuleType, base: type[BaseException]
) -> None:
    """Style: whoever reads the picture reads the truth."""
    assert _drawn(module) == _made(base, module)


@pytest.mark.parametrize(("module", "base"), TREES, ids=[module.__name__ for module, _ in TREES])
def test_every_error_is_exported_with_a_code_of_its_own(
    module: ModuleType, base: type[BaseException]
) -> None:
    """Style: programs tell errors apart by their code."""
    names = [name for _, name in _made(base, module)]

    assert sorted(names) == sorted(module.__all__)
    assert len({getattr(module, name).code for name in names}) == len(names)
