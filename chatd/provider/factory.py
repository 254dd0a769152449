"""From a configured provider's name to its implementation; a vendor's SDK is loaded with its first use."""

from importlib import import_module
from typing import Literal, Protocol, cast

from chatd.provider.protocol import Provider

__all__ = ["ProviderName", "create_provider", "load_sdk"]

ProviderName = Literal["anthropic", "openai", "openai-compat"]

# The SDKs take a second each to import, which every start would pay for vendors it never calls.
IMPLEMENTATIONS: dict[ProviderName, tuple[str, str]] = {
    "anthropic": ("chatd.provider.anthropic", "AnthropicProvider"),
    "openai": ("chatd.provider.openai_responses", "ResponsesProvider"),
    "openai-compat": ("chatd.provider.openai_chat", "ChatProvider"),
}


class _Implementation(Protocol):
    def __call__(self, *, api_key: str, base_url: str | None) -> Provider: ...


def load_sdk(provider: ProviderName) -> _Implementation:
    """The implementation's class; blocks for about a second the first time."""
    module, name = IMPLEMENTATIONS[provider]
    return cast("_Implementation", getattr(import_module(module), name))


def create_provider(*, provider: ProviderName, api_key: str, base_url: str | None) -> Provider:
    """
    Build a provider; its ``name`` equals *provider*.

    Args:
        provider: ``openai`` speaks Responses, ``openai-compat`` Chat Completions.
        api_key: the account's key.
        base_url: None for the vendor's own; with ``/v1`` for both OpenAI protocols,
            without for Anthropic.
    """
    return load_sdk(provider)(api_key=api_key, base_url=base_url)
