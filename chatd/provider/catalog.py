"""The models that chats may use, and the clients that reach them."""

import asyncio
import uuid
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from chatd.errors import BadRequest
from chatd.provider.factory import create_provider, load_sdk
from chatd.provider.protocol import Provider
from chatd.settings import GEMINI_BASE_URL, ChatdSettings
from chatd.wire import ModelConfig

__all__ = ["Catalog", "ModelSource", "rehearsal_sources", "sources_from_settings"]

# Ids of model configurations are derived from what they name, so that chats keep theirs across restarts.
NAMESPACE = uuid.UUID("5b6f2a5c-6f5e-4f0e-9a55-3f1c1b7f3d10")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSource:
    """A model, its endpoint and its key."""

    provider: Literal["anthropic", "openai", "openai-compat"]
    model: str
    display_name: str
    api_key: str
    base_url: str | None = None
    rehearsal: bool = False

    @property
    def id(self) -> UUID:
        """Stable across restarts."""
        kind = "rehearsal" if self.rehearsal else self.display_name
        return uuid.uuid5(NAMESPACE, f"{self.provider}/{self.model}/{kind}")


def sources_from_settings(settings: ChatdSettings) -> list[ModelSource]:
    """Every model for which there is a key (or an endpoint that wants none); the first is the default."""
    sources: list[ModelSource] = []
    if settings.anthropic_api_key:
        sources.append(
            ModelSource(
                provider="anthropic",
                model=settings.anthropic_model,
                display_name=settings.anthropic_model,
                api_key=settings.anthropic_api_key.get_secret_value(),
                base_url=settings.anthropic_base_url,
            )
        )
    if settings.openai_api_key:
        sources.append(
            ModelSource(
                provider="openai",
                model=settings.openai_model,
                display_name=settings.openai_model,
                api_key=settings.openai_api_key.get_secret_value(),
                base_url=settings.openai_base_url,
            )
        )
    if settings.gemini_api_key:
        sources.append(
            ModelSource(
                provider="openai-compat",
                model=settings.gemini_model,
                display_name=settings.gemini_model,
                api_key=settings.gemini_api_key.get_secret_value(),
                base_url=GEMINI_BASE_URL,
            )
        )
    if settings.compat_base_url:
        key = settings.compat_api_key
        sources.append(
            ModelSource(
                provider="openai-compat",
                model=settings.compat_model,
                display_name=settings.compat_model,
                api_key=key.get_secret_value() if key else "none",
                base_url=settings.compat_base_url,
            )
        )
    return sources


def rehearsal_sources(base_url: str) -> list[ModelSource]:
    """The rehearsal model under its three protocols; *base_url* is its server's."""
    rows: list[tuple[Literal["anthropic", "openai", "openai-compat"], str, str]] = [
        ("anthropic", "Rehearsal (Anthropic protocol)", f"{base_url}/anthropic"),
        ("openai", "Rehearsal (OpenAI protocol)", f"{base_url}/openai/v1"),
        ("openai-compat", "Rehearsal (Chat Completions protocol)", f"{base_url}/openai/v1"),
    ]
    return [
        ModelSource(
            provider=provider,
            model="rehearsal",
            display_name=name,
            api_key="rehearsal",
            base_url=url,
            rehearsal=True,
        )
        for provider, name, url in rows
    ]


class Catalog:
    """Models by id, each with one client."""

    def __init__(self, sources: list[ModelSource]) -> None:
        self._sources = {source.id: source for source in sources}
        self._providers: dict[UUID, Provider] = {}

    @property
    def default_id(self) -> UUID:
        """The model a new chat gets."""
        return next(iter(self._sources))

    def configs(self) -> list[ModelConfig]:
        """What clients may choose from."""
        return [
            ModelConfig(
                id=source.id,
                provider=source.provider,
                model=source.model,
                display_name=source.display_name,
                is_default=source.id == self.default_id,
                rehearsal=source.rehearsal,
            )
            for source in self._sources.values()
        ]

    def source(self, config_id: UUID) -> ModelSource:
        """
        The model with this id.

        Raises:
            BadRequest: it is unknown, or its key is gone.
        """
        source = self._sources.get(config_id)
        if source is None:
            raise BadRequest("this model is not available any more; choose another for this chat")
        return source

    def resolve(self, name: str | None) -> UUID:
        """
        A model by id, ``provider:model``, model name or display name; the default for None.

        Raises:
            BadRequest: nothing fits; the text lists what there is.
        """
        if name is None:
            return self.default_id
        for source in self._sources.values():
            names = {str(source.id), f"{source.provider}:{source.model}", source.model, source.display_name}
            if name in names:
                return source.id
        known = ", ".join(f"{source.provider}:{source.model}" for source in self._sources.values())
        raise BadRequest(f"unknown model {name!r}; there are: {known}")

    async def provider(self, config_id: UUID) -> Provider:
        """The client of a model; its SDK is loaded in a thread, so that nobody else waits."""
        source = self.source(config_id)
        if config_id not in self._providers:
            await asyncio.to_thread(load_sdk, source.provider)
        if config_id not in self._providers:
            self._providers[config_id] = create_provider(
                provider=source.provider, api_key=source.api_key, base_url=source.base_url
            )
        return self._providers[config_id]

    async def close(self) -> None:
        """Close every client."""
        for provider in self._providers.values():
            await provider.close()
