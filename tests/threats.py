"""The tests that SECURITY.md names: they are marked as attacks, wherever they are."""

import re
from functools import cache
from pathlib import Path

__all__ = ["ROOT", "named_tests"]

ROOT = Path(__file__).parents[1]


@cache
def named_tests() -> frozenset[str]:
    """Names of test functions."""
    return frozenset(re.findall(r"`(test_\w+)`", (ROOT / "SECURITY.md").read_text()))
