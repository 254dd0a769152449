"""
The daemon's settings; the only reader of its environment and configuration file.

Every field can be set as ``AGENTD_<FIELD>`` or in the TOML file named by ``AGENTD_CONFIG``.
"""

import os
import socket
from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

__all__ = ["AgentdSettings", "default_data_dir", "default_runtime_dir"]


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
        env_prefix="AGENTD_", extra="forbid", frozen=True, toml_file=os.environ.get("AGENTD_CONFIG")
    )

    name: str = Field(default_factory=socket.gethostname, description="Shown to people; the host's name.")
    runtime_dir: Path = Field(
        default_factory=default_runtime_dir, description="Sockets and sessions; private to this user (0700)."
    )
    control_url: str | None = Field(
        default=None, description="Control plane to dial, http(s)://host:port; none: only the local API."
    )
    agent_token: str | None = Field(default=None, repr=False, description="Credential for the control plane.")
    desktop_backend: Literal["auto", "xvnc", "portabledesktop"] = Field(
        default="auto", description="auto takes portabledesktop when its command is found, else Xvnc."
    )
    portabledesktop: str | None = Field(default=None, description="Path of the portabledesktop command.")
    desktop_width: int = Field(default=1280, ge=320, le=7680, description="Native pixels; models take 1280.")
    desktop_height: int = Field(default=800, ge=240, le=4320, description="Native pixels; models take 800.")
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 -- the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then environment, then the TOML file."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)
