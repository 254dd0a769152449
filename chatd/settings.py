"""
The control plane's settings; the only reader of its environment and configuration file.

Every field can be set as ``CHATD_<FIELD>`` or in the TOML file named by
``CHATD_CONFIG``. Vendor keys keep the names the vendors gave them.
"""

import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from chatd.addresses import Network, parse_networks
from chatd.constants import (
    ACQUIRE_BATCH,
    ACQUIRE_INTERVAL_S,
    HEARTBEAT_INTERVAL_S,
    LEASE_S,
    MAX_ATTEMPTS,
    MAX_RUNNING_AGENTS,
    MAX_RUNNING_CHATS,
    MAX_STEPS,
    REPLICA_INTERVAL_S,
    REPLICA_TIMEOUT_S,
    STARTUP_TIMEOUT_S,
    STREAM_SILENCE_TIMEOUT_S,
    WAIT_AGENT_S,
)
from chatd.model_wire import EFFORTS, ReasoningEffort
from chatd.oidc_settings import OidcSettings
from chatd.outbound import LOOPBACK_NETWORKS, Outbound, parse_outbound
from chatd.prompt.compaction import default_threshold
from chatd.tls import Tls, TlsVersion

__all__ = ["ChatdSettings", "ModelOptions"]


# Those of Chrome and Edge, Firefox, Safari, Windows.
PUSH_SERVICES = (
    "fcm.googleapis.com", "*.push.services.mozilla.com", "web.push.apple.com", "*.notify.windows.com",
)  # fmt: skip


def credentials_dir() -> Path | None:
    """Where credentials are, if there are any: systemd may name a directory that it did not make."""
    directory = os.environ.get("CREDENTIALS_DIRECTORY")
    return Path(directory) if directory and Path(directory).is_dir() else None


def _vendor_key(name: str) -> SecretStr | None:
    return Field(default=None, validation_alias=AliasChoices(name), repr=False)


class ModelOptions(BaseModel):
    """
    What may be switched on for the models of one vendor.

    Raises:
        ValueError: domains that are both allowed and blocked lists, or a default effort above the most.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    web_search_enabled: bool = Field(default=False, description="Let the vendor search the web by itself.")
    allowed_domains: tuple[str, ...] = Field(default=(), description="Only these (Anthropic, OpenAI).")
    blocked_domains: tuple[str, ...] = Field(default=(), description="None of these (Anthropic).")
    search_context_size: Literal["low", "medium", "high"] | None = Field(
        default=None, description="How much of what was found the model reads (OpenAI)."
    )
    reasoning_efforts: tuple[ReasoningEffort, ...] | None = Field(
        default=None, description="What people may choose; none: what is known of the model."
    )
    default_reasoning_effort: ReasoningEffort | None = Field(
        default=None, description="Of chats that chose none; none: the vendor's own."
    )
    max_reasoning_effort: ReasoningEffort | None = Field(
        default=None, description="The most that may be chosen."
    )

    @model_validator(mode="after")
    def _one_list(self) -> "ModelOptions":
        if self.allowed_domains and self.blocked_domains:
            msg = "give allowed_domains or blocked_domains, not both"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _default_within(self) -> "ModelOptions":
        default, most = self.default_reasoning_effort, self.max_reasoning_effort
        if default and most and EFFORTS.index(default) > EFFORTS.index(most):
            msg = "default_reasoning_effort is above max_reasoning_effort"
            raise ValueError(msg)
        return self


class ChatdSettings(OidcSettings):
    """Settings of one control plane."""

    model_config = SettingsConfigDict(
        env_prefix="CHATD_",
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        env_ignore_empty=True,
        toml_file=os.environ.get("CHATD_CONFIG"),
        # What systemd's LoadCredential= hands over: a file for each setting, named as its variable.
        secrets_dir=credentials_dir(),
    )

    data_dir: Path = Field(description="Database and lock; private to this user (0700).")
    database: str | None = Field(
        default=None,
        repr=False,
        description="A PostgreSQL database, postgresql://user@host/name; none: a SQLite file in data_dir.",
    )
    host: str = Field(default="127.0.0.1", description="Address to listen on; loopback.")
    public_hosts: tuple[str, ...] = Field(
        default=(), description="Further host names to answer as (a reverse proxy's)."
    )
    advertise_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^/\s]+$",
        description="Where other replicas reach this one, http(s)://host:port; none: host and port above.",
    )
    port: int = Field(default=7080, ge=0, le=65535, description="TCP port; 0 takes a free one.")
    max_connections: int = Field(
        default=16_384, ge=16, description="Connections at once; fewer where the system gives fewer files."
    )
    max_requests: int = Field(
        default=512, ge=1, description="Requests under way at once; more get 429 and Retry-After."
    )
    max_streams: int = Field(
        default=12_000, ge=1, description="Open streams (chats, lists, links, desktops); more get 429."
    )

    tls_certificate: Path | None = Field(
        default=None, description="PEM file with the certificate and its chain; none: plain HTTP."
    )
    tls_key: Path | None = Field(default=None, description="PEM file with its key, without a passphrase.")
    tls_min_version: TlsVersion = Field(default="1.2", description="Older clients are refused.")

    anthropic_api_key: SecretStr | None = _vendor_key("ANTHROPIC_API_KEY")
    openai_api_key: SecretStr | None = _vendor_key("OPENAI_API_KEY")
    gemini_api_key: SecretStr | None = _vendor_key("GEMINI_API_KEY")
    anthropic_base_url: str | None = Field(default=None, description="Another Anthropic endpoint.")
    openai_base_url: str | None = Field(default=None, description="Another OpenAI Responses endpoint.")
    gemini_base_url: str | None = Field(default=None, description="Another Gemini endpoint.")
    compat_base_url: str | None = Field(default=None, description="An OpenAI-compatible server, …/v1.")
    compat_api_key: SecretStr | None = Field(
        default=None, repr=False, description="Its key, if it wants one."
    )
    compat_model: str = Field(default="default", description="Model name at the OpenAI-compatible server.")
    anthropic_model: str = Field(default="claude-opus-5-5", description="Anthropic model of new chats.")
    openai_model: str = Field(default="gpt-5.5", description="OpenAI model of new chats.")
    gemini_model: str = Field(default="gemini-3.5-flash", description="Google model of new chats.")
    model_options: dict[Literal["anthropic", "google", "openai", "openai-compat"], ModelOptions] = Field(
        default_factory=dict,
        description='By vendor, for example {"anthropic": {"web_search_enabled": true}}.',
    )
    model_fallbacks: dict[str, str] = Field(
        default_factory=dict,
        description='Which model a turn goes on with when its own fails, both as "provider:model": '
        '{"anthropic:claude-opus-5-5": "openai:gpt-5.5"}.',
    )
    failover_attempts: int = Field(
        default=3,
        ge=1,
        description="Tries of a model call before its fallback is asked, if it has one.",
    )
    rehearsal_scenario: Path | None = Field(
        default=None, description="Scenario file of the rehearsal model; none: the imperative language."
    )
    rehearsal: Literal["auto", "always"] = Field(
        default="auto", description="auto offers the rehearsal model only when there is no vendor key."
    )

    acquire_interval_s: float = Field(
        default=ACQUIRE_INTERVAL_S, gt=0, description="Seconds between looks for work."
    )
    acquire_batch: int = Field(default=ACQUIRE_BATCH, ge=1, description="Chats taken at one look.")
    max_running_chats: int = Field(
        default=MAX_RUNNING_CHATS, ge=1, description="Chats that people opened, at work at once; others wait."
    )
    max_running_agents: int = Field(
        default=MAX_RUNNING_AGENTS, ge=1, description="Sub-agents at work at once; others wait."
    )
    heartbeat_interval_s: float = Field(
        default=HEARTBEAT_INTERVAL_S, gt=0, description="Seconds between signs of life."
    )
    lease_s: float = Field(
        default=LEASE_S, gt=0, description="Seconds without a sign until a runner is dead."
    )
    replica_interval_s: float = Field(
        default=REPLICA_INTERVAL_S, gt=0, description="Seconds between a replica's signs of life."
    )
    replica_timeout_s: float = Field(
        default=REPLICA_TIMEOUT_S, gt=0, description="Seconds of silence until the others take it for dead."
    )
    migrate: Literal["auto", "never"] = Field(
        default="auto",
        description="auto runs what the schema lacks at the start; what old code could not bear only once "
        "none of it runs. never refuses to start: chatd migrate runs it.",
    )
    max_steps: int = Field(default=MAX_STEPS, ge=1, description="Model calls in one turn.")
    startup_timeout_s: float = Field(
        default=STARTUP_TIMEOUT_S,
        gt=0,
        description="Seconds until a vendor's first sign of life in a model call; then it is retried.",
    )
    stream_silence_timeout_s: float = Field(
        default=STREAM_SILENCE_TIMEOUT_S,
        gt=0,
        description="Seconds of vendor silence after that; then it is retried.",
    )
    context_window: int | None = Field(
        default=None, gt=0, description="Tokens of the models' windows; none: as published, if known."
    )
    compaction_threshold: int | None = Field(
        default=None,
        ge=0,
        le=100,
        description="Percent of the window at which chats are summarised; none: 70, or 30 of large windows.",
    )
    compaction_timeout_s: float = Field(default=90.0, gt=0, description="Seconds a summary may take.")
    auto_titles: bool = Field(
        default=True, description="Let a model name new chats (not the rehearsal model)."
    )
    title_model: str | None = Field(
        default=None,
        description="The model that names chats and tells of answers; none: a cheap one, else the chat's.",
    )
    max_attempts: int = Field(default=MAX_ATTEMPTS, ge=1, description="Tries of one model call.")
    fetch_streams: bool = Field(
        default=False,
        description="Dial workspaces that give an address for desktop streams, within outbound_allow.",
    )
    context_push: bool = Field(default=True, description="Take workspaces' instructions and skills.")
    context_gate_s: float = Field(
        default=15.0,
        gt=0,
        description="Seconds a first turn waits for them, while the workspace is connected.",
    )
    wait_agent_timeout_s: float = Field(
        default=WAIT_AGENT_S, gt=0, description="Seconds wait_agent waits by default."
    )

    computer_use_model: str | None = Field(
        default=None, description="The model of agents at the desktop; none: that of whoever starts them."
    )
    advisor_model: str | None = Field(
        default=None, description="A model that agents may ask for advice (tool advisor); none: no such tool."
    )
    advisor_max_uses: int = Field(
        default=0, description="Pieces of advice in one turn; 0: as many as steps; negative: no such tool."
    )
    advisor_output_tokens: int = Field(default=16_384, ge=1, description="Tokens of one piece of advice.")

    experiments: tuple[str, ...] = Field(
        default=(), description="What to try out, by name, as a JSON list; *: what is fit for that."
    )

    secret_keys: tuple[SecretStr, ...] = Field(
        default=(),
        repr=False,
        description="Fernet keys for stored secrets, as a JSON list: the first seals, all open; "
        "none: a key that is kept in data_dir.",
    )

    push_services: tuple[str, ...] = Field(
        default=PUSH_SERVICES,
        description="Hosts that browsers may be told through, as a JSON list; *. for any below; or origins.",
    )
    push_contact: str = Field(
        default="https://example.com",
        pattern=r"^(mailto:[^@\s]+@[\w-]+(\.[\w-]+)+|https://[\w-]+(\.[\w-]+)+)$",
        description="mailto:… or https://host by which a push service reaches whoever runs this.",
    )

    push_summaries: bool = Field(
        default=True,
        description="Tell of long answers in a sentence by a model (as for titles; not the rehearsal model).",
    )

    admins: tuple[str, ...] = Field(
        default=(),
        description="Users, as a JSON list, who administer the deployment beside those of that role.",
    )
    login_attempts_per_minute: int = Field(
        default=30,
        ge=0,
        description="Login links, steps of logins with a provider (two each), and wrong tokens, an address "
        "may try in a minute; 0: no limit.",
    )
    address_requests_per_minute: int = Field(
        default=6000, ge=0, description="Requests without a token of one address in a minute; 0: no limit."
    )
    user_requests_per_minute: int = Field(
        default=6000, ge=0, description="Requests of one user in a minute, over all tokens; 0: no limit."
    )
    token_requests_per_minute: int = Field(
        default=3000, ge=0, description="Requests with one token in a minute; 0: no limit."
    )
    trusted_proxies: tuple[str, ...] = Field(
        default=(),
        description="Addresses or networks of reverse proxies, as a JSON list, whose X-Forwarded-For is "
        "believed.",
    )
    outbound_allow: tuple[str, ...] | None = Field(
        default=None,
        description="Private addresses, networks or hosts (*. for any below), as a JSON list, that MCP "
        "servers and workspaces' streams may have; none: loopback while chatd listens there itself.",
    )
    audit_days: int = Field(
        default=400, ge=90, description="Days that entries of the audit log are kept; at least 90."
    )
    usage_limit_micros: int | None = Field(
        default=None, ge=0, description="Millionths of a dollar each user may spend a period; none: no limit."
    )
    usage_period: Literal["day", "week", "month"] = Field(
        default="month", description="day, week (from Monday) or month; UTC."
    )
    auto_archive_days: int = Field(
        default=0, ge=0, description="Archive chats that were idle for so many days; 0: never."
    )

    @field_validator("database")
    @classmethod
    def _postgresql(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith(("postgresql://", "postgres://")):
            # The URL is not repeated: it may hold a password.
            msg = "only PostgreSQL is spoken: postgresql://user@host/name"
            raise ValueError(msg)
        return url

    def adopt(self, values: Mapping[str, object]) -> None:
        """Take new values of fields, as a reload may; everybody who holds these settings sees them."""
        self.__dict__.update(values)

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, texts: tuple[str, ...]) -> tuple[str, ...]:
        parse_networks(texts)
        return texts

    @field_validator("outbound_allow")
    @classmethod
    def _places(cls, texts: tuple[str, ...] | None) -> tuple[str, ...] | None:
        parse_outbound(texts or ())
        return texts

    @property
    def outbound(self) -> Outbound:
        """What may be connected to on behalf of others."""
        if self.outbound_allow is not None:
            return parse_outbound(self.outbound_allow)
        is_local = self.host in {"localhost", "127.0.0.1", "::1"}
        return parse_outbound(LOOPBACK_NETWORKS if is_local else ())

    @property
    def proxy_networks(self) -> tuple[Network, ...]:
        """``trusted_proxies``, read."""
        return parse_networks(self.trusted_proxies)

    @model_validator(mode="after")
    def _certificate_and_key(self) -> "ChatdSettings":
        if (self.tls_certificate is None) != (self.tls_key is None):
            msg = "tls_certificate and tls_key belong together: give both, or neither"
            raise ValueError(msg)
        return self

    @property
    def tls(self) -> Tls | None:
        """What to listen with; None: plain HTTP."""
        if self.tls_certificate is None or self.tls_key is None:
            return None
        return Tls(self.tls_certificate, self.tls_key, self.tls_min_version)

    def threshold(self, window: int | None) -> int:
        """Percent at which chats with a model of *window* tokens are summarised."""
        return default_threshold(window) if self.compaction_threshold is None else self.compaction_threshold

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
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """
        Arguments, then environment, then credentials, then the TOML file.

        Raises:
            OSError: the file that was named, or the credentials, can't be read.
        """
        if path := os.environ.get("CHATD_CONFIG"):
            Path(path).open("rb").close()
        if directory := credentials_dir():
            os.scandir(directory).close()
        return init_settings, env_settings, file_secret_settings, TomlConfigSettingsSource(settings_cls)
