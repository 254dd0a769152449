"""
Fragments of answers being written, by episode (chat, history version, attempt).

Ephemeral by design: the durable message replaces them. Watchers read at their own
pace by index, so a slow one costs nothing and loses nothing that still matters.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from chatd.wire import Part, Role

__all__ = ["MAX_EPISODE_BYTES", "Episode", "Fragment", "PartBuffer"]

# Bytes of one episode's fragments. Past it new fragments are dropped: the message itself still comes.
MAX_EPISODE_BYTES = 1024 * 1024
# Bytes that a fragment costs besides its JSON, so that empty ones are bounded in number too.
FRAGMENT_BYTES = 64


@dataclass(frozen=True, slots=True)
class Fragment:
    """One published piece; *seq* counts from 1."""

    seq: int
    role: Role
    part: Part


@dataclass(slots=True, kw_only=True)
class Episode:
    """The fragments of one try at one step."""

    chat_id: UUID
    history_version: int
    attempt: int
    fragments: list[Fragment] = field(default_factory=list)
    size_bytes: int = 0
    dropped: int = 0


class PartBuffer:
    """The current episode of each chat of this process."""

    def __init__(self, touch: Callable[[UUID], None]) -> None:
        self._touch = touch
        self._episodes: dict[UUID, Episode] = {}

    def open(self, chat_id: UUID, *, history_version: int, attempt: int) -> Episode:
        """Start a new episode; the chat's earlier one is forgotten."""
        episode = Episode(chat_id=chat_id, history_version=history_version, attempt=attempt)
        self._episodes[chat_id] = episode
        return episode

    def add(self, episode: Episode, role: Role, part: Part) -> None:
        """Publish a fragment; once one did not fit, all that follow are dropped too: no holes."""
        size = FRAGMENT_BYTES + len(part.model_dump_json(exclude_none=True).encode())
        if episode.dropped or episode.size_bytes + size > MAX_EPISODE_BYTES:
            episode.dropped += 1
            return
        episode.size_bytes += size
        episode.fragments.append(Fragment(len(episode.fragments) + 1, role, part))
        self._touch(episode.chat_id)

    def get(self, chat_id: UUID) -> Episode | None:
        """The chat's current episode."""
        return self._episodes.get(chat_id)

    def close(self, chat_id: UUID) -> None:
        """Forget the chat's episode: its turn is over."""
        self._episodes.pop(chat_id, None)
