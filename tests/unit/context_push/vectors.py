"""Test vectors: data files with their source written inside."""

import json
from pathlib import Path
from typing import Any

import pytest

VECTORS = Path(__file__).parents[2] / "vectors"


def load(name: str) -> list[Any]:
    """The vectors of ``tests/vectors/<name>.json``, as parameters that carry their names."""
    rows = json.loads((VECTORS / f"{name}.json").read_text())["vectors"]
    return [pytest.param(row, id=row["name"]) for row in rows]
