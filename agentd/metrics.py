"""
The daemon's figures for Prometheus, counted by those who own them and read when they are asked for.

Viewers are labelled by number, desktop and role: series end with their viewer, and there are at most as
many as viewers may be.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from agentd.desktops import Desktops
from agentd.viewers import Viewers
from agentd.wire.control import ViewerFigures

__all__ = ["Metrics"]

LABELS = ("desktop", "viewer", "may")
# Name, what it says, and the figure of one viewer.
COUNTERS = (
    ("agentd_viewer_sent_bytes", "Bytes sent to the viewer.", "sent_bytes"),
    ("agentd_viewer_received_bytes", "Bytes that the viewer sent.", "received_bytes"),
    ("agentd_viewer_frames", "Updates that the viewer has taken in.", "frames"),
)


class Metrics(Collector):
    """Reads what *viewers* and *desktops* count, and what *health* says of the daemon's parts."""

    def __init__(
        self, viewers: Viewers, desktops: Desktops, *, health: Callable[[], Mapping[str, str]] = dict
    ) -> None:
        self._viewers = viewers
        self._desktops = desktops
        self._health = health
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(self)

    def render(self) -> bytes:
        """Everything, in Prometheus' text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Called by the registry for each scrape."""
        figures = self._viewers.figures()
        for name, text, field in COUNTERS:
            counter = CounterMetricFamily(name, text, labels=LABELS)
            for row in figures:
                if (figure := getattr(row, field)) is not None:
                    counter.add_metric(_labels(row), figure)
            yield counter
        yield _lag(figures)
        yield _dropped(figures)
        yield self._states()
        yield self._parts()

    def _states(self) -> Metric:
        gauge = GaugeMetricFamily("agentd_desktop_running", "Whether the desktop runs.", labels=("desktop",))
        for name in self._desktops.names():
            gauge.add_metric((name,), self._desktops.status(name).state == "running")
        return gauge

    def _parts(self) -> Metric:
        gauge = GaugeMetricFamily("agentd_part", "How a part of the daemon is.", labels=("part", "state"))
        for part, word in self._health().items():
            gauge.add_metric((part, word), 1)
        return gauge


def _lag(figures: Iterable[ViewerFigures]) -> Metric:
    text = "Seconds for which the viewer has not taken what waits for it."
    gauge = GaugeMetricFamily("agentd_viewer_lag_seconds", text, labels=LABELS)
    for row in figures:
        gauge.add_metric(_labels(row), row.lag_ms / 1000)
    return gauge


def _dropped(figures: Iterable[ViewerFigures]) -> Metric:
    text = "Messages of the viewer's that were not passed on, by what they were."
    counter = CounterMetricFamily("agentd_viewer_dropped", text, labels=(*LABELS, "what"))
    for row in figures:
        for what, count in row.dropped.items():
            counter.add_metric((*_labels(row), what), count)
    return counter


def _labels(row: ViewerFigures) -> tuple[str, str, str]:
    return (row.desktop, str(row.id), row.may)
