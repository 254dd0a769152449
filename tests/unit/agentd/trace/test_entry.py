"""One call as a line of the log."""

from datetime import UTC, datetime
from typing import Any

import pytest

from agentd.trace.entry import LogEntry, describe_actions, fill_result, read_lines
from computer.geometry import Size
from computer.wire import ActionReport, ComputerCall, ComputerResult

NATIVE = Size(width=1920, height=1080)


def _call(*actions: dict[str, Any], **fields: Any) -> ComputerCall:
    return ComputerCall.model_validate({"actions": actions, **fields})


def _entry(number: int = 1) -> LogEntry:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return LogEntry(number=number, id="a", at=at, desktop="main", actor="agent", actions=())


@pytest.mark.parametrize(
    ("action", "native"),
    [
        ({"action": "left_click", "coordinate": [640, 360]}, ((960, 540),)),
        ({"action": "left_click"}, ()),
        (
            {"action": "left_click_drag", "start_coordinate": [0, 0], "coordinate": [1279, 719]},
            ((0, 0), (1919, 1079)),
        ),
        ({"action": "drag", "path": [[1, 1], [640, 360]]}, ((2, 2), (960, 540))),
        ({"action": "mouse_move", "coordinate": [5000, 1]}, ()),
        ({"action": "key", "text": "a"}, ()),
    ],
)
def test_coordinates_are_kept_in_both_frames(action: dict[str, Any], native: tuple[Any, ...]) -> None:
    """Spec: rows 1 to 4; what is outside the model's frame went nowhere."""
    (described,) = describe_actions(_call(action, model_size=[1280, 720]), NATIVE)

    assert native == described.native
    assert described.action["action"] == action["action"]


def test_secret_is_masked_and_the_rest_is_not() -> None:
    """Ours: what was done can be read, what was typed can't."""
    call = _call({"action": "type", "text": "hunter2", "secret": True}, {"action": "type", "text": "hello"})
    secret, plain = describe_actions(call, None)

    assert secret.action == {"action": "type", "text": "***", "secret": True}
    assert plain.action == {"action": "type", "text": "hello"}


def test_result_fills_in_what_was_said() -> None:
    """Ours: each action its sentence; those that were not reached have none."""
    call = _call({"action": "left_click"}, {"action": "key", "text": "nosuch"})
    report = ActionReport(action="left_click", output="Left-clicked at (1, 2).", native_point=(1, 2))
    result = ComputerResult(
        reports=(report,),
        error="unknown key",
        error_code="unknown_key",
        changed=((0, 0, 5, 5),),
        pointer=(1, 2),
    )
    entry = fill_result(_entry(), call, result)

    assert [(each.output, each.native) for each in entry.actions] == [
        ("Left-clicked at (1, 2).", ((1, 2),)),
        (None, ()),
    ]
    assert (entry.error_code, entry.changed, entry.pointer) == ("unknown_key", ((0, 0, 5, 5),), (1, 2))


def test_torn_lines_are_left_out() -> None:
    """Ours: a kill may come in the middle of a line."""
    whole = _entry().model_dump_json()

    assert [entry.number for entry in read_lines([whole, whole[:30], "", "null", whole])] == [1, 1]
