"""A stream of MCP messages as the SDK takes it: what a pipe to a client and one to a server share."""

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

__all__ = ["MessageReader", "MessageStream", "parse_message", "render_message"]


def parse_message(text: str | bytes) -> SessionMessage:
    """A message from its JSON; raises ValueError."""
    return SessionMessage(types.jsonrpc_message_adapter.validate_json(text, by_name=False))


def render_message(item: SessionMessage) -> str:
    """The JSON of a message."""
    return item.message.model_dump_json(by_alias=True, exclude_unset=True)


class MessageStream:
    """One direction; left with its block."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End the stream."""


class MessageReader(MessageStream, ABC):
    """Messages of the other side, one by one or by iteration."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    @abstractmethod
    async def receive(self) -> SessionMessage | Exception:
        """
        The next message; what is none may come as an exception.

        Raises:
            EndOfStream: there are no more.
        """
