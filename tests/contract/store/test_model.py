"""A small model of a chat, and the store beside it: whatever is done, they agree."""

import asyncio
import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from chatd.errors import Refused
from chatd.state import ChatState, classify
from chatd.store.database import Database, sqlite_url
from chatd.store.rows import NewMessage
from tests.contract.store.bench import ERROR, Bench, answer, result, retry

CALLS = st.lists(st.sampled_from("abc"), max_size=3, unique=True)


class StoreMachine(RuleBasedStateMachine):
    """One chat; each rule is a transition with what the model expects of it."""

    template: Path

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "chatd.sqlite3"
        shutil.copy(self.template, path)
        self.loop = asyncio.Runner()
        self.bench = Bench(Database(sqlite_url(path)))
        self.status, self.history, self.queue, self.open = "running", ["user:hello"], [], []
        self.sent = 0
        self.versions: dict[str, int] = {}

    @initialize()
    def create(self) -> None:
        """Start with R0."""
        self.loop.run(self.bench.prepare())
        self.chat_id = self.loop.run(self.bench.create()).id

    def teardown(self) -> None:
        """Close everything."""
        self.loop.run(self.bench.database.close())
        self.loop.close()
        self.folder.cleanup()

    def apply(self, name: str, *args: Any, allowed: bool, **kwargs: Any) -> bool:
        """Apply a transition; whether it was possible, which must be as the model says."""
        change = self.bench.store.transition(self.chat_id, lambda tx: getattr(tx, name)(*args, **kwargs))
        with contextlib.ExitStack() as stack:
            if not allowed:
                stack.enter_context(pytest.raises(Refused))
            self.loop.run(change)
        return allowed

    # -- the model ---------------------------------------------------------------

    def close_calls(self) -> None:
        """Every open call gets an error."""
        self.history += [f"tool:{call}!" for call in self.open]
        self.open = []

    def promote(self) -> None:
        """The queue's head starts a turn."""
        self.close_calls()
        self.history.append(f"user:{self.queue.pop(0)}")
        self.status = "running"

    def settle(self) -> None:
        """The turn is over."""
        self.close_calls()
        if self.queue:
            self.promote()
        else:
            self.status = "waiting"

    def say(self, calls: list[str]) -> NewMessage:
        """An assistant's message that the model knows; calls of an earlier one are forgotten."""
        self.history.append("assistant:say")
        self.open = list(calls)
        return answer("say", *calls)

    @rule(interrupt=st.booleans())
    def send(self, *, interrupt: bool) -> None:
        """A user's message."""
        self.sent += 1
        value, idle = str(self.sent), self.status in {"waiting", "error"}
        kwargs = {"created_by": self.bench.user_id, "interrupt": interrupt}
        content = NewMessage(role="user", content=answer(value).content).content
        allowed = idle or len(self.queue) < 20
        if not self.apply("send", content, allowed=allowed, **kwargs):
            return
        self.queue.append(value)
        if idle:
            self.promote()
        elif interrupt:
            self.status = "interrupting"

    @rule()
    def interrupt(self) -> None:
        """A user's stop."""
        if self.apply("interrupt", allowed=self.status == "running"):
            self.status = "interrupting"

    @rule()
    def try_and_fail(self) -> None:
        """An attempt that fails and is tried again."""
        self.apply("record_attempt", allowed=self.status == "running")
        self.apply("record_retry", retry(self.sent), allowed=self.status == "running")

    @rule(calls=CALLS)
    def answer(self, calls: list[str]) -> None:
        """The model speaks and calls tools."""
        if self.status == "running":
            self.apply("commit_step", [self.say(calls)], allowed=True)
        else:
            self.apply("commit_step", [answer("say", *calls)], allowed=False)

    @rule()
    def run_one_tool(self) -> None:
        """One open call is answered."""
        if self.open and self.status == "running":
            call = self.open.pop(0)
            self.history.append(f"tool:{call}")
            self.apply("commit_step", [result(call)], allowed=True)

    @rule()
    def finish_turn(self) -> None:
        """The turn ends."""
        if self.apply("finish_turn", allowed=self.status == "running"):
            self.settle()

    @rule()
    def finish_error(self) -> None:
        """The turn fails."""
        if self.apply("finish_error", ERROR, allowed=self.status in {"running", "waiting"}):
            self.status = "error"

    @rule(calls=CALLS, has_partial=st.booleans())
    def finish_interruption(self, calls: list[str], *, has_partial: bool) -> None:
        """The runner commits what it has."""
        allowed = self.status == "interrupting"
        partial = [self.say(calls)] if has_partial and allowed else []
        if self.apply("finish_interruption", partial, allowed=allowed):
            self.settle()

    @rule(take=st.booleans())
    def own(self, *, take: bool) -> None:
        """Ownership comes and goes without any effect on the rest."""
        if take:
            self.loop.run(self.bench.acquire(self.chat_id))
        else:
            self.apply("abandon", allowed=True)

    @invariant()
    def agrees(self) -> None:
        """The rows are what the model says; versions only rise, and none is above the snapshot."""
        if not hasattr(self, "chat_id"):
            return
        row, messages, queue = self.loop.run(self.bench.dump(self.chat_id))
        texts = self.loop.run(self.bench.texts(self.chat_id))
        versions = {name: value for name, value in row.items() if name.endswith("_version")}
        state = classify(row["status"], archived=False, has_queue=bool(queue))

        assert (row["status"], texts, queue) == (self.status, self.history, self.queue)
        assert state is not ChatState.INVALID
        assert [message.id for message in messages] == sorted(message.id for message in messages)
        assert all(versions[name] >= value for name, value in self.versions.items())
        assert max(versions.values()) == versions["snapshot_version"]
        assert (row["last_error"] is not None) == (self.status == "error")
        assert row["retry_state"] is None or self.status in {"running", "interrupting"}
        assert row["runner_id"] is None or row["worker_id"] is not None
        self.versions = versions


def test_the_store_agrees_with_a_small_model(sqlite_template: Path) -> None:
    """Ours: any sequence of transitions, allowed or not."""
    StoreMachine.template = sqlite_template
    run_state_machine_as_test(
        StoreMachine,
        settings=settings(
            max_examples=12,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
