"""
What MCP clients may read: a picture of the desktop, and what the workspace tells its chats.

The context holds instructions and skills as chats get them; of ``.mcp.json`` only that there is one,
since its headers and variables are secrets and in no snapshot.
"""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from agentd.wire.content import ImageContent, ToolResult
from context_push.manager import ContextManager

__all__ = ["RESOURCES", "Resources"]

SCREENSHOT = types.Resource(
    uri="desktop://main/screenshot",
    name="screenshot",
    title="The desktop now",
    description="A picture of the whole screen, taken when it is read.",
    mime_type="image/png",
)
CONTEXT = types.Resource(
    uri="context://workspace",
    name="context",
    title="The workspace's instructions and skills",
    description="What was found, whether it can be used or why not, and the text of what can.",
    mime_type="application/json",
)
RESOURCES = (SCREENSHOT, CONTEXT)

Contents = types.TextResourceContents | types.BlobResourceContents


class Resources:
    """
    Every resource by its address.

    Args:
        look: takes a picture.
        context: the workspace's.
    """

    def __init__(self, look: Callable[[], Awaitable[ToolResult]], context: ContextManager) -> None:
        self._look = look
        self._context = context

    async def read(self, uri: str) -> Contents:
        """
        What is at *uri* now.

        Raises:
            MCPError: there is no such resource, or no picture.
        """
        match uri:
            case SCREENSHOT.uri:
                return await self._read_screenshot()
            case CONTEXT.uri:
                text = json.dumps(self._describe_context(), ensure_ascii=False)
                return types.TextResourceContents(uri=uri, mime_type="application/json", text=text)
        known = ", ".join(resource.uri for resource in RESOURCES)
        raise MCPError(types.INVALID_PARAMS, f"no such resource; there are {known}")

    async def _read_screenshot(self) -> Contents:
        for block in (await self._look()).content:
            if isinstance(block, ImageContent):
                return types.BlobResourceContents(
                    uri=SCREENSHOT.uri, mime_type=block.mime_type, blob=block.data
                )
        raise MCPError(types.INTERNAL_ERROR, "there is no picture of the desktop")

    def _describe_context(self) -> dict[str, Any]:
        snapshot = self._context.snapshot
        return {
            "ready": self._context.is_ready,
            "version": snapshot.version,
            "aggregate_hash": snapshot.aggregate_hash,
            "error": snapshot.error,
            "resources": [resource.model_dump(mode="json") for resource in snapshot.resources],
        }
