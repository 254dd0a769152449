"""
Write frames to a fragmented MP4: what is on disk plays, whatever happens to the writer.

Owns the video library on the writing side. A fragment is complete on disk as soon as the first frame
after it is written, so a file lacks at most ``FRAGMENT_MS`` and the pause between two frames.

Source: ISO/IEC 14496-12, 8.8 (movie fragments).
"""

from fractions import Fraction
from pathlib import Path

import av
from av.video.frame import PictureType

from computer.geometry import Size
from computer.pixels import Framebuffer

__all__ = ["FRAGMENT_MS", "MILLISECOND", "VideoWriter"]

# Milliseconds of one fragment: the most that a kill loses, besides the pause between two frames.
FRAGMENT_MS = 400
# Milliseconds between key frames: how far a player goes back to show any moment.
KEY_MS = 5_000
MILLISECOND = Fraction(1, 1000)
# superfast: half of veryfast's time for a tenth more bytes; text stays readable at 24.
CODEC = {"preset": "superfast", "tune": "zerolatency", "crf": "24", "forced-idr": "1"}
CONTAINER = {
    "movflags": "empty_moov+default_base_moof",
    "frag_duration": str(FRAGMENT_MS * 1000),
    "flush_packets": "1",
}


class VideoWriter:
    """
    One MP4 with H.264, variable frame rate; times are milliseconds and must ascend.

    Args:
        path: must not exist.
        size: of all frames, even.
    """

    def __init__(self, path: Path, size: Size) -> None:
        self._file = av.open(str(path), "w", format="mp4", options=CONTAINER)
        stream = self._file.add_stream("libx264", options=CODEC)
        stream.width, stream.height, stream.pix_fmt = size.width, size.height, "yuv420p"
        stream.codec_context.time_base = MILLISECOND
        # Lookahead and frame threads would hold frames back, and the desktop needs the other cores.
        stream.codec_context.thread_count = 1
        stream.codec_context.gop_size = 2**31 - 1
        self._stream = stream
        self._frame: av.VideoFrame | None = None
        self._next_key_ms = 0

    def write(self, frame: Framebuffer, at_ms: int) -> None:
        """Show *frame*, BGRX and contiguous, from *at_ms* on."""
        picture = av.VideoFrame.from_numpy_buffer(frame, format="bgra")
        self._frame = picture.reformat(format="yuv420p", interpolation="FAST_BILINEAR")
        self.repeat(at_ms)

    def repeat(self, at_ms: int) -> None:
        """Show the last frame again: costs some bytes and brings what came before to the disk."""
        if self._frame is None:
            return
        self._frame.pts, self._frame.time_base = at_ms, MILLISECOND
        is_key = at_ms >= self._next_key_ms
        self._frame.pict_type = PictureType.I if is_key else PictureType.NONE
        if is_key:
            self._next_key_ms = at_ms + KEY_MS
        self._file.mux(self._stream.encode(self._frame))

    def close(self) -> None:
        """Write what is left."""
        self._file.mux(self._stream.encode(None))
        self._file.close()
