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
from typing import ParamSpec, TypeVar, assert_never

from computer.actions import (
    AwaitAnswer,
    AwaitRest,
    Effect,
    Listen,
    Look,
    MoveTo,
    PasteCharacters,
    Pause,
    PlannedAction,
    ReadClipboard,
    Step,
    TextStep,
    TypeCharacters,
    WriteClipboard,
    naming_action,
    plan_call,
    render_output,
)
from computer.display import Display, DisplayInfo, Patience, Settled, Typed, Way
from computer.display.rest import RestTracker
from computer.errors import (
    CaptureTimeout,
    ComputerError,
    DisplayClosed,
    DisplayLost,
    ScreenResized,
)
from computer.geometry import Rect, Scale, Size
from computer.instant import Observation, begin, observe, perform_instant, require_size
from computer.pictures import Pictures
from computer.pixels import EncodingSettings
from computer.secrets import hide_in_result, secrets_of
from computer.settling import SettleSettings
from computer.shielding import finish
from computer.tripwires import Tripwires
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
RESIZED = (
    "the screen was {}x{} on the last picture and is {}x{} now; nothing was done. Look at the new "
    "screenshot, and give coordinates that fit it"
)
SLOW_STEPS = (
    Pause, TypeCharacters, PasteCharacters, WriteClipboard, ReadClipboard, Look, Listen, AwaitAnswer,
    AwaitRest,
)  # fmt: skip


SlowStep = Pause | TextStep | Look | Listen | AwaitAnswer | AwaitRest


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
        self._aborted = asyncio.Event()
        self._shown: tuple[int, int] | None = None

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
            try:
                native = await self._in_thread(begin, self._get_display())
                model = native
                if call.model_size is not None:
                    model = Size(width=call.model_size[0], height=call.model_size[1])
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
        return self.note_shown(await self._in_thread(self._get_pictures().take, target))

    def note_shown(self, picture: ScreenshotData) -> ScreenshotData:
        """Remember the size of the screen on the last picture that was handed out."""
        self._shown = picture.native_size
        return picture

    def check_size(self, call: ComputerCall, native: Size) -> None:
        """
        See that places were read from a picture of the screen as it is; refused once after a change.

        Raises:
            ScreenResized: the screen had another size on the last picture.
        """
        now, shown = (native.width, native.height), self._shown
        if shown is not None and shown != now and _names_a_place(call):
            self._shown = now
            raise ScreenResized(RESIZED.format(*shown, *now))

    async def info(self) -> DisplayInfo:
        """Describe the ways to see and to touch that were found to work."""
        return await self._in_thread(self._get_display().info)

    async def release_all(self) -> Held:
        """Release every key and button that is held; returns what the server says is down still."""
        return await self._in_thread(_release_and_read, self._get_display())

    async def adopt_clipboard(self, max_bytes: int) -> int:
        """Make a long text readable for RFB viewers; the bytes of one longer than *max_bytes*, else 0."""
        return await self._in_thread(self._get_display().adopt_clipboard, max_bytes)

    async def close(self) -> None:
        """Release what is held, disconnect, and end the thread; harmless when repeated."""
        if not self._is_closed:
            self._is_closed = True
            await finish(self._close())

    def abort(self) -> None:
        """Give the display up at once: it is known to be gone."""
        self.is_broken = True
        self._aborted.set()
        if self._display is not None:
            self._display.abort()

    async def pause(self, duration_s: float) -> None:
        """
        Let time pass, unless the display is given up meanwhile.

        Raises:
            DisplayLost: it was.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(duration_s):
                await self._aborted.wait()
        self._check_given_up()

    def _check_given_up(self) -> None:
        if self.is_broken:
            msg = "the display has been given up"
            raise DisplayLost(msg)

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
        # The last picture is megabytes; whoever still knows this driver needs none of it.
        self._pictures = None

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
        if not self._is_closed:
            self._check_given_up()
        loop = asyncio.get_running_loop()
        try:
            job = loop.run_in_executor(self._executor, lambda: function(*args, **kwargs))
        except RuntimeError as exc:
            # Closed by whoever owns it, in the middle of a call.
            msg = "the display was closed meanwhile"
            raise DisplayLost(msg) from exc
        # The job can't be interrupted; whoever cancels waits for its end, so that nothing is
        # pressed after the release that follows.
        deadline, cancelled = loop.time() + self._answer_limit_s, None
        while not job.done() and (left := deadline - loop.time()) > 0:
            try:
                await asyncio.wait({job}, timeout=left)
            except asyncio.CancelledError as exc:
                cancelled = exc
        if not job.done():
            self.abort()
        if cancelled is not None or not job.done():
            job.add_done_callback(_swallow)
        if cancelled is not None:
            raise cancelled
        if job.cancelled():
            msg = "the display was closed meanwhile"
            raise DisplayLost(msg)
        if job.done():
            return job.result()
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
        self._tripwires = Tripwires(self._display, call.tripwires, scale)
        self._zoom: ScreenshotData | None = None
        self._pending = Effect.NONE
        self._seen: list[Rect] = []
        self._settled: Settled | None = None
        self._warning: str | None = None
        self._way: Way | None = None
        self._read: str | None = None
        self._observed: Observation | None = None

    async def perform(self) -> ComputerResult:
        """Plan, act, look."""
        error: ComputerError | None = None
        try:
            self._driver.check_size(self._call, self._scale.native)
            planned = plan_call(self._call, self._scale)
            await self._in_tripwires(self._tripwires.begin)
            for action in planned:
                with naming_action(self._call, len(self._reports)):
                    self._reports.append(await self._perform_action(action))
        except ComputerError as exc:
            error, self._observed = exc, None
            await self._driver._release_quietly()
        return hide_in_result(await self._finish(error), secrets_of(self._call))

    async def _in_tripwires(self, step: Callable[[], None]) -> None:
        if self._call.tripwires:
            await self._driver._in_thread(step)

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
        if self._reports and any(isinstance(step, (MoveTo, Look)) for step in planned.steps):
            # Planned for the screen as it was when the call began.
            await self._driver._in_thread(require_size, self._display, self._scale.native)
        await self._in_tripwires(self._tripwires.check)
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
            warning, self._observed = await self._driver._in_thread(
                perform_instant, self._display, tuple(steps), observes=not self._looks
            )
            self._warning = warning or self._warning

    async def _perform_slow(self, step: SlowStep) -> None:
        self._observed = None
        match step:
            case Pause():
                await self._driver.pause(step.duration_s)
            case Listen():
                await self._await_change(0)
            case AwaitAnswer():
                await self._await_change(step.limit_s)
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

    async def _await_change(self, limit_s: float) -> None:
        """What changes meanwhile counts for the wait that follows the action."""
        deadline = time.monotonic() + limit_s
        areas: tuple[Rect, ...] = ()
        while not areas:
            left = max(0.0, deadline - time.monotonic())
            areas = await self._driver._in_thread(self._display.wait_changes, min(WAIT_SLICE_S, left))
            self._seen.extend(areas)
            if left <= 0:
                break

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
            seen = self._observed
            native = seen.pointer if seen else await self._driver._in_thread(self._display.pointer)
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
        for area in self._seen:
            tracker.add(area, time.monotonic())
        self._seen.clear()
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
        screenshot, seen = None, self._observed
        warnings: list[str] = []
        try:
            if self._call.screenshot or _asks_for_picture(self._call):
                await self._settle()
                screenshot = self._zoom if error is None else None
                if screenshot is None:
                    taken, seen = await self._driver._in_thread(self._take_picture)
                    screenshot = self._driver.note_shown(taken)
                if self._pictures.is_blank:
                    warnings.append(BLANK)
            seen = seen or await self._driver._in_thread(observe, self._display)
        except ComputerError as exc:
            error = error or exc
        if seen is not None and error is not None and (seen.held.keys or seen.held.buttons):
            warnings.append(f"still down after everything was released: {_name_held(seen.held)}")
        return self._result(error, screenshot, seen, tuple(warnings))

    def _take_picture(self) -> tuple[ScreenshotData, Observation]:
        model = self._scale.model if self._call.model_size is not None else None
        return self._pictures.take(model, tells=True), observe(self._display)

    def _result(
        self,
        error: ComputerError | None,
        screenshot: ScreenshotData | None,
        seen: Observation | None,
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


def _names_a_place(call: ComputerCall) -> bool:
    """Whether an action says where; what happens at the pointer does not."""
    names = ("coordinate", "start_coordinate", "path", "region")
    return any(getattr(action, name, None) is not None for action in call.actions for name in names)


def _asks_to_look(call: ComputerCall) -> bool:
    return any(action.action in {"screenshot", "zoom", "wait_settled"} for action in call.actions)


def _asks_for_picture(call: ComputerCall) -> bool:
    return any(action.action in {"screenshot", "zoom"} for action in call.actions)


def _swallow(job: "asyncio.Future[R]") -> None:
    if not job.cancelled():
        job.exception()
