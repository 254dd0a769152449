"""
An async client of the API, on aiohttp; its answers are the models of ``chatd.wire``.

Example:
    async with ChatClient("http://127.0.0.1:7080", token) as client:
        chat = await client.create_chat("open a terminal")
        async for event in client.stream(chat.id):
            ...
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote
from uuid import UUID

import aiohttp
from pydantic import TypeAdapter

from chatd.context_wire import ContextDiff
from chatd.errors import PeerError
from chatd.mcp_wire import ChatMcp, McpServer, McpServerList
from chatd.model_wire import ModelConfig, ModelOverride
from chatd.place_wire import Workspace
from chatd.question_wire import OpenQuestion
from chatd.routes.access import Acl
from chatd.routes.bodies import (
    Created,
    Download,
    Edited,
    MessageList,
    Promoted,
    PromptList,
    ProposedTitle,
    QuestionList,
    Sent,
    ThresholdList,
)
from chatd.routes.config import (
    AutoArchive,
    DefaultModel,
    PlanInstructions,
    Retention,
    SystemPrompt,
    UserPrompt,
)
from chatd.routes.groups import Group
from chatd.routes.limits import UsageLimits, UsageStatus
from chatd.routes.overrides import MayOverride, UserOverrides
from chatd.routes.push import PushKey, PushTried
from chatd.state.why import Why
from chatd.wire import (
    Chat,
    StreamEvent,
    stream_event_adapter,
)

__all__ = ["ApiError", "ChatClient"]

PREFIX = "/api/experimental"
# Seconds for one answer; streams are not limited.
TIMEOUT_S = 60.0
# Seconds between attempts to connect a broken stream again: doubled up to the second.
RETRY_S, MAX_RETRY_S = 0.25, 10.0

T = TypeVar("T")


@dataclass(eq=False)
class ApiError(PeerError):
    """The API refused: *status* and *body* say why."""

    status: int = 0
    body: dict[str, Any] | None = None
    code = "api_error"


class ChatClient:
    """One user's view of one control plane; use it as a context manager."""

    def __init__(self, url: str, token: str) -> None:
        self._session = aiohttp.ClientSession(
            url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    # -- chats -------------------------------------------------------------------

    async def create_chat(self, text: str, *, key: str | None = None, **fields: Any) -> Chat:  # noqa: ANN401
        """Start a chat; *fields* are those of the body, *key* makes a repetition harmless."""
        body = {"content": [{"type": "text", "text": text}], **fields}
        return await self._ask("POST", "/chats", Chat, json=body, key=key)

    async def list_chats(self, **query: Any) -> list[Chat]:  # noqa: ANN401 -- the route's query
        """Root chats."""
        return await self._ask("GET", "/chats", list[Chat], params=query)

    async def get_chat(self, chat_id: UUID) -> Chat:
        """One chat with its children."""
        return await self._ask("GET", f"/chats/{chat_id}", Chat)

    async def change_chat(self, chat_id: UUID, **fields: Any) -> None:  # noqa: ANN401 -- the body's fields
        """Rename (title), label, pin (pin_order), rebind (workspace_id), archive (archived)."""
        await self._ask("PATCH", f"/chats/{chat_id}", None, json=fields)

    async def interrupt(self, chat_id: UUID) -> Chat:
        """Stop the turn."""
        return await self._ask("POST", f"/chats/{chat_id}/interrupt", Chat)

    async def clear(self, chat_id: UUID) -> Chat:
        """Let the model forget."""
        return await self._ask("POST", f"/chats/{chat_id}/clear", Chat)

    async def compact(self, chat_id: UUID) -> Chat:
        """Summarise what was said."""
        return await self._ask("POST", f"/chats/{chat_id}/compact", Chat)

    async def thresholds(self) -> ThresholdList:
        """At what percentage of each model's window the caller's chats are summarised."""
        return await self._ask("GET", "/chats/config/user-compaction-thresholds", ThresholdList)

    async def set_threshold(self, model_config_id: UUID, percent: int | None) -> None:
        """Summarise earlier or later with this model; None: as it is by default."""
        if percent is None:
            await self._ask("DELETE", f"/chats/config/user-compaction-thresholds/{model_config_id}", None)
            return
        body = {"threshold_percent": percent}
        await self._ask("PUT", f"/chats/config/user-compaction-thresholds/{model_config_id}", None, json=body)

    async def system_prompt(self) -> str:
        """What every new chat is told first."""
        return (await self._ask("GET", "/chats/config/system-prompt", SystemPrompt)).system_prompt

    async def set_system_prompt(self, text: str) -> None:
        """Set it; for administrators."""
        await self._ask("PUT", "/chats/config/system-prompt", None, json={"system_prompt": text})

    async def plan_instructions(self) -> str:
        """What a chat is told besides while it makes a plan."""
        return (
            await self._ask("GET", "/chats/config/plan-mode-instructions", PlanInstructions)
        ).plan_mode_instructions

    async def set_plan_instructions(self, text: str) -> None:
        """Set it; for administrators."""
        await self._ask(
            "PUT", "/chats/config/plan-mode-instructions", None, json={"plan_mode_instructions": text}
        )

    async def user_prompt(self) -> str:
        """What the caller's new chats are told."""
        return (await self._ask("GET", "/chats/config/user-prompt", UserPrompt)).custom_prompt

    async def set_user_prompt(self, text: str) -> None:
        """Set it."""
        await self._ask("PUT", "/chats/config/user-prompt", None, json={"custom_prompt": text})

    async def auto_archive_days(self) -> int:
        """After how many idle days chats are archived; 0: never."""
        return (await self._ask("GET", "/chats/config/auto-archive-days", AutoArchive)).auto_archive_days

    async def set_auto_archive_days(self, days: int) -> None:
        """Set it; for administrators."""
        await self._ask("PUT", "/chats/config/auto-archive-days", None, json={"auto_archive_days": days})

    async def retention_days(self) -> int:
        """After how many days in the archive chats are deleted; 0: never."""
        return (await self._ask("GET", "/chats/config/retention-days", Retention)).retention_days

    async def set_retention_days(self, days: int) -> None:
        """Set it; for administrators."""
        await self._ask("PUT", "/chats/config/retention-days", None, json={"retention_days": days})

    async def default_model(self) -> UUID | None:
        """The model that a new chat gets when none is named."""
        return (await self._ask("GET", "/chats/config/default-model", DefaultModel)).model_config_id

    async def set_default_model(self, model_config_id: UUID | None) -> None:
        """Set it, or (None) leave it to the installation; for administrators."""
        body = {"model_config_id": None if model_config_id is None else str(model_config_id)}
        await self._ask("PUT", "/chats/config/default-model", None, json=body)

    async def may_override(self) -> bool:
        """Whether people may prefer other models for their chats and agents."""
        return (await self._ask("GET", "/chats/config/personal-model-overrides", MayOverride)).allow_users

    async def set_may_override(self, *, allow_users: bool) -> None:
        """Let them, or not; for administrators."""
        body = {"allow_users": allow_users}
        await self._ask("PUT", "/chats/config/personal-model-overrides", None, json=body)

    async def model_overrides(self) -> UserOverrides:
        """The models that the caller prefers, by context: root, general, explore."""
        return await self._ask("GET", "/chats/config/user-personal-model-overrides", UserOverrides)

    async def set_model_override(self, context: str, override: ModelOverride | None) -> None:
        """Prefer a model for new chats or agents that name none; None: no longer."""
        if override is None:
            await self._ask("DELETE", f"/chats/config/user-personal-model-overrides/{context}", None)
            return
        body = override.model_dump(mode="json", exclude_none=True)
        await self._ask("PUT", f"/chats/config/user-personal-model-overrides/{context}", None, json=body)

    async def mcp_servers(self) -> list[McpServer]:
        """The deployment's MCP servers."""
        return list((await self._ask("GET", "/mcp-servers", McpServerList)).servers)

    async def add_mcp_server(self, slug: str, url: str, **fields: Any) -> McpServer:  # noqa: ANN401
        """Add one; *fields* are those of the body."""
        return await self._ask("POST", "/mcp-servers", McpServer, json={"slug": slug, "url": url, **fields})

    async def get_mcp_server(self, server_id: UUID) -> McpServer:
        """One, and how it is."""
        return await self._ask("GET", f"/mcp-servers/{server_id}", McpServer)

    async def change_mcp_server(self, server_id: UUID, **fields: Any) -> McpServer:  # noqa: ANN401
        """Change what *fields* name."""
        return await self._ask("PATCH", f"/mcp-servers/{server_id}", McpServer, json=fields)

    async def delete_mcp_server(self, server_id: UUID) -> None:
        """Take one away from every chat."""
        await self._ask("DELETE", f"/mcp-servers/{server_id}", None)

    async def push_key(self) -> PushKey:
        """What a browser subscribes to pushes with."""
        return await self._ask("GET", "/push/key", PushKey)

    async def subscribe_push(self, subscription: dict[str, Any]) -> None:
        """Tell a browser of the caller's chats; *subscription* is its ``PushSubscription``."""
        await self._ask("POST", "/push/subscriptions", None, json=subscription)

    async def unsubscribe_push(self, endpoint: str) -> None:
        """Tell it no more."""
        await self._ask("DELETE", "/push/subscriptions", None, json={"endpoint": endpoint})

    async def test_push(self) -> PushTried:
        """Push something to every browser of the caller's."""
        return await self._ask("POST", "/push/test", PushTried)

    async def chat_mcp(self, chat_id: UUID) -> ChatMcp:
        """The MCP servers of a chat, the workspace's and the deployment's."""
        return await self._ask("GET", f"/chats/{chat_id}/mcp", ChatMcp)

    async def reconcile(self, chat_id: UUID) -> Chat:
        """Repair a chat in no valid state."""
        return await self._ask("POST", f"/chats/{chat_id}/reconcile-invalid", Chat)

    async def cost(self, chat_id: UUID) -> dict[str, int]:
        """What it and all below it cost: millionths of a dollar, tokens and numbers of calls."""
        return await self._ask("GET", f"/chats/{chat_id}/cost", dict[str, int])

    async def acl(self, chat_id: UUID) -> Acl:
        """Whom the chat is shared with."""
        return await self._ask("GET", f"/chats/{chat_id}/acl", Acl)

    async def share(
        self,
        chat_id: UUID,
        users: dict[str, str | None] | None = None,
        *,
        groups: dict[str, str | None] | None = None,
    ) -> None:
        """Share the chat with users and groups by name ("read"), or (None) no longer."""
        body = {"users": users or {}, "groups": groups or {}}
        await self._ask("PATCH", f"/chats/{chat_id}/acl", None, json=body)

    async def groups(self) -> list[Group]:
        """Every group of users."""
        return await self._ask("GET", "/groups", list[Group])

    async def save_group(self, name: str, members: list[str]) -> None:
        """Make a group, or change its members; for administrators."""
        await self._ask("PUT", f"/groups/{quote(name, safe='')}", None, json={"members": members})

    async def delete_group(self, name: str) -> None:
        """Delete a group; for administrators."""
        await self._ask("DELETE", f"/groups/{quote(name, safe='')}", None)

    async def usage(self) -> UsageStatus:
        """What the caller spent in the current period, and may."""
        return await self._ask("GET", "/chats/usage-limits/status", UsageStatus)

    async def usage_limits(self) -> UsageLimits:
        """Every limit there is; for administrators."""
        return await self._ask("GET", "/chats/usage-limits", UsageLimits)

    async def set_usage_limits(self, **fields: Any) -> None:  # noqa: ANN401 -- the body's fields
        """Set what holds for everybody; for administrators."""
        await self._ask("PUT", "/chats/usage-limits", None, json=fields)

    async def set_user_limit(self, name: str, limit_micros: int | None) -> None:
        """Give a user a limit of their own, or (None) take it away; for administrators."""
        if limit_micros is None:
            await self._ask("DELETE", f"/chats/usage-limits/overrides/{quote(name, safe='')}", None)
            return
        body = {"limit_micros": limit_micros}
        await self._ask("PUT", f"/chats/usage-limits/overrides/{quote(name, safe='')}", None, json=body)

    async def set_group_limit(self, name: str, limit_micros: int | None) -> None:
        """Give each member of a group a limit, or (None) take it away; for administrators."""
        if limit_micros is None:
            await self._ask("DELETE", f"/chats/usage-limits/group-overrides/{quote(name, safe='')}", None)
            return
        body = {"limit_micros": limit_micros}
        await self._ask("PUT", f"/chats/usage-limits/group-overrides/{quote(name, safe='')}", None, json=body)

    async def latest_by_workspace(self, workspace_ids: list[UUID]) -> dict[UUID, Chat]:
        """Of each workspace the chat that was used last."""
        query = {"workspace_ids": ",".join(map(str, workspace_ids))}
        return await self._ask("GET", "/chats/by-workspace", dict[UUID, Chat], params=query)

    async def propose_title(self, chat_id: UUID) -> str:
        """A title for what was said so far."""
        return (await self._ask("POST", f"/chats/{chat_id}/title/propose", ProposedTitle)).title

    async def why(self, chat_id: UUID) -> Why:
        """Why it does not go on, and who can help."""
        return await self._ask("GET", f"/chats/{chat_id}/why", Why)

    async def context_diff(self, chat_id: UUID) -> ContextDiff:
        """What a refresh of the workspace's context would change."""
        return await self._ask("GET", f"/chats/{chat_id}/context/diff", ContextDiff)

    async def refresh_context(self, chat_id: UUID) -> Chat:
        """Pin the chat to what its workspace has now."""
        return await self._ask("PUT", f"/chats/{chat_id}/context", Chat)

    async def workspaces(self) -> list[Workspace]:
        """The caller's workspaces."""
        return await self._ask("GET", "/workspaces", list[Workspace])

    async def models(self) -> list[ModelConfig]:
        """The models that there are."""
        return await self._ask("GET", "/chats/models", list[ModelConfig])

    # -- messages ----------------------------------------------------------------

    async def list_messages(self, chat_id: UUID, **query: int) -> MessageList:
        """A page."""
        return await self._ask("GET", f"/chats/{chat_id}/messages", MessageList, params=query)

    async def send(self, chat_id: UUID, text: str, *, key: str | None = None, **fields: Any) -> Sent:  # noqa: ANN401
        """Send a message; ``busy_behavior="interrupt"`` stops the turn for it, "steer" has it taken in."""
        body = {"content": [{"type": "text", "text": text}], **fields}
        return await self._ask("POST", f"/chats/{chat_id}/messages", Sent, json=body, key=key)

    async def edit(self, chat_id: UUID, message_id: int, text: str, **fields: Any) -> Edited:  # noqa: ANN401
        """Say a message anew; *fields* are those of the body."""
        body = {"content": [{"type": "text", "text": text}], **fields}
        return await self._ask("PATCH", f"/chats/{chat_id}/messages/{message_id}", Edited, json=body)

    async def questions(self, chat_id: UUID) -> list[OpenQuestion]:
        """What the agent asked while it went on and nobody answered yet."""
        return (await self._ask("GET", f"/chats/{chat_id}/questions", QuestionList)).questions

    async def answer(self, chat_id: UUID, question_id: UUID, text: str, *, key: str | None = None) -> Sent:
        """Answer a question that is open."""
        part = {"type": "question-answer", "question_id": str(question_id), "text": text}
        return await self._ask("POST", f"/chats/{chat_id}/messages", Sent, json={"content": [part]}, key=key)

    async def prompts(self, chat_id: UUID, **query: int) -> list[str]:
        """What the user asked, newest first."""
        return (await self._ask("GET", f"/chats/{chat_id}/prompts", PromptList, params=query)).prompts

    async def delete_queued(self, chat_id: UUID, queued_id: int) -> None:
        """Take a waiting message back."""
        await self._ask("DELETE", f"/chats/{chat_id}/queue/{queued_id}", None)

    async def promote_queued(self, chat_id: UUID, queued_id: int) -> Promoted:
        """Let a waiting message be next."""
        return await self._ask("POST", f"/chats/{chat_id}/queue/{queued_id}/promote", Promoted)

    async def answer_tools(self, chat_id: UUID, results: list[dict[str, Any]]) -> None:
        """Answer all calls that wait for this client: tool_call_id, output, is_error."""
        await self._ask("POST", f"/chats/{chat_id}/tool-results", None, json={"results": results})

    # -- files -------------------------------------------------------------------

    async def upload(self, data: bytes, media_type: str, *, name: str | None = None) -> UUID:
        """Upload a file; a message names it by the id."""
        headers = {"Content-Type": media_type}
        if name is not None:
            form = aiohttp.payload.BytesPayload(b"")
            form.set_content_disposition("attachment", filename=name)
            headers["Content-Disposition"] = form.headers["Content-Disposition"]
        return (await self._ask("POST", "/chats/files", Created, data=data, headers=headers)).id

    async def download_url(self, file_id: UUID) -> Download:
        """An address that gives the file without a token, for a while."""
        return await self._ask("POST", f"/chats/files/{file_id}/download-url", Download)

    async def download(self, file_id: UUID) -> bytes:
        """A file's bytes."""
        async with self._session.get(f"{PREFIX}/chats/files/{file_id}") as answer:
            await _require_ok(answer)
            return await answer.read()

    # -- streams -----------------------------------------------------------------

    async def stream(self, chat_id: UUID, *, after_id: int = 0) -> AsyncGenerator[StreamEvent, None]:
        """
        A chat's events, for ever; a broken connection is made again behind the newest message.

        Whoever shows fragments forgets them at ``preview_reset``: one comes first after
        each new connection.

        Raises:
            ApiError: the chat is not there, or not any more.
        """
        delay = RETRY_S
        while True:
            try:
                async with aclosing(self._stream_once(chat_id, after_id)) as events:
                    async for event in events:
                        delay = RETRY_S
                        if event.type == "message":
                            after_id = max(after_id, event.message.id)
                        yield event
            except (aiohttp.ClientConnectionError, TimeoutError):
                pass
            await asyncio.sleep(delay)
            delay = min(delay * 2, MAX_RETRY_S)

    async def _stream_once(self, chat_id: UUID, after_id: int) -> AsyncGenerator[StreamEvent, None]:
        path = f"{PREFIX}/chats/{chat_id}/stream?after_id={after_id}"
        try:
            socket = await self._session.ws_connect(path, heartbeat=25.0, max_msg_size=0)
        except aiohttp.WSServerHandshakeError as exc:
            raise ApiError(exc.message, status=exc.status) from exc
        async with socket:
            async for frame in socket:
                for event in json.loads(frame.data):
                    yield stream_event_adapter.validate_python(event)

    async def _ask(
        self,
        method: str,
        path: str,
        answer: type[T] | None,
        *,
        key: str | None = None,
        headers: dict[str, str] | None = None,
        **request: Any,  # noqa: ANN401 -- aiohttp's
    ) -> T:
        headers = (headers or {}) | ({"Idempotency-Key": key} if key else {})
        async with self._session.request(method, PREFIX + path, headers=headers, **request) as response:
            await _require_ok(response)
            if answer is None:
                return None  # type: ignore[return-value]  # nothing is promised
            return TypeAdapter(answer).validate_json(await response.read())


async def _require_ok(response: aiohttp.ClientResponse) -> None:
    if response.status < 400:
        return
    try:
        body = await response.json()
    except ValueError:
        body = {"message": response.reason}
    raise ApiError(str(body.get("message")), status=response.status, body=body)
