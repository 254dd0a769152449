"""Secrets in errors and logs."""

from mcp_bridge.config import ServerConfig
from mcp_bridge.redaction import MAX_ERROR_BYTES, Redactor


def _config(**fields: object) -> ServerConfig:
    return ServerConfig(name="x", transport="stdio", **fields)  # type: ignore[arg-type]


def test_everything_that_may_be_a_secret_goes() -> None:
    """Env values, arguments, flag values, headers and what follows a scheme word, parts of urls."""
    redact = Redactor(
        _config(
            args=("positional", "--token=flagvalue", "-y"),
            env={"KEY": "envvalue"},
            headers={"Authorization": "Bearer headervalue"},
            url="https://user:passw0rd@example.org/secretpath?q=queryvalue",
        ),
        {"GITHUB_TOKEN": "inherited", "LANG": "C.UTF-8"},
    )
    said = (
        "positional flagvalue envvalue Bearer headervalue headervalue passw0rd secretpath queryvalue "
        "inherited C.UTF-8 --token -y"
    )

    assert {"***", "C.UTF-8", "--token", "-y"} == set(redact(said).split())


def test_the_longest_secret_goes_first_and_short_words_stay() -> None:
    """A secret that holds another leaves no rest; "yes" is no secret."""
    redact = Redactor(_config(env={"A": "abcd", "B": "abcdefgh", "C": "yes"}))

    assert redact("abcdefgh yes abcd") == "*** yes ***"


def test_an_error_is_cut_after_its_secrets_went() -> None:
    """4096 bytes, whole characters, and no half of a secret at the cut."""
    redact = Redactor(_config(env={"A": "é" * 10}))
    text = redact("x" * (MAX_ERROR_BYTES - 8) + "é" * 10 + "ü" * 100)

    assert len(text.encode()) <= MAX_ERROR_BYTES
    assert "é" not in text
