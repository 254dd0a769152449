"""When a screen has come to rest, on a clock of the test's own."""

import pytest

from computer.display import Patience, Settled
from computer.display.rest import RestTracker
from computer.geometry import Rect

PATIENCE = Patience(first_change_s=0.3, quiet_s=0.1, cap_s=3.0)
CARET = Rect(left=10, top=10, right=12, bottom=26)
SPINNER = Rect(left=200, top=100, right=232, bottom=132)
PAGE = Rect(left=0, top=100, right=1280, bottom=800)


def _run(changes: list[tuple[float, Rect]], patience: Patience = PATIENCE) -> Settled:
    """Feed *changes* (seconds, area) in steps of a millisecond until the wait ends."""
    tracker = RestTracker(patience, 0.0)
    left = sorted(changes, key=lambda change: change[0])
    for tick in range(100_000):
        now = tick / 1_000
        while left and left[0][0] <= now:
            tracker.add(left.pop(0)[1], now)
        if (settled := tracker.judge(now)) is not None:
            return settled
    raise AssertionError


def _every(period_s: float, area: Rect, *, start_s: float = 0.01) -> list[tuple[float, Rect]]:
    return [(start_s + period_s * turn, area) for turn in range(round(10 / period_s))]


def test_nothing_to_see_ends_after_the_time_for_a_first_change() -> None:
    """Ours: an action without effect must not hang."""
    assert _run([]) == Settled(changed=False, is_settled=True, waited_s=0.3)


def test_change_is_followed_by_one_quiet_time() -> None:
    """Required: at most 100 ms after the last change, plus the quiet time."""
    settled = _run([(0.05, PAGE), (0.12, CARET), (0.15, PAGE)])

    assert (settled.changed, settled.is_settled) == (True, True)
    assert settled.waited_s == pytest.approx(0.25, abs=0.002)


def test_gap_within_the_quiet_time_does_not_end_the_wait() -> None:
    """Measured: a page with gaps of 300 ms needs 400 ms of quiet."""
    page = [(0.05, PAGE), (0.35, PAGE), (0.65, PAGE)]

    assert _run(page).waited_s == pytest.approx(0.15, abs=0.002)
    patient = Patience(first_change_s=1, quiet_s=0.4, cap_s=3)
    assert _run(page, patient).waited_s == pytest.approx(1.05, abs=0.002)


def test_wait_is_never_shorter_than_its_least() -> None:
    """Ours: a link that is drawn as clicked is not yet the page behind it."""
    patience = Patience(first_change_s=1, quiet_s=0.4, cap_s=5, least_s=1)

    assert _run([(0.01, PAGE)], patience).waited_s == pytest.approx(1.0, abs=0.002)
    assert _run([(0.01, PAGE), (0.9, PAGE)], patience).waited_s == pytest.approx(1.3, abs=0.002)


def test_video_ends_at_the_cap_and_is_said_to_go_on() -> None:
    """Required: a hard cap."""
    settled = _run(_every(0.033, PAGE))

    assert (settled.is_settled, settled.changed) == (False, True)
    assert settled.waited_s == pytest.approx(3.0, abs=0.002)


@pytest.mark.parametrize("period_s", [0.016, 0.05, 0.1, 0.25])
def test_spinner_is_masked_within_a_second(period_s: float) -> None:
    """Required: small animations do not keep the wait going."""
    patience = Patience(first_change_s=0.3, quiet_s=0.4, cap_s=3.0)
    settled = _run(_every(period_s, SPINNER), patience)

    assert settled.is_settled
    assert settled.waited_s <= 1.1


def test_caret_does_not_hold_up_a_long_quiet_time() -> None:
    """Required: a caret of 500 ms against a quiet time of a second."""
    patience = Patience(first_change_s=1, quiet_s=1, cap_s=10)

    assert _run(_every(0.5, CARET), patience).waited_s == pytest.approx(1.51, abs=0.01)


def test_page_beside_a_spinner_is_still_waited_for() -> None:
    """Ours: masking one place leaves the others alone."""
    settled = _run([*_every(0.05, SPINNER), *[(0.08 * turn, PAGE) for turn in range(1, 12)]])

    assert settled.is_settled
    assert settled.waited_s == pytest.approx(0.98, abs=0.01)


def test_typing_is_no_animation() -> None:
    """Ours: letters are small, but each has a place of its own."""
    letters = [(0.05 * n, Rect(left=100 + 9 * n, top=50, right=109 + 9 * n, bottom=66)) for n in range(1, 41)]

    assert _run(letters).waited_s == pytest.approx(2.1, abs=0.01)


def test_button_that_fades_is_waited_for() -> None:
    """Ours: a short animation ends by itself, and its end is the picture."""
    fade = [(0.016 * step, Rect(left=5, top=5, right=65, bottom=35)) for step in range(1, 16)]

    assert _run(fade).waited_s == pytest.approx(0.34, abs=0.01)


def test_places_are_bounded() -> None:
    """Ours: confetti does not fill the memory, and is no rest."""
    tracker = RestTracker(PATIENCE, 0.0)
    for n in range(2_000):
        tracker.add(Rect(left=70 * n, top=0, right=70 * n + 5, bottom=5), n / 1_000)

    assert tracker.rest_at() == pytest.approx(2.099)
    assert tracker.animations() == ()
