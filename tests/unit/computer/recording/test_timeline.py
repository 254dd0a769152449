"""What is still in a recording, and when things are shown."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from computer.recording.timeline import Span, Timeline, idle_spans, merge_spans


@pytest.mark.parametrize(
    ("spans", "merged"),
    [
        ([(1.0, 3.0), (2.5, 5.0)], (Span(1.0, 5.0),)),
        ([(7.0, None)], (Span(7.0, 10.0),)),
        ([(1.0, 2.0), (2.01, 3.0)], (Span(1.0, 3.0),)),
        ([(1.0, 1.01)], ()),
        ([(4.0, 6.0), (1.0, 2.0)], (Span(1.0, 2.0), Span(4.0, 6.0))),
        ([(9.0, 30.0)], (Span(9.0, 10.0),)),
        ([], ()),
    ],
    ids=["overlap (37)", "no end (38)", "gap too short", "span too short", "order", "beyond the end", "none"],
)
def test_stills_are_joined(spans: list[tuple[float, float | None]], merged: tuple[Span, ...]) -> None:
    """Spec: rows 37 and 38, and 0.02 s as the least that counts."""
    assert merged == merge_spans(spans, 10.0)


def test_still_begins_once_what_changed_could_be_seen() -> None:
    """Ours: otherwise a change is shown for a twentieth of a moment."""
    assert idle_spans([2.0, 2.2], 5.0, 0.5) == (Span(0.5, 2.0), Span(2.7, 5.0))


def test_time_runs_faster_inside_stills_only() -> None:
    """Ours: what moves is shown as it moved."""
    timeline = Timeline([Span(1.0, 3.0), Span(4.0, 6.0)], 20)
    shown = [round(timeline.shown_at(moment), 3) for moment in (0.5, 1.0, 2.0, 3.0, 3.5, 4.0, 6.0, 7.0)]

    assert shown == [0.5, 1.0, 1.05, 1.1, 1.6, 2.1, 2.2, 3.2]


moments = st.lists(st.floats(0, 100, allow_nan=False), max_size=20).map(sorted)


@given(changes=moments, asked=moments, speedup=st.floats(1, 50))
def test_time_never_goes_back_nor_slower(changes: list[float], asked: list[float], speedup: float) -> None:
    """Ours: frames keep their order, and nothing takes longer than it did."""
    timeline = Timeline(idle_spans(changes, 100.0, 0.35), speedup)

    for before, after in pairwise(asked):
        passed = timeline.shown_at(after) - timeline.shown_at(before)
        assert -1e-6 <= passed <= after - before + 1e-6
