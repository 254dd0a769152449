"""What Prometheus is told, and that the dashboard and the document speak of nothing else."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from chatd.metrics import Metrics, ModelLabels, StreamGauges

DOCS = Path(__file__).parents[3] / "docs"
MODEL = ("provider", "model")
TOOL = (*MODEL, "tool_name")
# Spec 9, with our prefix.
EXPECTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "chats": ("gauge", ("state",)),
    "steps": ("counter", MODEL),
    "message_count": ("histogram", MODEL),
    "prompt_size_bytes": ("histogram", MODEL),
    "tool_result_size_bytes": ("histogram", TOOL),
    "tool_errors": ("counter", TOOL),
    "tool_result_truncated": ("counter", TOOL),
    "tools_left_out": ("counter", MODEL),
    "ttft_seconds": ("histogram", MODEL),
    "compaction": ("counter", (*MODEL, "result")),
    "stream_retries": ("counter", (*MODEL, "kind")),
    "stream_buffer_dropped": ("counter", ()),
    "failovers": ("counter", ("provider", "model", "kind")),
    "streams_active": ("gauge", ()),
    "stream_buffer_size_max": ("gauge", ()),
    "stream_buffer_events": ("gauge", ()),
    "stream_subscribers": ("gauge", ()),
    # Ours.
    "http_connections": ("gauge", ()),
    "http_requests_active": ("gauge", ()),
    "http_streams": ("gauge", ()),
    "http_refused": ("counter", ("what",)),
}
BUCKETS: dict[str, list[float]] = {
    "message_count": [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
    "prompt_size_bytes": [1024 * 4**n for n in range(10)],
    "tool_result_size_bytes": [64 * 4**n for n in range(9)],
    "ttft_seconds": [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
}


@dataclass
class Open:
    """What a server has open."""

    connections: int = 1
    requests: int = 1
    streams: int = 1
    refused: dict[str, int] = field(default_factory=lambda: {"slow": 1})


@pytest.fixture
def used() -> Metrics:
    """One sample of each."""
    metrics, of = Metrics(), ModelLabels("anthropic", "m")
    metrics.watch_streams(lambda: StreamGauges(active=1, longest=2, events=3, subscribers=4, dropped=5))
    metrics.step_begun(of, messages=3, size_bytes=5_000)
    metrics.first_part(of, 0.2)
    metrics.left_out(of, 2)
    metrics.retried(of, "overloaded")
    metrics.failed_over(of, "auth")
    metrics.compacted(of, "success")
    metrics.tool_answered(of, "", size_bytes=70, is_error=True, is_truncated=True)
    metrics.watch_bounds(Open())
    with metrics.chat(), metrics.streaming():
        pass
    return metrics


def test_names_types_and_labels_are_those_of_the_specification(used: Metrics) -> None:
    """Spec 9: each family once, ``chatd_`` in front."""
    found = {
        family.name.removeprefix("chatd_"): (
            family.type,
            tuple(name for name in family.samples[0].labels if name != "le"),
        )
        for family in used.registry.collect()
        if not family.name.startswith("process_")
    }

    assert found == EXPECTED


@pytest.mark.parametrize("name", list(BUCKETS))
def test_buckets_are_those_of_the_specification(used: Metrics, name: str) -> None:
    """Spec 9."""
    (family,) = [f for f in used.registry.collect() if f.name == f"chatd_{name}"]
    edges = [s.labels["le"] for s in family.samples if s.name.endswith("_bucket")]

    assert [float(edge) for edge in edges if edge != "+Inf"] == BUCKETS[name]


def test_a_chat_is_streaming_or_waiting(used: Metrics) -> None:
    """Spec 9: what is processed, by what it does; a call that names no tool is unknown."""
    with used.chat():
        assert _chats(used) == {"waiting": 1, "streaming": 0}
        with used.streaming():
            assert _chats(used) == {"waiting": 0, "streaming": 1}
        assert _chats(used) == {"waiting": 1, "streaming": 0}
    assert b'tool_name="unknown"' in used.render()
    assert _chats(used) == {"waiting": 0, "streaming": 0}


def _chats(metrics: Metrics) -> dict[str, float]:
    (family,) = [f for f in metrics.registry.collect() if f.name == "chatd_chats"]
    return {sample.labels["state"]: sample.value for sample in family.samples}


@pytest.mark.parametrize("path", ["grafana/chatd.json", "metrics.md"])
def test_dashboard_and_document_name_all_metrics_and_no_other(used: Metrics, path: str) -> None:
    """Ours: a renamed metric fails here, not on a wall."""
    text = (DOCS / path).read_text()
    told = {re.sub(r"_(bucket|total)$", "", name) for name in re.findall(r"chatd_[a-z_]+", text)}

    names = {family.name for family in used.registry.collect()}
    assert told == {name for name in names if not name.startswith("process_")}


def test_the_dashboard_is_one_that_grafana_imports() -> None:
    """Ours: panels with their own ids that don't overlap."""
    dashboard = json.loads((DOCS / "grafana/chatd.json").read_text())
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]

    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    assert len(set(places)) == len(places)
