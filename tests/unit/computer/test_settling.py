"""How much patience an action deserves."""

import pytest

from computer.actions import Effect
from computer.display import Patience
from computer.errors import InvalidAction
from computer.settling import SettleSettings


def test_each_kind_of_action_has_its_patience() -> None:
    """Ours: an echo is quick, a start takes longer, looking takes nothing."""
    settle = SettleSettings()

    assert settle.after(Effect.NONE) is None
    assert settle.after(Effect.ECHO) == Patience(first_change_s=0.1, quiet_s=0.1, cap_s=3.0)
    assert settle.after(Effect.START) == Patience(first_change_s=0.3, quiet_s=0.1, cap_s=3.0)
    between = settle.after(Effect.START, is_within_call=True)
    assert between == Patience(first_change_s=1.0, quiet_s=0.1, cap_s=3.0)


def test_patient_settings_give_starts_the_long_quiet_time() -> None:
    """Required: 400 ms for what starts something, when asked."""
    settle = SettleSettings(is_patient=True)

    start, echo = settle.after(Effect.START), settle.after(Effect.ECHO)
    assert start is not None
    assert echo is not None
    assert (start.quiet_s, echo.quiet_s) == (0.4, 0.1)


def test_wait_that_was_asked_for_has_its_own_times() -> None:
    """Wire: quiet_ms and timeout_ms; a click may take a second to show anything."""
    settle = SettleSettings()

    assert settle.asked(0.4, 9.0, Effect.NONE) == Patience(first_change_s=0.4, quiet_s=0.4, cap_s=9.0)
    start = settle.asked(0.4, 9.0, Effect.START)
    assert (start.first_change_s, start.least_s) == (1.0, 1.0)


def test_times_must_be_positive() -> None:
    """Ours: a quiet time of nothing would never wait."""
    with pytest.raises(InvalidAction):
        SettleSettings(quiet_ms=0)
