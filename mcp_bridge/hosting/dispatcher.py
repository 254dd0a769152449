"""
The SDK's JSON-RPC dispatcher, tolerant of servers that lie about their schemas.

The SDK checks a result as a whole: one bad tool of 400 would fail the list, one content block of an
unknown type a call. Here bad tools are set aside with a reason, results are kept as sent.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from mcp.shared.dispatcher import CallOptions
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import RequestId

from mcp_bridge.listing import readable_entries
from mcp_bridge.wire import RejectedTool

__all__ = ["RAW", "TolerantDispatcher"]

# Key of a result's ``_meta`` under which the server's own JSON travels through the SDK's models.
RAW = "mcp_bridge/raw"


class TolerantDispatcher(JSONRPCDispatcher):
    """
    A dispatcher for one session.

    ``ended`` is set when the connection is over. ``entries`` and ``rejected`` are the tools of all
    listings since they were last emptied, as the server sent them.
    """

    def __init__(self, read_stream: Any, write_stream: Any) -> None:  # noqa: ANN401 -- the SDK's streams
        super().__init__(read_stream, write_stream)
        self.ended = asyncio.Event()
        self.entries: list[dict[str, Any]] = []
        self.rejected: list[RejectedTool] = []

    async def run(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 -- the SDK's signature
        """Serve until the connection ends."""
        try:
            await super().run(*args, **kwargs)
        finally:
            self.ended.set()

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        *,
        _related_request_id: RequestId | None = None,
    ) -> dict[str, Any]:
        """Ask the server; make what it answers fit the SDK's models."""
        result = await super().send_raw_request(method, params, opts, _related_request_id=_related_request_id)
        if method == "tools/list":
            return self._readable_list(result)
        if method == "tools/call" and result.get("resultType", "complete") == "complete":
            # ttlMs and the like are the SDK's business; content is ours, and read from RAW.
            return {"resultType": "complete", "content": [], "_meta": {RAW: result}}
        return result

    def _readable_list(self, result: dict[str, Any]) -> dict[str, Any]:
        entries = result.get("tools")
        kept, rejected = readable_entries(entries if isinstance(entries, list) else [])
        self.entries += kept
        self.rejected += rejected
        # The SDK would refuse a result that does not fit its output schema; models read it anyway.
        plain = ("name", "title", "description", "inputSchema", "annotations")
        tools = [
            {key: _fit(key, entry[key]) for key in plain if entry.get(key) is not None} for entry in kept
        ]
        cursor = result.get("nextCursor")
        readable = {"tools": tools, **({"nextCursor": cursor} if isinstance(cursor, str) and cursor else {})}
        return {
            **{key: result[key] for key in ("resultType", "ttlMs", "cacheScope") if key in result},
            **readable,
        }


def _fit(key: str, value: Any) -> Any:  # noqa: ANN401 -- JSON
    """A value that the SDK's model takes."""
    match key:
        case "inputSchema":
            return {**value, "type": "object"} if value.get("type") != "object" else value
        case "annotations":
            hints = value if isinstance(value, dict) else {}
            return {
                k: v for k, v in hints.items() if isinstance(v, bool) or (k == "title" and isinstance(v, str))
            }
        case _:
            return value if isinstance(value, str) else str(value)
