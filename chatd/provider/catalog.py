"""The models that chats may use, and the clients that reach them."""

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from chatd.errors import BadRequest, ModelGone
from chatd.model_wire import EFFORTS, ModelConfig, ReasoningEffort
from chatd.outbound import Outbound
from chatd.provider.efforts import fit_effort, known_efforts, limit_efforts
from chatd.provider.factory import ProviderName, create_provider, load_sdk
from chatd.provider.protocol import Provider, WebSearch
from chatd.settings import ChatdSettings, ModelOptions

__all__ = ["Catalog", "ModelSource", "rehearsal_sources", "sources_from_settings"]

# Ids of model configurations are derived from what they name, so that chats keep theirs across restarts.
NAMESPACE = uuid.UUID("5b6f2a5c-6f5e-4f0e-9a55-3f1c1b7f3d10")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSource:
    """A model, its endpoint and its key."""

    provider: ProviderName
    model: str
    display_name: str
    api_key: str
    base_url: str | None = None
    rehearsal: bool = False
    # Tokens, where the installation knows better than the published tables.
    context_window: int | None = None
    # The name of the model that a turn goes on with when this one fails.
    fallback: str | None = None
    # Whether, and how, its vendor may search the web.
    web_search: WebSearch | None = None
    # How hard it may be asked to think, the least first, and how hard it does unless somebody chose.
    efforts: tuple[ReasoningEffort, ...] = ()
    default_effort: ReasoningEffort | None = None

    def effort(self, chosen: ReasoningEffort | None) -> ReasoningEffort | None:
        """What the model is asked for where a chat has *chosen*, perhaps for another model; None: nothing."""
        return self.default_effort if chosen is None else fit_effort(chosen, self.efforts)

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
                context_window=settings.context_window,
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
                context_window=settings.context_window,
            )
        )
    if settings.gemini_api_key:
        sources.append(
            ModelSource(
                provider="google",
                model=settings.gemini_model,
                display_name=settings.gemini_model,
                api_key=settings.gemini_api_key.get_secret_value(),
                base_url=settings.gemini_base_url,
                context_window=settings.context_window,
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
                context_window=settings.context_window,
            )
        )
    return [_with_options(source, settings) for source in sources]


def _with_options(source: ModelSource, settings: ChatdSettings) -> ModelSource:
    """What the settings say of its vendor's models."""
    options = settings.model_options.get(source.provider, ModelOptions())
    efforts = options.reasoning_efforts
    if efforts is None:
        efforts = known_efforts(source.provider, source.model)
    efforts = limit_efforts(tuple(one for one in EFFORTS if one in efforts), options.max_reasoning_effort)
    return replace(
        source,
        fallback=settings.model_fallbacks.get(f"{source.provider}:{source.model}"),
        web_search=web_search(settings, source.provider),
        efforts=efforts,
        default_effort=fit_effort(options.default_reasoning_effort, efforts),
    )


def web_search(settings: ChatdSettings, provider: ProviderName) -> WebSearch | None:
    """What the settings say of a vendor's web search; None where nobody switched it on."""
    options = settings.model_options.get(provider)
    if options is None or not options.web_search_enabled:
        return None
    return WebSearch(
        allowed_domains=options.allowed_domains,
        blocked_domains=options.blocked_domains,
        context_size=options.search_context_size,
    )


def rehearsal_sources(base_url: str, *, settings: ChatdSettings | None = None) -> list[ModelSource]:
    """The rehearsal model under its four protocols; *base_url* is its server's."""
    rows: list[tuple[ProviderName, str, str]] = [
        ("anthropic", "Rehearsal (Anthropic protocol)", f"{base_url}/anthropic"),
        ("openai", "Rehearsal (OpenAI protocol)", f"{base_url}/openai/v1"),
        ("google", "Rehearsal (Gemini protocol)", f"{base_url}/google"),
        ("openai-compat", "Rehearsal (Chat Completions protocol)", f"{base_url}/openai/v1"),
    ]
    sources = [
        ModelSource(
            provider=provider,
            model="rehearsal",
            display_name=name,
            api_key="rehearsal",
            base_url=url,
            rehearsal=True,
            context_window=settings.context_window if settings else None,
        )
        for provider, name, url in rows
    ]
    return [_with_options(source, settings) for source in sources] if settings else sources


class Catalog:
    """
    Models by id, each with one client, which keeps to *outbound*.

    Raises:
        BadRequest: a model's fallback is not among them.
    """

    def __init__(self, sources: list[ModelSource], outbound: Outbound | None = None) -> None:
        self._outbound = outbound
        self._sources: dict[UUID, ModelSource] = {}
        self._fallbacks: dict[UUID, UUID] = {}
        # By vendor, key and address: who began with one of them keeps it when the settings change.
        self._providers: dict[tuple[str, str, str | None], Provider] = {}
        self._chosen: UUID | None = None
        self.replace(sources)

    @property
    def default_id(self) -> UUID:
        """The model a new chat gets: the one that was chosen, while there is a key for it, else the first."""
        return self._chosen if self._chosen in self._sources else next(iter(self._sources))

    def choose_default(self, config_id: UUID | None) -> None:
        """Have new chats get this model; None: the first one."""
        self._chosen = config_id

    def replace(self, sources: list[ModelSource]) -> None:
        """
        Offer these models from now on; clients in use go on, and are closed with the catalog.

        Raises:
            BadRequest: a model's fallback is not among them; nothing is changed.
        """
        known = {source.id: source for source in sources}
        named = [source for source in sources if source.fallback is not None]
        self._fallbacks = {source.id: _resolve(known, source.fallback or "") for source in named}
        self._sources = known

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
                fallback_id=self._fallbacks.get(source.id),
                reasoning_efforts=source.efforts,
                default_reasoning_effort=source.default_effort,
            )
            for source in self._sources.values()
        ]

    def fallback(self, config_id: UUID) -> UUID | None:
        """The model that a turn goes on with when this one fails; None: it has none."""
        return self._fallbacks.get(config_id)

    def sources(self) -> list[ModelSource]:
        """All models, the default first."""
        return sorted(self._sources.values(), key=lambda source: source.id != self.default_id)

    def source(self, config_id: UUID) -> ModelSource:
        """
        The model with this id.

        Raises:
            ModelGone: it is unknown, or its key is gone.
        """
        source = self._sources.get(config_id)
        if source is None:
            raise ModelGone("this model is not available any more; choose another for this chat")
        return source

    def resolve(self, name: str | None) -> UUID:
        """
        A model by id, ``provider:model``, model name or display name; the default for None.

        Raises:
            BadRequest: nothing fits; the text lists what there is.
        """
        return self.default_id if name is None else _resolve(self._sources, name)

    async def provider(self, config_id: UUID) -> Provider:
        """The client of a model; its SDK is loaded in a thread, so that nobody else waits."""
        source = self.source(config_id)
        key = (source.provider, source.api_key, source.base_url)
        if key not in self._providers:
            await asyncio.to_thread(load_sdk, source.provider)
        if key not in self._providers:
            guard = None
            if self._outbound is not None:
                # The HTTP client is loaded with the first SDK.
                from chatd.guarded import guard_for  # noqa: PLC0415

                guard = guard_for(self._outbound, source.base_url)
            self._providers[key] = create_provider(
                provider=source.provider, api_key=source.api_key, base_url=source.base_url, guard=guard
            )
        return self._providers[key]

    async def close(self) -> None:
        """Close every client."""
        for provider in self._providers.values():
            await provider.close()


def _resolve(sources: Mapping[UUID, ModelSource], name: str) -> UUID:
    for source in sources.values():
        names = {str(source.id), f"{source.provider}:{source.model}", source.model, source.display_name}
        if name in names:
            return source.id
    known = ", ".join(f"{source.provider}:{source.model}" for source in sources.values())
    raise BadRequest(f"unknown model {name!r}; there are: {known}")
