"""
Reads ``.mcp.json``: names, transports, expansion; one bad entry never costs its siblings.

Owns what an entry means. Knows no file system and no process.

Source: specification of the workspace, 6.1.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, StrictStr, ValidationError, field_validator

from mcp_bridge.errors import ConfigUnusable
from mcp_bridge.wire import Transport

__all__ = ["ConfigFile", "EntryProblem", "ServerConfig", "expand", "merge", "parse_config", "parse_entry"]

# Bytes of one configuration file; a larger one is a mistake.
MAX_CONFIG_BYTES = 1024 * 1024
# Servers of one file; each is a process.
MAX_SERVERS = 100
# Characters of a server's name; it is part of every tool's name.
MAX_NAME = 100
# Seconds a tool may take without a word, unless the entry says otherwise.
DEFAULT_CALL_TIMEOUT_S = 60.0
MAX_CALL_TIMEOUT_S = 4 * 3600.0

# Spellings of a transport in other programs' files.
TRANSPORTS: Mapping[str, Transport] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamablehttp": "http",
    "streamable_http": "http",
    "sse": "sse",
}
_VARIABLE = re.compile(
    r"\$(?:\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<fallback>[^}]*))?\}|(?P<bare>[A-Za-z_][A-Za-z0-9_]*))"
)
_NO_NUL = r"^[^\x00]*$"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """One server, ready to start; equal values need no restart."""

    name: str
    transport: Transport
    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    call_timeout_s: float = DEFAULT_CALL_TIMEOUT_S
    is_disabled: bool = False
    source: str = ""
    # Variables that its env values name and that are not set: they stand for nothing.
    unset: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryProblem:
    """An entry that is not run, or a whole file (then *name* is empty)."""

    source: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """What one file says."""

    servers: tuple[ServerConfig, ...] = ()
    problems: tuple[EntryProblem, ...] = ()


Argument = Annotated[StrictStr, Field(pattern=_NO_NUL)]


class _Entry(BaseModel):
    """One value of ``mcpServers``; unknown keys belong to other programs."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    type: StrictStr | None = None
    transport: StrictStr | None = None
    command: Argument | None = None
    args: tuple[Argument, ...] = ()
    env: dict[Argument, Argument] = Field(default_factory=dict)
    cwd: Argument | None = None
    url: StrictStr | None = None
    headers: dict[StrictStr, StrictStr] = Field(default_factory=dict)
    timeout_s: float | None = Field(default=None, gt=0, le=MAX_CALL_TIMEOUT_S)
    disabled: bool = False

    @field_validator("args", "env", "headers", mode="before")
    @classmethod
    def _null_is_nothing(cls, value: object, info: Any) -> object:  # noqa: ANN401 -- pydantic's
        if value is None:
            return () if info.field_name == "args" else {}
        return value

    @field_validator("env")
    @classmethod
    def _names(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if not name or "=" in name:
                msg = f"{name!r} is no name of an environment variable"
                raise ValueError(msg)
        return value

    @field_validator("headers")
    @classmethod
    def _headers(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not _HEADER_NAME.fullmatch(name):
                msg = f"{name!r} is no header's name"
                raise ValueError(msg)
            if not text.isprintable() or not text.isascii():
                msg = f"the value of {name} holds characters that a header can't carry"
                raise ValueError(msg)
        return value


def parse_config(text: str, *, source: str, environment: Mapping[str, str]) -> ConfigFile:
    """
    Read one file.

    Args:
        text: its content.
        source: its path, for people.
        environment: what ``${VAR}`` in env values means.
    """
    try:
        entries = _entries(text)
    except ConfigUnusable as exc:
        return ConfigFile(problems=(EntryProblem(source=source, name="", reason=str(exc)),))
    servers, problems = [], []
    for name, value in entries.items():
        try:
            servers.append(parse_entry(name, value, source=source, environment=environment))
        except ConfigUnusable as exc:
            problems.append(EntryProblem(source=source, name=name[:MAX_NAME], reason=str(exc)))
    return ConfigFile(servers=tuple(servers), problems=tuple(problems))


def _entries(text: str) -> dict[str, Any]:
    if len(text) > MAX_CONFIG_BYTES:
        msg = f"the file is larger than {MAX_CONFIG_BYTES:,} bytes"
        raise ConfigUnusable(msg)
    try:
        document = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as exc:
        msg = f"not JSON: {exc}"
        raise ConfigUnusable(msg) from exc
    if not isinstance(document, dict):
        raise ConfigUnusable("the file must hold a JSON object")
    entries = document.get("mcpServers", {})
    if not isinstance(entries, dict):
        raise ConfigUnusable('"mcpServers" must be an object: name → server')
    if len(entries) > MAX_SERVERS:
        msg = f"{len(entries)} servers; at most {MAX_SERVERS} are run"
        raise ConfigUnusable(msg)
    return entries


def parse_entry(name: str, value: object, *, source: str, environment: Mapping[str, str]) -> ServerConfig:
    """
    Read one entry.

    Raises:
        ConfigUnusable: it can't be run; says what to change, and never quotes a value.
    """
    _check_name(name)
    if not isinstance(value, dict):
        raise ConfigUnusable("the entry must be an object")
    try:
        entry = _Entry.model_validate(value)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(step) for step in first["loc"])
        msg = f"{where}: {first['msg'].removeprefix('Value error, ')}"
        raise ConfigUnusable(msg) from exc
    transport = _transport_of(entry)
    if transport == "stdio":
        _check_command(entry)
    else:
        _check_url(entry.url)
    return ServerConfig(
        name=name,
        transport=transport,
        command=entry.command or "",
        args=entry.args,
        env={key: expand(text, environment) for key, text in entry.env.items()},
        cwd=entry.cwd,
        url=entry.url or "",
        headers=entry.headers,
        call_timeout_s=entry.timeout_s or DEFAULT_CALL_TIMEOUT_S,
        is_disabled=entry.disabled,
        source=source,
        unset=_unset(entry.env.values(), environment),
    )


def _check_name(name: str) -> None:
    if not name or len(name) > MAX_NAME or not name.isprintable():
        msg = f"a server's name has 1 to {MAX_NAME} printable characters"
        raise ConfigUnusable(msg)
    if "__" in name or name.startswith("_") or name.endswith("_"):
        raise ConfigUnusable(
            'a server\'s name holds no "__" and no "_" at its ends: "__" ends it in tool names'
        )


def _transport_of(entry: _Entry) -> Transport:
    word = entry.type or entry.transport
    if word is not None:
        transport = TRANSPORTS.get(word.lower())
        if transport is None:
            msg = f"type {word[:50]!r} is unknown; there are stdio, http and sse"
            raise ConfigUnusable(msg)
        return transport
    if entry.command:
        return "stdio"
    if entry.url:
        return "http"
    raise ConfigUnusable("the entry has neither a command nor a url")


def _check_command(entry: _Entry) -> None:
    if not entry.command:
        raise ConfigUnusable("a stdio server needs a command")


def _check_url(url: str | None) -> None:
    if not url:
        raise ConfigUnusable("an http or sse server needs a url")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as exc:
        raise ConfigUnusable("the url can't be read") from exc
    if parts.scheme not in {"http", "https"} or not parts.hostname or not url.isprintable():
        raise ConfigUnusable("the url must be http:// or https:// with a host")


def expand(text: str, environment: Mapping[str, str]) -> str:
    """Replace ``$VAR``, ``${VAR}`` and ``${VAR:-fallback}``; a variable that is not set is empty."""

    def value(match: re.Match[str]) -> str:
        found = environment.get(match["braced"] or match["bare"], "")
        return found or match["fallback"] or ""

    return _VARIABLE.sub(value, text)


def _unset(texts: Iterable[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Names of variables in *texts* that are not set and have no fallback, each once."""
    found = [match for text in texts for match in _VARIABLE.finditer(text) if match["fallback"] is None]
    names = (match["braced"] or match["bare"] for match in found)
    return tuple(dict.fromkeys(name for name in names if name not in environment))


def merge(files: Iterable[ConfigFile]) -> ConfigFile:
    """All files as one: of two servers with one name the first file's counts, the other is told."""
    servers: dict[str, ServerConfig] = {}
    problems: list[EntryProblem] = []
    for file in files:
        problems += file.problems
        for server in file.servers:
            first = servers.setdefault(server.name, server)
            if first is not server:
                reason = f"{first.source} has a server of this name, which counts"
                problems.append(EntryProblem(source=server.source, name=server.name, reason=reason))
    return ConfigFile(servers=tuple(servers.values()), problems=tuple(problems))
