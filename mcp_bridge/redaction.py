"""
Takes secrets out of what people and models read: errors and log lines.

A server's environment, arguments, headers and address may all hold credentials.

Source: specification of the workspace, 6.2.
"""

from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from mcp_bridge.config import ServerConfig

__all__ = ["MAX_ERROR_BYTES", "Redactor"]

# Bytes of an error as people see it.
MAX_ERROR_BYTES = 4096
# Characters; a shorter value is too likely an ordinary word.
MIN_SECRET = 4
MASK = "***"
# Names of inherited variables whose values are secrets.
SECRET_SUFFIXES = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_PASSWD", "_CREDENTIALS")


class Redactor:
    """Knows the secrets of one server."""

    def __init__(self, config: ServerConfig, inherited: Mapping[str, str] | None = None) -> None:
        found = {text for text in _secrets(config, inherited or {}) if len(text) >= MIN_SECRET}
        # The longest first: a secret may hold another.
        self._secrets = sorted(found, key=lambda text: (-len(text), text))

    def __call__(self, text: str) -> str:
        """*text* without the secrets, at most ``MAX_ERROR_BYTES`` long."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        data = text.encode(errors="replace")
        if len(data) <= MAX_ERROR_BYTES:
            return data.decode()
        return data[: MAX_ERROR_BYTES - 4].decode(errors="ignore") + " …"


def _secrets(config: ServerConfig, inherited: Mapping[str, str]) -> Iterable[str]:
    yield from config.env.values()
    yield from (value for name, value in inherited.items() if name.upper().endswith(SECRET_SUFFIXES))
    for argument in config.args:
        yield from _of_argument(argument)
    for value in config.headers.values():
        yield value
        yield value.partition(" ")[2].strip()
    if config.url:
        yield from _of_url(config.url)


def _of_argument(argument: str) -> Iterable[str]:
    if argument.startswith("-"):
        yield argument.partition("=")[2]
        return
    yield argument
    if "://" in argument:
        yield from _of_url(argument)


def _of_url(url: str) -> Iterable[str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        return
    for text in (parts.username, parts.password, parts.query, parts.path.strip("/")):
        if text:
            yield text
            yield unquote(text)
    yield from (value for _, value in parse_qsl(parts.query))
