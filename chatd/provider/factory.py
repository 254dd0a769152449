"""From a configured provider's name to its implementation; a vendor's SDK is loaded with its first use."""

from importlib import import_module
from typing import TYPE_CHECKING, Literal, Protocol, cast

from chatd.faults import FaultKind, make_fault
from chatd.provider.protocol import Provider

if TYPE_CHECKING:
    from chatd.guarded import Guard

__all__ = ["ProviderName", "create_provider", "load_sdk"]

ProviderName = Literal["anthropic", "google", "openai", "openai-compat"]

# The SDKs take a second each to import, which every start would pay for vendors it never calls.
IMPLEMENTATIONS: dict[ProviderName, tuple[str, str]] = {
    "anthropic": ("chatd.provider.anthropic", "AnthropicProvider"),
    "google": ("chatd.provider.gemini", "GeminiProvider"),
    "openai": ("chatd.provider.openai_responses", "ResponsesProvider"),
    "openai-compat": ("chatd.provider.openai_chat", "ChatProvider"),
}


class _Implementation(Protocol):
    def __call__(self, *, api_key: str, base_url: str | None, guard: "Guard | None") -> Provider: ...


def load_sdk(provider: ProviderName) -> _Implementation:
    """
    The implementation's class; blocks for about a second the first time.

    Raises:
        ProviderFault: the vendor's SDK is an extra that is not installed.
    """
    module, name = IMPLEMENTATIONS[provider]
    try:
        return cast("_Implementation", getattr(import_module(module), name))
    except ModuleNotFoundError as exc:
        detail = f"{exc.name} is not installed where the control plane runs: pip install 'agentd[{provider}]'"
        raise make_fault(FaultKind.CONFIG, provider, retryable=False, detail=detail) from exc


def create_provider(
    *, provider: ProviderName, api_key: str, base_url: str | None, guard: "Guard | None" = None
) -> Provider:
    """
    Build a provider; its ``name`` equals *provider*.

    Args:
        provider: ``openai`` speaks Responses, ``openai-compat`` Chat Completions.
        api_key: the account's key.
        base_url: None for the vendor's own; with ``/v1`` for both OpenAI protocols,
            without a version for Anthropic and Google.
        guard: keeps its HTTP client to what may be connected to.
    """
    return load_sdk(provider)(api_key=api_key, base_url=base_url, guard=guard)
