"""What a server says to nobody, and where the next message begins."""

import asyncio
import struct

import pytest

from agentd.silence import Silence

LIMIT_S = 10


def _cut_text(size: int, *, is_extended: bool = False) -> bytes:
    return struct.pack(">Bxxxi", 3, -size if is_extended else size) + b"\0" * size


@pytest.mark.parametrize("split", [0, 1, 5, 9, 30])
async def test_whoever_goes_on_begins_at_the_head_of_a_message(split: int) -> None:
    """Invariant: ended in the middle of a message, it takes the rest of that, and no more."""
    reader, ends, answers = asyncio.StreamReader(), [], []
    stream = _cut_text(20) + b"\2" + _cut_text(8, is_extended=True)
    silence = Silence(reader, answers.append, lambda: ends.append("end"))
    reader.feed_data(stream[:split])
    for _ in range(5):
        await asyncio.sleep(0)
    ending = asyncio.ensure_future(silence.end())
    await asyncio.sleep(0)
    reader.feed_data(stream[split:] + b"\0next")
    async with asyncio.timeout(LIMIT_S):
        await ending
        rest = await reader.read(1000)

    # Messages begin at 0, 28 and 29.
    begins = 0 if split == 0 else 28 if split < 28 else len(stream)
    assert rest == stream[begins:] + b"\0next"
    assert ends == []


PIXELS = struct.pack(">BxH", 0, 2) + struct.pack(">HHHHi", 0, 0, 2, 3, 0) + b"x" * 24
PIXELS += struct.pack(">HHHHi", 0, 0, 9, 9, -223)
FENCE = struct.pack(">BxxxIB", 248, 1 << 31 | 1, 3)


async def test_what_was_asked_for_before_is_skipped_and_fences_are_answered() -> None:
    """Ours: raw pixels that were on their way, and a server that measures how quick the viewer is."""
    reader, answers, ended = asyncio.StreamReader(), [], asyncio.Event()
    silence = Silence(reader, answers.append, ended.set)
    reader.feed_data(PIXELS + FENCE + b"abc" + b"\x96" + PIXELS)
    async with asyncio.timeout(LIMIT_S):
        while reader._buffer:  # type: ignore[attr-defined]  # noqa: ASYNC110
            await asyncio.sleep(0)
        await silence.end()

    assert answers == [struct.pack(">BxxxIB", 248, 1, 3) + b"abc"]
    assert not ended.is_set()


TIGHT = struct.pack(">BxHHHHHi", 0, 1, 0, 0, 2, 2, 7)


@pytest.mark.parametrize("data", [b"", b"\x03\0\0", b"\x07", TIGHT])
async def test_end_of_the_server_is_told(data: bytes) -> None:
    """Ours: also where it says what nobody asked for."""
    reader, ended = asyncio.StreamReader(), asyncio.Event()
    silence = Silence(reader, lambda _: None, ended.set)
    reader.feed_data(data)
    reader.feed_eof()
    async with asyncio.timeout(LIMIT_S):
        await ended.wait()
        await silence.end()
