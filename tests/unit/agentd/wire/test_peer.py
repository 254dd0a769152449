"""The JSON-RPC peer: every call ends exactly once, whatever happens."""

import asyncio
import json
from typing import Any

import pytest

from agentd.wire import jsonrpc, peer
from agentd.wire.link import CANCEL, CancelParams
from agentd.wire.peer import JsonRpcPeer, LinkLost, RpcError
from tests.unit.agentd.wire.pipe import Gate, Line, Pair, Word, echo, joined


async def _call(pair: Pair, method: str, text: str = "", *, timeout_s: float = 5) -> str:
    answer = await pair.caller.call(method, Word(text=text), Word, timeout_s=timeout_s)
    return answer.text


async def test_call_gets_its_result() -> None:
    """Ours: the plain case."""
    async with joined({"echo": echo}) as pair:
        assert await _call(pair, "echo", "ä\n\0") == "ä\n\0"


async def test_both_ends_call_over_one_connection() -> None:
    """Ours: ids of the two directions do not meet."""
    async with joined({"echo": echo}) as pair:
        answers = await asyncio.gather(
            _call(pair, "echo", "there"), pair.server.call("echo", Word(text="back"), Word, timeout_s=5)
        )

    assert answers == ["there", Word(text="back")]


async def test_answers_come_in_any_order() -> None:
    """JSON-RPC 2.0: matched by id, not by order."""
    gate = Gate()
    async with joined({"slow": gate, "echo": echo}) as pair, asyncio.TaskGroup() as group:
        slow = group.create_task(_call(pair, "slow"))
        await gate.started.wait()

        assert await _call(pair, "echo", "first") == "first"
        gate.opened.set()
        assert await slow == "through"


async def test_refusal_arrives_with_its_word() -> None:
    """Ours: the stable word travels in the error's data."""

    async def refuse(_: dict[str, Any]) -> Word:
        raise RpcError(jsonrpc.REFUSED, "no", code="not_today")

    async with joined({"refuse": refuse}) as pair:
        with pytest.raises(RpcError) as caught:
            await _call(pair, "refuse")

    assert (caught.value.rpc_code, caught.value.message) == (jsonrpc.REFUSED, "no")
    assert caught.value.code == "not_today"


async def _validate(_: dict[str, Any]) -> Word:
    return Word.model_validate({"text": 5})


async def _break(_: dict[str, Any]) -> Word:
    raise ZeroDivisionError("a bug \ud800")


async def _unprintable(_: dict[str, Any]) -> Word:
    return Word.model_construct(text="\ud800")


@pytest.mark.parametrize(
    ("method", "rpc_code", "code"),
    [
        ("nothing", jsonrpc.METHOD_NOT_FOUND, "unknown_method"),
        ("validate", jsonrpc.INVALID_PARAMS, "invalid_params"),
        ("break", jsonrpc.INTERNAL_ERROR, "internal"),
        ("unprintable", jsonrpc.INTERNAL_ERROR, "internal"),
    ],
)
async def test_failure_is_answered_and_the_connection_lives_on(method: str, rpc_code: int, code: str) -> None:
    """JSON-RPC 2.0, section 5.1; a bug in one handler is no reason to hang up."""
    handlers = {"validate": _validate, "break": _break, "unprintable": _unprintable, "echo": echo}
    async with joined(handlers) as pair:
        await pair.to_server.send(json.dumps({"id": "a", "method": method}))
        assert await _call(pair, "echo", "alive") == "alive"
        answer = _answers(pair.to_caller)["a"]

    assert (rpc_code, code) == (answer["error"]["code"], answer["error"]["data"]["code"])


def _answers(line: Line) -> dict[Any, Any]:
    frames = [json.loads(text) for text in line.sent]
    return {frame["id"]: frame for frame in frames if "method" not in frame}


async def test_result_of_another_shape_is_an_error() -> None:
    """Ours: what the other side says is checked."""

    class Number(Word):
        number: int

    async with joined({"echo": echo}) as pair:
        with pytest.raises(RpcError) as caught:
            await pair.caller.call("echo", Word(), Number, timeout_s=5)

    assert caught.value.code == "bad_result"


async def test_cancelled_call_cancels_its_handler() -> None:
    """Ours: the other side is told, and stops; the connection lives on."""
    gate = Gate()
    async with joined({"slow": gate, "echo": echo}) as pair:
        call = asyncio.create_task(_call(pair, "slow"))
        await gate.started.wait()
        call.cancel()
        await asyncio.wait({call})
        await _call(pair, "echo")
        answers = _answers(pair.to_caller)

    assert call.cancelled()
    assert gate.ended == ["cancelled"]
    assert answers[1]["error"]["code"] == jsonrpc.CANCELLED


async def test_request_that_is_cancelled_at_once_is_answered_all_the_same() -> None:
    """JSON-RPC 2.0, section 4: a request gets a response, even if both frames came together."""
    gate = Gate()
    async with joined({"slow": gate, "echo": echo}) as pair:
        await pair.to_server.send('{"id":"a","method":"slow"}')
        await pair.to_server.send('{"method":"$/cancelRequest","params":{"id":"a"}}')
        await _call(pair, "echo")

        assert _answers(pair.to_caller)["a"]["error"]["code"] == jsonrpc.CANCELLED


async def test_call_that_takes_too_long_times_out_and_is_cancelled() -> None:
    """Ours: a deadline ends the work too, not only the wait."""
    gate = Gate()
    async with joined({"slow": gate, "echo": echo}) as pair:
        with pytest.raises(TimeoutError):
            await _call(pair, "slow", timeout_s=0.01)
        await _call(pair, "echo")

        assert gate.ended == ["cancelled"]


async def test_stuck_connection_counts_against_the_deadline() -> None:
    """Ours: a full send buffer is no reason to wait longer than was asked."""
    told: list[str] = []

    async def send(text: str) -> None:
        told.append(text)
        if "echo" in text:
            await asyncio.Event().wait()

    stuck = JsonRpcPeer(send, {})
    with pytest.raises(TimeoutError):
        await stuck.call("echo", Word(), Word, timeout_s=0.01)

    assert json.loads(told[-1])["method"] == CANCEL


async def test_lost_link_fails_the_calls_that_wait() -> None:
    """Ours: LinkLost, so that the caller can ask again by its call id."""
    gate = Gate()
    async with joined({"slow": gate}) as pair:
        calls = [asyncio.create_task(_call(pair, "slow")) for _ in range(3)]
        await gate.started.wait()
        await pair.cut()
        ended = await asyncio.gather(*calls, return_exceptions=True)

    assert [type(problem) for problem in ended] == [LinkLost] * 3


async def test_call_on_a_lost_link_fails_at_once() -> None:
    """Ours: closed for both directions."""
    async with joined({"echo": echo}) as pair:
        await pair.cut()
        assert pair.caller.is_closed
        with pytest.raises(LinkLost):
            await _call(pair, "echo")
        with pytest.raises(LinkLost):
            await pair.caller.notify("echo", Word())


async def test_nothing_runs_when_run_has_returned() -> None:
    """Invariant: no handler outlives the connection, and none answers into it."""
    gate = Gate()
    before = asyncio.all_tasks()
    async with joined({"slow": gate}) as pair:
        call = asyncio.create_task(_call(pair, "slow"))
        await gate.started.wait()
        await pair.cut()
        await asyncio.wait({call})

        assert isinstance(call.exception(), LinkLost)
        assert gate.ended == ["cancelled"]
        assert pair.to_caller.sent == []
        assert asyncio.all_tasks() == before


async def test_cancelled_run_ends_handlers_and_calls() -> None:
    """Cancellation of run() is an end of the connection like any other."""
    gate, line = Gate(), Line()
    server = JsonRpcPeer(line.send, {"slow": gate})
    incoming = Line()
    await incoming.send('{"id":1,"method":"slow"}')
    run = asyncio.create_task(server.run(incoming.frames()))
    async with asyncio.timeout(30):
        await gate.started.wait()
        call = asyncio.create_task(server.call("echo", Word(), Word, timeout_s=5))
        await asyncio.sleep(0)
        run.cancel()
        await asyncio.wait({run, call})

    assert run.cancelled()
    assert gate.ended == ["cancelled"]
    assert isinstance(call.exception(), LinkLost)


async def test_too_many_requests_are_answered_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: bounded; those that run go on."""
    monkeypatch.setattr(peer, "MAX_RUNNING_HANDLERS", 2)
    gate = Gate()
    async with joined({"slow": gate}) as pair, asyncio.TaskGroup() as group:
        running = [group.create_task(_call(pair, "slow")) for _ in range(2)]
        await gate.started.wait()
        with pytest.raises(RpcError) as caught:
            await _call(pair, "slow")
        gate.opened.set()

    assert caught.value.code == "busy"
    assert [task.result() for task in running] == ["through", "through"]


async def test_too_many_calls_of_ours_are_refused_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: the waiting calls are bounded as well."""
    monkeypatch.setattr(peer, "MAX_PENDING_CALLS", 1)
    gate = Gate()
    async with joined({"slow": gate}) as pair, asyncio.TaskGroup() as group:
        group.create_task(_call(pair, "slow"))
        await gate.started.wait()
        with pytest.raises(RpcError) as caught:
            await _call(pair, "slow")
        gate.opened.set()

    assert caught.value.code == "busy"


async def test_id_in_use_is_refused_and_free_again_afterwards() -> None:
    """Ours: one answer per id at a time."""
    gate = Gate()
    async with joined({"slow": gate, "echo": echo}) as pair:
        for _ in range(2):
            await pair.to_server.send('{"id":"same","method":"slow"}')
        await _call(pair, "echo")
        first = _answers(pair.to_caller)["same"]
        gate.opened.set()
        await _call(pair, "echo")
        await pair.to_server.send('{"id":"same","method":"echo","params":{"text":"again"}}')
        await _call(pair, "echo")
        last = _answers(pair.to_caller)["same"]

    assert first["error"]["data"]["code"] == "duplicate_id"
    assert last["result"] == {"text": "again"}
    assert gate.runs == 1


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("{", jsonrpc.PARSE_ERROR),
        ("[" * 100_000, jsonrpc.PARSE_ERROR),
        ("[]", jsonrpc.INVALID_REQUEST),
        ('{"id":true,"method":"echo"}', jsonrpc.INVALID_REQUEST),
    ],
)
async def test_malformed_frame_is_answered_with_a_null_id(frame: str, code: int) -> None:
    """JSON-RPC 2.0, section 5: the connection lives on."""
    async with joined({"echo": echo}) as pair:
        await pair.to_server.send(frame)
        assert await _call(pair, "echo", "alive") == "alive"
        answer = _answers(pair.to_caller)[None]

    assert answer["error"]["code"] == code


@pytest.mark.parametrize(
    "frame",
    [
        '{"id":999,"result":{}}',
        '{"id":null,"error":{"code":1,"message":"?"}}',
        '{"id":"never","error":{"code":1,"message":"?"}}',
        '{"method":"unknown/note"}',
        '{"method":"$/cancelRequest"}',
        '{"method":"$/cancelRequest","params":{"id":12345}}',
        '{"method":"$/cancelRequest","params":{"id":[]}}',
    ],
)
async def test_frame_that_concerns_nothing_is_ignored(frame: str) -> None:
    """Ours: late answers and late cancellations are ordinary."""
    async with joined({"echo": echo}) as pair:
        await pair.to_server.send(frame)
        assert await _call(pair, "echo", "alive") == "alive"

        assert len(pair.to_caller.sent) == 1


async def test_notification_gets_no_answer() -> None:
    """JSON-RPC 2.0, section 4.1."""
    async with joined({"echo": echo}) as pair:
        await pair.caller.notify(CANCEL, CancelParams(id=7))
        await _call(pair, "echo")

        assert len(pair.to_caller.sent) == 1
