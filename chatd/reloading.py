"""
Settings that a running control plane takes up, and those that wait for a restart.

Nothing that is under way is cut off: turns keep the model's client that they began with.
"""

from typing import Any

from agentd.wire.reload import Reload, plan_reload
from chatd.provider.catalog import ModelSource, sources_from_settings
from chatd.settings import ChatdSettings
from chatd.store import catalog_rows
from chatd.worker.services import Services

__all__ = ["MODEL_FIELDS", "RELOADABLE", "reload_settings"]

# What the list of models is made of.
MODEL_FIELDS = frozenset({
    "anthropic_api_key", "anthropic_base_url", "anthropic_model", "compat_api_key", "compat_base_url",
    "compat_model", "context_window", "gemini_api_key", "gemini_base_url", "gemini_model", "model_options",
    "openai_api_key", "openai_base_url", "openai_model",
})  # fmt: skip
# Read whenever they are needed. Everything else is built into something that lives as long as the process.
RELOADABLE = MODEL_FIELDS | {
    "acquire_batch", "acquire_interval_s", "address_requests_per_minute", "admins", "advisor_max_uses",
    "advisor_model", "advisor_output_tokens", "audit_days", "auto_archive_days", "auto_titles",
    "compaction_threshold", "compaction_timeout_s", "context_gate_s", "experiments",
    "login_attempts_per_minute", "max_attempts", "max_running_agents", "max_running_chats", "max_steps",
    "public_hosts", "startup_timeout_s", "stream_silence_timeout_s", "title_model",
    "token_requests_per_minute", "user_requests_per_minute", "wait_agent_timeout_s",
}  # fmt: skip


async def reload_settings(services: Services, new: ChatdSettings) -> Reload:
    """
    Take up what can be taken up; *services* and all that hold its settings see it.

    Transaction: the list of models is written in one of its own.
    """
    plan = plan_reload(services.settings, new, RELOADABLE)
    if MODEL_FIELDS.intersection(plan.taken):
        sources = _sources(services, new)
        if sources is None:
            plan = plan.postponed(MODEL_FIELDS)
        else:
            services.catalog.replace(sources)
            store = services.store
            await store.write(catalog_rows.save_configs, services.catalog.configs(), now=store.now())
    values: dict[str, Any] = {name: getattr(new, name) for name in plan.taken}
    services.settings.adopt(values)
    return plan


def _sources(services: Services, new: ChatdSettings) -> list[ModelSource] | None:
    """The new list of models; None when it needs the rehearsal model, which only a start begins."""
    fresh = sources_from_settings(new)
    rehearsal = [source for source in services.catalog.sources() if source.rehearsal]
    sources = fresh + rehearsal if new.rehearsal == "always" or not fresh else fresh
    return sources or None
