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


def test_desktops_and_chats_at_rest_are_part_of_the_demand() -> None:
    """Issue: viewers of desktops cost by the frame; a chat that nobody uses still takes room."""
    costs = json.loads(capacity.CONSTANTS.read_text())
    without = capacity.demand(10_000, 1_000, costs, capacity.Workload(desktops=0.0))
    shown = capacity.demand(10_000, 1_000, costs, capacity.Workload(desktops=1.0))
    moving = capacity.demand(10_000, 1_000, costs, capacity.Workload(desktops=1.0, frames_per_s=20.0))
    resting = capacity.demand(10_000, 1_000, costs, capacity.Workload(in_use=0.0, turns=0.0))

    # A thousand pages show one; each further frame of a second costs what was measured.
    frames_s = 18 * 1_000 * costs["desktop_elsewhere_frame_cpu_us"] / 1e6
    assert without.chatd_gb < shown.chatd_gb
    assert without.transactions < shown.transactions
    assert moving.chatd_cores - shown.chatd_cores >= frames_s * 0.99
    assert resting.storage_gb == pytest.approx(10_000 * costs["rest_bytes"] / 1e9)
