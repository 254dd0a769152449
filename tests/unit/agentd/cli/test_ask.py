"""`agentd ask`: what it counts and tells while it follows a chat."""

import asyncio
import io
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from agentd.cli.ask import Answer, ask, describe_call
from agentd.cli.exits import CliError


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _call(name: str = "computer", args: Any = None) -> dict[str, Any]:
    return {"type": "tool-call", "tool_call_id": "c", "tool_name": name, "args": args}


def _result(result: Any, name: str = "computer", **more: Any) -> dict[str, Any]:
    return {"type": "tool-result", "tool_call_id": "c", "tool_name": name, "result": result, **more}


def _message(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "message": {"role": role, "content": list(parts)}}


DONE = {"type": "status", "status": "waiting"}


class ScriptedClient:
    """Plays chatd: one script of events per chat; a None in it never ends."""

    def __init__(self, status: str = "waiting", **scripts: list[dict[str, Any] | None]) -> None:
        self.scripts = scripts
        self.requests: list[tuple[str, str, object | None]] = []
        self.followed: list[str] = []
        self.reached = asyncio.Event()
        self._chat: dict[str, Any] = {"id": "root", "status": status}
        if status == "error":
            self._chat["last_error"] = {"message": "the model is away"}

    async def request(self, method: str, path: str, body: object | None = None) -> Any:
        """Answer as chatd does."""
        self.requests.append((method, path, body))
        return b"PNG" if path.startswith("/chats/files/") else self._chat

    async def events(self, chat_id: str) -> AsyncGenerator[dict[str, Any], None]:
        """Play the script."""
        self.followed.append(chat_id)
        for event in self.scripts[chat_id]:
            if event is None:
                self.reached.set()
                await asyncio.Event().wait()
            else:
                yield event


async def _ask(
    client: Any, screenshot: Path | None = None, model: str | None = None, effort: str | None = None
) -> tuple[Answer, str]:
    told = io.StringIO()
    console = Console(file=told, width=200, highlight=False)
    async with asyncio.timeout(30):
        answer = await ask(
            client, "do it", model=model, screenshot=screenshot, console=console, effort=effort
        )
    return answer, told.getvalue()


async def test_steps_and_tool_calls_are_counted() -> None:
    """Ours: a step is one answer of the model; its last text is the answer."""
    client = ScriptedClient(
        root=[
            _message("user", _text("do it")),
            {"type": "message_part", "part": _text("ignored")},
            _message("assistant", _text("First."), _call(args={"actions": [{"action": "screenshot"}]})),
            _message("tool", _result({"text": "Took a screenshot."})),
            _message(
                "assistant", _call(args={"actions": [{"action": "key", "text": "ctrl+l"}]}), _call("x", {})
            ),
            _message("tool", _result({"error": "no [such] key"}, is_error=True), _result({})),
            _message("assistant", _text("Done."), _text("Really.")),
            DONE,
            _message("assistant", _text("too late")),
        ]
    )
    answer, told = await _ask(client, model="rehearsal", effort="low")

    assert (answer.steps, answer.tool_calls) == (3, 3)
    assert (answer.status, answer.answer, answer.error) == ("done", "Done.\nReally.", None)
    assert [line.strip() for line in told.splitlines()] == [
        "• screenshot", "• key ctrl+l", "• x {}", "no [such] key",
    ]  # fmt: skip
    assert client.requests[0][2] == {
        "content": [_text("do it")], "model_config_id": "rehearsal", "reasoning_effort": "low",
    }  # fmt: skip


async def test_agents_that_the_chat_starts_are_followed_and_counted() -> None:
    """Ours: their work counts, their words are not the answer, and their end is waited for."""
    spawn = _result({"chat_id": "child", "status": "running"}, "spawn_computer_use_agent")
    nested = _result({"chat_id": "grandchild"}, "spawn_agent")
    client = ScriptedClient(
        root=[
            _message("assistant", _call("spawn_computer_use_agent", {"prompt": "look"})),
            _message("tool", spawn),
            _message("assistant", _text("My answer.")),
            DONE,
        ],
        child=[_message("assistant", _text("child's words"), _call(args={})), _message("tool", nested), DONE],
    )
    answer, told = await _ask(client)

    assert client.followed == ["root", "child"]
    assert (answer.steps, answer.tool_calls, answer.answer) == (3, 2, "My answer.")
    assert "\n  • computer {}" in told


MALFORMED: list[Any] = [None, "text", 7, [], {}, {"chat_id": None}, {"file_id": 3}, {"error": None}]


@pytest.mark.parametrize("result", MALFORMED)
@pytest.mark.parametrize("flags", [{}, {"is_error": True}, {"is_media": True}])
async def test_malformed_result_is_survived(result: Any, flags: dict[str, bool]) -> None:
    """Ours: whatever a tool answered, the chat is followed to its end."""
    client = ScriptedClient(
        root=[_message("tool", _result(result, **flags)), _message("assistant", _text("ok")), DONE]
    )
    answer, _ = await _ask(client)

    assert (answer.status, answer.answer) == ("done", "ok")


@pytest.mark.parametrize("result", [{"chat_id": None}, {"chat_id": 7}, {}, "started"])
async def test_agent_that_was_not_started_is_not_followed(result: Any) -> None:
    """Ours: only a chat's id can be followed."""
    client = ScriptedClient(root=[_message("tool", _result(result, "spawn_agent")), DONE])
    answer, _ = await _ask(client)

    assert (client.followed, answer.status) == (["root"], "done")


async def test_failed_chat_is_told_with_its_error() -> None:
    """Ours: also the retries before it."""
    retry = {"type": "retry", "retry": {"error": "Overloaded.", "delay_ms": 5}}
    client = ScriptedClient(status="error", root=[retry, {"type": "status", "status": "error"}])
    answer, told = await _ask(client)

    assert (answer.status, answer.error) == ("error", "the model is away")
    assert answer.as_json()["error"] == "the model is away"
    assert "Overloaded. Trying again." in told


async def test_stream_that_ends_early_ends_the_wait() -> None:
    """Ours: the chat is asked how it is; nothing hangs."""
    answer, _ = await _ask(ScriptedClient(root=[_message("assistant", _text("half"))]))

    assert answer.answer == "half"


async def test_last_screenshot_is_saved(tmp_path: Path) -> None:
    """Ours: the last picture that a tool gave."""
    shots = [_message("tool", _result({"file_id": name}, is_media=True)) for name in ("one", "two")]
    client = ScriptedClient(root=[*shots, DONE])
    answer, _ = await _ask(client, tmp_path / "shot.png")

    assert (tmp_path / "shot.png").read_bytes() == b"PNG"
    assert answer.screenshot == str(tmp_path / "shot.png")
    assert client.requests[-1][1] == "/chats/files/two"


async def test_screenshot_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """Ours: typed, with the path."""
    client = ScriptedClient(root=[_message("tool", _result({"file_id": "one"}, is_media=True)), DONE])
    with pytest.raises(CliError, match=r"shot\.png") as caught:
        await _ask(client, tmp_path / "missing" / "shot.png")

    assert caught.value.code == "unwritable"


async def test_interrupted_ask_interrupts_the_chat() -> None:
    """Cancellation: the chat does not go on alone."""
    client = ScriptedClient(root=[None])
    asking = asyncio.create_task(_ask(client))
    async with asyncio.timeout(30):
        await client.reached.wait()
        asking.cancel()
        await asyncio.wait({asking})

    assert asking.cancelled()
    assert client.requests[-1][:2] == ("POST", "/chats/root/interrupt")


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (_call(args={"actions": [{"action": "screenshot"}]}), "screenshot"),
        (_call(args={"actions": [{"action": "left_click", "coordinate": [1, 2]}]}), "left_click [1, 2]"),
        (
            _call(args={"actions": [{"action": "type", "text": "hi"}, {"action": "key", "text": "Return"}]}),
            "type hi, key Return",
        ),
        (_call(args={"actions": [{"action": "scroll", "coordinate": None, "scroll_amount": 3}]}), "scroll 3"),
        (_call(args={"actions": [{"action": "type", "text": "x" * 99}]}), f"type {'x' * 60}…"),
        (_call(args={"actions": [{"text": "no name"}]}), "? no name"),
        (_call(args={"actions": []}), ""),
        (_call(args={"actions": ["screenshot", 7, None]}), "screenshot, 7, None"),
        (_call(args={"actions": "screenshot"}), 'computer {"actions": "screenshot"}'),
        (_call(args=["screenshot"]), 'computer ["screenshot"]'),
        (_call(args="screenshot"), 'computer "screenshot"'),
        (_call(args=None), "computer {}"),
        (_call("execute", {"command": "ls ä"}), 'execute {"command": "ls ä"}'),
        (_call("execute", {"c": "y" * 99}), 'execute {"c": "' + "y" * 53 + "…"),
        ({"type": "tool-call", "tool_name": "wait_agent"}, "wait_agent {}"),
    ],
)
def test_call_is_described_in_a_few_words(part: dict[str, Any], words: str) -> None:
    """Ours: one line a call, whatever the model made of its arguments."""
    assert describe_call(part) == words
