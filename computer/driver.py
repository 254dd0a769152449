"""
Perform calls on a display, from asyncio.

Owns the thread in which the synchronous display lives, the order of actions, the wait for
the screen to settle, and the promise that nothing stays pressed after an error or a
cancellation. Keys and buttons that a model pressed on purpose stay down between calls.
"""

import asyncio
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import ParamSpec, TypeVar, assert_never

from computer.actions import (
    AwaitRest,
    Effect,
    KeyDown,
    KeyUp,
    Look,
    MoveTo,
    PasteCharacters,
    Pause,
    PlannedAction,
    Press,
    ReadClipboard,
    Release,
    Step,
    TextStep,
    TypeCharacters,
    WriteClipboard,
    plan_call,
    render_output,
)
from computer.display import Display, DisplayInfo, Patience, Settled, Typed, Way
from computer.display.rest import RestTracker
from computer.errors import CaptureTimeout, ComputerError, DisplayClosed, DisplayLost, InvalidAction
from computer.geometry import Point, Rect, Scale, Size
from computer.pictures import Pictures
from computer.pixels import EncodingSettings
from computer.settling import SettleSettings
from computer.shielding import finish
from computer.wire import ActionReport, ComputerCall, ComputerResult, Held, ScreenshotData

__all__ = ["ANSWER_LIMIT_S", "ComputerDriver"]

P = ParamSpec("P")
R = TypeVar("R")

# Seconds in which the X server must answer; a stopped server is given up after them.
ANSWER_LIMIT_S = 10.0
# Seconds of waiting for a change in one go; others may use the display in between.
WAIT_SLICE_S = 0.25
RESTLESS = "the screen was still changing when the picture was taken"
SUPERSEDED = "only the last action's picture is returned; make zoom the last action of a call"
NO_CHANGE = "nothing on the screen changed within {:.0f} ms"
BLANK = "the whole screen is of one colour: nothing is drawn on it"
SLOW_STEPS = (Pause, TypeCharacters, PasteCharacters, WriteClipboard, ReadClipboard, Look, AwaitRest)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Observation:
    """What the server says at the end of a call."""

    pointer: Point
    held: Held
    changed: tuple[Rect, ...]


class ComputerDriver:
    """
    One display, one call at a time.

    Args:
        open_display: makes the display; called in the thread that will own it.
        answer_limit_s: seconds in which the display must answer one request.
        settle: patience with the screen.
        encoding: of pictures.
    """

    def __init__(
        self,
        open_display: Callable[[], Display],
        *,
        answer_limit_s: float = ANSWER_LIMIT_S,
        settle: SettleSettings | None = None,
        encoding: EncodingSettings | None = None,
    ) -> None:
        self._open_display = open_display
        self._answer_limit_s = answer_limit_s
        self._settle = settle or SettleSettings()
        self._encoding = encoding or EncodingSettings()
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="display")
        self._turn = asyncio.Lock()
        self._display: Display | None = None
        self._pictures: Pictures | None = None
        self._is_closed = False
        self.is_broken = False

    async def open(self) -> None:
        """
        Connect, and take a first picture as proof that the display works.

        Raises:
            DisplayLost: nobody answers.
            CaptureTimeout: the server does not answer in time.
        """
        await self._in_thread(self._open_in_thread)

    async def perform(self, call: ComputerCall) -> ComputerResult:
        """
        Perform the actions of *call* in order, then look once.

        The first failure stops the rest, releases what is held, and is told in the result.

        Raises:
            DisplayLost, CaptureTimeout: the display was gone before anything was done; the
                call may be tried again on another one.

        Cancellation:
            the current step ends, then everything that is held is released.
        """
        async with self._turn:
            native = await self._in_thread(_begin, self._get_display())
            model = native
            if call.model_size is not None:
                model = Size(width=call.model_size[0], height=call.model_size[1])
            try:
                return await _Run(self, call, Scale(native=native, model=model)).perform()
            except asyncio.CancelledError:
                await finish(self._release_quietly())
                raise

    async def screenshot(self, model_size: tuple[int, int] | None = None) -> ScreenshotData:
        """
        Picture of the screen as it is now, scaled to *model_size*; native if that is absent.

        May run while a call holds a key or waits.
        """
        target = Size(width=model_size[0], height=model_size[1]) if model_size else None
        return await self._in_thread(self._get_pictures().take, target)

    async def info(self) -> DisplayInfo:
        """Describe the ways to see and to touch that were found to work."""
        return await self._in_thread(self._get_display().info)

    async def release_all(self) -> Held:
        """Release every key and button that is held; returns what the server says is down still."""
        return await self._in_thread(_release_and_read, self._get_display())

    async def close(self) -> None:
        """Release what is held, disconnect, and end the thread; harmless when repeated."""
        if not self._is_closed:
            self._is_closed = True
            await finish(self._close())

    def abort(self) -> None:
        """Give the display up at once: it is known to be gone."""
        self.is_broken = True
        if self._display is not None:
            self._display.abort()

    def _open_in_thread(self) -> None:
        # Kept at once, in the thread: a cancelled caller must still be able to close it.
        self._display = self._open_display()
        self._pictures = Pictures(self._display, self._encoding)
        self._display.capture()

    async def _close(self) -> None:
        if self._display is not None:
            with suppress(ComputerError):
                await self._in_thread(self._display.close)
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _get_display(self) -> Display:
        if self._display is None or self._is_closed:
            msg = "the driver is not open"
            raise DisplayClosed(msg)
        return self._display

    def _get_pictures(self) -> Pictures:
        self._get_display()
        if self._pictures is None:
            msg = "the driver is not open"
            raise DisplayClosed(msg)
        return self._pictures

    async def _release_quietly(self) -> None:
        # A display that is gone holds nothing any more.
        with suppress(ComputerError):
            await self.release_all()

    async def _in_thread(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        if self.is_broken and not self._is_closed:
            msg = "the display has been given up"
            raise DisplayLost(msg)
        loop = asyncio.get_running_loop()
        job = loop.run_in_executor(self._executor, lambda: function(*args, **kwargs))
        # The job can't be interrupted; whoever cancels waits for its end, so that nothing is
        # pressed after the release that follows.
        return await finish(self._await_job(job))

    async def _await_job(self, job: "asyncio.Future[R]") -> R:
        done, _ = await asyncio.wait({job}, timeout=self._answer_limit_s)
        if done:
            return job.result()
        self.abort()
        job.add_done_callback(_swallow)
        msg = f"the X server did not answer within {self._answer_limit_s:g} s"
        raise CaptureTimeout(msg)


class _Run:
    """One call in progress."""

    def __init__(self, driver: ComputerDriver, call: ComputerCall, scale: Scale) -> None:
        self._driver = driver
        self._display = driver._get_display()
        self._pictures = driver._get_pictures()
        self._call = call
        self._scale = scale
        self._reports: list[ActionReport] = []
        self._zoom: ScreenshotData | None = None
        self._pending = Effect.NONE
        self._settled: Settled | None = None
        self._warning: str | None = None
        self._way: Way | None = None
        self._read: str | None = None

    async def perform(self) -> ComputerResult:
        """Plan, act, look."""
        error: ComputerError | None = None
        try:
            planned = plan_call(self._call, self._scale)
            for action in planned:
                self._reports.append(await self._perform_action(action))
        except ComputerError as exc:
            error = exc
            await self._driver._release_quietly()
        return await self._finish(error)

    async def _perform_action(self, planned: PlannedAction) -> ActionReport:
        if self._zoom is not None:
            self._warn_last(SUPERSEDED)
            self._zoom = None
        is_wait = any(isinstance(step, AwaitRest) for step in planned.steps)
        if not is_wait and (self._pending is Effect.START or planned.effect is Effect.NONE):
            await self._settle(is_within_call=True)
        if is_wait or (planned.effect is not Effect.NONE and self._pending is Effect.NONE):
            await self._mark(is_wait=is_wait)
        self._warning = self._way = self._read = None
        await self._perform_steps(planned.steps)
        if planned.effect is not Effect.NONE:
            self._pending = max(self._pending, planned.effect, key=list(Effect).index)
        return await self._report(planned)

    async def _mark(self, *, is_wait: bool) -> None:
        # What came before a wait, but after the action that it waits for, must count.
        if self._looks and not (is_wait and self._pending is not Effect.NONE):
            await self._driver._in_thread(self._display.mark)

    async def _perform_steps(self, steps: tuple[Step, ...]) -> None:
        batch: list[Step] = []
        for step in steps:
            if isinstance(step, SLOW_STEPS):
                await self._perform_batch(batch)
                batch = []
                await self._perform_slow(step)
            else:
                batch.append(step)
        await self._perform_batch(batch)

    async def _perform_batch(self, steps: list[Step]) -> None:
        if steps:
            warning = await self._driver._in_thread(_perform_instant, self._display, tuple(steps))
            self._warning = warning or self._warning

    async def _perform_slow(self, step: Pause | TextStep | Look | AwaitRest) -> None:
        match step:
            case Pause():
                await asyncio.sleep(step.duration_s)
            case TypeCharacters() | PasteCharacters() | WriteClipboard() | ReadClipboard():
                await self._perform_text(step)
            case Look():
                self._zoom = await self._driver._in_thread(
                    self._pictures.take_region, step.region, self._scale.model
                )
            case AwaitRest():
                patience = self._driver._settle.asked(step.quiet_s, step.timeout_s, self._pending)
                self._pending = Effect.NONE
                settled = await self._await_rest(patience)
                self._warning = None if settled.is_settled else RESTLESS
            case _:
                assert_never(step)

    async def _perform_text(self, step: TextStep) -> None:
        in_thread, display = self._driver._in_thread, self._display
        match step:
            case TypeCharacters():
                typed = await self._type(step.text)
                self._way, self._warning = typed.way, typed.warning
            case PasteCharacters():
                self._warning = (await in_thread(display.paste_text, step.text)).warning
            case WriteClipboard():
                await in_thread(display.set_clipboard, step.text)
            case ReadClipboard():
                self._read = await in_thread(display.get_clipboard)

    async def _type(self, text: str) -> Typed:
        bursts = self._display.type_text(text)
        try:
            outcome: int | Typed = 0
            while isinstance(outcome, int):
                outcome = await self._driver._in_thread(_next_burst, bursts)
            return outcome
        finally:
            await self._driver._in_thread(bursts.close)

    async def _report(self, planned: PlannedAction) -> ActionReport:
        place, native = planned.point, None
        if planned.at_pointer:
            native = await self._driver._in_thread(self._display.pointer)
            place = self._scale.to_model(native)
        elif place is not None:
            native = self._scale.to_native(place)
        return ActionReport(
            action=planned.action,
            output=render_output(planned, place, self._way) if self._read is None else self._read,
            native_point=(native.x, native.y) if native is not None else None,
            warning=self._warning,
        )

    @property
    def _looks(self) -> bool:
        """Whether anything is made of what changes on the screen."""
        return self._call.screenshot or len(self._call.actions) > 1 or _asks_to_look(self._call)

    async def _settle(self, *, is_within_call: bool = False) -> None:
        patience = self._driver._settle.after(self._pending, is_within_call=is_within_call)
        self._pending = Effect.NONE
        if patience is None:
            return
        settled = await self._await_rest(patience)
        if not settled.is_settled:
            self._warn_last(RESTLESS)
        elif not settled.changed:
            self._warn_last(NO_CHANGE.format(settled.waited_s * 1_000))

    async def _await_rest(self, patience: Patience) -> Settled:
        tracker = RestTracker(patience, time.monotonic())
        while (settled := tracker.judge(time.monotonic())) is None:
            timeout_s = min(WAIT_SLICE_S, tracker.time_left(time.monotonic()))
            for area in await self._driver._in_thread(self._display.wait_changes, timeout_s):
                tracker.add(area, time.monotonic())
        self._settled = settled
        return settled

    def _warn_last(self, warning: str) -> None:
        # An earlier warning on the same action says more: it is about the action itself.
        if self._reports and self._reports[-1].warning is None:
            self._reports[-1] = self._reports[-1].model_copy(update={"warning": warning})

    async def _finish(self, error: ComputerError | None) -> ComputerResult:
        screenshot, seen = None, None
        warnings: list[str] = []
        try:
            if self._call.screenshot or _asks_for_picture(self._call):
                await self._settle()
                screenshot = self._zoom if error is None else None
                screenshot = screenshot or await self._take_picture()
                if self._pictures.is_blank:
                    warnings.append(BLANK)
            seen = await self._driver._in_thread(_observe, self._display)
        except ComputerError as exc:
            error = error or exc
        if seen is not None and error is not None and (seen.held.keys or seen.held.buttons):
            warnings.append(f"still down after everything was released: {_name_held(seen.held)}")
        return self._result(error, screenshot, seen, tuple(warnings))

    async def _take_picture(self) -> ScreenshotData:
        model = self._scale.model if self._call.model_size is not None else None
        return await self._driver._in_thread(self._pictures.take, model, tells=True)

    def _result(
        self,
        error: ComputerError | None,
        screenshot: ScreenshotData | None,
        seen: _Observation | None,
        warnings: tuple[str, ...],
    ) -> ComputerResult:
        settled = self._settled
        return ComputerResult(
            reports=tuple(self._reports),
            screenshot=screenshot,
            settled_ms=round(settled.waited_s * 1_000, 1) if settled is not None else None,
            still_changing=settled is not None and not settled.is_settled,
            changed=tuple((box.left, box.top, box.right, box.bottom) for box in seen.changed) if seen else (),
            pointer=(seen.pointer.x, seen.pointer.y) if seen else None,
            held=seen.held if seen else None,
            warnings=warnings,
            error=str(error) if error is not None else None,
            error_code=error.code if error is not None else None,
        )


def _perform_instant(display: Display, steps: tuple[Step, ...]) -> str | None:
    """Perform steps that take no time; returns a warning when the pointer did not go where it should."""
    target: Point | None = None
    for step in steps:
        match step:
            case MoveTo():
                target = step.point
                display.move_pointer(step.point)
            case Press():
                display.press_button(step.button)
            case Release():
                display.release_button(step.button)
            case KeyDown():
                display.press_chord(step.chord)
            case KeyUp():
                display.release_chord(step.chord)
            case _:
                msg = f"{type(step).__name__} takes time"
                raise InvalidAction(msg)
    # Asking is the proof as well that the server has taken all of this.
    found = display.pointer()
    if target is None or found == target:
        return None
    return (
        f"the pointer was sent to native ({target.x}, {target.y}) and is at ({found.x}, {found.y}): "
        "a person or a program moves it"
    )


def _begin(display: Display) -> Size:
    """Forget what a call that was cancelled has left unread; returns the size of the screen."""
    display.take_changes()
    return display.size()


def _observe(display: Display) -> _Observation:
    return _Observation(pointer=display.pointer(), held=display.read_held(), changed=display.take_changes())


def _release_and_read(display: Display) -> Held:
    display.release_all()
    return display.read_held()


def _next_burst(bursts: Generator[int, None, Typed]) -> int | Typed:
    try:
        return next(bursts)
    except StopIteration as end:
        typed: Typed = end.value
        return typed


def _name_held(held: Held) -> str:
    return ", ".join((*held.keys, *(f"button {button}" for button in held.buttons)))


def _asks_to_look(call: ComputerCall) -> bool:
    return any(action.action in {"screenshot", "zoom", "wait_settled"} for action in call.actions)


def _asks_for_picture(call: ComputerCall) -> bool:
    return any(action.action in {"screenshot", "zoom"} for action in call.actions)


def _swallow(job: "asyncio.Future[R]") -> None:
    if not job.cancelled():
        job.exception()
