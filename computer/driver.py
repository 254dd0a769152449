"""
Perform calls on a display, from asyncio.

Owns the thread in which the synchronous display lives, the order of actions, the wait for
the screen to settle, and the promise that nothing stays pressed after an error or a
cancellation. Keys and buttons that a model pressed on purpose stay down between calls.
"""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ParamSpec, TypeVar, assert_never

import numpy as np

from computer.actions import (
    Effect,
    KeyDown,
    KeyUp,
    Look,
    MoveTo,
    Pause,
    PlannedAction,
    Press,
    Release,
    Step,
    TypeCharacters,
    plan_call,
    render_output,
)
from computer.display import Display, Patience
from computer.errors import CaptureTimeout, ComputerError, DisplayClosed, DisplayLost, InvalidAction
from computer.geometry import Rect, Scale, Size, fit_within
from computer.pixels import Framebuffer, crop, encode_png, frame_size, scale_rgb, to_base64, to_rgb
from computer.shielding import finish
from computer.wire import ActionReport, ComputerCall, ComputerResult, ScreenshotData

__all__ = ["ANSWER_LIMIT_S", "ComputerDriver"]

P = ParamSpec("P")
R = TypeVar("R")

# Seconds in which the X server must answer; a stopped server is given up after them.
ANSWER_LIMIT_S = 10.0
# Seconds. An echo is on the screen after 10 ms, a new window after 100; an action without any
# effect must not cost more than the first change is worth. A spinner never settles: hence a cap.
PATIENCE = {
    Effect.NONE: None,
    Effect.ECHO: Patience(first_change_s=0.1, quiet_s=0.1, cap_s=2.0),
    Effect.START: Patience(first_change_s=0.3, quiet_s=0.1, cap_s=2.0),
}
# Between two actions of one call the second needs what the first has started (a window to type
# into), and a busy machine takes its time over that.
PATIENCE_WITHIN_CALL = Patience(first_change_s=1.0, quiet_s=0.1, cap_s=3.0)
RESTLESS = "the screen was still changing when the picture was taken"
SUPERSEDED = "only the last action's picture is returned; make zoom the last action of a call"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Picture:
    """The last picture, to be handed out again while the screen stays the same."""

    frame: Framebuffer
    size: Size
    data: str


class ComputerDriver:
    """
    One display, one call at a time.

    Args:
        open_display: makes the display; called in the thread that will own it.
        answer_limit_s: seconds in which the display must answer one request.
    """

    def __init__(
        self, open_display: Callable[[], Display], *, answer_limit_s: float = ANSWER_LIMIT_S
    ) -> None:
        self._open_display = open_display
        self._answer_limit_s = answer_limit_s
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="display")
        self._turn = asyncio.Lock()
        self._display: Display | None = None
        self._is_closed = False
        self._picture: _Picture | None = None
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
            native = await self._in_thread(self._get_display().size)
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
        return await self._in_thread(self._take_picture, target)

    async def release_all(self) -> None:
        """Release every key and button that is held."""
        await self._in_thread(self._get_display().release_all)

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

    def _take_picture(self, target: Size | None) -> ScreenshotData:
        frame = self._get_display().capture()
        native = frame_size(frame)
        size = target or native
        last = self._picture
        if last is None or last.size != size or not np.array_equal(last.frame, frame):
            data = to_base64(encode_png(scale_rgb(to_rgb(frame), size)))
            last = self._picture = _Picture(frame=frame, size=size, data=data)
        return _screenshot(last.data, size, native)

    def _take_zoom(self, region: Rect, box: Size) -> ScreenshotData:
        frame = self._get_display().capture()
        part = to_rgb(crop(frame, region))
        size = fit_within(region.size, box)
        return _screenshot(to_base64(encode_png(scale_rgb(part, size))), size, frame_size(frame))


class _Run:
    """One call in progress."""

    def __init__(self, driver: ComputerDriver, call: ComputerCall, scale: Scale) -> None:
        self._driver = driver
        self._display = driver._get_display()
        self._call = call
        self._scale = scale
        self._reports: list[ActionReport] = []
        self._zoom: ScreenshotData | None = None
        self._pending = Effect.NONE

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
            self._reports[-1] = self._reports[-1].model_copy(update={"warning": SUPERSEDED})
            self._zoom = None
        if self._pending is Effect.START or planned.effect is Effect.NONE:
            await self._settle(is_within_call=True)
        if planned.effect is not Effect.NONE and self._pending is Effect.NONE:
            await self._driver._in_thread(self._display.mark)
        await self._perform_steps(planned.steps)
        if planned.effect is not Effect.NONE:
            self._pending = max(self._pending, planned.effect, key=list(Effect).index)
        return await self._report(planned)

    async def _perform_steps(self, steps: tuple[Step, ...]) -> None:
        batch: list[Step] = []
        for step in steps:
            match step:
                case Pause() | TypeCharacters() | Look():
                    await self._perform_batch(batch)
                    batch = []
                    await self._perform_slow(step)
                case _:
                    batch.append(step)
        await self._perform_batch(batch)

    async def _perform_batch(self, steps: list[Step]) -> None:
        if steps:
            await self._driver._in_thread(_perform_instant, self._display, tuple(steps))

    async def _perform_slow(self, step: Pause | TypeCharacters | Look) -> None:
        match step:
            case Pause():
                await asyncio.sleep(step.duration_s)
            case TypeCharacters():
                await self._type(step.text)
            case Look():
                self._zoom = await self._driver._in_thread(
                    self._driver._take_zoom, step.region, self._scale.model
                )
            case _:
                assert_never(step)

    async def _type(self, text: str) -> None:
        bursts = self._display.type_text(text)
        try:
            while await self._driver._in_thread(next, bursts, None) is not None:
                pass
        finally:
            await self._driver._in_thread(_close_iterator, bursts)

    async def _report(self, planned: PlannedAction) -> ActionReport:
        place, native = planned.point, None
        if planned.at_pointer:
            native = await self._driver._in_thread(self._display.pointer)
            place = self._scale.to_model(native)
        elif place is not None:
            native = self._scale.to_native(place)
        return ActionReport(
            action=planned.action,
            output=render_output(planned, place),
            native_point=(native.x, native.y) if native is not None else None,
        )

    async def _settle(self, *, is_within_call: bool = False) -> None:
        patience = PATIENCE[self._pending]
        if is_within_call and self._pending is Effect.START:
            patience = PATIENCE_WITHIN_CALL
        self._pending = Effect.NONE
        if patience is None:
            return
        settled = await self._driver._in_thread(self._display.wait_settled, patience)
        if not settled.is_settled and self._reports:
            self._reports[-1] = self._reports[-1].model_copy(update={"warning": RESTLESS})

    async def _finish(self, error: ComputerError | None) -> ComputerResult:
        screenshot = None
        try:
            if self._call.screenshot or _asks_for_picture(self._call):
                await self._settle()
                screenshot = self._zoom if error is None else None
                screenshot = screenshot or await self._driver.screenshot(self._call.model_size)
        except ComputerError as exc:
            error = error or exc
        return ComputerResult(
            reports=tuple(self._reports),
            screenshot=screenshot,
            error=str(error) if error is not None else None,
            error_code=error.code if error is not None else None,
        )


def _perform_instant(display: Display, steps: tuple[Step, ...]) -> None:
    for step in steps:
        match step:
            case MoveTo():
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


def _asks_for_picture(call: ComputerCall) -> bool:
    return any(action.action in {"screenshot", "zoom"} for action in call.actions)


def _screenshot(data: str, size: Size, native: Size) -> ScreenshotData:
    return ScreenshotData(
        data=data,
        model_size=(size.width, size.height),
        native_size=(native.width, native.height),
        taken_at=datetime.now(UTC),
    )


def _close_iterator(bursts: Iterator[int]) -> None:
    close = getattr(bursts, "close", None)
    if close is not None:
        close()


def _swallow(job: "asyncio.Future[R]") -> None:
    if not job.cancelled():
        job.exception()
