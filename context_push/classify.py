"""
What the bytes of a file say: skills' front matter, MCP configurations, plugin manifests. Pure.

A problem is a sentence that never quotes the content of an MCP configuration.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

import yaml

from context_push.wire.text import clean_line

__all__ = [
    "INSTRUCTION_NAMES",
    "MCP_CONFIG_NAME",
    "PLUGIN_SCHEMA",
    "SKILL_META_NAME",
    "Invalid",
    "Manifest",
    "SkillMeta",
    "check_mcp_config",
    "decode_text",
    "parse_manifest",
    "parse_skill",
]

INSTRUCTION_NAMES = ("AGENTS.md", "CLAUDE.md", ".cursorrules")
MCP_CONFIG_NAME = ".mcp.json"
SKILL_META_NAME = "SKILL.md"
# Agent Plugins 1.0: a plugin.json of any other kind is not ours to read.
PLUGIN_SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
_MANIFEST_KEYS = frozenset({
    "$schema", "name", "version", "description", "author", "homepage", "repository", "license", "keywords",
    "skills", "mcpServers",
})  # fmt: skip
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_BOM = "\ufeff"
_LINE_END = re.compile(r"\r\n|\n|\r")
# Characters of a description; it stands in every prompt.
_MAX_DESCRIPTION = 1024
_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Invalid:
    """Why a file is not what its name says."""

    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillMeta:
    """A skill's front matter."""

    name: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A plugin's manifest; *unknown* keys are told, not refused."""

    name: str
    version: str = ""
    description: str = ""
    unknown: tuple[str, ...] = ()


def decode_text(data: bytes) -> str | Invalid:
    """The bytes as text, verbatim; NUL is no text."""
    if b"\0" in data:
        return Invalid("holds NUL bytes, so it is no text")
    try:
        return data.decode()
    except UnicodeDecodeError as exc:
        return Invalid(f"is not UTF-8 text (byte {exc.start})")


def parse_skill(text: str, directory: str) -> SkillMeta | Invalid:
    """The front matter of a ``SKILL.md`` in *directory* (its name, not its path)."""
    lines = _LINE_END.split(text.removeprefix(_BOM))
    if lines[0].rstrip() != "---":
        return Invalid("has no front matter: the first line must be ---")
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    if end is None:
        return Invalid("its front matter has no closing ---")
    fields = _load_yaml("\n".join(lines[1:end]))
    return fields if isinstance(fields, Invalid) else _check_skill(fields, directory)


def _check_skill(fields: dict[Any, Any], directory: str) -> SkillMeta | Invalid:
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or not name:
        return Invalid("name must be a text that is not empty")
    if description is not None and not isinstance(description, str):
        return Invalid("description must be a text")
    if _NAME.fullmatch(name) is None:
        return Invalid(f"name {name[:100]!r} must be lower-case words and digits joined by single hyphens")
    if name != directory:
        return Invalid(f"name {name[:100]!r} must be that of the directory, {directory!r}")
    return SkillMeta(name=name, description=clean_line(description or "")[:_MAX_DESCRIPTION])


def _load_yaml(text: str) -> dict[Any, Any] | Invalid:
    try:
        fields = yaml.load(text, Loader=_Loader)  # noqa: S506 -- a safe loader
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        where = f" in line {mark.line + 2}" if mark is not None else ""
        return Invalid(f"its front matter is not YAML{where}")
    except (ValueError, RecursionError, TypeError):
        # A date that does not exist, nesting without end, a key that can't be one.
        return Invalid("its front matter is not YAML that can be read")
    return fields if isinstance(fields, dict) else Invalid("its front matter must be a map")


def check_mcp_config(data: bytes) -> Invalid | None:
    """Whether *data* has the shape of an ``.mcp.json``: an object of servers, each an object."""
    config = _load_json(data)
    if not isinstance(config, dict):
        return Invalid("is no JSON object")
    servers = config.get("mcpServers", {})
    if not isinstance(servers, dict):
        return Invalid("mcpServers must be an object")
    if not all(isinstance(server, dict) for server in servers.values()):
        return Invalid("every server must be an object")
    return None


def parse_manifest(data: bytes) -> Manifest | Invalid | None:
    """A ``plugin.json``; None when it declares another schema, or none, and so is nothing of ours."""
    manifest = _load_json(data)
    if not isinstance(manifest, dict) or manifest.get("$schema") != PLUGIN_SCHEMA:
        return None
    name = manifest.get("name")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        return Invalid("name must be lower-case words and digits joined by single hyphens")
    texts = {key: manifest.get(key, "") for key in ("version", "description")}
    for key, value in texts.items():
        if not isinstance(value, str):
            return Invalid(f"{key} must be a text")
    unknown = tuple(sorted(clean_line(key)[:100] for key in manifest.keys() - _MANIFEST_KEYS))
    short = {key: clean_line(value)[:_MAX_DESCRIPTION] for key, value in texts.items()}
    return Manifest(name=name, unknown=unknown, **short)


def _load_json(data: bytes) -> Any:  # noqa: ANN401 -- JSON, or None
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
