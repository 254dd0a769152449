"""What is kept of an oversized result."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.prompt.truncation import budget_bytes, truncate_text, truncate_value

VECTORS = json.loads((Path(__file__).parents[3] / "vectors" / "truncation.json").read_text())


@pytest.mark.parametrize("vector", VECTORS["budgets"])
def test_budget(vector: dict[str, Any]) -> None:
    """Half of the window, never less than 16 KiB."""
    assert budget_bytes(vector["window"]) == vector["bytes"]


@pytest.mark.parametrize("vector", VECTORS["texts"])
def test_text(vector: dict[str, Any]) -> None:
    """Two thirds of head, one third of tail, whole characters, the count in the note."""
    cut = truncate_text(_joined(vector["pieces"]), vector["budget"])

    assert cut.removed_bytes == vector["removed"]
    first, *rest = vector["kept"]
    assert cut.text.startswith(_joined([first]))
    if rest:
        head, note, tail = cut.text.split("\n\n")
        assert (head, tail) == (_joined([first]), _joined(rest))
        assert str(vector["removed"]) in note
        assert "truncated" in note
    else:
        assert cut.text == _joined([first])
    assert vector.get("gone", "\0") not in cut.text


def _joined(pieces: list[list[Any]]) -> str:
    return "".join(text * count for text, count in pieces)


@given(st.text(max_size=3_000), st.integers(-1, 2_000))
def test_never_over_budget_and_nothing_uncounted(text: str, budget: int) -> None:
    """Whatever the text: valid, within the budget, every byte kept or counted."""
    cut = truncate_text(text, budget)

    size = len(cut.text.encode())
    assert budget <= 0 or size <= budget
    assert (cut.removed_bytes == 0) == (cut.text == text)


_json = st.recursive(
    st.none() | st.integers() | st.text(max_size=800),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(_json, st.integers(1, 3_000))
def test_data_keeps_its_shape(value: Any, budget: int) -> None:
    """Only texts get shorter; together they fit, and short ones are left alone."""
    cut, removed = truncate_value(value, budget)

    assert _shape(cut) == _shape(value)
    total = sum(len(text.encode()) for text in _texts(cut))
    assert total <= max(budget, len(_texts(value)))
    assert (removed == 0) == (cut == value)


def _shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_shape(item) for item in value]
    return type(value)


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []


def test_one_long_text_pays_for_the_short_ones() -> None:
    """A command's output is cut, its exit code and note are not."""
    value = {"output": "x" * 100_000, "note": "read it in parts", "exit_code": 0}

    cut, removed = truncate_value(value, 16_384)

    assert (cut["note"], cut["exit_code"]) == ("read it in parts", 0)
    assert len(cut["output"]) <= 16_384
    assert removed > 80_000
