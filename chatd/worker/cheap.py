"""Whom to ask for what costs little: names of chats, lines of notifications."""

from chatd.provider.catalog import ModelSource
from chatd.wire import Chat
from chatd.worker.services import Services

__all__ = ["candidates"]

# Models that cost little, by vendor: asked first where there is a key for that vendor.
CHEAP_MODELS = {"anthropic": "claude-haiku-4-5", "google": "gemini-2.5-flash", "openai": "gpt-4o-mini"}


def candidates(services: Services, chat: Chat) -> list[tuple[ModelSource, str]]:
    """
    Sources and models to ask, in order: the installation's choice alone, or cheap ones, then the chat's own.

    The rehearsal model is never asked: it understands instructions, not texts.
    """
    chosen = services.settings.title_model
    own = services.catalog.source(chat.last_model_config_id)
    if chosen is not None:
        source = services.catalog.source(services.catalog.resolve(chosen))
        return [(source, source.model)]
    cheap = [
        (source, CHEAP_MODELS[source.provider])
        for source in services.catalog.sources()
        if source.provider in CHEAP_MODELS and not source.rehearsal and source.base_url is None
    ]
    return [*cheap, *([] if own.rehearsal else [(own, own.model)])]
