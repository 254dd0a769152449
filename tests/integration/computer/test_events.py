"""What an independent client receives: its own log is asserted, never the driver's answer."""

import asyncio
import itertools
import struct

import pytest

from computer.session import DesktopSession
from computer.wire import ComputerCall, ComputerResult
from tests.integration.computer.event_log import Event, EventLog

EDGES = [(0, 0), (0, 400), (400, 0), (1279, 0), (0, 799), (1279, 799)]


async def _perform(session: DesktopSession, *actions: dict[str, object], **fields: object) -> ComputerResult:
    call = ComputerCall.model_validate({"actions": actions, "screenshot": False, **fields})
    return await session.perform(call)


def _short(events: list[Event]) -> list[tuple[str, object]]:
    return [(event["type"], event.get("button", event.get("key"))) for event in events]


def _no_motion(events: list[Event]) -> list[Event]:
    return [event for event in events if event["type"] != "motion"]


@pytest.mark.parametrize(
    ("action", "button", "times"),
    [
        ("left_click", 1, 1),
        ("middle_click", 2, 1),
        ("right_click", 3, 1),
        ("back_click", 8, 1),
        ("forward_click", 9, 1),
        ("double_click", 1, 2),
        ("triple_click", 1, 3),
    ],
)
async def test_clicks_are_counted_and_quick(
    session: DesktopSession, log: EventLog, action: str, button: int, times: int
) -> None:
    """Spec defect 16: all clicks of one action fall into any double-click time."""
    await _perform(session, {"action": action, "coordinate": [33, 44]})
    events = await log.take()

    assert _short(_no_motion(events)) == [("press", button), ("release", button)] * times
    assert {(event["x"], event["y"]) for event in events} == {(33, 44)}
    assert events[-1]["time"] - events[0]["time"] < 200


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(
    ("button", "number"), [("left", 1), ("middle", 2), ("right", 3), ("back", 8), ("forward", 9)]
)
async def test_every_button_clicks_one_to_three_times(
    session: DesktopSession, log: EventLog, button: str, number: int, count: int
) -> None:
    """Required: left, middle, right, back, forward; quick enough to be counted, modifiers held."""
    click = {"action": "click", "button": button, "count": count, "coordinate": [33, 44], "modifiers": "ctrl"}
    await _perform(session, click)
    events = _no_motion(await log.take())
    clicks = events[1:-1]

    assert _short(clicks) == [("press", number), ("release", number)] * count
    assert _short([events[0], events[-1]]) == [("key_press", "Control_L"), ("key_release", "Control_L")]
    assert all("ctrl" in event["state"] for event in clicks)
    assert clicks[-1]["time"] - clicks[0]["time"] < 200


async def test_viewer_that_never_reads_delays_nobody(session: DesktopSession, log: EventLog) -> None:
    """
    BUGS 57: one viewer is stuck while the clipboard goes to all of them.

    Steps: a viewer of the old kind, which is sent every text whole, asks for the screen and reads no
    more; then texts and clicks.
    """
    reader, writer = await session.connect_rfb()
    await reader.readexactly(12)
    writer.write(b"RFB 003.008\n")
    await reader.readexactly((await reader.readexactly(1))[0])
    writer.write(b"\x01")
    await reader.readexactly(4)
    writer.write(b"\x01")
    await reader.readexactly(24)
    assert isinstance(writer.transport, asyncio.ReadTransport)
    writer.transport.pause_reading()
    for number in range(20):
        writer.write(struct.pack(">BBHHHH", 3, 0, 0, 0, 1280, 800))
        text = {"action": "set_clipboard", "text": f"{number} " * 60_000}
        await _perform(session, text, {"action": "left_click", "coordinate": [number, 44]})
    presses = [event["x"] for event in await log.take() if event["type"] == "press"]
    writer.close()

    assert presses == list(range(20))


@pytest.mark.parametrize("place", EDGES)
async def test_zero_and_edges_are_places(
    session: DesktopSession, log: EventLog, place: tuple[int, int]
) -> None:
    """BUGS 33: zero does not count as missing."""
    result = await _perform(session, {"action": "left_click", "coordinate": place})
    events = await log.take()

    assert {(event["x"], event["y"]) for event in events} == {place}
    assert _short(_no_motion(events)) == [("press", 1), ("release", 1)]
    assert (result.pointer, result.error) == (place, None)


@pytest.mark.parametrize("place", [(5000, 5000), (-1, 10), (1280, 0), (0, 800)])
async def test_point_off_the_screen_is_refused_and_nothing_moves(
    session: DesktopSession, log: EventLog, place: tuple[int, int]
) -> None:
    """BUGS 34: a typed error that names the bounds."""
    result = await _perform(session, {"action": "left_click", "coordinate": place})

    assert result.error_code == "out_of_bounds"
    assert "x is 0 to 1279, y is 0 to 799" in (result.error or "")
    assert await log.take() == []


@pytest.mark.parametrize("model", [(1280, 720), (1568, 882), (1024, 576)])
async def test_model_coordinates_hit_their_target(
    session: DesktopSession, log: EventLog, model: tuple[int, int]
) -> None:
    """BUGS 31: a grid of nine points, corners included, within a pixel after rounding."""
    columns, rows = (0, model[0] // 2, model[0] - 1), (0, model[1] // 2, model[1] - 1)
    for x, y in itertools.product(columns, rows):
        await _perform(session, {"action": "left_click", "coordinate": [x, y]}, model_size=model)
        press = next(event for event in await log.take() if event["type"] == "press")
        assert abs(press["x"] - ((x + 0.5) * 1280 / model[0] - 0.5)) <= 1
        assert abs(press["y"] - ((y + 0.5) * 800 / model[1] - 0.5)) <= 1


async def test_modifiers_are_down_during_the_click_and_up_after(
    session: DesktopSession, log: EventLog
) -> None:
    """Spec: row 24."""
    await _perform(session, {"action": "left_click", "coordinate": [9, 9], "modifiers": "ctrl+shift"})
    events = _no_motion(await log.take())

    kinds = [event["type"] for event in events]
    assert kinds == ["key_press", "key_press", "press", "release", "key_release", "key_release"]
    assert [event["key"] for event in events if "key" in event] == [
        "Control_L", "Shift_L", "Shift_L", "Control_L",
    ]  # fmt: skip
    press = events[2]
    assert (press["state"], press["button"]) == (["shift", "ctrl"], 1)


@pytest.mark.parametrize("button", ["left", "middle", "right"])
async def test_drag_follows_its_path_with_the_button_down(
    session: DesktopSession, log: EventLog, button: str
) -> None:
    """Required: along a path, button and modifiers configurable."""
    path = [[100, 100], [300, 100], [300, 250], [10, 20]]
    await _perform(session, {"action": "drag", "path": path, "button": button, "modifiers": "alt"})
    events = await log.take()

    number = ["left", "middle", "right"].index(button) + 1
    first = next(n for n, event in enumerate(events) if event["type"] == "press")
    last = next(n for n, event in enumerate(events) if event["type"] == "release")
    inside = events[first + 1 : last]
    places = [[event["x"], event["y"]] for event in inside]
    assert [events[first]["x"], events[first]["y"]] == path[0]
    assert all(event["buttons"] == [number] and event["state"] == ["alt"] for event in inside)
    turns = [places.index(corner) for corner in path[1:]]
    assert turns == sorted(turns)
    assert len(places) > 20
    assert [events[last]["x"], events[last]["y"]] == path[-1]


@pytest.mark.parametrize(("direction", "button"), [("up", 4), ("down", 5), ("left", 6), ("right", 7)])
@pytest.mark.parametrize("notches", [0, 1, 7])
async def test_scroll_is_counted_in_notches(
    session: DesktopSession, log: EventLog, direction: str, button: int, notches: int
) -> None:
    """BUGS 28: one press and release a notch, in both axes."""
    action = {
        "action": "scroll",
        "coordinate": [50, 60],
        "scroll_direction": direction,
        "scroll_amount": notches,
    }
    await _perform(session, action)

    assert _short(_no_motion(await log.take())) == [("press", button), ("release", button)] * notches


async def test_held_key_is_down_for_its_time(session: DesktopSession, log: EventLog) -> None:
    """Required: hold key, in milliseconds."""
    await _perform(session, {"action": "hold_key", "text": "a", "duration_ms": 120})
    events = await log.take()

    # The server repeats a held key by itself.
    assert {event["key"] for event in events} == {"a"}
    assert (events[0]["type"], events[-1]["type"]) == ("key_press", "key_release")
    assert 100 <= events[-1]["time"] - events[0]["time"] < 2_000


async def test_cancelled_hold_comes_up_at_once(session: DesktopSession, log: EventLog) -> None:
    """BUGS 25: whatever the cause, the key is up."""
    hold = {"action": "hold_key", "text": "shift", "duration_ms": 60_000}
    task = asyncio.create_task(_perform(session, hold))
    await log.wait_for("key_press")
    task.cancel()
    await asyncio.wait({task})
    events = await log.take()

    assert _short(events) == [("key_press", "Shift_L"), ("key_release", "Shift_L")]
    assert events[1]["time"] - events[0]["time"] < 5_000


async def test_button_that_is_held_is_told_and_moves_along(session: DesktopSession, log: EventLog) -> None:
    """Required: what is held is read back into the result."""
    down = await _perform(
        session,
        {"action": "left_mouse_down", "coordinate": [70, 70]},
        {"action": "key_down", "text": "ctrl"},
        {"action": "mouse_move", "coordinate": [90, 90]},
    )
    motion = [event for event in await log.take() if event["type"] == "motion"][-1]
    up = await _perform(session, {"action": "left_mouse_up"}, {"action": "key_up", "text": "ctrl"})

    assert (motion["buttons"], motion["state"]) == ([1], ["ctrl"])
    assert down.held is not None
    assert (down.held.keys, down.held.buttons) == (("Control_L",), (1,))
    assert up.held is not None
    assert (up.held.keys, up.held.buttons) == ((), ())


async def test_hundred_middle_clicks_with_cancels_leave_no_button_down(
    session: DesktopSession, log: EventLog
) -> None:
    """BUGS 26: the button mask is zero at the end."""
    for number in range(100):
        task = asyncio.create_task(_perform(session, {"action": "middle_click", "coordinate": [number, 5]}))
        for _ in range(number % 7):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
    result = await _perform(session, {"action": "cursor_position"})
    events = _no_motion(await log.take())

    assert result.held is not None
    assert result.held.buttons == ()
    assert [event["type"] for event in events] == ["press", "release"] * (len(events) // 2)
