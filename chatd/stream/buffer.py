"""
Fragments of answers being written, by episode (chat, history version, attempt).

Ephemeral by design: the durable message replaces them. Watchers read at their own
pace by index, so a slow one costs nothing and loses nothing that still matters.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from agentd.wire.link import MAX_PROGRESS_CHARACTERS
from chatd.constants import MAX_EPISODE_BYTES
from chatd.metrics import StreamGauges
from chatd.store.rows import without_internals
from chatd.wire import MessagePartEvent, Part, Role, ToolProgressEvent

__all__ = ["MAX_EPISODE_BYTES", "Episode", "PartBuffer"]


@dataclass(slots=True, kw_only=True)
class Episode:
    """The fragments of one try at one step, as watchers get them: made and rendered once for all of them."""

    chat_id: UUID
    history_version: int
    attempt: int
    fragments: list[MessagePartEvent] = field(default_factory=list)
    size_bytes: int = 0
    dropped: int = 0
    # Whether another replica writes it, and we have a copy.
    is_copy: bool = False


class PartBuffer:
    """The current episode of each chat of this process."""

    def __init__(self, touch: Callable[[UUID], None]) -> None:
        self._touch = touch
        self._episodes: dict[UUID, Episode] = {}
        # The newest word of each call that runs, by chat; words are numbered over all of them.
        self._progress: dict[UUID, dict[str, ToolProgressEvent]] = {}
        self._words = 0
        # Fragments that found no room, in all episodes there ever were.
        self._dropped = 0

    def open(self, chat_id: UUID, *, history_version: int, attempt: int) -> Episode:
        """Start a new episode; the chat's earlier one is forgotten."""
        episode = Episode(chat_id=chat_id, history_version=history_version, attempt=attempt)
        self._episodes[chat_id] = episode
        self._progress.pop(chat_id, None)
        return episode

    def report(self, chat_id: UUID, tool_call_id: str, text: str) -> None:
        """Publish what a call that runs tells of itself, in place of what it told before."""
        self._words += 1
        told = ToolProgressEvent(
            chat_id=chat_id, tool_call_id=tool_call_id, text=text[-MAX_PROGRESS_CHARACTERS:], seq=self._words
        )
        self._progress.setdefault(chat_id, {})[tool_call_id] = told
        self._touch(chat_id)

    def progress(self, chat_id: UUID, *, after: int) -> list[ToolProgressEvent]:
        """The chat's newest words whose number is above *after*, in order."""
        fresh = [told for told in self._progress.get(chat_id, {}).values() if told.seq > after]
        return sorted(fresh, key=lambda told: told.seq)

    def add(self, episode: Episode, role: Role, part: Part) -> None:
        """Publish a fragment; once one did not fit, all that follow are dropped too: no holes."""
        fragment = MessagePartEvent(
            chat_id=episode.chat_id,
            role=role,
            part=without_internals(part),
            history_version=episode.history_version,
            generation_attempt=episode.attempt,
            seq=len(episode.fragments) + 1,
        )
        size = len(fragment.to_json().encode())
        if episode.dropped or episode.size_bytes + size > MAX_EPISODE_BYTES:
            episode.dropped += 1
            self._dropped += 1
            return
        episode.size_bytes += size
        episode.fragments.append(fragment)
        self._touch(episode.chat_id)

    def copy(self, fragment: MessagePartEvent) -> bool:
        """
        Take over a fragment of another replica's episode; False when those before it are missing.

        What is known already, or older, or of a chat that is written here, is left out.
        """
        known = self._episodes.get(fragment.chat_id)
        if known is not None and not known.is_copy:
            return True
        at = (fragment.history_version, fragment.generation_attempt)
        if known is not None and at < (known.history_version, known.attempt):
            return True
        if known is None or at != (known.history_version, known.attempt):
            if fragment.seq != 1:
                return False
            known = self.open(fragment.chat_id, history_version=at[0], attempt=at[1])
            known.is_copy = True
        if fragment.seq > len(known.fragments) + 1:
            return False
        if fragment.seq == len(known.fragments) + 1:
            known.size_bytes += len(fragment.to_json().encode())
            known.fragments.append(fragment)
            self._touch(fragment.chat_id)
        return True

    def drop_copy(self, chat_id: UUID) -> None:
        """Nobody watches the chat here any more."""
        episode = self._episodes.get(chat_id)
        if episode is not None and episode.is_copy:
            del self._episodes[chat_id]

    def written_here(self, chat_id: UUID) -> Episode | None:
        """The chat's current episode, if it is not another replica's."""
        episode = self._episodes.get(chat_id)
        return None if episode is None or episode.is_copy else episode

    def get(self, chat_id: UUID) -> Episode | None:
        """The chat's current episode."""
        return self._episodes.get(chat_id)

    def gauges(self, *, subscribers: int) -> StreamGauges:
        """What there is now, for metrics."""
        sizes = [len(episode.fragments) for episode in self._episodes.values()]
        return StreamGauges(
            active=len(sizes),
            longest=max(sizes, default=0),
            events=sum(sizes),
            subscribers=subscribers,
            dropped=self._dropped,
        )

    def close(self, chat_id: UUID) -> None:
        """Forget the chat's episode: its turn is over here."""
        if self.written_here(chat_id) is not None:
            del self._episodes[chat_id]
        self._progress.pop(chat_id, None)
