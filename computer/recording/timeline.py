"""
Which parts of a recording are still, and when things happen once those are sped up.

Pure: numbers in, numbers out; seconds since the recording's start.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Span", "Timeline", "idle_spans", "merge_spans"]

# Seconds. Shorter stills are no stills, shorter gaps between two are none.
EPSILON_S = 0.02


@dataclass(frozen=True, slots=True)
class Span:
    """From *start_s* to *end_s*."""

    start_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        """How long it is."""
        return self.end_s - self.start_s


def merge_spans(spans: Iterable[tuple[float, float | None]], length_s: float) -> tuple[Span, ...]:
    """
    Join what overlaps or nearly touches; a span without an end lasts to *length_s*.

    Source: the desktop command line's own idle detection.
    """
    closed = sorted((start, length_s if end is None else min(end, length_s)) for start, end in spans)
    merged: list[Span] = []
    for start, end in closed:
        if end - start <= EPSILON_S:
            continue
        if merged and start - merged[-1].end_s <= EPSILON_S:
            merged[-1] = Span(merged[-1].start_s, max(merged[-1].end_s, end))
        else:
            merged.append(Span(start, end))
    return tuple(merged)


def idle_spans(changes_s: Sequence[float], length_s: float, least_s: float) -> tuple[Span, ...]:
    """
    Spans in which nothing has changed for *least_s* already; *changes_s* ascend.

    So what changed can be seen for that long, before time runs faster.
    """
    moments = [0.0, *changes_s, length_s]
    return merge_spans([(start + least_s, end) for start, end in pairwise(moments)], length_s)


class Timeline:
    """
    Time as it was, to time as it is shown.

    Args:
        spans: ascending and apart from each other; played *speedup* times as fast.
        speedup: 1 changes nothing.
    """

    def __init__(self, spans: Sequence[Span], speedup: float) -> None:
        self._speedup = speedup
        self._starts = [span.start_s for span in spans]
        self._spans = tuple(spans)
        self._saved = [0.0]
        for span in spans:
            self._saved.append(self._saved[-1] + span.length_s * (1 - 1 / speedup))

    def shown_at(self, moment_s: float) -> float:
        """When *moment_s* is shown; never decreases."""
        index = bisect_right(self._starts, moment_s)
        if index == 0:
            return moment_s
        span = self._spans[index - 1]
        if moment_s >= span.end_s:
            return moment_s - self._saved[index]
        inside = moment_s - span.start_s
        return span.start_s - self._saved[index - 1] + inside / self._speedup
