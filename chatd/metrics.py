"""
What the control plane tells Prometheus: counters and histograms by model, gauges of its streams.

Each control plane has a registry of its own, so that several in one process don't mix.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

__all__ = ["Bounded", "CompactionResult", "Metrics", "ModelLabels", "StreamGauges"]

CompactionResult = Literal["success", "timeout", "error"]

PREFIX = "chatd_"
MODEL = ("provider", "model")
TOOL = (*MODEL, "tool_name")
MESSAGES = tuple(2**n for n in range(11))
PROMPT_BYTES = tuple(1024 * 4**n for n in range(10))
RESULT_BYTES = tuple(64 * 4**n for n in range(9))
FIRST_TOKEN_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
# The label of a call that names no tool.
UNKNOWN = "unknown"


class ModelLabels(NamedTuple):
    """Which model a sample is of."""

    provider: str
    model: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamGauges:
    """The live streams at one moment. *dropped* counts all fragments that found no room, ever."""

    active: int = 0
    longest: int = 0
    events: int = 0
    subscribers: int = 0
    dropped: int = 0


class Bounded(Protocol):
    """What a server has open, and what it refused, by what for."""

    @property
    def connections(self) -> int:
        """Open connections."""

    requests: int
    streams: int
    refused: dict[str, int]


class Metrics:
    """One control plane's samples; methods are named by what happened."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        # Of the whole process: memory, CPU, open files and when it started.
        ProcessCollector(registry=self.registry)
        self._chats = self._gauge("chats", "Chats being processed.", ("state",))
        self._steps = self._counter("steps", "Model calls begun as a step of a turn.", MODEL)
        self._messages = self._histogram("message_count", "Messages of a prompt.", MODEL, MESSAGES)
        self._prompt = self._histogram(
            "prompt_size_bytes", "Bytes of a prompt's content.", MODEL, PROMPT_BYTES
        )
        self._results = self._histogram(
            "tool_result_size_bytes", "Bytes of a tool's result, before it is cut.", TOOL, RESULT_BYTES
        )
        self._errors = self._counter("tool_errors", "Tool results that are errors.", TOOL)
        self._truncated = self._counter("tool_result_truncated", "Tool results that were cut.", TOOL)
        self._left_out = self._counter(
            "tools_left_out", "Tools that found no room in a model's request.", MODEL
        )
        self._first = self._histogram(
            "ttft_seconds", "Seconds from a model call to its first part.", MODEL, FIRST_TOKEN_S
        )
        self._compactions = self._counter("compaction", "Histories summarised.", (*MODEL, "result"))
        self._failovers = self._counter(
            "failovers", "Turns that went on with their model's fallback.", (*MODEL, "kind")
        )
        self._retries = self._counter("stream_retries", "Model calls tried again.", (*MODEL, "kind"))

    # -- what happened -----------------------------------------------------------

    @contextmanager
    def chat(self) -> Iterator[None]:
        """A runner drives a chat."""
        with self._chats.labels("waiting").track_inprogress():
            yield

    @contextmanager
    def streaming(self) -> Iterator[None]:
        """A chat that is driven waits for its model."""
        waiting = self._chats.labels("waiting")
        waiting.dec()
        try:
            with self._chats.labels("streaming").track_inprogress():
                yield
        finally:
            waiting.inc()

    def step_begun(self, of: ModelLabels, *, messages: int, size_bytes: int) -> None:
        """A model is called with a prompt."""
        self._steps.labels(*of).inc()
        self._messages.labels(*of).observe(messages)
        self._prompt.labels(*of).observe(size_bytes)

    def first_part(self, of: ModelLabels, seconds: float) -> None:
        """The first part of a model's answer came."""
        self._first.labels(*of).observe(seconds)

    def retried(self, of: ModelLabels, kind: str) -> None:
        """A model call failed and will be tried again."""
        self._retries.labels(*of, kind).inc()

    def failed_over(self, of: ModelLabels, kind: str) -> None:
        """A model failed, and another goes on in its place."""
        self._failovers.labels(*of, kind).inc()

    def compacted(self, of: ModelLabels, result: CompactionResult) -> None:
        """A history was to be summarised."""
        self._compactions.labels(*of, result).inc()

    def tool_answered(
        self, of: ModelLabels, tool: str, *, size_bytes: int, is_error: bool, is_truncated: bool
    ) -> None:
        """A tool gave its result; *size_bytes* before it was cut."""
        labels = (*of, tool or UNKNOWN)
        self._results.labels(*labels).observe(size_bytes)
        if is_error:
            self._errors.labels(*labels).inc()
        if is_truncated:
            self._truncated.labels(*labels).inc()

    def left_out(self, of: ModelLabels, count: int) -> None:
        """A chat has more tools than a request takes."""
        self._left_out.labels(*of).inc(count)

    # -- what is asked -----------------------------------------------------------

    def watch_streams(self, look: Callable[[], StreamGauges]) -> None:
        """Ask *look* whenever somebody scrapes."""
        self.registry.register(_Streams(look))

    def watch_bounds(self, bounds: Bounded) -> None:
        """Ask *bounds* whenever somebody scrapes."""
        self.registry.register(_Bounds(bounds))

    def render(self) -> bytes:
        """Everything in the text format of Prometheus."""
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, labels: tuple[str, ...]) -> Counter:
        return Counter(PREFIX + name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, labels: tuple[str, ...]) -> Gauge:
        return Gauge(PREFIX + name, text, labels, registry=self.registry)

    def _histogram(
        self, name: str, text: str, labels: tuple[str, ...], buckets: tuple[float, ...]
    ) -> Histogram:
        return Histogram(PREFIX + name, text, labels, buckets=buckets, registry=self.registry)


class _Streams(Collector):
    def __init__(self, look: Callable[[], StreamGauges]) -> None:
        self._look = look

    def collect(self) -> Iterator[Metric]:
        """The gauges of one look."""
        now = self._look()
        yield _gauge("streams_active", "Chats with fragments of a step.", now.active)
        yield _gauge("stream_buffer_size_max", "Fragments of the longest step.", now.longest)
        yield _gauge("stream_buffer_events", "Fragments of all steps.", now.events)
        yield _gauge("stream_subscribers", "Watchers of chats.", now.subscribers)
        yield CounterMetricFamily(
            PREFIX + "stream_buffer_dropped", "Fragments that found no room.", value=now.dropped
        )


class _Bounds(Collector):
    def __init__(self, bounds: Bounded) -> None:
        self._bounds = bounds

    def collect(self) -> Iterator[Metric]:
        """The counts of one look."""
        yield _gauge("http_connections", "Open connections.", self._bounds.connections)
        yield _gauge(
            "http_requests_active", "Requests under way that end by themselves.", self._bounds.requests
        )
        yield _gauge("http_streams", "Open streams.", self._bounds.streams)
        refused = CounterMetricFamily(
            PREFIX + "http_refused", "Refused for want of room or time.", labels=("what",)
        )
        for what, count in self._bounds.refused.items():
            refused.add_metric((what,), count)
        yield refused


def _gauge(name: str, text: str, value: int) -> GaugeMetricFamily:
    return GaugeMetricFamily(PREFIX + name, text, value=value)
