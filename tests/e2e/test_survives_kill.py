"""A chat outlives the sudden death of everything."""

import asyncio
import json
from collections import Counter
from typing import Any

import aiohttp
import pytest

from agentd.app import LEDGER_NAME
from tests.e2e.conftest import Up, wait_gone

# Seconds for the whole chat after the restart.
FINISH_TIMEOUT_S = 60


class Api:
    """chatd's API, as any client sees it."""

    def __init__(self, session: aiohttp.ClientSession, up: Up) -> None:
        self._session = session
        self._base = up.info["api"]
        self._headers = {"Authorization": f"Bearer {up.info['token']}"}

    async def call(self, method: str, path: str, body: object | None = None) -> Any:
        """One request; JSON back."""
        async with self._session.request(
            method, self._base + path, json=body, headers=self._headers
        ) as response:
            assert response.status < 300, await response.text()
            return await response.json()

    async def messages(self, chat_id: str) -> list[dict[str, Any]]:
        """The chat's whole history."""
        page = await self.call("GET", f"/chats/{chat_id}/messages?limit=200")
        assert not page["has_more"]
        messages: list[dict[str, Any]] = page["messages"]
        return messages

    async def until(self, chat_id: str, status: str) -> dict[str, Any]:
        """The chat, once it has *status*."""
        async with asyncio.timeout(FINISH_TIMEOUT_S):
            while True:
                chat: dict[str, Any] = await self.call("GET", f"/chats/{chat_id}")
                if chat["status"] == status:
                    return chat
                await asyncio.sleep(0.1)


def parts(messages: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """All parts of one kind, in order."""
    return [part for message in messages for part in message["content"] if part["type"] == kind]


def open_call(messages: list[dict[str, Any]], action: str) -> bool:
    """Whether the last call is *action* and nothing answered it."""
    calls, results = parts(messages, "tool-call"), parts(messages, "tool-result")
    return bool(calls) and len(calls) == len(results) + 1 and action in json.dumps(calls[-1]["args"])


def has_begun(up: Up, messages: list[dict[str, Any]]) -> bool:
    """Whether the workspace has on disk that the last call runs; one that has not begun simply runs later."""
    # It lets nobody else open its database.
    call_id = parts(messages, "tool-call")[-1]["tool_call_id"].encode()
    return any(call_id in path.read_bytes() for path in up.home.rglob(f"{LEDGER_NAME}*"))


async def wait_in_the_middle(api: Api, up: Up, root_id: str) -> tuple[str, list[dict[str, Any]]]:
    """The child that waits at the desktop right now, and its history so far."""
    async with asyncio.timeout(FINISH_TIMEOUT_S):
        while True:
            root = await api.call("GET", f"/chats/{root_id}")
            for child in root["children"]:
                messages = await api.messages(child["id"])
                if open_call(messages, '"wait"') and has_begun(up, messages):
                    return child["id"], messages
            await asyncio.sleep(0.05)


@pytest.mark.timeout(150)
async def test_chat_goes_on_after_sigkill_in_the_middle_of_a_tool_call(up: Up) -> None:
    """
    Nothing is lost, nothing is doubled, and the command still runs once.

    Steps:
        1. start a chat through the API; 2. SIGKILL everything while its agent waits at
        the desktop; 3. see that no process is left; 4. start again; 5. read the end.
    """
    out = up.home / "ran.txt"
    text = f"open a terminal, wait 20 seconds and run `echo once | tee -a {out}`, then tell me what it says"
    async with aiohttp.ClientSession() as session:
        api = Api(session, up)
        root = await api.call("POST", "/chats", {"content": [{"type": "text", "text": text}]})
        child_id, before = await wait_in_the_middle(api, up, root["id"])
        root_before = await api.messages(root["id"])

        orphans = wait_gone(up.kill())
        up.start()
        api = Api(session, up)
        ended = await api.until(root["id"], "waiting")
        child, history = await api.messages(child_id), await api.messages(root["id"])

    assert orphans == []
    assert "last_error" not in ended
    assert child[: len(before)] == before
    assert history[: len(root_before)] == root_before
    answered = Counter(part["tool_call_id"] for part in parts(child, "tool-result"))
    assert answered == Counter(part["tool_call_id"] for part in parts(child, "tool-call"))
    assert len(ended["children"]) == 1
    assert "restarted" in json.dumps(parts(child, "tool-result"))
    assert out.read_text() == "once\n"
    assert "once" in parts(history, "text")[-1]["text"]


@pytest.mark.timeout(120)
def test_stopping_leaves_no_process_and_no_lock(up: Up) -> None:
    """Ctrl-C ends the desktop, its programs and the daemon, and clears its files."""
    assert up.agentd("desktop", "up").returncode == 0
    assert up.agentd("desktop", "open", "--", "xterm").returncode == 0
    family = up.children()
    code = up.stop()

    assert len(family) >= 3
    assert code == 0
    assert wait_gone(family, timeout_s=30) == []
    run = [path for path in (up.home / "run").rglob("*") if not path.is_dir()]
    assert [path.name for path in run if path.suffix != ".log"] == []
    assert sorted(path.name for path in up.data.iterdir()) == ["chatd.sqlite3", "secrets.key", "workspace"]
