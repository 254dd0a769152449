"""
Points, sizes, rectangles, and the mapping between the model's frame and native pixels.

Pure. Native pixels (``Point``) and the model's frame (``ModelPoint``) are distinct types,
so that one can't be passed for the other. Origin is top left; right and bottom edges of
a ``Rect`` are exclusive.
"""

from dataclasses import dataclass

from computer.errors import InvalidAction, OutOfBounds

__all__ = [
    "MAX_DECLARED_AREA",
    "MAX_DECLARED_EDGE",
    "ModelPoint",
    "Point",
    "Rect",
    "Scale",
    "Size",
    "declared_size",
    "fit_within",
]

# Pixels. Above either limit vendors shrink a picture themselves and coordinates go wrong.
MAX_DECLARED_EDGE = 1_568
MAX_DECLARED_AREA = 1_150_000
# Pixels. Widths that models were trained on, tried first for landscape screens.
PREFERRED_WIDTHS = (1_280, 1_024)


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


def declared_size(native: Size) -> Size:
    """
    Choose the size that a model is told, and that screenshots are scaled to.

    Native when it is small enough; else a preferred width with proportional height; else
    the largest proportional size within both limits.
    """
    if _is_declarable(native):
        return native
    if native.width >= native.height:
        for width in PREFERRED_WIDTHS:
            candidate = Size(width=width, height=max(1, native.height * width // native.width))
            if width < native.width and _is_declarable(candidate):
                return candidate
    factor = min(
        MAX_DECLARED_EDGE / max(native.width, native.height),
        (MAX_DECLARED_AREA / (native.width * native.height)) ** 0.5,
    )
    return Size(width=max(1, int(native.width * factor)), height=max(1, int(native.height * factor)))


def _is_declarable(size: Size) -> bool:
    return max(size.width, size.height) <= MAX_DECLARED_EDGE and size.width * size.height <= MAX_DECLARED_AREA


def fit_within(size: Size, box: Size) -> Size:
    """Scale *size* up or down to the largest size of the same shape inside *box*."""
    if size.width * box.height >= size.height * box.width:
        return Size(width=box.width, height=max(1, size.height * box.width // size.width))
    return Size(width=max(1, size.width * box.height // size.height), height=box.height)
