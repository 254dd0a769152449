"""``agentd ask``: one chat from start to end, in the terminal."""

import asyncio
import json
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from agentd.cli.client import ApiClient
from agentd.cli.exits import CliError, Exit

__all__ = ["Answer", "ask", "describe_call"]

SPAWN_TOOLS = frozenset({"spawn_agent", "spawn_computer_use_agent"})
# Characters of an argument in a progress line.
ELIDED = 60


@dataclass(slots=True, kw_only=True)
class Answer:
    """What came of it."""

    chat_id: str
    status: str = "running"
    answer: str = ""
    error: str | None = None
    steps: int = 0
    tool_calls: int = 0
    screenshot: str | None = None

    def as_json(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        value: dict[str, Any] = {
            "chat_id": self.chat_id,
            "status": self.status,
            "answer": self.answer,
            "steps": self.steps,
            "tool_calls": self.tool_calls,
            "screenshot": self.screenshot,
        }
        return value if self.error is None else value | {"error": self.error}


async def ask(
    client: ApiClient,
    text: str,
    *,
    model: str | None,
    screenshot: Path | None,
    console: Console,
    effort: str | None = None,
) -> Answer:
    """
    Start a chat with *text* and follow it and its agents to the end.

    Raises:
        CliError: the API refused.

    Cancellation: the chat is interrupted, its partial answer kept.
    """
    if not text.strip():
        raise CliError(Exit.USAGE, 'what is to be done? agentd ask "take a screenshot"', code="usage")
    body: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
    if model is not None:
        body["model_config_id"] = model
    if effort is not None:
        body["reasoning_effort"] = effort
    chat = await client.request("POST", "/chats", body)
    follower = _Follower(client, Answer(chat_id=chat["id"]), console)
    try:
        await follower.run()
    except asyncio.CancelledError:
        await client.request("POST", f"/chats/{chat['id']}/interrupt")
        raise
    ended = await client.request("GET", f"/chats/{chat['id']}")
    answer = follower.answer
    answer.status = "error" if ended["status"] == "error" else "done"
    answer.error = (ended.get("last_error") or {}).get("message")
    if screenshot is not None and follower.last_file_id is not None:
        answer.screenshot = await _save_screenshot(client, follower.last_file_id, screenshot)
    return answer


class _Follower:
    """Reads a chat's stream, and beside it those of the agents it starts; counts and tells."""

    def __init__(self, client: ApiClient, answer: Answer, console: Console) -> None:
        self.answer = answer
        self.last_file_id: str | None = None
        self._client = client
        self._console = console
        self._group = asyncio.TaskGroup()

    async def run(self) -> None:
        """Until the root's turn and its agents' have ended."""
        async with self._group:
            await self._follow(self.answer.chat_id, depth=0)

    async def _follow(self, chat_id: str, *, depth: int) -> None:
        async with aclosing(self._client.events(chat_id)) as events:
            async for event in events:
                if event["type"] == "message":
                    self._on_message(event["message"], depth)
                elif event["type"] == "retry":
                    self._tell(depth, f"[yellow]{escape(event['retry']['error'])}[/] Trying again.")
                elif event["type"] == "status" and event["status"] in {"waiting", "error"}:
                    return

    def _on_message(self, message: dict[str, Any], depth: int) -> None:
        if message["role"] == "assistant":
            self.answer.steps += 1
            text = "\n".join(part["text"] for part in message["content"] if part["type"] == "text")
            if depth == 0 and text:
                self.answer.answer = text
        for part in message["content"]:
            if part["type"] == "tool-call":
                self.answer.tool_calls += 1
                self._tell(depth, f"[cyan]•[/] {escape(describe_call(part))}")
            elif part["type"] == "tool-result":
                self._on_result(part, depth)

    def _on_result(self, part: dict[str, Any], depth: int) -> None:
        result = part.get("result")
        if not isinstance(result, dict):
            return
        if part.get("is_media") and isinstance(result.get("file_id"), str):
            self.last_file_id = result["file_id"]
        if part.get("is_error"):
            self._tell(depth, f"  [red]{escape(str(result.get('error') or result.get('text')))}[/]")
        child = result.get("chat_id")
        if part["tool_name"] in SPAWN_TOOLS and isinstance(child, str) and depth == 0:
            self._group.create_task(self._follow(child, depth=1))

    def _tell(self, depth: int, text: str) -> None:
        self._console.print("  " * depth + text)


def describe_call(part: dict[str, Any]) -> str:
    """A tool call in a few words."""
    args = part.get("args") or {}
    actions = args.get("actions") if isinstance(args, dict) else None
    if part["tool_name"] == "computer" and isinstance(actions, list):
        return ", ".join(_describe_action(action) for action in actions)
    text = json.dumps(args, ensure_ascii=False)
    return f"{part['tool_name']} {_elide(text)}"


def _describe_action(action: Any) -> str:  # noqa: ANN401 -- a model's JSON, whatever it is
    if not isinstance(action, dict):
        return _elide(str(action))
    rest = {key: value for key, value in action.items() if key != "action" and value is not None}
    words = " ".join(str(value) for value in rest.values())
    return f"{action.get('action', '?')} {_elide(words)}".strip()


def _elide(text: str) -> str:
    return text if len(text) <= ELIDED else text[:ELIDED] + "…"


async def _save_screenshot(client: ApiClient, file_id: str, path: Path) -> str:
    data = await client.request("GET", f"/chats/files/{file_id}")
    try:
        await asyncio.to_thread(path.write_bytes, data)
    except OSError as exc:
        msg = f"can't write {path}: {exc.strerror}"
        raise CliError(Exit.FAILED, msg, code="unwritable") from exc
    return str(path)
