"""What the stream of a person's chats tells, as JSON."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from chatd.wire import Chat, PendingCall

__all__ = ["WatchEvent", "WatchKind"]

# created and deleted are told of the archive too: a chat that was taken out of it, or put away.
WatchKind = Literal[
    "created", "deleted", "status_change", "title_change", "context_dirty", "action_required"
]  # fmt: skip


class WatchEvent(BaseModel):
    """
    A chat as it is now, and what changed of it, as far as that is known; hints may be lost.

    With *action_required* come the calls that wait for the client.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    type: Literal["chat"] = "chat"
    kinds: tuple[WatchKind, ...] = ()
    chat: Chat
    tool_calls: tuple[PendingCall, ...] | None = None
