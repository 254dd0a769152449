"""Mapping between the model's frame and native pixels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from computer.errors import InvalidAction, OutOfBounds
from computer.geometry import (
    MAX_DECLARED_AREA,
    MAX_DECLARED_EDGE,
    VENDOR_LIMITS,
    ModelPoint,
    Point,
    Rect,
    Scale,
    Size,
    Vendor,
    add_box,
    declared_size,
    fit_within,
    vendor_size,
)

N = (1920, 1080)
D = (1280, 720)
O = (1440, 900)  # noqa: E741


def _size(pair: tuple[int, int]) -> Size:
    return Size(width=pair[0], height=pair[1])


def _scale(model: tuple[int, int], native: tuple[int, int]) -> Scale:
    return Scale(native=_size(native), model=_size(model))


@pytest.mark.parametrize(
    ("model", "point", "expected"),
    [
        (D, (640, 360), (960, 540)),
        (D, (0, 0), (0, 0)),
        (D, (1, 1), (2, 2)),
        (D, (1279, 719), (1919, 1079)),
        ((1366, 768), (1365, 767), (1919, 1079)),
        (O, (100, 100), (134, 120)),
        (N, (7, 9), (7, 9)),
    ],
)
def test_model_point_maps_to_the_centre_of_its_native_pixels(
    model: tuple[int, int], point: tuple[int, int], expected: tuple[int, int]
) -> None:
    """Spec: table of vectors, rows 1 to 5 and 7."""
    mapped = _scale(model, N).to_native(ModelPoint(x=point[0], y=point[1]))

    assert Point(x=expected[0], y=expected[1]) == mapped


@pytest.mark.parametrize(("native", "expected"), [((960, 540), (640, 360)), ((1919, 1079), (1279, 719))])
def test_native_point_maps_back_to_the_model(native: tuple[int, int], expected: tuple[int, int]) -> None:
    """Spec: rows 9 and 10."""
    mapped = _scale(D, N).to_model(Point(x=native[0], y=native[1]))

    assert ModelPoint(x=expected[0], y=expected[1]) == mapped


@pytest.mark.parametrize("point", [(-5, 9999), (1280, 0), (0, 720), (-1, 0)])
def test_point_outside_the_frame_is_refused_and_names_the_bounds(point: tuple[int, int]) -> None:
    """Ours: deviates from rows 6 and 8, which clamp."""
    with pytest.raises(OutOfBounds, match="x is 0 to 1279, y is 0 to 719"):
        _scale(D, N).to_native(ModelPoint(x=point[0], y=point[1]))


@pytest.mark.parametrize(
    ("native", "expected"),
    [
        ((1920, 1080), (1280, 720)),
        ((2560, 1440), (1280, 720)),
        ((1280, 800), (1280, 800)),
        ((1366, 768), (1366, 768)),
        ((1568, 733), (1568, 733)),
        ((1440, 900), (1280, 800)),
        ((3440, 1440), (1280, 535)),
        ((1080, 1920), (804, 1429)),
        ((1200, 1200), (1024, 1024)),
    ],
)
def test_declared_size_suits_models(native: tuple[int, int], expected: tuple[int, int]) -> None:
    """Spec: rows 11 to 16."""
    assert _size(expected) == declared_size(_size(native))


@given(st.integers(1, 8000), st.integers(1, 8000))
def test_declared_size_is_within_both_limits(width: int, height: int) -> None:
    """Ours: no vendor shrinks a picture of ours again."""
    declared = declared_size(Size(width=width, height=height))

    assert max(declared.width, declared.height) <= MAX_DECLARED_EDGE
    assert declared.width * declared.height <= MAX_DECLARED_AREA


@given(st.integers(1, 4000), st.integers(1, 4000), st.data())
def test_every_model_point_lands_on_the_screen(native: int, model: int, data: st.DataObject) -> None:
    """Ours: rounding never leaves the screen, and a round trip up and down is exact."""
    scale = _scale((model, model), (native, native))
    x = data.draw(st.integers(0, model - 1))

    mapped = scale.to_native(ModelPoint(x=x, y=x))

    assert 0 <= mapped.x < native
    assert model > native or scale.to_model(mapped) == ModelPoint(x=x, y=x)


def test_region_covers_every_native_pixel_that_it_touches() -> None:
    """Ours: edges round outwards, the whole frame is the whole screen."""
    scale = _scale((1366, 768), N)

    assert Rect(left=0, top=0, right=1920, bottom=1080) == scale.region_to_native(0, 0, 1366, 768)
    assert Rect(left=1, top=1, right=3, bottom=3) == scale.region_to_native(1, 1, 2, 2)


@pytest.mark.parametrize("region", [(5, 5, 5, 9), (9, 5, 5, 9), (0, 4, 9, 4)])
def test_empty_region_is_refused(region: tuple[int, int, int, int]) -> None:
    """Ours: there is nothing to look at."""
    with pytest.raises(InvalidAction):
        _scale(D, N).region_to_native(*region)


@pytest.mark.parametrize("region", [(-1, 0, 5, 5), (0, 0, 1281, 5), (0, -2, 5, 5), (0, 0, 5, 721)])
def test_region_outside_the_frame_is_refused(region: tuple[int, int, int, int]) -> None:
    """Ours: regions follow the rule of points."""
    with pytest.raises(OutOfBounds):
        _scale(D, N).region_to_native(*region)


@pytest.mark.parametrize(
    ("size", "box", "expected"),
    [
        ((100, 50), D, (1280, 640)),
        ((50, 100), D, (360, 720)),
        ((3000, 10), D, (1280, 4)),
        ((1, 9000), D, (1, 720)),
    ],
)
def test_zoom_keeps_its_shape(size: tuple[int, int], box: tuple[int, int], expected: tuple[int, int]) -> None:
    """Ours: a zoomed picture is as large as the frame allows."""
    assert _size(expected) == fit_within(_size(size), _size(box))


def test_size_has_at_least_one_pixel() -> None:
    """Ours: no division by zero further on."""
    with pytest.raises(InvalidAction):
        Size(width=0, height=5)


@pytest.mark.parametrize(
    ("vendor", "native", "expected"),
    [
        ("anthropic", (1280, 800), (1280, 800)),
        ("anthropic", (1920, 1080), (1280, 720)),
        ("anthropic", (3840, 2160), (1280, 720)),
        ("openai", (1280, 800), (1280, 800)),
        ("openai", (1600, 900), (1600, 900)),
        ("openai", (1920, 1080), (1600, 900)),
        ("openai", (2560, 1600), (1517, 948)),
        ("openai", (1080, 1920), (900, 1600)),
        ("google", (1440, 900), (1440, 900)),
        ("google", (1920, 1080), (1440, 810)),
        ("google", (3440, 1440), (1440, 602)),
        ("google", (1200, 1200), (1138, 1138)),
    ],
)
def test_every_vendor_gets_the_shape_of_the_screen(
    vendor: Vendor, native: tuple[int, int], expected: tuple[int, int]
) -> None:
    """Required: aspect-preserving sizes within each vendor's limits."""
    assert _size(expected) == vendor_size(vendor, _size(native))


@given(st.sampled_from(list(VENDOR_LIMITS)), st.integers(200, 8000), st.integers(200, 8000))
def test_vendor_size_keeps_limits_and_shape(vendor: Vendor, width: int, height: int) -> None:
    """Ours: the axes scale alike to a pixel."""
    size, limits = vendor_size(vendor, Size(width=width, height=height)), VENDOR_LIMITS[vendor]

    assert max(size.width, size.height) <= limits.long_edge
    assert size.width * size.height <= limits.area
    factor = size.width / width if width >= height else size.height / height
    assert abs(size.width - width * factor) < 1.5
    assert abs(size.height - height * factor) < 1.5


def _box(left: int, top: int, right: int, bottom: int) -> Rect:
    return Rect(left=left, top=top, right=right, bottom=bottom)


def test_near_boxes_are_told_as_one() -> None:
    """Ours: a line of letters is one change, a far one another."""
    boxes: list[Rect] = []
    for left in (0, 9, 18, 27):
        add_box(boxes, _box(left, 0, left + 8, 16), 16)
    add_box(boxes, _box(500, 500, 510, 510), 16)

    assert boxes == [_box(0, 0, 35, 16), _box(500, 500, 510, 510)]


@given(
    st.lists(
        st.tuples(st.integers(0, 900), st.integers(0, 900), st.integers(1, 99), st.integers(1, 99)),
        max_size=60,
    )
)
def test_boxes_stay_few_and_lose_no_pixel(places: list[tuple[int, int, int, int]]) -> None:
    """Required: at most so many boxes, and together they cover every change."""
    boxes: list[Rect] = []
    added = [_box(x, y, x + w, y + h) for x, y, w, h in places]
    for box in added:
        add_box(boxes, box, 5)

    assert len(boxes) <= 5
    for box in added:
        assert any(other.union(box) == other for other in boxes)
