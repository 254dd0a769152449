"""The part buffer: one episode a chat, bounded."""

from uuid import UUID

from chatd.metrics import StreamGauges
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


def test_what_there_is_now_is_told_to_metrics() -> None:
    """Spec 9: chats with fragments, the longest, all of them, and all that ever found no room."""
    buffer = PartBuffer(lambda _: None)
    assert buffer.gauges(subscribers=2) == StreamGauges(subscribers=2)
    first = buffer.open(CHAT, history_version=1, attempt=1)
    second = buffer.open(UUID(int=2), history_version=1, attempt=1)
    for episode, count in ((first, 3), (second, 1)):
        for _ in range(count):
            buffer.add(episode, "assistant", TextPart(text="x"))
    buffer.add(second, "assistant", TextPart(text="x" * MAX_EPISODE_BYTES))
    before = buffer.gauges(subscribers=0)
    buffer.close(CHAT)
    buffer.close(UUID(int=2))

    assert before == StreamGauges(active=2, longest=3, events=4, dropped=1)
    assert buffer.gauges(subscribers=0) == StreamGauges(dropped=1)


def test_the_newest_word_of_each_call_is_kept_until_the_next_step() -> None:
    """Ours: whoever comes late hears where a call is now, and nothing of the step before."""
    touched: list[UUID] = []
    buffer, chat_id = PartBuffer(touched.append), UUID(int=1)
    for call_id, text in (("a", "1"), ("b", "x"), ("a", "2" * 5_000)):
        buffer.report(chat_id, call_id, text)
    words = buffer.progress(chat_id, after=0)
    later = buffer.progress(chat_id, after=words[0].seq)
    other = buffer.progress(UUID(int=2), after=0)
    buffer.open(chat_id, history_version=1, attempt=1)

    assert [(word.tool_call_id, len(word.text)) for word in words] == [("b", 1), ("a", 2_000)]
    assert later == words[1:]
    assert other == buffer.progress(chat_id, after=0) == []
    assert touched == [chat_id] * 3
