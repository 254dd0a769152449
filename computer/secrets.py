"""
Keep what was typed as a secret out of every sentence.

Pure. Owns the rule what of a secret may be told: nothing but its place, as in "character 3".
"""

from collections.abc import Iterable

from computer.wire import ComputerCall, ComputerResult, PasteText, SetClipboard, TypeText

__all__ = ["MASK", "MIN_FOUND", "hide", "hide_in_result", "secrets_of"]

MASK = "***"
# Characters. Shorter ones would be found in innocent words; they are hidden where they are quoted.
MIN_FOUND = 4


def secrets_of(call: ComputerCall) -> tuple[str, ...]:
    """Texts of *call* that are secret, in its order."""
    return tuple(
        action.text
        for action in call.actions
        if isinstance(action, TypeText | PasteText | SetClipboard) and action.secret and action.text
    )


def hide(text: str, secrets: Iterable[str], *, quotes: bool = True) -> str:
    """
    Replace every secret in *text* by ``***``.

    Args:
        text: a sentence for people or models.
        secrets: what must not be in it.
        quotes: hide quoted single characters of them too, as in "character 3 ('x') is on no key".
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= MIN_FOUND:
            text = text.replace(secret, MASK)
        elif text == secret:
            text = MASK
        if quotes:
            for character in set(secret):
                text = text.replace(f"({character!r})", f"({MASK})")
    return text


def hide_in_result(result: ComputerResult, secrets: Iterable[str], *, quotes: bool = True) -> ComputerResult:
    """The same result, with *secrets* hidden in all of its sentences."""
    known = tuple(secrets)
    if not known:
        return result

    def told(text: str | None) -> str | None:
        return None if text is None else hide(text, known, quotes=quotes)

    reports = tuple(
        report.model_copy(update={"output": told(report.output), "warning": told(report.warning)})
        for report in result.reports
    )
    warnings = tuple(hide(warning, known, quotes=quotes) for warning in result.warnings)
    return result.model_copy(update={"reports": reports, "warnings": warnings, "error": told(result.error)})
