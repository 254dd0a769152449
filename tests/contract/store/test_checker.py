"""The checker finds what it is for: a checker that finds nothing proves nothing."""

from typing import Any

import pytest

from chatd.store import schema
from tests.contract.store.bench import Bench, answer, result
from tests.support.checker import request_problems, row_problems


def chat(*messages: Any) -> dict[str, Any]:
    """A Chat Completions body: ``u``, ``a``, ``a:id,id`` (calls) or ``t:id``."""
    items: list[dict[str, Any]] = []
    for message in messages:
        kind, _, ids = message.partition(":")
        calls = [{"id": call_id} for call_id in ids.split(",") if call_id]
        match kind:
            case "u":
                items.append({"role": "user", "content": "x"})
            case "a":
                items.append({"role": "assistant", "content": "x", "tool_calls": calls})
            case "t":
                items.append({"role": "tool", "tool_call_id": ids, "content": "x"})
    return {"messages": items}


@pytest.mark.parametrize(
    ("messages", "count"),
    [
        (("u",), 0),
        (("u", "a", "u"), 0),
        (("u", "a:1,2", "t:1", "t:2"), 0),
        (("u", "a:1,2", "t:1"), 1),
        (("u", "a:1", "u"), 1),
        (("u", "t:1"), 1),
        (("u", "a:1", "t:1", "t:1"), 1),
        (("u", "a", "a", "u"), 1),
        (("u", "a"), 1),
    ],
)
def test_requests_of_chat_completions(messages: tuple[str, ...], count: int) -> None:
    """Spec 1.2: no orphaned call, no orphaned result, no answer twice."""
    assert len(request_problems(chat(*messages))) == count


def test_requests_of_other_vendors() -> None:
    """Ours: blocks of Anthropic's messages, items of OpenAI's Responses."""
    use, answered = {"type": "tool_use", "id": "1"}, {"type": "tool_result", "tool_use_id": "1"}
    user = {"role": "user", "content": "x"}
    good = [user, {"role": "assistant", "content": [use]}, {"role": "user", "content": [answered]}]
    calls = [{"type": "function_call", "call_id": name} for name in "ab"]
    outputs = [{"type": "function_call_output", "call_id": name} for name in "ab"]

    assert request_problems({"messages": good}) == []
    assert len(request_problems({"messages": good[:2]})) == 1
    assert request_problems({"input": [user, *calls, *outputs]}) == []
    assert len(request_problems({"input": [user, *calls, outputs[0]]})) == 1
    assert len(request_problems({"input": [user, outputs[0]]})) == 1


@pytest.mark.parametrize("new_database", ["sqlite"], indirect=True)
async def test_rows(bench: Bench) -> None:
    """Ours: a good chat has no problems; a lost message, a doubled answer and an open call have names."""
    chat = await bench.create("hello")
    await bench.commit(chat.id, answer("x", "a"), result("a"))
    await bench.commit(chat.id, answer("done"))
    await bench.store.transition(chat.id, lambda tx: tx.finish_turn())
    good = await bench.store.read(row_problems, {chat.id: ["hello"]})
    lost = await bench.store.read(row_problems, {chat.id: ["hello", "more"]})
    await bench.send(chat.id, "again")
    busy = await bench.store.read(row_problems)
    await bench.commit(chat.id, answer("once"), answer("twice", "a"))
    wrong = await bench.store.read(row_problems, are_over=False)
    table = schema.messages
    await bench.execute(table.update().where(table.c.role == "tool").values(revision=99))
    disorder = await bench.store.read(row_problems, are_over=False)

    assert good == []
    assert [problem.split(": ", 1)[1] for problem in lost] == ["the user's message 'more' is there 0 times"]
    assert ["not over" in problem for problem in busy] == [True]
    assert len(wrong) == 3
    assert len(disorder) > len(wrong)
