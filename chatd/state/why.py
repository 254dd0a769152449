"""
Why a chat does not go on: what it waits for, since when, until when, and who can help.

Pure: ``explain`` reads facts that the store gathered in one transaction.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from chatd.state.matrix import ChatState
from chatd.state.states import RUNNABLE_STATUSES, classify
from chatd.wire import ToolCallPart

__all__ = ["BusyChild", "Facts", "Lease", "OpenCall", "Why", "explain"]

WaitsFor = Literal[
    "nothing", "user", "repair", "client", "worker", "takeover", "stop", "tools", "children", "retry", "model"
]
# Tools whose whole work is to wait for a child.
WAITING_TOOLS = frozenset({"wait_agent"})


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Lease(_Frozen):
    """Who owns the chat; past *expires_at* without another sign of life anybody may take it over."""

    worker_id: UUID
    runner_id: UUID
    heartbeat_at: datetime | None = None
    expires_at: datetime | None = None


class OpenCall(_Frozen):
    """A tool call without an answer; *handed_over_at* when its workspace got it, absent if it did not."""

    tool_call_id: str
    tool_name: str
    handed_over_at: datetime | None = None


class BusyChild(_Frozen):
    """A sub-agent at work."""

    chat_id: UUID
    title: str
    status: str


class Why(_Frozen):
    """
    The answer. *unblocked_by* is who can change it, *advice* how.

    *deadline_at* is when something happens by itself; absent when nothing will.
    """

    chat_id: UUID
    state: ChatState
    waits_for: WaitsFor
    summary: str
    since: datetime
    unblocked_by: str
    advice: str
    deadline_at: datetime | None = None
    lease: Lease | None = None
    calls: tuple[OpenCall, ...] = ()
    children: tuple[BusyChild, ...] = ()
    queued: int = 0
    # Whether the chat's workspace is linked now; absent when there is none, or nobody who knows.
    workspace_connected: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """
    What is stored of a chat. *row*: its columns; *last_at*: its newest message's time.

    *handed_over* has the times of calls by id, *heartbeat_at* the owner's last sign of life.
    """

    row: Mapping[str, Any]
    queued: int
    last_at: datetime
    heartbeat_at: datetime | None
    open_calls: tuple[ToolCallPart, ...]
    handed_over: Mapping[str, datetime]
    children: tuple[BusyChild, ...]


@dataclass(frozen=True, slots=True)
class _Reason:
    waits_for: WaitsFor
    summary: str
    unblocked_by: str
    advice: str
    since: datetime
    deadline_at: datetime | None = None


def explain(facts: Facts, *, now: datetime, lease: timedelta) -> Why:
    """Why the chat of *facts* does not go on at *now*; *lease* is how long a runner may be silent."""
    row = facts.row
    state = classify(row["status"], archived=row["archived"], has_queue=facts.queued > 0)
    reason = _at_rest(facts, state) or _at_work(facts, now=now, lease=lease)
    return Why(
        chat_id=row["id"],
        state=state,
        waits_for=reason.waits_for,
        summary=reason.summary,
        since=reason.since,
        unblocked_by=reason.unblocked_by,
        advice=reason.advice,
        deadline_at=reason.deadline_at,
        lease=_lease(facts, lease),
        calls=tuple(
            OpenCall(
                tool_call_id=call.tool_call_id,
                tool_name=call.tool_name,
                handed_over_at=facts.handed_over.get(call.tool_call_id),
            )
            for call in facts.open_calls
        ),
        children=facts.children,
        queued=facts.queued,
    )


def _lease(facts: Facts, lease: timedelta) -> Lease | None:
    row, beat = facts.row, facts.heartbeat_at
    if row["worker_id"] is None or row["runner_id"] is None:
        return None
    return Lease(
        worker_id=row["worker_id"],
        runner_id=row["runner_id"],
        heartbeat_at=beat,
        expires_at=None if beat is None else beat + lease,
    )


def _at_rest(facts: Facts, state: ChatState) -> _Reason | None:
    """Why nobody works on it, if nobody should."""
    row = facts.row
    since: datetime = row["updated_at"]
    if state is ChatState.INVALID:
        return _Reason("repair", "it is in no valid state", "its owner", "POST …/reconcile-invalid", since)
    if row["archived"]:
        return _Reason("nothing", "it is archived", "its owner", "take it out of the archive", since)
    if row["status"] == "waiting":
        return _Reason("nothing", "its turn is over", "its owner", "send a message", since)
    if row["status"] == "error":
        told = (row["last_error"] or {}).get("message", "an error without a text")
        return _Reason("user", f"its turn failed: {told}", "its owner", "send a message, or edit one", since)
    if row["status"] == "requires_action":
        deadline: datetime = row["requires_action_deadline_at"]
        summary = f"its client is to answer {_names(facts.open_calls)}"
        return _Reason("client", summary, "its client", "POST …/tool-results, or interrupt", since, deadline)
    assert row["status"] in RUNNABLE_STATUSES, row["status"]  # noqa: S101 -- classify knows no other
    return None


def _at_work(facts: Facts, *, now: datetime, lease: timedelta) -> _Reason:
    """What its runner waits for, or why it has none."""
    row, beat = facts.row, facts.heartbeat_at
    if row["worker_id"] is None or row["runner_id"] is None:
        advice = "nothing to do if a chatd runs; else start one"
        return _Reason("worker", "no worker has taken it yet", "a worker", advice, row["updated_at"])
    if beat is None or beat + lease <= now:
        summary = "its runner gave no sign of life for longer than its lease"
        since = row["updated_at"] if beat is None else beat
        return _Reason("takeover", summary, "any worker", "start a chatd if none runs", since)
    if row["status"] == "interrupting":
        advice = "wait for what was received to be kept"
        return _Reason("stop", "it is being stopped", "its runner", advice, facts.last_at, beat + lease)
    if facts.open_calls:
        return _in_tools(facts)
    retry = row["retry_state"]
    if retry is not None:
        told = f"{retry['error']} (attempt {retry['attempt']})"
        deadline = datetime.fromisoformat(retry["retrying_at"])
        return _Reason("retry", told, "the model's vendor", "interrupt, or wait", facts.last_at, deadline)
    attempt = row["generation_attempt"]
    summary = f"the model answers (attempt {attempt})" if attempt else "the next model call is being prepared"
    return _Reason("model", summary, "the model's vendor", "interrupt to stop waiting", facts.last_at)


def _in_tools(facts: Facts) -> _Reason:
    names = _names(facts.open_calls)
    times = [facts.handed_over[call] for call in sorted(facts.handed_over)]
    since = min(times, default=facts.last_at)
    if facts.children and all(call.tool_name in WAITING_TOOLS for call in facts.open_calls):
        titles = ", ".join(repr(child.title) for child in facts.children)
        return _Reason("children", f"it waits for {titles}", "those chats", "ask why of each", since)
    return _Reason(
        "tools", f"{names} did not answer yet", "its workspace", "interrupt to go on without", since
    )


def _names(calls: tuple[ToolCallPart, ...]) -> str:
    return ", ".join(f"{call.tool_name} ({call.tool_call_id})" for call in calls) or "no call"
