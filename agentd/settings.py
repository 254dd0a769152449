"""
The daemon's settings; the only reader of its environment and configuration file.

Every field can be set as ``AGENTD_<FIELD>`` or in the TOML file named by ``AGENTD_CONFIG``.
"""

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

__all__ = ["SOCKET_NAME", "AgentdSettings", "default_data_dir", "default_runtime_dir"]

# The local API's socket, in the runtime directory.
SOCKET_NAME = "agentd.sock"


def credentials_dir() -> Path | None:
    """Where credentials are, if there are any: systemd may name a directory that it did not make."""
    directory = os.environ.get("CREDENTIALS_DIRECTORY")
    return Path(directory) if directory and Path(directory).is_dir() else None


def default_runtime_dir() -> Path:
    """``$XDG_RUNTIME_DIR/agentd``, or a directory of this user's in ``/tmp`` where there is none."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    return Path(base) / "agentd" if base else Path(f"/tmp/agentd-{os.getuid()}")  # noqa: S108 -- made 0700 and checked


def default_data_dir() -> Path:
    """``$XDG_STATE_HOME/agentd``, by default ``~/.local/state/agentd``."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "agentd"


class AgentdSettings(BaseSettings):
    """Settings of one daemon."""

    model_config = SettingsConfigDict(
        env_prefix="AGENTD_",
        extra="forbid",
        frozen=True,
        toml_file=os.environ.get("AGENTD_CONFIG"),
        # What systemd's LoadCredential= hands over: a file for each setting, named as its variable.
        secrets_dir=credentials_dir(),
    )

    name: str = Field(default_factory=socket.gethostname, description="Shown to people; the host's name.")
    runtime_dir: Path = Field(
        default_factory=default_runtime_dir, description="Sockets and sessions; private to this user (0700)."
    )
    data_dir: Path = Field(
        default_factory=lambda: default_data_dir() / "workspace",
        description="What outlives the daemon: ledger of calls, action log, recordings; private (0700).",
    )
    control_url: str | None = Field(
        default=None,
        description="Control plane to dial, http(s)://host:port, or several of its replicas with commas, "
        "tried in turn; none: only the local API.",
    )
    agent_token: str | None = Field(default=None, repr=False, description="Credential for the control plane.")
    desktop_backend: Literal["auto", "xvnc", "portabledesktop"] = Field(
        default="auto", description="auto takes portabledesktop when its command is found, else Xvnc."
    )
    portabledesktop: str | None = Field(default=None, description="Path of the portabledesktop command.")
    desktop_width: int = Field(default=1280, ge=320, le=7680, description="Native pixels; models take 1280.")
    desktop_height: int = Field(default=800, ge=240, le=4320, description="Native pixels; models take 800.")
    settle_quiet_ms: int = Field(
        default=100, ge=10, le=10_000, description="Without a change, after which the screen is at rest."
    )
    settle_patient: bool = Field(
        default=False,
        description="After a click or Return the screen must be quiet for settle_long_quiet_ms: slow pages.",
    )
    settle_long_quiet_ms: int = Field(default=400, ge=10, le=10_000, description="See settle_patient.")
    settle_cap_ms: int = Field(
        default=3_000, ge=10, le=60_000, description="Longest wait for the screen after an action."
    )
    picture_format: Literal["png", "png8", "jpeg", "webp", "auto"] = Field(
        default="png",
        description="png is exact; png8 has 256 colours; auto is png, or jpeg where a third is enough.",
    )
    picture_quality: int = Field(default=80, ge=1, le=95, description="Of jpeg and webp.")
    picture_max_bytes: int | None = Field(
        default=None,
        ge=10_000,
        description="Larger pictures become jpegs of falling quality.",
    )
    desktop_dpi: int = Field(default=96, ge=48, le=480, description="Dots per inch; how large programs draw.")
    desktop_wallpaper: Path | None = Field(
        default=None, description="Picture that fills the desktop's background; none: one colour."
    )
    desktop_scope: Literal["workspace", "chat", "agent"] = Field(
        default="workspace",
        description="workspace: all chats share one desktop; chat: each has its own; agent: each agent at a "
        "desktop has its own. Agents that share one work one after another.",
    )
    desktop_turn_s: float = Field(
        default=120,
        gt=0,
        description="Seconds without an action after which another agent gets a shared desktop; one that is "
        "done leaves it at once.",
    )
    desktop_idle_stop_s: float = Field(
        default=0,
        ge=0,
        description="Seconds without use (acting, watching, control, recording) after which a desktop is "
        "stopped, with all that is open in it; 0: never.",
    )
    action_log: bool = Field(
        default=True, description="Write every action and its pictures down; secrets are left out."
    )
    action_log_pictures_mb: int = Field(
        default=512, ge=1, description="Pictures of one desktop's log; those used longest ago go first."
    )
    recording_fps: int = Field(default=15, ge=1, le=60, description="Pictures a second while things move.")
    recording_max: int = Field(default=5, ge=1, le=50, description="Recordings at the same time.")
    recording_idle_s: float = Field(
        default=600, gt=0, description="Without an action, after which a recording stops by itself."
    )
    recording_duration_s: float = Field(default=3600, gt=0, description="Longest recording.")
    recording_size_mb: int = Field(default=100, ge=1, description="Largest film; the recording then stops.")
    recording_speedup: float = Field(
        default=20,
        ge=1,
        description="How much faster stills are shown once a film is finished; 1: no faster.",
    )
    recordings_total_mb: int = Field(
        default=2048, ge=1, description="Of all ended recordings; the oldest make room for new ones."
    )
    recordings_keep_h: float = Field(default=168, gt=0, description="Hours until an ended recording goes.")
    working_dir: Path = Field(
        default_factory=Path.cwd,
        description="Whose instructions and skills chats get; where the daemon starts.",
    )
    context_sources: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="Further directories or files with instructions and skills, comma-separated."
    )
    startup_script: str | None = Field(
        default=None, description="Shell command that prepares the workspace; context is pushed after it."
    )
    wait_ready: bool = Field(default=False, description="Push no context before `agentd ready`.")
    file_roots: Annotated[tuple[Path, ...], NoDecode] = Field(
        default=(),
        description="Directories that the file tools may not leave, comma-separated; none: anywhere.",
    )
    control_idle_s: float = Field(
        default=300,
        gt=0,
        description="Seconds without a person's input after which the agent gets control back.",
    )
    mcp_config_files: Annotated[tuple[Path, ...] | None, NoDecode] = Field(
        default=None,
        description="MCP configuration files, comma-separated; .mcp.json of the working directory.",
    )
    mcp_serve: Annotated[tuple[Literal["desktop", "files"], ...], NoDecode] = Field(
        default=("desktop",),
        description="What MCP clients may use, comma-separated: desktop; files, with processes, besides.",
    )
    mcp_token_file: Path = Field(
        default_factory=lambda: default_data_dir() / "mcp-token",
        description="Holds the token of /mcp; made when it is missing.",
    )
    mcp_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="TCP port on loopback for /mcp (0: a free one); none: only stdio.",
    )
    broadcast_from: int = Field(
        default=5,
        ge=0,
        description="Viewers of a desktop from which on those who only watch share one encoder; 0: never.",
    )
    stream_listen: str | None = Field(
        default=None,
        pattern=r"^(\[[0-9a-fA-F:.]+\]|[^\[\]:\s]+):\d{1,5}$",
        description="HOST:PORT where the control plane may fetch streams; none: they are dialled back.",
    )
    stream_url: str | None = Field(
        default=None,
        pattern=r"^https?://",
        description="How the control plane reaches stream_listen, a proxy's prefix included.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @field_validator("context_sources", "file_roots", "mcp_config_files", "mcp_serve", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value

    @field_validator("context_sources", "file_roots")
    @classmethod
    def _absolute(cls, paths: tuple[str | Path, ...]) -> tuple[str | Path, ...]:
        for path in paths:
            if not str(path).startswith(("/", "~/")):
                msg = f"{path!r} must be an absolute path, or start with ~/"
                raise ValueError(msg)
        return paths

    def adopt(self, values: Mapping[str, object]) -> None:
        """Take new values of fields, as a reload may; everybody who holds these settings sees them."""
        self.__dict__.update(values)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 -- the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """
        Arguments, then environment, then credentials, then the TOML file.

        Raises:
            OSError: the file that was named, or the credentials, can't be read.
        """
        if path := os.environ.get("AGENTD_CONFIG"):
            Path(path).open("rb").close()
        if directory := credentials_dir():
            os.scandir(directory).close()
        return init_settings, env_settings, file_secret_settings, TomlConfigSettingsSource(settings_cls)
