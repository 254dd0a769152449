"""How many items a request's history becomes in a vendor's own shape: its errors point at those."""

from importlib import import_module
from typing import Any

from chatd.provider.computer_forms import anthropic_form
from chatd.provider.factory import ProviderName
from chatd.provider.protocol import ModelRequest

__all__ = ["count_items"]

_BUILDERS: dict[ProviderName, tuple[str, str]] = {
    "anthropic": ("chatd.provider.anthropic_prompt", "build_messages"),
    "google": ("chatd.provider.gemini_prompt", "build_contents"),
    "openai": ("chatd.provider.openai_responses_prompt", "build_input"),
    "openai-compat": ("chatd.provider.openai_chat_prompt", "build_messages"),
}


def count_items(provider: ProviderName, request: ModelRequest) -> int:
    """Items of *request*'s history, as *provider* would send them."""
    module, name = _BUILDERS[provider]
    build: Any = getattr(import_module(module), name)
    form = (anthropic_form(request.model),) if provider == "anthropic" else ()
    return len(build(request, *form))
