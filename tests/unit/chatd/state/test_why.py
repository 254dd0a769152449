"""What a chat's row, lease and calls say about its being stuck."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from chatd.state.why import BusyChild, Facts, Why, explain
from chatd.wire import ToolCallPart

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LEASE = timedelta(minutes=5)
BEAT, DEAD = NOW - timedelta(minutes=1), NOW - timedelta(minutes=6)
LATER = NOW + timedelta(seconds=30)
OWNED = {"worker_id": UUID(int=1), "runner_id": UUID(int=2)}
BUSY = {"status": "running", **OWNED}
RETRY = {"error": "overloaded", "attempt": 3, "retrying_at": LATER.isoformat()}
CHILD = BusyChild(chat_id=UUID(int=9), title="look", status="running")


def call(name: str) -> ToolCallPart:
    """An open call named after its tool."""
    return ToolCallPart(tool_call_id=f"{name}-1", tool_name=name)


def why(row: dict[str, Any], **facts: Any) -> Why:
    """The answer for a chat whose row has these columns."""
    values = {
        "id": UUID(int=5),
        "status": "waiting",
        "archived": False,
        "worker_id": None,
        "runner_id": None,
        "last_error": None,
        "retry_state": None,
        "generation_attempt": 0,
        "requires_action_deadline_at": None,
        "updated_at": DEAD,
    }
    given: dict[str, Any] = {
        "queued": 0,
        "last_at": BEAT,
        "heartbeat_at": BEAT,
        "open_calls": (),
        "handed_over": {},
        "children": (),
    }
    return explain(Facts(row=values | row, **(given | facts)), now=NOW, lease=LEASE)


CASES: list[tuple[str, dict[str, Any], dict[str, Any], str, datetime, datetime | None]] = [
    ("idle", {}, {}, "nothing", DEAD, None),
    ("archived", {"archived": True}, {}, "nothing", DEAD, None),
    ("invalid", {}, {"queued": 2}, "repair", DEAD, None),
    ("unknown status", {"status": "paused"}, {}, "repair", DEAD, None),
    ("failed", {"status": "error", "last_error": {"message": "no"}}, {}, "user", DEAD, None),
    (
        "the client's turn",
        {"status": "requires_action", "requires_action_deadline_at": LATER},
        {"open_calls": (call("ask"),)},
        "client",
        DEAD,
        LATER,
    ),
    ("nobody took it", {"status": "running"}, {}, "worker", DEAD, None),
    ("its runner died", BUSY, {"heartbeat_at": DEAD}, "takeover", DEAD, None),
    ("its runner never lived", BUSY, {"heartbeat_at": None}, "takeover", DEAD, None),
    ("being stopped", BUSY | {"status": "interrupting"}, {}, "stop", BEAT, BEAT + LEASE),
    (
        "a tool",
        BUSY,
        {"open_calls": (call("execute"),), "handed_over": {"execute-1": NOW}},
        "tools",
        NOW,
        None,
    ),
    ("a tool not handed over", BUSY, {"open_calls": (call("execute"),)}, "tools", BEAT, None),
    ("a child", BUSY, {"open_calls": (call("wait_agent"),), "children": (CHILD,)}, "children", BEAT, None),
    ("the vendor's pause", BUSY | {"retry_state": RETRY}, {}, "retry", BEAT, LATER),
    ("the model", BUSY | {"generation_attempt": 1}, {}, "model", BEAT, None),
    ("before the model", BUSY, {}, "model", BEAT, None),
]


@pytest.mark.parametrize(
    ("row", "facts", "waits_for", "since", "deadline"),
    [case[1:] for case in CASES],
    ids=[case[0] for case in CASES],
)
def test_every_wait_has_a_name_a_beginning_and_somebody_who_can_help(
    row: dict[str, Any], facts: dict[str, Any], *, waits_for: str, since: datetime, deadline: datetime | None
) -> None:
    """Issue: waiting on what, since when, next deadline, who can unblock it."""
    found = why(row, **facts)

    assert (found.waits_for, found.since, found.deadline_at) == (waits_for, since, deadline)
    assert found.summary
    assert found.advice
    assert found.unblocked_by
    assert (found.lease is None) == (row.get("worker_id") is None)


def test_the_lease_tells_when_another_may_take_over() -> None:
    """Issue: whose lease."""
    found = why(BUSY)

    assert found.lease is not None
    assert (found.lease.runner_id, found.lease.expires_at) == (UUID(int=2), BEAT + LEASE)
