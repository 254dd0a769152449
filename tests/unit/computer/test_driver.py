"""The driver on a fake display."""

import asyncio
import base64
import io
import threading
from collections.abc import AsyncIterator, Callable

import pytest
from PIL import Image

from computer.driver import BLANK, RESTLESS, SUPERSEDED, ComputerDriver
from computer.errors import CaptureTimeout, DisplayClosed, DisplayLost
from computer.geometry import Point, Rect, Size
from computer.pixels import EncodingSettings, PictureFormat
from computer.settling import SettleSettings
from computer.testing import FakeDisplay
from computer.wire import ComputerCall, ComputerResult, Held, ScreenshotData

# Short, so that a screen that stays as it is costs a test no time.
SETTLE = SettleSettings(
    quiet_ms=2,
    long_quiet_ms=4,
    first_change_ms=2,
    start_first_change_ms=3,
    between_first_change_ms=4,
    cap_ms=50,
)


@pytest.fixture
def display() -> FakeDisplay:
    """A display of 400x200."""
    return FakeDisplay(Size(width=400, height=200))


@pytest.fixture
async def driver(display: FakeDisplay) -> AsyncIterator[ComputerDriver]:
    """An open driver on it."""
    driver = ComputerDriver(lambda: display, answer_limit_s=5, settle=SETTLE)
    await driver.open()
    yield driver
    await driver.close()


def _call(*actions: dict[str, object], **fields: object) -> ComputerCall:
    return ComputerCall.model_validate({"actions": actions, **fields})


async def _until(is_it: Callable[[], bool]) -> None:
    """Wait for what happens in the display's thread, without keeping it from happening."""
    async with asyncio.timeout(30):
        while not is_it():  # noqa: ASYNC110  the display lives in a thread
            await asyncio.sleep(0.001)


def _outputs(result: ComputerResult) -> list[str]:
    return [report.output for report in result.reports]


def _picture(screenshot: ScreenshotData | None) -> Image.Image:
    assert screenshot is not None
    return Image.open(io.BytesIO(base64.b64decode(screenshot.data)))


async def test_actions_run_in_order_with_one_screenshot_at_the_end(
    driver: ComputerDriver, display: FakeDisplay
) -> None:
    """Wire: actions performed in order, one screenshot."""
    result = await driver.perform(
        _call({"action": "left_click", "coordinate": [3, 4]}, {"action": "type", "text": "hello"})
    )

    events = [event for event in display.events if event[0] != "settle"]
    assert events == [("move", (3, 4)), ("press", 1), ("release", 1), ("type", "hell"), ("type", "o")]
    assert _outputs(result) == ["Left-clicked at (3, 4).", "Typed 5 characters by keys."]
    assert result.error is None
    assert _picture(result.screenshot).size == (400, 200)


async def test_place_on_a_screen_that_shrank_during_the_call_is_refused(
    driver: ComputerDriver, display: FakeDisplay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Required: what was meant for another screen is refused, not clamped and not misread."""
    monkeypatch.setattr(display, "press_chord", lambda _: display.resize(Size(width=200, height=100)))
    result = await driver.perform(
        _call({"action": "key", "text": "a"}, {"action": "left_click", "coordinate": [30, 15]})
    )

    assert result.error_code == "out_of_bounds"
    assert "from 400x200 to 200x100" in (result.error or "")
    assert {event[0] for event in display.events}.isdisjoint({"move", "press"})
    assert result.screenshot is not None
    assert result.screenshot.native_size == (200, 100)


@pytest.mark.parametrize("is_deaf", [False, True])
async def test_drag_goes_on_once_the_screen_answers_or_time_is_up(
    driver: ComputerDriver, display: FakeDisplay, *, is_deaf: bool
) -> None:
    """Ours: a late window manager has begun with it; what changed meanwhile is not forgotten."""
    display.is_deaf = is_deaf
    result = await driver.perform(
        _call({"action": "left_click_drag", "start_coordinate": [10, 10], "coordinate": [300, 150]})
    )
    kinds = [event[0] for event in display.events]

    assert kinds.index("settle", kinds.index("press")) < kinds.index("release")
    assert kinds[-2:] == ["release", "settle"]
    assert (result.reports[0].warning is None) != is_deaf


async def test_failure_names_its_action_among_several(driver: ComputerDriver, display: FakeDisplay) -> None:
    """Required: a batch stops at the first failure and says where."""
    display.refuse_text = "é"
    result = await driver.perform(
        _call({"action": "key", "text": "a"}, {"action": "type", "text": "é"}, {"action": "key", "text": "b"})
    )

    assert (result.error or "").startswith("action 2 of 3 (type): ")
    assert len(result.reports) == 1


async def test_tripwire_on_the_title_stops_the_rest(
    driver: ComputerDriver, display: FakeDisplay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Required: another window came up between two actions."""
    display.title = "notes - Editor"
    monkeypatch.setattr(display, "press_chord", lambda _: setattr(display, "title", "Really quit?"))
    result = await driver.perform(
        _call(
            {"action": "key", "text": "a"},
            {"action": "left_click", "coordinate": [3, 4]},
            tripwires=[{"kind": "window_title", "text": "Editor"}],
        )
    )

    assert result.error_code == "tripwire_tripped"
    assert "action 2 of 2 (left_click): the active window is 'Really quit?'" in (result.error or "")
    assert [report.action for report in result.reports] == ["key"]
    assert ("press", 1) not in display.events


@pytest.mark.parametrize(("place", "is_tripped"), [((5, 5), False), ((61, 41), True)])
async def test_tripwire_on_a_region_stops_the_rest(
    driver: ComputerDriver,
    display: FakeDisplay,
    monkeypatch: pytest.MonkeyPatch,
    place: tuple[int, int],
    is_tripped: bool,
) -> None:
    """Required: a part of the screen that should have stayed as it was; in the model's frame."""

    def paint(_: object) -> None:
        display.pixels[place[1], place[0]] = 255

    monkeypatch.setattr(display, "press_chord", paint)
    result = await driver.perform(
        _call(
            {"action": "key", "text": "a"},
            {"action": "left_click", "coordinate": [3, 4]},
            model_size=[200, 100],
            tripwires=[{"kind": "region_unchanged", "region": [30, 20, 50, 40]}],
        )
    )

    assert (result.error_code == "tripwire_tripped") == is_tripped
    assert (("press", 1) in display.events) != is_tripped


@pytest.mark.parametrize(
    ("wire", "title", "code"),
    [
        ({"kind": "region_unchanged", "region": [0, 0, 401, 10]}, "", "out_of_bounds"),
        ({"kind": "region_unchanged", "region": [5, 5, 5, 9]}, "", "invalid_action"),
        ({"kind": "window_title", "text": "x"}, None, "invalid_action"),
        ({"kind": "window_title", "text": "x"}, "y", "tripwire_tripped"),
    ],
)
async def test_tripwire_that_cannot_hold_lets_nothing_happen(
    driver: ComputerDriver, display: FakeDisplay, wire: dict[str, object], title: str | None, code: str
) -> None:
    """Ours: told before the first action."""
    display.title = title
    result = await driver.perform(_call({"action": "key", "text": "a"}, tripwires=[wire]))

    assert result.error_code == code
    assert [event for event in display.events if event[0].startswith("key")] == []


async def test_screenshot_and_sentences_are_in_the_models_frame(
    driver: ComputerDriver, display: FakeDisplay
) -> None:
    """Spec: rows 1 and 9."""
    result = await driver.perform(
        _call(
            {"action": "mouse_move", "coordinate": [50, 25]},
            {"action": "cursor_position"},
            model_size=[200, 100],
        )
    )

    assert ("move", (101, 51)) in display.events
    assert _outputs(result) == ["Moved the pointer to (50, 25).", "x=50,y=25"]
    assert result.reports[1].native_point == (101, 51)
    assert result.screenshot is not None
    assert (result.screenshot.model_size, result.screenshot.native_size) == ((200, 100), (400, 200))
    assert _picture(result.screenshot).size == (200, 100)


async def test_refused_call_does_nothing_and_still_shows_the_screen(
    driver: ComputerDriver, display: FakeDisplay
) -> None:
    """Ours: a mistake in the second action spares the first."""
    result = await driver.perform(
        _call({"action": "left_click", "coordinate": [1, 1]}, {"action": "key", "text": "nosuch"})
    )

    assert display.events == []
    assert (result.error_code, result.reports) == ("unknown_key", ())
    assert result.screenshot is not None


async def test_first_failure_stops_the_rest_and_releases_what_is_held(
    driver: ComputerDriver, display: FakeDisplay
) -> None:
    """Wire: reports hold what was done before."""
    display.refuse_text = "!"
    result = await driver.perform(
        _call(
            {"action": "key_down", "text": "shift"},
            {"action": "type", "text": "ab!"},
            {"action": "key", "text": "a"},
        )
    )

    assert _outputs(result) == ["shift is down."]
    assert result.error_code == "invalid_action"
    assert result.error is not None
    assert "character 2" in result.error
    assert display.held == ()


async def test_key_pressed_on_purpose_stays_down_between_calls(
    driver: ComputerDriver, display: FakeDisplay
) -> None:
    """Ours: key_down is for that."""
    await driver.perform(_call({"action": "key_down", "text": "shift"}, screenshot=False))
    assert display.held == (0xFFE1,)

    await driver.perform(_call({"action": "key_up", "text": "shift"}, screenshot=False))
    assert display.held == ()


@pytest.mark.parametrize(
    "action",
    [
        {"action": "hold_key", "text": "shift+a", "duration_ms": 300_000},
        {"action": "wait", "duration_ms": 300_000},
    ],
)
async def test_cancelled_call_holds_nothing(
    driver: ComputerDriver, display: FakeDisplay, action: dict[str, object]
) -> None:
    """Spec: row 23 and defect 6."""
    call = _call(
        {"action": "left_mouse_down", "coordinate": [0, 0]}, {"action": "key_down", "text": "ctrl"}, action
    )
    task = asyncio.create_task(driver.perform(call))
    await _until(lambda: len(display.held) == 2)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert display.held == ()
    assert display.events[-1] == ("release_all", None)


async def test_call_that_is_cancelled_as_it_begins_holds_nothing(
    driver: ComputerDriver, display: FakeDisplay
) -> None:
    """Ours: what an earlier call left down goes up with the one that is cancelled, at whatever step."""
    await driver.perform(_call({"action": "key_down", "text": "ctrl"}, screenshot=False))
    has_begun, may_go_on, take_changes = threading.Event(), threading.Event(), display.take_changes

    def take_slowly() -> tuple[Rect, ...]:
        has_begun.set()
        assert may_go_on.wait(30)
        return take_changes()

    display.take_changes = take_slowly  # type: ignore[method-assign]
    task = asyncio.create_task(driver.perform(_call({"action": "key", "text": "a"})))
    await _until(has_begun.is_set)
    task.cancel()
    may_go_on.set()
    await asyncio.wait({task})

    assert task.cancelled()
    assert display.held == ()
    assert ("key_down", "a") not in display.events


async def test_cancelled_typing_stops_between_two_bursts(
    driver: ComputerDriver, display: FakeDisplay
) -> None:
    """Ours: long text does not outlive its call."""
    task = asyncio.create_task(driver.perform(_call({"action": "type", "text": "z" * 100_000})))
    await _until(lambda: len(display.events) >= 3)
    task.cancel()
    await asyncio.wait({task})
    typed = len(display.events)
    await driver.screenshot()

    assert task.cancelled()
    assert typed == len(display.events) < 25_000


async def test_screenshot_does_not_wait_for_a_call_that_holds_a_key(
    driver: ComputerDriver, display: FakeDisplay
) -> None:
    """Ours: people can watch while a model waits."""
    task = asyncio.create_task(driver.perform(_call({"action": "wait", "duration_ms": 300_000})))

    async with asyncio.timeout(30):
        await asyncio.sleep(0)
        assert (await driver.screenshot((40, 20))).model_size == (40, 20)
    task.cancel()
    await asyncio.wait({task})


async def test_zoom_at_the_end_is_the_picture(driver: ComputerDriver, display: FakeDisplay) -> None:
    """Design: zoom crops from native pixels."""
    display.pixels[10:20, 10:30] = 255
    result = await driver.perform(_call({"action": "zoom", "region": [10, 10, 30, 20]}, screenshot=False))

    picture = _picture(result.screenshot)
    assert picture.size == (400, 200)
    assert picture.getextrema() == ((255, 255),) * 3


async def test_zoom_before_other_actions_is_told_to_be_last(
    driver: ComputerDriver, display: FakeDisplay
) -> None:
    """Ours: a result holds one picture, the last."""
    result = await driver.perform(
        _call({"action": "zoom", "region": [0, 0, 10, 10]}, {"action": "mouse_move", "coordinate": [1, 1]})
    )

    assert result.reports[0].warning == SUPERSEDED
    assert _picture(result.screenshot).size == (400, 200)


async def test_no_screenshot_when_none_is_wanted(driver: ComputerDriver, display: FakeDisplay) -> None:
    """Wire: screenshot=false."""
    result = await driver.perform(_call({"action": "key", "text": "a"}, screenshot=False))

    assert result.screenshot is None
    assert ("settle", None) not in display.events


async def test_command_is_settled_before_the_next_input(driver: ComputerDriver, display: FakeDisplay) -> None:
    """Ours: text goes into the window that the command opened."""
    await driver.perform(_call({"action": "key", "text": "super+Return"}, {"action": "type", "text": "ls"}))

    kinds = [kind for kind, _ in display.events]
    assert kinds == ["key_down", "key_up", "settle", "type", "settle"]


async def test_restless_screen_is_reported(driver: ComputerDriver, display: FakeDisplay) -> None:
    """Ours: a spinner never settles, and the model is told."""
    display.is_restless = True
    result = await driver.perform(_call({"action": "key", "text": "a"}))

    assert result.reports[0].warning == RESTLESS


async def test_unchanged_screen_is_encoded_once(driver: ComputerDriver, display: FakeDisplay) -> None:
    """Ours: the same pixels are the same text object; a change is seen."""
    first, second = await driver.screenshot(), await driver.screenshot()
    assert first.data is second.data

    display.pixels[0, 0] = 255
    assert (await driver.screenshot()).data != first.data


async def test_result_tells_pointer_held_and_changes(driver: ComputerDriver, display: FakeDisplay) -> None:
    """Required: every result carries what the server says, in native pixels."""
    display.pixels[::2] = 255
    result = await driver.perform(
        _call({"action": "left_mouse_down", "coordinate": [10, 20]}, model_size=[200, 100])
    )

    assert result.pointer == (21, 41)
    assert (result.held, result.changed) == (Held(buttons=(1,)), ((0, 0, 400, 200),))
    assert result.settled_ms is not None
    assert (result.still_changing, result.warnings) == (False, ())


async def test_result_says_when_nothing_changed(driver: ComputerDriver, display: FakeDisplay) -> None:
    """Required: a warning where the effect could not be confirmed."""
    display.is_deaf = True
    result = await driver.perform(_call({"action": "left_click", "coordinate": [1, 1]}))

    assert (result.reports[0].warning or "").startswith("nothing on the screen changed")
    assert result.changed == ()


async def test_changes_are_those_of_one_call(driver: ComputerDriver, display: FakeDisplay) -> None:
    """Wire: since the call began."""
    await driver.perform(_call({"action": "key", "text": "a"}))
    result = await driver.perform(_call({"action": "screenshot"}))

    assert result.changed == ()
    assert result.settled_ms is None


async def test_changes_of_a_cancelled_call_are_forgotten(
    driver: ComputerDriver, display: FakeDisplay
) -> None:
    """Wire: since the call began, not the one before it."""
    task = asyncio.create_task(
        driver.perform(_call({"action": "key", "text": "a"}, {"action": "wait", "duration_ms": 300_000}))
    )
    await _until(lambda: ("settle", None) in display.events)
    task.cancel()
    await asyncio.wait({task})

    assert (await driver.perform(_call({"action": "screenshot"}))).changed == ()


async def test_pointer_that_went_elsewhere_is_told(driver: ComputerDriver, display: FakeDisplay) -> None:
    """Ours: somebody else may hold the mouse."""
    display.pointer = lambda: Point(x=7, y=8)  # type: ignore[method-assign]
    result = await driver.perform(_call({"action": "mouse_move", "coordinate": [1, 1]}))

    assert "is at (7, 8)" in (result.reports[0].warning or "")
    assert result.pointer == (7, 8)


async def test_key_that_stays_down_after_an_error_is_told(
    driver: ComputerDriver, display: FakeDisplay
) -> None:
    """Required: read back after the release."""
    display.refuse_text, display.stuck = "!", ("Shift_L",)
    result = await driver.perform(_call({"action": "type", "text": "!"}))

    assert result.held == Held(keys=("Shift_L",))
    assert "still down after everything was released: Shift_L" in result.warnings


async def test_blank_screen_is_a_warning(driver: ComputerDriver, display: FakeDisplay) -> None:
    """Required: a picture of nothing is worth a word."""
    assert BLANK in (await driver.perform(_call({"action": "screenshot"}))).warnings

    display.pixels[::2] = 255
    assert (await driver.perform(_call({"action": "screenshot"}))).warnings == ()


async def test_unchanged_is_said_to_whoever_saw_it_before(
    driver: ComputerDriver, display: FakeDisplay
) -> None:
    """Ours: what a viewer saw in between is not what the model saw."""
    look = _call({"action": "screenshot"})
    shots = [(await driver.perform(look)).screenshot, (await driver.perform(look)).screenshot]
    display.pixels[0, 0] = 9
    await driver.screenshot()
    shots.extend([(await driver.perform(look)).screenshot, (await driver.perform(look)).screenshot])

    assert [shot.unchanged for shot in shots if shot is not None] == [False, True, False, True]


async def test_waiting_for_rest_takes_its_own_time(driver: ComputerDriver, display: FakeDisplay) -> None:
    """Wire: wait_settled."""
    calm = await driver.perform(_call({"action": "wait_settled", "quiet_ms": 30}, screenshot=False))
    display.is_restless = True
    wild = await driver.perform(
        _call({"action": "wait_settled", "quiet_ms": 10, "timeout_ms": 40}, screenshot=False)
    )

    assert 30 <= (calm.settled_ms or 0) < 5_000
    assert (calm.still_changing, calm.reports[0].warning) == (False, None)
    assert (wild.still_changing, wild.reports[0].warning) == (True, RESTLESS)


async def test_wait_for_rest_can_be_cancelled_and_shares_the_display(
    driver: ComputerDriver, display: FakeDisplay
) -> None:
    """Ours: a wait of minutes blocks nobody."""
    display.is_restless = True
    wait = _call({"action": "wait_settled", "timeout_ms": 300_000}, screenshot=False)
    task = asyncio.create_task(driver.perform(wait))
    await _until(lambda: ("settle", None) in display.events)
    async with asyncio.timeout(30):
        assert (await driver.screenshot()).model_size == (400, 200)
        task.cancel()
        await asyncio.wait({task})

    assert task.cancelled()


@pytest.mark.parametrize(
    ("picture", "media_type", "kind"),
    [
        ("png", "image/png", "PNG"),
        ("png8", "image/png", "PNG"),
        ("jpeg", "image/jpeg", "JPEG"),
        ("webp", "image/webp", "WEBP"),
    ],
)
async def test_pictures_come_in_the_format_asked_for(
    display: FakeDisplay, picture: PictureFormat, media_type: str, kind: str
) -> None:
    """Required: selectable encoders."""
    driver = ComputerDriver(lambda: display, encoding=EncodingSettings(format=picture))
    await driver.open()
    shot = await driver.screenshot()
    await driver.close()

    assert (shot.media_type, _picture(shot).format) == (media_type, kind)


async def test_driver_tells_what_works(driver: ComputerDriver) -> None:
    """Required: the self-test says which paths it picked."""
    assert (await driver.info()).driver == "fake"


async def test_silent_display_is_given_up() -> None:
    """Ours: a stopped X server must not block for ever."""
    display = FakeDisplay(Size(width=40, height=20))
    driver = ComputerDriver(lambda: display, answer_limit_s=0.05)
    await driver.open()
    display.hang = True

    with pytest.raises(CaptureTimeout):
        await driver.screenshot()
    with pytest.raises(DisplayLost):
        await driver.perform(_call({"action": "screenshot"}))
    assert driver.is_broken
    await driver.close()


async def test_closed_driver_refuses(driver: ComputerDriver, display: FakeDisplay) -> None:
    """Ours: closed is our bug, lost is the world's."""
    await driver.close()
    await driver.close()

    assert display.is_closed
    with pytest.raises(DisplayClosed):
        await driver.perform(_call({"action": "screenshot"}))
