"""From a configured provider's name to its implementation."""

from typing import Literal, assert_never

from chatd.provider.anthropic import AnthropicProvider
from chatd.provider.openai_chat import ChatProvider
from chatd.provider.openai_responses import ResponsesProvider
from chatd.provider.protocol import Provider

__all__ = ["ProviderName", "create_provider"]

ProviderName = Literal["anthropic", "openai", "openai-compat"]


def create_provider(*, provider: ProviderName, api_key: str, base_url: str | None) -> Provider:
    """
    Build a provider; its ``name`` equals *provider*.

    Args:
        provider: ``openai`` speaks Responses, ``openai-compat`` Chat Completions.
        api_key: the account's key.
        base_url: None for the vendor's own; with ``/v1`` for both OpenAI protocols,
            without for Anthropic.
    """
    match provider:
        case "anthropic":
            return AnthropicProvider(api_key=api_key, base_url=base_url)
        case "openai":
            return ResponsesProvider(api_key=api_key, base_url=base_url)
        case "openai-compat":
            return ChatProvider(api_key=api_key, base_url=base_url)
        case _:
            assert_never(provider)
