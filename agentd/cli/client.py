"""HTTP clients of the commands: the daemon's local socket and chatd's API."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from agentd.cli.exits import CliError, Exit
from agentd.settings import SOCKET_NAME

__all__ = ["ApiClient", "LocalClient", "api_client", "local_client"]

# Seconds; a hold or a wait may take five minutes.
TIMEOUT = aiohttp.ClientTimeout(total=400, connect=5)
CUT_OFF = "chatd does not answer (any more); start it with `agentd up`: a chat that was at work goes on"
# Server errors that mean "can't start", by their stable word.
CANNOT_START = frozenset({"start_failed", "missing_program", "unavailable"})


class LocalClient:
    """The daemon on its Unix socket."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def request(self, method: str, path: str, body: object | None = None) -> Any:  # noqa: ANN401 -- JSON
        """
        Ask the daemon; JSON back (bytes for pictures).

        Raises:
            CliError: it refused, or nobody answers.
        """
        status, answer = await self._ask(method, path, body)
        if status >= 400:
            raise _error_of(answer)
        return answer

    async def request_any(self, method: str, path: str) -> Any:  # noqa: ANN401 -- JSON
        """
        Ask the daemon; JSON back, whatever the status says.

        Raises:
            CliError: nobody answers.
        """
        return (await self._ask(method, path, None))[1]

    async def _ask(self, method: str, path: str, body: object | None) -> tuple[int, Any]:
        try:
            async with self._session.request(method, f"http://agentd{path}", json=body) as response:
                if response.content_type.startswith(("image/", "video/", "application/zip")):
                    return response.status, await response.read()
                return response.status, await response.json()
        except (aiohttp.ClientConnectorError, FileNotFoundError) as exc:
            msg = "no agentd is running; start it with `agentd up`"
            raise CliError(Exit.NOT_RUNNING, msg, code="not_running") from exc
        except (aiohttp.ClientError, TimeoutError, json.JSONDecodeError) as exc:
            raise CliError(Exit.FAILED, f"agentd did not answer: {exc}", code="no_answer") from exc


def _error_of(answer: dict[str, Any]) -> CliError:
    code = str(answer.get("code", "error"))
    exit_code = Exit.CANNOT_START if code in CANNOT_START else Exit.FAILED
    return CliError(exit_code, str(answer.get("message", "failed")), code=code)


@asynccontextmanager
async def local_client(runtime_dir: Path) -> AsyncIterator[LocalClient]:
    """A client of the daemon in *runtime_dir*."""
    connector = aiohttp.UnixConnector(path=str(runtime_dir / SOCKET_NAME))
    async with aiohttp.ClientSession(connector=connector, timeout=TIMEOUT) as session:
        yield LocalClient(session)


class ApiClient:
    """chatd's API."""

    def __init__(self, session: aiohttp.ClientSession, base: str) -> None:
        self._session = session
        self._base = base

    async def request(self, method: str, path: str, body: object | None = None) -> Any:  # noqa: ANN401 -- JSON
        """
        Ask chatd; JSON back (bytes for files).

        Raises:
            CliError: it refused, or nobody answers.
        """
        try:
            async with self._session.request(method, self._base + path, json=body) as response:
                if response.content_type != "application/json":
                    return await response.read()
                answer = await response.json()
        except (aiohttp.ClientError, TimeoutError) as exc:
            raise CliError(Exit.NOT_RUNNING, CUT_OFF, code="no_answer") from exc
        if response.status >= 400:
            raise CliError(Exit.FAILED, str(answer.get("message")), code=str(answer.get("code", "error")))
        return answer

    async def events(self, chat_id: str) -> AsyncGenerator[dict[str, Any], None]:
        """
        The chat's events from its first message on, until the connection ends.

        Raises:
            CliError: nobody answers.
        """
        try:
            async with self._session.ws_connect(
                f"{self._base}/chats/{chat_id}/stream", max_msg_size=0, heartbeat=20
            ) as websocket:
                async for message in websocket:
                    if message.type is aiohttp.WSMsgType.ERROR:
                        return
                    for event in json.loads(message.data):
                        yield event
        except aiohttp.ClientError as exc:
            raise CliError(Exit.NOT_RUNNING, CUT_OFF, code="no_answer") from exc


@asynccontextmanager
async def api_client(base: str, token: str) -> AsyncIterator[ApiClient]:
    """A client of chatd's API at *base*."""
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(headers=headers, timeout=TIMEOUT) as session:
        yield ApiClient(session, base)
