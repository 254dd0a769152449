"""The capacity model: Erlang's formula, and that the document says what the model computes."""

import json
from pathlib import Path

import pytest

from tests.bench.scale import capacity

DOCUMENT = Path(__file__).parents[2] / "docs" / "concepts" / "scale.md"


@pytest.mark.parametrize(
    ("servers", "offered", "probability"),
    # One server: the load itself; others from published tables of Erlang C.
    [
        (1, 0.0, 0.0),
        (1, 0.6, 0.6),
        (2, 1.0, 1 / 3),
        (5, 4.0, 0.554),
        (10, 8.0, 0.409),
        (3, 3.0, 1.0),
        (3, 9.0, 1.0),
    ],
)
def test_waiting_is_as_erlang_says(servers: int, offered: float, probability: float) -> None:
    """Ours: a replica is one server, so its load is the probability to wait."""
    assert capacity.waiting_probability(servers, offered) == pytest.approx(probability, abs=0.001)


def test_the_document_has_the_tables_of_the_model() -> None:
    """Ours: no number is written that was not measured, or computed from what was."""
    costs = json.loads(capacity.CONSTANTS.read_text())

    assert capacity.render(costs) in DOCUMENT.read_text()


def test_more_chats_want_no_less_of_anything() -> None:
    """Ours: the demand rises with the size."""
    costs = json.loads(capacity.CONSTANTS.read_text())
    found = [capacity.walls(capacity.demand(*size, costs)) for size in capacity.SIZES]

    for name in found[0]:
        values = [walls[name] for walls in found]
        assert values == sorted(values)
