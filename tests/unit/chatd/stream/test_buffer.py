"""The part buffer: one episode a chat, bounded."""

from uuid import UUID

from chatd.stream.buffer import MAX_EPISODE_BYTES, PartBuffer
from chatd.wire import FilePart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

CHAT = UUID(int=1)


def test_fragments_are_numbered_from_one_and_announced() -> None:
    """Spec 5.4: seq from 1; each fragment touches the chat."""
    touched: list[UUID] = []
    buffer = PartBuffer(touched.append)
    episode = buffer.open(CHAT, history_version=1, attempt=1)
    for text in "abc":
        buffer.add(episode, "assistant", TextPart(text=text))

    assert [fragment.seq for fragment in episode.fragments] == [1, 2, 3]
    assert touched == [CHAT] * 3
    assert buffer.get(CHAT) is episode


def test_a_full_episode_drops_and_counts() -> None:
    """Spec 5.4: 1 MiB an episode; the durable message still comes."""
    touched: list[UUID] = []
    buffer = PartBuffer(touched.append)
    episode = buffer.open(CHAT, history_version=1, attempt=1)
    for _ in range(20):
        buffer.add(episode, "assistant", TextPart(text="x" * 100_000))

    assert episode.size_bytes <= MAX_EPISODE_BYTES
    assert len(episode.fragments) + episode.dropped == 20
    assert episode.dropped > 0
    assert len(touched) == len(episode.fragments)


def test_empty_fragments_fill_an_episode_too() -> None:
    """Ours: every kind of part costs something, so that their number is bounded as well."""
    parts: list[Part] = [
        TextPart(text=""),
        ReasoningPart(text=""),
        ToolCallPart(tool_call_id="c", tool_name="t", args_delta=""),
        ToolResultPart(tool_call_id="c", tool_name="t"),
        FilePart(media_type="image/png"),
    ]
    for part in parts:
        buffer = PartBuffer(lambda _: None)
        episode = buffer.open(CHAT, history_version=1, attempt=1)
        for _ in range(MAX_EPISODE_BYTES // 64 + 1):
            buffer.add(episode, "assistant", part)

        assert episode.dropped > 0
        assert episode.size_bytes <= MAX_EPISODE_BYTES


def test_a_new_episode_replaces_the_old_one() -> None:
    """Ours: fragments of an earlier try are never shown again; closing twice is fine."""
    buffer = PartBuffer(lambda _: None)
    old = buffer.open(CHAT, history_version=1, attempt=1)
    buffer.add(old, "assistant", TextPart(text="x"))
    new = buffer.open(CHAT, history_version=1, attempt=2)

    assert buffer.get(CHAT) is new
    assert new.fragments == []
    buffer.close(CHAT)
    buffer.close(CHAT)
    assert buffer.get(CHAT) is None
