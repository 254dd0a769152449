"""Who is to blame when a model call goes silent, is given up, or is cancelled."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable

import pytest

from chatd.errors import ProviderFault
from chatd.loop.silence import Patience, _Watch, listen
from chatd.provider.protocol import Alive, ModelRequest, ProviderEvent, TextDelta

REQUEST = ModelRequest(model="m", system="", messages=())
PATIENT = Patience(startup_s=30, silence_s=30)
HASTY = Patience(startup_s=0.01, silence_s=0.01)


class Model:
    """Says *events*, then does whatever *ending* does; remembers that it was closed."""

    name = "openai"

    def __init__(self, events: list[ProviderEvent], ending: Callable[[], Awaitable[object]]) -> None:
        self.events, self.ending = events, ending
        self.is_closed = False

    async def stream(self, _: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Play."""
        try:
            for event in self.events:
                yield event
            await self.ending()
        finally:
            self.is_closed = True

    async def close(self) -> None:
        """Nothing is open."""


async def never() -> None:
    """Wait for ever."""
    await asyncio.Event().wait()


async def stubborn() -> None:
    """Turn a cancellation into an error of its own, as some clients do."""
    try:
        await never()
    except asyncio.CancelledError:
        raise ConnectionError("gave up") from None


async def deaf() -> None:
    """End as if all was well, though cancelled."""
    try:
        await never()
    except asyncio.CancelledError:
        return


async def give_up() -> None:
    """A client that cancels on its own account."""
    raise asyncio.CancelledError


async def hear(model: Model, patience: Patience) -> list[ProviderEvent]:
    """Everything that the model says."""
    return [event async for event in listen(model, REQUEST, patience)]


@pytest.mark.parametrize("ending", [never, stubborn, deaf])
@pytest.mark.parametrize(
    ("events", "kind"),
    [
        ([], "startup_timeout"),
        ([Alive()], "stream_silence_timeout"),
        ([TextDelta("a")], "stream_silence_timeout"),
    ],
)
async def test_silence_is_the_cause_whatever_came_of_it(
    events: list[ProviderEvent], kind: str, ending: Callable[[], Awaitable[object]]
) -> None:
    """Spec 1.4: the guard's own verdict, retryable, with the provider; the call is closed."""
    model = Model(events, ending)
    with pytest.raises(ProviderFault) as caught:
        await hear(model, HASTY)

    assert (caught.value.kind, caught.value.retryable, caught.value.provider) == (kind, True, "openai")
    assert model.is_closed


async def test_a_call_that_the_vendor_gives_up_is_a_reset() -> None:
    """Vector 54: a healthy caller tries again."""
    with pytest.raises(ProviderFault) as caught:
        await hear(Model([TextDelta("a")], give_up), PATIENT)

    assert (caught.value.kind, caught.value.retryable) == ("timeout", True)


async def test_a_caller_that_leaves_is_cancelled_whatever_the_client_makes_of_it() -> None:
    """Vector 53: the caller's cause comes first."""
    model = Model([TextDelta("a")], never)
    task = asyncio.create_task(hear(model, PATIENT))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert model.is_closed


async def test_an_error_keeps_its_own_verdict() -> None:
    """Spec 1.4: released first, the guard says nothing."""

    async def refuse() -> None:
        raise ProviderFault("no", kind="auth")

    with pytest.raises(ProviderFault) as caught:
        await hear(Model([TextDelta("a")], refuse), PATIENT)

    assert caught.value.kind == "auth"


async def test_signs_of_life_are_not_passed_on() -> None:
    """Ours: nobody behind the guard needs them."""

    async def end() -> None:
        return

    assert await hear(Model([Alive(), TextDelta("a"), Alive()], end), PATIENT) == [TextDelta("a")]


async def test_a_shorter_limit_holds_at_once() -> None:
    """Ours: there is one timer; a long first wait must not outlast a short second one."""
    with pytest.raises(ProviderFault) as caught:
        await hear(Model([TextDelta("a")], never), Patience(startup_s=3_600, silence_s=0.01))

    assert caught.value.kind == "stream_silence_timeout"


async def test_a_timer_that_fires_early_is_moved_on() -> None:
    """Ours: it was set for an event that came; the wait for the next one has its whole time."""
    watch = _Watch()
    watch.begin(3_600)
    watch._fire()

    assert not watch.has_fired
    assert watch._timer is not None
    watch.close()
