"""Clicks, moves, keys and text, beside xdotool and vncdotool."""

import itertools
import time

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from tests.bench.desk import Desk, need

# Input does not depend on the size of the screen: one is enough.
pytestmark = pytest.mark.parametrize("desk", [(1280, 800)], indirect=True, ids=["1280x800"])

TEXT = ("The quick brown fox; (a>b) [c] {d} @ 42% ~ Hello_World!\n" * 20)[:999] + "\n"
PLACES = itertools.cycle([(30, 780), (50, 790)])


def _act(desk: Desk, action: str, **fields: object) -> None:
    call = desk.call({"action": action, **fields}, screenshot=False)
    assert desk.run(desk.driver.perform(call)).error is None


@pytest.mark.benchmark(group="move the pointer")
def test_move_ours(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """One call."""
    benchmark.pedantic(lambda: _act(desk, "mouse_move", coordinate=next(PLACES)), rounds=100)


@pytest.mark.benchmark(group="move the pointer")
def test_move_xdotool(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """One process."""
    program = need("xdotool")
    benchmark.pedantic(lambda: desk.spawn(program, "mousemove", *map(str, next(PLACES))), rounds=20)


@pytest.mark.benchmark(group="move and click")
def test_click_ours(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """One call."""
    benchmark.pedantic(lambda: _act(desk, "back_click", coordinate=next(PLACES)), rounds=100)


@pytest.mark.benchmark(group="move and click")
@pytest.mark.parametrize("delay", [(), ("--delay", "0")], ids=["default", "delay 0"])
def test_click_xdotool(benchmark: BenchmarkFixture, desk: Desk, delay: tuple[str, ...]) -> None:
    """One process; 100 ms are its default delay."""
    program = need("xdotool")
    benchmark.extra_info["options"] = " ".join(delay) or "default"
    benchmark.pedantic(
        lambda: desk.spawn(program, "mousemove", *map(str, next(PLACES)), "click", *delay, "8"), rounds=10
    )


@pytest.mark.benchmark(group="move and click")
def test_click_vncdotool(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """One process."""
    argv = (need("vncdo"), "-s", str(desk.rfb), "move", "40", "790", "click", "8")
    benchmark.pedantic(lambda: desk.spawn(*argv), rounds=3)


@pytest.mark.benchmark(group="press a key")
def test_key_ours(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """One call."""
    benchmark.pedantic(lambda: _act(desk, "key", text="shift"), rounds=100)


@pytest.mark.benchmark(group="press a key")
def test_key_xdotool(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """One process."""
    program = need("xdotool")
    benchmark.pedantic(lambda: desk.spawn(program, "key", "--clearmodifiers", "shift"), rounds=20)


def _wait_typed(desk: Desk, length: int) -> None:
    deadline = time.monotonic() + 30
    while desk.out.stat().st_size < length:
        assert time.monotonic() < deadline
        time.sleep(0.0005)


@pytest.mark.benchmark(group="type 1,000 characters until a terminal has them")
def test_type_ours(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """One call; the file of the terminal is read."""
    before = desk.out.stat().st_size

    def type_all() -> None:
        length = desk.out.stat().st_size
        _act(desk, "type", text=TEXT)
        _wait_typed(desk, length + len(TEXT))

    benchmark.pedantic(type_all, rounds=7)
    assert desk.out.read_text()[before:] == TEXT * 7


@pytest.mark.benchmark(group="type 1,000 characters until a terminal has them")
@pytest.mark.parametrize("delay", ["1", "12"])
def test_type_xdotool(benchmark: BenchmarkFixture, desk: Desk, delay: str) -> None:
    """With portabledesktop's delay, and with its default."""
    program = need("xdotool")
    benchmark.extra_info["delay"] = delay

    def type_all() -> None:
        length = desk.out.stat().st_size
        desk.spawn(program, "type", "--delay", delay, "--", TEXT)
        _wait_typed(desk, length + len(TEXT))

    benchmark.pedantic(type_all, rounds=2)


@pytest.mark.benchmark(group="act, and a picture of the screen at rest")
def test_key_and_settled_screenshot_ours(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """A key with its echo in a terminal."""
    call = desk.call({"action": "key", "text": "x"})
    result = benchmark.pedantic(lambda: desk.run(desk.driver.perform(call)), rounds=20)
    assert not result.still_changing
    assert result.changed


@pytest.mark.benchmark(group="act, and a picture of the screen at rest")
def test_click_and_settled_screenshot_ours(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """A click that makes a terminal draw its caret anew."""
    places = itertools.cycle([(560, 500), (100, 100)])

    def click() -> None:
        result = desk.run(
            desk.driver.perform(desk.call({"action": "left_click", "coordinate": next(places)}))
        )
        assert result.changed

    benchmark.pedantic(click, rounds=20)


@pytest.mark.benchmark(group="act, and a picture of the screen at rest")
def test_sleep_of_the_reference_demo(benchmark: BenchmarkFixture, desk: Desk) -> None:
    """It clicks, sleeps two seconds and shoots."""
    program, path = need("scrot"), desk.directory / "sleep.png"

    def act() -> None:
        _act(desk, "key", text="x")
        time.sleep(2)
        desk.spawn(program, "-o", "-p", str(path))

    benchmark.pedantic(act, rounds=1)
