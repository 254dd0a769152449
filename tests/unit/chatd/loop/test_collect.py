"""The collector keeps everything it was given, at any moment."""

import itertools
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatd.loop.collect import Collector
from chatd.provider.protocol import (
    Finished,
    PartDone,
    ProviderEvent,
    ReasoningDelta,
    TextDelta,
    ToolInputDelta,
)
from chatd.wire import Part, ReasoningPart, TextPart, ToolCallPart

CALL = ToolCallPart(tool_call_id="c1", tool_name="run", args={"a": 1})
STREAM: list[ProviderEvent] = [
    ReasoningDelta("hm"),
    ReasoningDelta("mm"),
    PartDone(ReasoningPart(text="hmmm", provider_metadata={"signature": "s"})),
    TextDelta("He"),
    TextDelta("llo"),
    PartDone(TextPart(text="Hello")),
    ToolInputDelta("c1", "run", ""),
    ToolInputDelta("c1", "run", '{"a"'),
    ToolInputDelta("c1", "run", ": 1}"),
    PartDone(CALL),
    Finished(reason="tool-calls"),
]


START = datetime(2026, 1, 1, tzinfo=UTC)


def clock() -> datetime:
    """Time stands still."""
    return START


def timeless(parts: Iterable[Part | None]) -> list[Part | None]:
    """*parts* without the times that they came at."""
    return [part and part.model_copy(update=_no_times(part)) for part in parts]


def _no_times(part: Part) -> dict[str, None]:
    return dict.fromkeys({"created_at", "completed_at"} & type(part).model_fields.keys())


def collect(events: list[ProviderEvent]) -> tuple[Collector, list[Part | None]]:
    """A collector that took *events*, and the fragments it gave."""
    collector = Collector(clock)
    return collector, [collector.add(event) for event in events]


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, []),
        (1, [ReasoningPart(text="hm")]),
        (2, [ReasoningPart(text="hmmm")]),
        (3, ["reasoning"]),
        (4, ["reasoning", TextPart(text="He")]),
        (5, ["reasoning", TextPart(text="Hello")]),
        (6, ["reasoning", TextPart(text="Hello")]),
        (7, ["reasoning", TextPart(text="Hello"), ToolCallPart(tool_call_id="c1", tool_name="run", args={})]),
        (8, ["reasoning", TextPart(text="Hello"), ToolCallPart(tool_call_id="c1", tool_name="run", args={})]),
        (9, ["reasoning", TextPart(text="Hello"), CALL]),
        (10, ["reasoning", TextPart(text="Hello"), CALL]),
        (11, ["reasoning", TextPart(text="Hello"), CALL]),
    ],
)
def test_partial_holds_everything_received_at_every_prefix(count: int, expected: list[Part | str]) -> None:
    """Spec 6.5: text, reasoning, finished and half-streamed calls are kept."""
    collector, _ = collect(STREAM[:count])
    reasoning = ReasoningPart(text="hmmm", provider_metadata={"signature": "s"})

    wanted = [reasoning if part == "reasoning" else part for part in expected]
    assert wanted == timeless(collector.partial())


def test_content_is_the_whole_parts_and_fragments_are_not_doubled() -> None:
    """Ours: a part that was streamed is not published again when it is done; a call is."""
    collector, fragments = collect(STREAM)

    assert collector.content() == collector.partial()
    assert [part.type for part in collector.content()] == ["reasoning", "text", "tool-call"]
    assert timeless(fragments) == [
        ReasoningPart(text="hm"),
        ReasoningPart(text="mm"),
        None,
        TextPart(text="He"),
        TextPart(text="llo"),
        None,
        ToolCallPart(tool_call_id="c1", tool_name="run", args_delta=""),
        ToolCallPart(tool_call_id="c1", tool_name="run", args_delta='{"a"'),
        ToolCallPart(tool_call_id="c1", tool_name="run", args_delta=": 1}"),
        CALL,
        None,
    ]
    assert collector.finished == Finished(reason="tool-calls")


def test_a_part_that_was_never_streamed_is_published_whole() -> None:
    """Ours: vendors that send a part at once still show it."""
    part, thought = TextPart(text="at once"), ReasoningPart(text="so")
    _, fragments = collect([PartDone(thought), PartDone(part)])

    assert timeless(fragments) == [thought, part]


def test_blank_text_is_left_out_and_signed_reasoning_never_is() -> None:
    """Ours: vendors refuse blank text; a signature must be replayed even without text."""
    signed = ReasoningPart(text="", provider_metadata={"redacted": "x"})
    collector, _ = collect([PartDone(TextPart(text=" \n")), PartDone(signed), TextDelta("  ")])

    assert timeless(collector.content()) == [signed]
    assert timeless(collector.partial()) == [signed]


@pytest.mark.parametrize("text", ['{"a"', "[1]", "1", "nul", '{"a": 1}}', "", "\x00"])
def test_half_streamed_arguments_are_never_guessed(text: str) -> None:
    """Ours: what is no whole object becomes no arguments."""
    collector, _ = collect([ToolInputDelta("c", "run", text)])

    assert collector.partial() == (ToolCallPart(tool_call_id="c", tool_name="run", args={}),)


@given(cuts=st.lists(st.integers(0, 50), max_size=6), length=st.integers(0, 50))
def test_arguments_cut_anywhere_are_whole_or_empty(cuts: list[int], length: int) -> None:
    """Ours: fragments may be cut at any character, and the stream may end after any."""
    args = {"text": 'a "quoted" {brace}', "n": [1, 2]}
    whole = json.dumps(args)
    received = whole[:length]
    edges = [0, *sorted(min(cut, len(received)) for cut in cuts), len(received)]
    deltas = [received[start:end] for start, end in itertools.pairwise(edges)]
    collector, _ = collect([ToolInputDelta("c", "run", delta) for delta in deltas])
    expected = args if received == whole else {}

    assert collector.partial() == (ToolCallPart(tool_call_id="c", tool_name="run", args=expected),)


@given(st.lists(st.sampled_from(["t", "r"]), max_size=30))
def test_no_received_character_is_lost(kinds: list[str]) -> None:
    """Ours: whatever the interleaving, the partial's text is the text that came."""
    events: list[ProviderEvent] = [
        TextDelta(f"t{index}") if kind == "t" else ReasoningDelta(f"r{index}")
        for index, kind in enumerate(kinds)
    ]
    collector, _ = collect(events)
    texts = {part.type: part.text for part in collector.partial() if not isinstance(part, ToolCallPart)}  # type: ignore[union-attr]

    for kind, name in (("t", "text"), ("r", "reasoning")):
        expected = "".join(f"{kind}{index}" for index, k in enumerate(kinds) if k == kind)
        assert texts.get(name, "") == expected


def test_half_a_call_that_the_vendor_runs_is_not_kept() -> None:
    """Spec 1.6: its result can't be made up, and nobody here answers it."""
    collector = Collector(clock)
    fragment = collector.add(ToolInputDelta("ws", "web_search", '{"que', provider_executed=True))

    assert isinstance(fragment, ToolCallPart)
    assert (fragment.provider_executed, collector.partial()) == (True, ())


def test_thoughts_calls_and_results_tell_when_they_came() -> None:
    """Spec 1.3: a thought from its first word to its end, or its stop; a call when it is whole."""
    seconds = itertools.count()
    collector = Collector(lambda: START + timedelta(seconds=next(seconds)))
    for event in [*STREAM[:3], STREAM[9], ReasoningDelta("and")]:
        collector.add(event)
    thought, call = collector.content()
    *_, stopped = collector.partial()

    assert isinstance(thought, ReasoningPart)
    assert isinstance(call, ToolCallPart)
    assert isinstance(stopped, ReasoningPart)
    assert (thought.created_at, thought.completed_at) == (START, START + timedelta(seconds=1))
    assert call.created_at == START + timedelta(seconds=2)
    assert (stopped.created_at, stopped.completed_at) == (
        START + timedelta(seconds=3),
        START + timedelta(seconds=4),
    )
