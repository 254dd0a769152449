"""What is told of a secret."""

import pytest

from computer.driver import ComputerDriver
from computer.geometry import Size
from computer.secrets import hide, hide_in_result, secrets_of
from computer.settling import SettleSettings
from computer.testing import FakeDisplay
from computer.wire import ActionReport, ComputerCall, ComputerResult, TypeText

SECRET = "hunter2-é"


def _call(**fields: object) -> ComputerCall:
    action = {"action": "type", "text": SECRET, "secret": True} | fields
    return ComputerCall.model_validate({"actions": [action], "screenshot": False})


@pytest.mark.parametrize("kind", ["type", "paste", "set_clipboard"])
def test_secret_is_in_no_representation(kind: str) -> None:
    """Ours: a log that prints a call must not print what was typed."""
    call = _call(action=kind)

    assert secrets_of(call) == (SECRET,)
    assert SECRET not in repr(call)
    assert SECRET not in str(call)


def test_text_that_is_no_secret_is_told() -> None:
    """Ours: hiding is asked for."""
    assert SECRET in repr(TypeText(text=SECRET))
    assert secrets_of(_call(secret=False)) == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("the clipboard held hunter2-é.", "the clipboard held ***."),
        ("character 8 of the text ('é') is on no key", "character 8 of the text (***) is on no key"),
        ("another ('x') stays", "another ('x') stays"),
    ],
)
def test_sentence_keeps_all_but_the_secret(text: str, told: str) -> None:
    """Ours: where a character failed may be told, which one it was may not."""
    assert told == hide(text, [SECRET])


def test_short_secret_does_not_tear_words_apart() -> None:
    """Ours: "a" would be found everywhere; alone it is hidden."""
    assert hide("a word", ["a"]) == "a word"
    assert hide("a", ["a"]) == "***"


def test_every_sentence_of_a_result_is_searched() -> None:
    """Ours: outputs, warnings and the error."""
    result = ComputerResult(
        reports=(ActionReport(action="get_clipboard", output=SECRET, warning=f"was {SECRET}"),),
        warnings=(SECRET,),
        error=f"no {SECRET}",
        error_code="invalid_action",
    )

    assert SECRET not in hide_in_result(result, [SECRET]).model_dump_json()


async def test_failure_to_type_a_secret_names_the_place_only() -> None:
    """Ours: errors go to the model, to people and to logs."""
    display = FakeDisplay(Size(width=40, height=20))
    display.refuse_text = "é"
    driver = ComputerDriver(lambda: display, settle=SettleSettings(quiet_ms=2, first_change_ms=2))
    await driver.open()
    result = await driver.perform(_call())
    await driver.close()

    assert result.error is not None
    assert "character 8" in result.error
    assert "é" not in result.error


async def test_report_does_not_tell_how_long_a_secret_is() -> None:
    """Ours: a password's length is a part of it."""
    display = FakeDisplay(Size(width=40, height=20))
    driver = ComputerDriver(lambda: display, settle=SettleSettings(quiet_ms=2, first_change_ms=2))
    await driver.open()
    result = await driver.perform(_call())
    await driver.close()

    assert result.reports[0].output == "Typed a secret by keys."
