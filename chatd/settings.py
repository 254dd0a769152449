"""
The control plane's settings; the only reader of its environment and configuration file.

Every field can be set as ``CHATD_<FIELD>`` or in the TOML file named by
``CHATD_CONFIG``. Vendor keys keep the names the vendors gave them.
"""

import os
from datetime import timedelta
from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, Field, SecretStr
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

__all__ = ["ChatdSettings"]

GEMINI_BASE_URL = "https://generativelanguage.googleapis.com/v1beta/openai/"


def _vendor_key(name: str) -> SecretStr | None:
    return Field(default=None, validation_alias=AliasChoices(name), repr=False)


class ChatdSettings(BaseSettings):
    """Settings of one control plane."""

    model_config = SettingsConfigDict(
        env_prefix="CHATD_",
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        env_ignore_empty=True,
        toml_file=os.environ.get("CHATD_CONFIG"),
    )

    data_dir: Path = Field(description="Database and lock; private to this user (0700).")
    host: str = Field(default="127.0.0.1", description="Address to listen on; loopback.")
    public_hosts: tuple[str, ...] = Field(
        default=(), description="Further host names to answer as (a reverse proxy's)."
    )
    port: int = Field(default=7080, ge=0, le=65535, description="TCP port; 0 takes a free one.")

    anthropic_api_key: SecretStr | None = _vendor_key("ANTHROPIC_API_KEY")
    openai_api_key: SecretStr | None = _vendor_key("OPENAI_API_KEY")
    gemini_api_key: SecretStr | None = _vendor_key("GEMINI_API_KEY")
    anthropic_base_url: str | None = Field(default=None, description="Another Anthropic endpoint.")
    openai_base_url: str | None = Field(default=None, description="Another OpenAI Responses endpoint.")
    compat_base_url: str | None = Field(default=None, description="An OpenAI-compatible server, …/v1.")
    compat_api_key: SecretStr | None = Field(
        default=None, repr=False, description="Its key, if it wants one."
    )
    compat_model: str = Field(default="default", description="Model name at the OpenAI-compatible server.")
    anthropic_model: str = Field(default="claude-opus-5-5", description="Anthropic model of new chats.")
    openai_model: str = Field(default="gpt-5.5", description="OpenAI model of new chats.")
    gemini_model: str = Field(default="gemini-2.5-flash", description="Google model of new chats.")
    rehearsal_scenario: Path | None = Field(
        default=None, description="Scenario file of the rehearsal model; none: the imperative language."
    )
    rehearsal: Literal["auto", "always"] = Field(
        default="auto", description="auto offers the rehearsal model only when there is no vendor key."
    )

    acquire_interval_s: float = Field(default=1.0, gt=0, description="Seconds between looks for work.")
    acquire_batch: int = Field(default=10, ge=1, description="Chats taken at one look.")
    heartbeat_interval_s: float = Field(default=60.0, gt=0, description="Seconds between signs of life.")
    lease_s: float = Field(default=300.0, gt=0, description="Seconds without a sign until a runner is dead.")
    max_steps: int = Field(default=1200, ge=1, description="Model calls in one turn.")
    stream_silence_timeout_s: float = Field(
        default=600.0, gt=0, description="Seconds of vendor silence that count as a failure (retried)."
    )
    max_attempts: int = Field(default=25, ge=1, description="Tries of one model call.")
    wait_agent_timeout_s: float = Field(
        default=300.0, gt=0, description="Seconds wait_agent waits by default."
    )

    @property
    def lease(self) -> timedelta:
        """The lease as a duration."""
        return timedelta(seconds=self.lease_s)

    @property
    def database_path(self) -> Path:
        """The SQLite file."""
        return self.data_dir / "chatd.sqlite3"

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
