"""The error tree."""

import inspect

from computer import errors


def _walk(kind: type[Exception], depth: int) -> list[str]:
    lines = ["    " * depth + kind.__name__]
    for child in kind.__subclasses__():
        lines += _walk(child, depth + 1)
    return lines


def test_docstring_draws_the_tree_that_the_classes_make() -> None:
    """Ours: whoever reads the picture reads the truth."""
    drawn = [
        line.split("  our")[0].split("  the other")[0].split("  may")[0].rstrip()
        for line in (inspect.getdoc(errors) or "").splitlines()
        if line.startswith("    ")
    ]

    assert [line[4:] for line in drawn] == _walk(errors.ComputerError, 0)


def test_every_error_has_a_code_of_its_own() -> None:
    """Ours: programs tell errors apart by code."""
    kinds = [getattr(errors, name) for name in errors.__all__]

    assert len({kind.code for kind in kinds}) == len(kinds)


def test_start_failure_shows_the_end_of_the_log() -> None:
    """Ours: the reason of a failed start is in its sentence."""
    error = errors.StartFailed("Xvnc ended", log_tail="fatal: no fonts")

    assert str(error) == "Xvnc ended\nfatal: no fonts"
    assert error.log_tail == "fatal: no fonts"
