"""A small model of a chat, and the store beside it: whatever is done, they agree."""

import asyncio
import contextlib
import os
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
from chatd.store import queries
from chatd.store.database import Database
from chatd.store.machine import ChatTx
from chatd.store.rows import NewMessage
from chatd.wire import TurnChanges
from tests.contract.store.bench import (
    CLIENT_TOOL,
    ERROR,
    Bench,
    answer,
    apply,
    ask_client,
    result,
    retry,
    text,
)
from tests.databases import NewDatabase

# Steps on each database; a nightly run takes CHATD_MODEL_STEPS=10000.
STEPS = int(os.environ.get("CHATD_MODEL_STEPS", "500"))
STEPS_IN_A_ROW = 25
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "plan_mode": st.sampled_from([None, "plan"]),
        "reasoning_effort": st.sampled_from([None, "low", "high"]),
    },
)
CALLS = st.lists(st.sampled_from("abc"), max_size=3, unique=True)


class Died(Exception):
    """The process is gone."""


class StoreMachine(RuleBasedStateMachine):
    """One chat; each rule is a transition with what the model expects of it."""

    new_database: NewDatabase

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.url = self.new_database()
        self.bench = Bench(Database(self.url))
        self.status, self.history, self.queue, self.open = "running", ["user:hello"], [], []
        self.sent, self.archived = 0, False
        # What is in force, and of each waiting message whether it steers and what it changes.
        self.settings: dict[str, str | None] = {"plan_mode": None, "reasoning_effort": None}
        self.traits: dict[str, tuple[bool, dict[str, str | None]]] = {}
        self.versions: dict[str, int] = {}

    @initialize()
    def create(self) -> None:
        """Start with R0."""
        self.loop.run(self.bench.prepare())
        self.chat_id = self.loop.run(self.bench.create(dynamic_tools=(CLIENT_TOOL,))).id

    def teardown(self) -> None:
        """Close everything."""
        self.loop.run(self.bench.database.close())
        self.loop.close()

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

    def take_in(self, value: str) -> None:
        """A waiting message enters the history; what it changes holds from now on."""
        self.queue.remove(value)
        self.history.append(f"user:{value}")
        self.settings |= self.traits[value][1]

    def promote(self) -> None:
        """The queue's head starts a turn."""
        self.close_calls()
        self.take_in(self.queue[0])
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

    @rule(how=st.sampled_from(["queue", "interrupt", "steer"]), changes=CHANGES)
    def send(self, *, how: str, changes: dict[str, str | None]) -> None:
        """A user's message, which may change its chat."""
        self.sent += 1
        value, idle = str(self.sent), self.status in {"waiting", "error"}
        interrupt, steer = how == "interrupt", how == "steer"
        kwargs = {"created_by": self.bench.user_id, "interrupt": interrupt, "steer": steer}
        kwargs |= {"changes": TurnChanges(**changes)}
        self.traits[value] = steer, changes
        content = text(value)
        allowed = not self.archived and (idle or len(self.queue) < 20)
        if not self.apply("send", content, allowed=allowed, **kwargs):
            return
        self.queue.append(value)
        if idle:
            self.promote()
        elif interrupt and self.status == "requires_action":
            self.close_calls()
            self.status = "running"
        elif interrupt:
            self.status = "interrupting"

    @rule()
    def take_steered(self) -> None:
        """The turn under way takes in what steers it, in order."""
        steering = [value for value in self.queue if self.traits[value][0]]
        allowed = self.status == "running" and bool(self.queue)
        if self.apply("take_steered", allowed=allowed):
            for value in steering:
                self.take_in(value)

    @rule()
    def interrupt(self) -> None:
        """A user's stop."""
        if not self.apply("interrupt", allowed=self.status in {"running", "requires_action"}):
            return
        if self.status == "requires_action":
            self.close_calls()
            self.status = "running"
        else:
            self.status = "interrupting"

    @rule(data=st.data(), changes=CHANGES)
    def edit(self, data: st.DataObject, changes: dict[str, str | None]) -> None:
        """A message of the user is said anew; all behind it is gone."""
        messages = self.loop.run(self.bench.messages(self.chat_id))
        target = data.draw(st.sampled_from(messages))
        allowed = not self.archived and target.role == "user"
        self.sent += 1
        given = TurnChanges(**changes)
        if self.apply("edit", target.id, text(f"e{self.sent}"), allowed=allowed, changes=given):
            kept = {"reasoning_effort": target.reasoning_effort} if target.reasoning_effort else {}
            self.settings |= kept | changes
            index = [message.id for message in messages].index(target.id)
            self.history = [*self.history[:index], f"user:e{self.sent}"]
            self.open, self.queue, self.status = [], [], "running"

    @rule(data=st.data(), is_promoted=st.booleans())
    def touch_queue(self, data: st.DataObject, *, is_promoted: bool) -> None:
        """A waiting message is taken back, or let go first."""
        rows = self.loop.run(self.bench.store.read(queries.list_queued, self.chat_id))
        if not rows:
            self.apply("delete_queued", 0, allowed=False)
            return
        index = data.draw(st.integers(0, len(rows) - 1))
        if not is_promoted:
            if self.apply("delete_queued", rows[index].id, allowed=not self.archived):
                self.queue.pop(index)
            return
        if self.apply("promote_queued", rows[index].id, allowed=not self.archived):
            self.queue.insert(0, self.queue.pop(index))
            if self.status in {"running", "interrupting"}:
                self.status = "interrupting"
            else:
                self.promote()

    @rule()
    def put_away_or_back(self) -> None:
        """Only what rests can be archived."""
        if self.archived:
            self.apply("archive", allowed=False)
            self.apply("unarchive", allowed=True)
            self.archived = False
        elif self.apply("archive", allowed=self.status in {"waiting", "error"}):
            self.archived = True

    @rule(calls=CALLS)
    def ask_client(self, calls: list[str]) -> None:
        """The model calls the client's tool, and the turn waits."""
        if self.status != "running" or self.open or not calls:
            return
        self.apply("commit_step", [ask_client(*calls)], allowed=True)
        self.history.append(f"assistant:{calls[0]}")
        self.open = list(calls)
        self.apply("enter_requires_action", allowed=True)
        self.status = "requires_action"

    @rule(is_late=st.booleans())
    def hear_client(self, *, is_late: bool) -> None:
        """The client answers, or its time is over."""
        allowed = self.status == "requires_action"
        results = [result(call).content[0] for call in self.open]
        if is_late and self.apply("cancel_requires_action", allowed=allowed):
            self.close_calls()
            self.status = "running"
        elif not is_late and self.apply("complete_requires_action", results, allowed=allowed):
            self.history += [f"tool:{call}" for call in self.open]
            self.open, self.status = [], "running"

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
        if self.apply(
            "finish_error", ERROR, allowed=self.status in {"running", "waiting"} and not self.archived
        ):
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

    @rule(move=st.sampled_from(["send", "interrupt", "finish_turn", "finish_error", "take_steered", "edit"]))
    def die_before_the_commit(self, move: str) -> None:
        """The process dies with everything written and nothing committed: as if it had not been tried."""

        def die(tx: ChatTx) -> None:
            apply(tx, move, self.bench.user_id)
            raise Died

        with pytest.raises((Died, Refused)):
            self.loop.run(self.bench.store.transition(self.chat_id, die))

    @rule()
    def die_and_start_again(self) -> None:
        """A new process takes every lease away; whatever was committed is as it was."""
        self.loop.run(self.bench.database.close())
        bench = Bench(Database(self.url))
        bench.time, bench.user_id = self.bench.time, self.bench.user_id
        self.bench = bench
        self.loop.run(bench.store.release_all())
        row = self.loop.run(bench.row(self.chat_id))

        assert (row["worker_id"], row["runner_id"]) == (None, None)

    @invariant()
    def agrees(self) -> None:
        """The rows are what the model says; versions only rise, and none is above the snapshot."""
        if not hasattr(self, "chat_id"):
            return
        row, messages, queue = self.loop.run(self.bench.dump(self.chat_id))
        texts = self.loop.run(self.bench.texts(self.chat_id))
        versions = {name: value for name, value in row.items() if name.endswith("_version")}
        state = classify(row["status"], archived=row["archived"], has_queue=bool(queue))

        found = {"plan_mode": row["plan_mode"], "reasoning_effort": row["last_reasoning_effort"]}
        assert found == self.settings
        assert row["archived"] == self.archived
        assert (row["requires_action_deadline_at"] is not None) == (self.status == "requires_action")
        assert (row["status"], texts, queue) == (self.status, self.history, self.queue)
        assert state is not ChatState.INVALID
        assert [message.id for message in messages] == sorted(message.id for message in messages)
        assert all(versions[name] >= value for name, value in self.versions.items())
        assert max(versions.values()) == versions["snapshot_version"]
        assert (row["last_error"] is not None) == (self.status == "error")
        assert row["retry_state"] is None or self.status in {"running", "interrupting"}
        assert row["runner_id"] is None or row["worker_id"] is not None
        self.versions = versions


@pytest.mark.timeout(max(60, STEPS))
def test_the_store_agrees_with_a_small_model(new_database: NewDatabase) -> None:
    """Ours: any sequence of transitions, allowed or not."""
    StoreMachine.new_database = staticmethod(new_database)
    run_state_machine_as_test(
        StoreMachine,
        settings=settings(
            max_examples=max(1, STEPS // STEPS_IN_A_ROW),
            stateful_step_count=STEPS_IN_A_ROW,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
