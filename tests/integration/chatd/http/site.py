"""Clients of a running control plane: users with tokens, a workspace that dials in, raw sockets."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp

from agentd.wire.jsonrpc import REFUSED
from agentd.wire.link import HELLO, PROTOCOL_VERSION, Empty, HelloParams, HelloResult, ToolListResult
from agentd.wire.peer import Handler, JsonRpcPeer, RpcError
from chatd.app import ControlPlane, make_web_app
from chatd.settings import ChatdSettings
from chatd.store import accounts, queries
from chatd.wire import Message, StreamEvent, stream_event_adapter

API = "/api/experimental"
LIMIT_S = 45
UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


def bearer(token: str) -> dict[str, str]:
    """The header of a token."""
    return {"Authorization": f"Bearer {token}"}


def text(value: str, **fields: Any) -> dict[str, Any]:
    """A request body with one text."""
    return {"content": [{"type": "text", "text": value}], **fields}


class Site:
    """A control plane; ``me`` has no workspace, ``owner`` has one, ``other`` is a stranger."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.http = aiohttp.ClientSession(plane.url, cookie_jar=aiohttp.DummyCookieJar())
        self.store = plane.services.store
        self.ids: dict[str, UUID] = {}
        self.tokens: dict[str, str] = {}
        self.agent_id = UUID(int=0)

    async def prepare(self) -> None:
        """Make users and tokens."""
        for name in ("me", "other", "owner"):
            self.ids[name] = await self.store.write(accounts.ensure_user, name, now=self.store.now())
            self.tokens[name] = await self.issue("api", name)
        self.agent_id = await self.store.write(
            accounts.ensure_agent, self.ids["owner"], "box", now=self.store.now()
        )
        self.tokens["agent"] = await self.issue("agent", "owner", agent_id=self.agent_id)

    async def issue(self, kind: accounts.TokenKind, name: str, **fields: Any) -> str:
        """A new token."""
        return await self.store.write(
            accounts.issue_token, kind, self.ids[name], now=self.store.now(), **fields
        )

    async def close(self) -> None:
        """Close the client."""
        await self.http.close()

    def routes(self) -> list[tuple[str, str]]:
        """Method and path of every route."""
        router = make_web_app(self.plane.services).router
        return [(route.method, route.resource.canonical) for route in router.routes() if route.resource]

    async def ask(self, method: str, path: str, *, who: str = "me", status: int = 200, **kwargs: Any) -> Any:
        """A request with a user's token; the JSON of an answer that must have *status*."""
        async with self.http.request(
            method, API + path, headers=bearer(self.tokens[who]), **kwargs
        ) as answer:
            body = await answer.text()
            assert answer.status == status, body
            return json.loads(body)

    async def status(self, method: str, path: str, headers: dict[str, str], **kwargs: Any) -> int:
        """The status of a request to the full *path*."""
        async with asyncio.timeout(LIMIT_S):
            async with self.http.request(
                method, path, headers=headers, allow_redirects=False, **kwargs
            ) as answer:
                return answer.status

    async def raw(self, head: bytes, body: bytes = b"") -> tuple[int, dict[str, Any]]:
        """Send bytes as they are; the status and JSON of the answer."""
        reader, writer = await asyncio.open_connection(self.plane.settings.host, self.plane.port)
        try:
            async with asyncio.timeout(LIMIT_S):
                lines = [head, b"Connection: close", b"Content-Length: %d" % len(body), b"", body]
                writer.write(b"\r\n".join(lines))
                answer = await reader.read()
        finally:
            writer.close()
            await writer.wait_closed()
        top, _, rest = answer.partition(b"\r\n\r\n")
        try:
            return int(top.split()[1]), json.loads(rest)
        except ValueError:
            return int(top.split()[1]), {}

    async def new_chat(self, value: str = "say hello", who: str = "me") -> str:
        """A new chat's id, without waiting."""
        chat: dict[str, Any] = await self.ask("POST", "/chats", who=who, status=201, json=text(value))
        return str(chat["id"])

    async def quiet_chat(self, who: str = "me") -> str:
        """A chat whose turn is over."""
        chat_id = await self.new_chat(who=who)
        await self.until(chat_id, "waiting")
        return chat_id

    async def until(self, chat_id: str, *statuses: str) -> None:
        """Wait until the chat has one of *statuses*."""
        with self.plane.services.hub.watch_chat(UUID(chat_id)) as subscription:
            async with asyncio.timeout(LIMIT_S):
                while (await self.store.read(queries.read_row, UUID(chat_id)))["status"] not in statuses:
                    await subscription.wait()

    @asynccontextmanager
    async def workspace(self, **handlers: Handler) -> AsyncIterator[JsonRpcPeer]:
        """The owner's workspace, dialled in; *handlers* by method, with ``_`` for ``/``."""

        async def tools(_: dict[str, Any]) -> ToolListResult:
            return ToolListResult(tools=())

        table = {"tools/list": tools} | {name.replace("_", "/"): run for name, run in handlers.items()}
        headers = bearer(self.tokens["agent"])
        async with self.http.ws_connect("/api/agent/link", headers=headers) as socket:
            peer = JsonRpcPeer(socket.send_str, table)
            running = asyncio.get_running_loop().create_task(peer.run(frames(socket)))
            try:
                hello = HelloParams(protocol_version=PROTOCOL_VERSION, name="box", version="0", boot_id="b")
                await peer.call(HELLO, hello, HelloResult, timeout_s=LIMIT_S)
                yield peer
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def serving(
    data_dir: Path, *, listener: socket.socket | None = None, **settings: Any
) -> AsyncIterator[Site]:
    """A control plane on a free port, or on *listener*, with the rehearsal model, and its users."""
    # Tests try hundreds of wrong tokens, all from one address.
    wish = {"port": 0, "rehearsal": "always", "login_attempts_per_minute": 0} | settings
    plane = ControlPlane(ChatdSettings.model_validate({"data_dir": data_dir, **wish}), listener)
    await plane.start()
    site = Site(plane)
    try:
        await site.prepare()
        yield site
    finally:
        await site.close()
        await plane.stop()


async def frames(socket: aiohttp.ClientWebSocketResponse) -> AsyncIterator[str | bytes]:
    """What arrives."""
    async for message in socket:
        yield message.data


async def refuse(_: dict[str, Any]) -> Empty:
    """A handler that says no."""
    raise RpcError(REFUSED, "no desktop here", code="no_desktop")


class Story:
    """What a client has understood of a stream so far."""

    def __init__(self) -> None:
        self.messages: dict[int, Message] = {}
        self.durable: list[str] = []
        self.preview = ""
        self.previews: list[str] = []
        self.status = ""

    def take(self, event: StreamEvent) -> None:
        """Reduce one event."""
        match event.type:
            case "message":
                assert event.message.id not in self.messages
                self.messages[event.message.id] = event.message
                self.durable.append(f"message {event.message.id}")
            case "status":
                self.status = event.status
            case "message_part":
                self.preview += getattr(event.part, "text", "")
                self.previews.append(self.preview)
            case "preview_reset":
                self.preview = ""
            case "error" | "queue_update":
                self.durable.append(event.type)

    def is_over(self) -> bool:
        """Whether the turn has ended with an answer."""
        roles = [message.role for message in self.messages.values()]
        return self.status in {"waiting", "error"} and roles[-1:] == ["assistant"]


async def read_socket(site: Site, chat_id: str, story: Story, query: str = "") -> Story:
    """Follow a chat over WebSocket until its turn is over."""
    path = f"{API}/chats/{chat_id}/stream{query}"
    async with site.http.ws_connect(path, headers=bearer(site.tokens["me"])) as socket:
        async with asyncio.timeout(LIMIT_S):
            async for frame in socket:
                batch = json.loads(frame.data)
                assert 0 < len(batch) <= 256
                for event in batch:
                    story.take(stream_event_adapter.validate_python(event))
                if story.is_over():
                    break
    return story


async def read_sse(site: Site, chat_id: str, story: Story, **headers: str) -> Story:
    """Follow a chat over SSE until its turn is over; ``last_event_id`` resumes."""
    path = f"{API}/chats/{chat_id}/stream"
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with site.http.get(path, headers=bearer(site.tokens["me"]) | named) as answer:
        assert (answer.status, answer.content_type) == (200, "text/event-stream")
        async with asyncio.timeout(LIMIT_S):
            # The last event of a sync is the reset of what was shown of the answer.
            while not story.is_over() or story.preview:
                record = (await answer.content.readuntil(b"\n\n")).decode()
                if record.startswith(":"):
                    continue
                fields = dict(line.split(": ", 1) for line in record.strip().splitlines())
                event = stream_event_adapter.validate_json(fields["data"])
                assert fields["event"] == event.type
                assert ("id" in fields) == (event.type == "message")
                story.take(event)
    return story
