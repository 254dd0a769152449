"""
Turn a recorded film into one that players can seek in, its stills sped up.

Nothing is encoded again: frames keep their bytes and get other times. A film whose recorder was killed
is read to where it ends. The finished film takes the place of the recorded one at once or not at all.
"""

import struct
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import av
import numpy as np
from av.container import InputContainer
from av.packet import Packet
from av.video.stream import VideoStream

from computer.recording.encoder import MILLISECOND
from computer.recording.orders import CHANGES_SUFFIX, THUMBNAIL_SUFFIX, FinishOrder, Report
from computer.recording.recorder import save_thumbnail
from computer.recording.timeline import Timeline, idle_spans

__all__ = ["finish_film", "read_changes"]

# Milliseconds that the last frame is shown.
LAST_MS = 500


def finish_film(order: FinishOrder) -> Report:
    """
    Finish the film at ``order.path``; returns its new length.

    Raises:
        OSError: it can't be read or written; the recorded film is as it was.
    """
    path = Path(order.path)
    changes = path.with_suffix(CHANGES_SUFFIX)
    if not path.with_suffix(THUMBNAIL_SUFFIX).exists():
        _make_thumbnail(path)
    moments = _moments(path)
    length_s = max(moments, default=0.0) + LAST_MS / 1000
    spans = idle_spans(read_changes(changes), length_s, order.least_idle_s) if changes.exists() else ()
    times = _new_times(moments, Timeline(spans, order.speedup))
    partial = path.with_suffix(".part")
    partial.unlink(missing_ok=True)
    _copy(path, partial, times)
    partial.replace(path)
    changes.unlink(missing_ok=True)
    return Report(event="finished", duration_s=times[-1] / 1000)


def read_changes(path: Path) -> list[float]:
    """Seconds at which something changed; a moment that was half written is left out."""
    data = path.read_bytes()
    whole = len(data) // 4
    return [moment / 1000 for (moment,) in struct.iter_unpack("<I", data[: whole * 4])]


def _packets(file: InputContainer) -> "Iterator[tuple[float, Packet[VideoStream]]]":
    """Whole packets and their times in seconds; ends quietly where a killed recorder ended."""
    with suppress(av.error.InvalidDataError, av.error.EOFError):
        for packet in file.demux(file.streams.video[0]):
            if packet.pts is not None and packet.size:
                yield float(packet.pts * packet.time_base), packet


def _moments(path: Path) -> list[float]:
    with av.open(str(path)) as file:
        return [moment for moment, _ in _packets(file)]


def _new_times(moments: list[float], timeline: Timeline) -> list[int]:
    """Milliseconds at which frames are shown, and when the last one ends; two never share a moment."""
    times: list[int] = []
    for moment in moments:
        at_ms = round(timeline.shown_at(moment) * 1000)
        times.append(at_ms if not times else max(times[-1] + 1, at_ms))
    return [*times, (times[-1] if times else 0) + LAST_MS]


def _copy(source: Path, target: Path, times: list[int]) -> None:
    """Copy all packets to their new times."""
    with (
        av.open(str(source)) as given,
        av.open(str(target), "w", format="mp4", options={"movflags": "faststart"}) as made,
    ):
        stream = made.add_stream_from_template(given.streams.video[0])
        for (_, packet), (start, end) in zip(_packets(given), pairwise(times), strict=False):
            packet.stream, packet.time_base = stream, MILLISECOND
            packet.pts = packet.dts = start
            packet.duration = end - start
            made.mux(packet)


def _make_thumbnail(path: Path) -> None:
    """Picture of the last key frame, for a film whose recorder could not make one."""
    with av.open(str(path)) as file:
        stream = file.streams.video[0]
        stream.codec_context.skip_frame = "NONKEY"
        last = None
        with suppress(av.error.InvalidDataError, av.error.EOFError):
            for frame in file.decode(stream):
                last = frame
    if last is not None:
        save_thumbnail(np.ascontiguousarray(last.to_ndarray(format="bgra")), path)
