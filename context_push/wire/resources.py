"""
One resource of a workspace: an instruction file, a skill, an MCP configuration, a plugin.

A resource always carries a body, even when it is not ok, so that a failure stays
attributable to a kind. A body that is not ok is blank.
"""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "DRIFT_FREE_KINDS",
    "Body",
    "InstructionBody",
    "McpConfigBody",
    "McpServerBody",
    "PluginBody",
    "Resource",
    "ResourceKind",
    "ResourceStatus",
    "SkillBody",
    "SkillFile",
]


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ResourceKind(StrEnum):
    """What a resource is."""

    INSTRUCTION_FILE = "instruction_file"
    MCP_CONFIG = "mcp_config"
    MCP_SERVER = "mcp_server"
    PLUGIN = "plugin"
    SKILL = "skill"


# Left out of the aggregate hash: tools are taken live, so a change of theirs makes no chat dirty.
DRIFT_FREE_KINDS = frozenset({ResourceKind.MCP_CONFIG, ResourceKind.MCP_SERVER})


class ResourceStatus(StrEnum):
    """Whether a resource can be used, and if not, why not."""

    OK = "ok"
    OVERSIZE = "oversize"
    UNREADABLE = "unreadable"
    INVALID = "invalid"
    EXCLUDED = "excluded"


class InstructionBody(_Wire):
    """``AGENTS.md`` and its like; *text* is the file, verbatim."""

    kind: Literal[ResourceKind.INSTRUCTION_FILE] = ResourceKind.INSTRUCTION_FILE
    text: str = ""


class SkillFile(_Wire):
    """A file beside ``SKILL.md``; *text* is None when it is no text or did not fit."""

    path: str = Field(description="Relative to the skill's directory, with forward slashes.")
    size_bytes: int = Field(ge=0)
    text: str | None = None


class SkillBody(_Wire):
    """A skill; *text* is its ``SKILL.md``, verbatim."""

    kind: Literal[ResourceKind.SKILL] = ResourceKind.SKILL
    name: str = ""
    description: str = ""
    text: str = ""
    files: tuple[SkillFile, ...] = ()


class McpConfigBody(_Wire):
    """An ``.mcp.json``: that there is one. Its content holds secrets and never leaves the workspace."""

    kind: Literal[ResourceKind.MCP_CONFIG] = ResourceKind.MCP_CONFIG


class McpServerBody(_Wire):
    """An MCP server and the names of its tools, as they were when it was pushed."""

    kind: Literal[ResourceKind.MCP_SERVER] = ResourceKind.MCP_SERVER
    name: str = ""
    tools: tuple[str, ...] = ()


class PluginBody(_Wire):
    """A plugin's manifest in short; its skills are resources of their own."""

    kind: Literal[ResourceKind.PLUGIN] = ResourceKind.PLUGIN
    name: str = ""
    version: str = ""
    description: str = ""


Body = Annotated[
    InstructionBody | SkillBody | McpConfigBody | McpServerBody | PluginBody, Field(discriminator="kind")
]


class Resource(_Wire):
    """One resource; *source* is its place in the workspace and names it within a push."""

    source: str = Field(min_length=1)
    source_path: str | None = Field(default=None, description="The file that holds it.")
    status: ResourceStatus = ResourceStatus.OK
    content_hash: str = Field(pattern=r"^([0-9a-f]{2}){1,64}$", description="SHA-256, in hex.")
    size_bytes: int = Field(ge=0)
    error: str | None = None
    body: Body

    @property
    def kind(self) -> ResourceKind:
        """What it is, by its body."""
        return self.body.kind

    @property
    def id(self) -> str:
        """Its identity: kind and source."""
        return f"{self.kind}:{self.source}"

    @property
    def is_ok(self) -> bool:
        """Whether a prompt may use it."""
        return self.status is ResourceStatus.OK
