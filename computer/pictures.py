"""
Pictures of a display, each encoded once.

Synchronous; belongs to the thread of its display.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from computer.display import Display
from computer.geometry import Rect, Size, fit_within
from computer.pixels import (
    EncodingSettings,
    Framebuffer,
    MediaType,
    crop,
    encode,
    frame_size,
    is_blank,
    to_base64,
    to_rgb,
)
from computer.png import PngEncoder, is_same
from computer.wire import ScreenshotData

__all__ = ["Pictures"]

# Pictures of the same screen in different sizes that are kept: a model's, a thumbnail, native.
MAX_KEPT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Picture:
    """An encoded frame."""

    frame: Framebuffer
    size: Size
    media_type: MediaType
    data: str


class Pictures:
    """
    Takes pictures of *display*.

    While the screen stays the same, its picture is handed out again: where the server tells what
    changes, not even the pixels are read.
    """

    def __init__(self, display: Display, settings: EncodingSettings) -> None:
        self._display = display
        self._settings = settings
        self._frame: Framebuffer | None = None
        self._kept: dict[Size, _Picture] = {}
        self._encoders: dict[Size, PngEncoder] = {}
        self._told: _Picture | None = None
        self._is_blank = False

    @property
    def is_blank(self) -> bool:
        """Whether the last picture was of one colour."""
        return self._is_blank

    def take(self, target: Size | None, *, tells: bool = False) -> ScreenshotData:
        """
        Picture of the whole screen in *target* size, native if that is None.

        Args:
            target: size of the picture.
            tells: say whether it is the same as the last one taken with this set.
        """
        frame = self._look()
        size = target or frame_size(frame)
        picture = self._kept.get(size)
        if picture is None or picture.frame is not frame:
            picture = self._encode(frame, size)
        is_same = tells and picture is self._told
        if tells:
            self._told = picture
        return _screenshot(picture, frame_size(frame), is_same=is_same)

    def take_region(self, region: Rect, box: Size) -> ScreenshotData:
        """Picture of *region*, as large as fits into *box*."""
        frame = self._look()
        size = fit_within(region.size, box)
        encoded = encode(to_rgb(crop(frame, region), size), self._settings)
        picture = _Picture(
            frame=frame, size=size, media_type=encoded.media_type, data=to_base64(encoded.data)
        )
        return _screenshot(picture, frame_size(frame), is_same=False)

    def _look(self) -> Framebuffer:
        last = self._frame
        if last is not None and self._display.is_unchanged():
            return last
        frame = self._display.capture()
        if last is not None and is_same(last, frame):
            return last
        self._frame = frame
        self._is_blank = is_blank(frame)
        return frame

    def _encode(self, frame: Framebuffer, size: Size) -> _Picture:
        encoder = self._encoders.pop(size, None) or PngEncoder()
        while len(self._encoders) >= MAX_KEPT:
            del self._encoders[next(iter(self._encoders))]
        self._encoders[size] = encoder
        pixels = frame if size == frame_size(frame) else to_rgb(frame, size)
        encoded = encode(pixels, self._settings, encoder)
        picture = _Picture(
            frame=frame, size=size, media_type=encoded.media_type, data=to_base64(encoded.data)
        )
        self._kept = {kept: old for kept, old in self._kept.items() if old.frame is frame and kept != size}
        while len(self._kept) >= MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[size] = picture
        return picture


def _screenshot(picture: _Picture, native: Size, *, is_same: bool) -> ScreenshotData:
    # Not validated: the data were made here, and a megabyte of text is not looked at twice.
    return ScreenshotData.model_construct(
        media_type=picture.media_type,
        data=picture.data,
        model_size=(picture.size.width, picture.size.height),
        native_size=(native.width, native.height),
        taken_at=datetime.now(UTC),
        unchanged=is_same,
    )
