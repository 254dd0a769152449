"""
Points, sizes, rectangles, and the mapping between the model's frame and native pixels.

Pure. Native pixels (``Point``) and the model's frame (``ModelPoint``) are distinct types,
so that one can't be passed for the other. Origin is top left; right and bottom edges of
a ``Rect`` are exclusive.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from computer.errors import InvalidAction, OutOfBounds

__all__ = [
    "MAX_DECLARED_AREA",
    "MAX_DECLARED_EDGE",
    "VENDOR_LIMITS",
    "ModelPoint",
    "PictureLimits",
    "Point",
    "Rect",
    "Scale",
    "Size",
    "Vendor",
    "add_box",
    "declared_size",
    "fit_within",
    "vendor_size",
]

# Pixels. Above either limit vendors shrink a picture themselves and coordinates go wrong.
MAX_DECLARED_EDGE = 1_568
MAX_DECLARED_AREA = 1_150_000
# Pixels. Widths that models were trained on, tried first for landscape screens.
PREFERRED_WIDTHS = (1_280, 1_024)
# Pixels. Boxes nearer than this are told as one: a line of text is not forty letters.
BOX_GAP = 8

Vendor = Literal["anthropic", "openai", "google"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """Width and height in pixels, both at least 1."""

    width: int
    height: int

    def __post_init__(self) -> None:
        if self.width < 1 or self.height < 1:
            msg = f"a size must be at least 1x1, not {self}"
            raise InvalidAction(msg)

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"

    def holds(self, point: "Point") -> bool:
        """Whether *point* is on a screen of this size."""
        return 0 <= point.x < self.width and 0 <= point.y < self.height

    def check_holds(self, point: "Point") -> None:
        """
        See that *point* is on a screen of this size.

        Raises:
            OutOfBounds: it is not.
        """
        if not self.holds(point):
            msg = f"({point.x}, {point.y}) is outside the {self} screen"
            raise OutOfBounds(msg)


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A place in native pixels."""

    x: int
    y: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPoint:
    """A place in the model's frame."""

    x: int
    y: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rect:
    """A region in native pixels; right and bottom are exclusive."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def size(self) -> Size:
        """Width and height."""
        return Size(width=self.right - self.left, height=self.bottom - self.top)

    @property
    def area(self) -> int:
        """Number of pixels."""
        return (self.right - self.left) * (self.bottom - self.top)

    def union(self, other: "Rect") -> "Rect":
        """Smallest rectangle around both."""
        return Rect(
            left=min(self.left, other.left),
            top=min(self.top, other.top),
            right=max(self.right, other.right),
            bottom=max(self.bottom, other.bottom),
        )

    def is_near(self, other: "Rect", gap: int = 0) -> bool:
        """Whether the two overlap or lie less than *gap* pixels apart on both axes."""
        return (
            self.left < other.right + gap
            and other.left < self.right + gap
            and self.top < other.bottom + gap
            and other.top < self.bottom + gap
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Maps between a model's frame and native pixels, each axis by itself."""

    native: Size
    model: Size

    def to_native(self, point: ModelPoint) -> Point:
        """
        Map a place of the model to native pixels.

        Raises:
            OutOfBounds: *point* is outside the model's frame. A point is never clamped: a
                click that the model did not mean is worse than a refusal.
        """
        self._check_inside(point)
        return Point(
            x=_map_axis(point.x, self.model.width, self.native.width),
            y=_map_axis(point.y, self.model.height, self.native.height),
        )

    def to_model(self, point: Point) -> ModelPoint:
        """Map native pixels to the model's frame; a pointer beyond an edge maps to the edge."""
        return ModelPoint(
            x=_map_axis(point.x, self.native.width, self.model.width),
            y=_map_axis(point.y, self.native.height, self.model.height),
        )

    def region_to_native(self, left: int, top: int, right: int, bottom: int) -> Rect:
        """
        Map a region of the model's frame to the native pixels that it touches.

        Raises:
            InvalidAction: the region is empty.
            OutOfBounds: the region leaves the model's frame.
        """
        if left >= right or top >= bottom:
            msg = f"region [{left}, {top}, {right}, {bottom}] is empty"
            raise InvalidAction(msg)
        if left < 0 or top < 0 or right > self.model.width or bottom > self.model.height:
            msg = f"region [{left}, {top}, {right}, {bottom}] leaves the screen, which is {self.model}"
            raise OutOfBounds(msg)
        return Rect(
            left=left * self.native.width // self.model.width,
            top=top * self.native.height // self.model.height,
            right=-(-right * self.native.width // self.model.width),
            bottom=-(-bottom * self.native.height // self.model.height),
        )

    def _check_inside(self, point: ModelPoint) -> None:
        if 0 <= point.x < self.model.width and 0 <= point.y < self.model.height:
            return
        msg = (
            f"({point.x}, {point.y}) is outside the screen: "
            f"x is 0 to {self.model.width - 1}, y is 0 to {self.model.height - 1}"
        )
        raise OutOfBounds(msg)


def _map_axis(coordinate: int, source: int, target: int) -> int:
    # floor(((c + 0.5) * t / f) - 0.5 + 0.5), kept in integers so that no edge depends on a float.
    mapped = coordinate if source == target else (2 * coordinate + 1) * target // (2 * source)
    return min(max(mapped, 0), target - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureLimits:
    """
    What a vendor takes without shrinking it.

    Attributes:
        long_edge: pixels of the longer side.
        area: pixels in all.
        preferred_widths: tried first, in order, for screens that are not taller than wide.
    """

    long_edge: int
    area: int
    preferred_widths: tuple[int, ...] = ()


# Anthropic shrinks above 1568 pixels or 1.15 megapixels. OpenAI's computer models were trained at up
# to 1600x900, Google's at 1440x900 (their coordinates are a 1000x1000 grid over whatever is sent).
VENDOR_LIMITS: Mapping[Vendor, PictureLimits] = MappingProxyType(
    {
        "anthropic": PictureLimits(
            long_edge=MAX_DECLARED_EDGE, area=MAX_DECLARED_AREA, preferred_widths=PREFERRED_WIDTHS
        ),
        "openai": PictureLimits(long_edge=1_600, area=1_600 * 900),
        "google": PictureLimits(long_edge=1_440, area=1_440 * 900),
    }
)


def vendor_size(vendor: Vendor, native: Size) -> Size:
    """
    Choose the size that a vendor's model is told, and that screenshots are scaled to.

    Native when it is small enough; else a preferred width with proportional height; else
    the largest proportional size within both limits. The shape of the screen is kept, so
    that both axes scale alike but for rounding.
    """
    limits = VENDOR_LIMITS[vendor]
    if _is_within(native, limits):
        return native
    if native.width >= native.height:
        for width in limits.preferred_widths:
            candidate = Size(width=width, height=max(1, native.height * width // native.width))
            if width < native.width and _is_within(candidate, limits):
                return candidate
    factor = min(
        limits.long_edge / max(native.width, native.height),
        (limits.area / (native.width * native.height)) ** 0.5,
    )
    return Size(width=max(1, int(native.width * factor)), height=max(1, int(native.height * factor)))


def declared_size(native: Size) -> Size:
    """Choose the size for a vendor whose limits are not known: the strictest ones that are."""
    return vendor_size("anthropic", native)


def _is_within(size: Size, limits: PictureLimits) -> bool:
    return max(size.width, size.height) <= limits.long_edge and size.width * size.height <= limits.area


def add_box(boxes: list[Rect], box: Rect, limit: int) -> None:
    """
    Add *box* to *boxes* in place, merged with those near it and so that at most *limit* are left.

    Where too many are left, the two are merged that waste the fewest pixels.
    """
    near = next((other for other in boxes if other.is_near(box, BOX_GAP)), None)
    while near is not None:
        boxes.remove(near)
        box = box.union(near)
        near = next((other for other in boxes if other.is_near(box, BOX_GAP)), None)
    boxes.append(box)
    if len(boxes) > limit:
        first, second = min(itertools.combinations(boxes, 2), key=_waste)
        boxes.remove(first)
        boxes.remove(second)
        add_box(boxes, first.union(second), limit)


def _waste(pair: tuple[Rect, Rect]) -> int:
    return pair[0].union(pair[1]).area - pair[0].area - pair[1].area


def fit_within(size: Size, box: Size) -> Size:
    """Scale *size* up or down to the largest size of the same shape inside *box*."""
    if size.width * box.height >= size.height * box.width:
        return Size(width=box.width, height=max(1, size.height * box.width // size.width))
    return Size(width=max(1, size.width * box.height // size.height), height=box.height)
