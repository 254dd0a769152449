"""
One call on a desktop, as the action log keeps it.

Pure: from call and result to a line of JSON and back. A secret's text is not in it.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from agentd.acting import Chore, Deed, Origin
from computer.geometry import ModelPoint, Scale, Size
from computer.secrets import MASK
from computer.wire import Action, ComputerCall, ComputerResult

__all__ = [
    "LogEntry",
    "LoggedAction",
    "LoggedPicture",
    "describe_actions",
    "fill_result",
    "origin_fields",
    "read_lines",
]

Point = tuple[int, int]
COORDINATES = ("start_coordinate", "coordinate")


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class LoggedPicture(_Stored):
    """A picture by the SHA-256 of its bytes; *region* is set for a zoom, in model pixels."""

    sha256: str
    media_type: str
    size: tuple[int, int]
    taken_at: datetime
    region: tuple[int, int, int, int] | None = None


class LoggedAction(_Stored):
    """A canonical action, where it went in native pixels, and what was said of it."""

    action: dict[str, Any]
    native: tuple[Point, ...] = ()
    output: str | None = None
    warning: str | None = None


class LogEntry(_Stored):
    """
    One call.

    *id* names the intention (a repeat is not performed, so not logged); *changed* are native boxes.
    *hidden* tells why there is no picture after: ``secret`` where one was typed, since the screen may
    show it.
    """

    version: Literal[1] = 1
    number: int
    id: str
    at: datetime
    took_ms: float | None = None
    desktop: str
    actor: str
    chat_id: str | None = None
    vendor_call_id: str | None = None
    model_size: tuple[int, int] | None = None
    native_size: tuple[int, int] | None = None
    actions: tuple[LoggedAction, ...]
    before: LoggedPicture | None = None
    after: LoggedPicture | None = None
    hidden: Literal["secret"] | None = None
    changed: tuple[tuple[int, int, int, int], ...] = ()
    pointer: Point | None = None
    settled_ms: float | None = None
    still_changing: bool = False
    warnings: tuple[str, ...] = ()
    error: str | None = None
    error_code: str | None = None


def describe_actions(call: Deed, native: Size | None) -> tuple[LoggedAction, ...]:
    """
    Actions of *call* without secrets; a chore is one.

    Args:
        call: its coordinates are in the model's frame.
        native: size of the screen; None where it is not known, then native points are left out.
    """
    if isinstance(call, Chore):
        return (LoggedAction(action=call.describe()),)
    scale = None
    if native is not None:
        width, height = call.model_size or (native.width, native.height)
        scale = Scale(native=native, model=Size(width=width, height=height))
    return tuple(_describe(action, scale) for action in call.actions)


def fill_result(entry: LogEntry, call: ComputerCall, result: ComputerResult) -> LogEntry:
    """*entry* with what *result* says; pictures are the caller's."""
    native = entry.native_size
    if result.screenshot is not None:
        native = result.screenshot.native_size
    size = Size(width=native[0], height=native[1]) if native is not None else None
    described = list(describe_actions(call, size))
    for index, report in enumerate(result.reports[: len(described)]):
        update: dict[str, Any] = {"output": report.output, "warning": report.warning}
        if report.native_point is not None and not described[index].native:
            update["native"] = (report.native_point,)
        described[index] = described[index].model_copy(update=update)
    return entry.model_copy(
        update={
            "native_size": native,
            "actions": tuple(described),
            "changed": result.changed,
            "pointer": result.pointer,
            "settled_ms": result.settled_ms,
            "still_changing": result.still_changing,
            "warnings": result.warnings,
            "error": result.error,
            "error_code": result.error_code,
        }
    )


def read_lines(lines: Iterable[str]) -> Iterator[LogEntry]:
    """Entries of a log; a line that a crash tore is left out."""
    for line in lines:
        try:
            yield LogEntry.model_validate_json(line)
        except ValidationError:
            continue


def origin_fields(origin: Origin) -> dict[str, Any]:
    """Who asked, as fields of an entry."""
    return {
        "actor": origin.actor,
        "chat_id": origin.chat_id,
        "vendor_call_id": origin.vendor_call_id,
    }


def _describe(action: Action, scale: Scale | None) -> LoggedAction:
    told = action.model_dump(mode="json", exclude_defaults=True) | {"action": action.action}
    if told.get("secret"):
        told["text"] = MASK
    points = tuple(_native(point, scale) for point in _points(told)) if scale is not None else ()
    return LoggedAction(action=told, native=tuple(point for point in points if point is not None))


def _points(told: dict[str, Any]) -> list[Point]:
    points = [told[name] for name in COORDINATES if told.get(name) is not None]
    return [*points, *told.get("path", ())]


def _native(point: Point, scale: Scale) -> Point | None:
    if not (0 <= point[0] < scale.model.width and 0 <= point[1] < scale.model.height):
        return None
    native = scale.to_native(ModelPoint(x=point[0], y=point[1]))
    return (native.x, native.y)
