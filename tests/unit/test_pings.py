"""Pings come often enough for what cuts silent connections."""

import pytest

from agentd import link, streams
from chatd.agents import endpoint
from chatd.agents.streams import STREAM_SILENCE_S
from chatd.replicas import dialling
from chatd.routes import permission, viewing
from chatd.routes import streams as chat_streams

# Seconds: nginx's `proxy_read_timeout` unless it is set; a revoked viewer must be gone.
PROXY_SILENCE_S = 60
REVOKED_S = 30


@pytest.mark.parametrize(
    "interval_s",
    [
        link.PING_INTERVAL_S, streams.PING_INTERVAL_S, endpoint.HEARTBEAT_S, dialling.HEARTBEAT_S,
        viewing.PING_S, chat_streams.HEARTBEAT_S,
    ],
    ids=["link", "stream", "link from the other side", "replicas", "viewer", "chat"],
)  # fmt: skip
def test_a_lost_ping_is_not_yet_silence(interval_s: float) -> None:
    """Required: connections survive a proxy that cuts after 60 s without a byte; one ping may come late."""
    assert interval_s < PROXY_SILENCE_S / 2


def test_a_stream_is_pinged_before_its_silence_is_its_end() -> None:
    """Ours: the workspace pings, the control plane waits."""
    assert streams.PING_INTERVAL_S < STREAM_SILENCE_S / 2


@pytest.mark.parametrize("recheck_s", [viewing.RECHECK_S, permission.RECHECK_S], ids=["desktop", "chat"])
def test_who_may_not_watch_any_more_is_looked_for_in_time(recheck_s: float) -> None:
    """Required: revoked, closed within 30 s; a look may take as long as the pause before it."""
    assert 2 * recheck_s < REVOKED_S
