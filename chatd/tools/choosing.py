"""Which model a new chat or agent gets, and how hard it thinks: as named, else as its owner prefers."""

from typing import NamedTuple
from uuid import UUID

from chatd.errors import BadRequest
from chatd.model_wire import OverrideContext, ReasoningEffort
from chatd.provider.catalog import Catalog
from chatd.provider.efforts import check_effort
from chatd.store import model_overrides
from chatd.store.store import Store

__all__ = ["ModelChoice", "choose_model", "preferred_model"]


class ModelChoice(NamedTuple):
    """A model and an effort; None: as the model does by itself."""

    model_config_id: UUID
    effort: ReasoningEffort | None = None


async def preferred_model(
    store: Store, catalog: Catalog, user_id: UUID, context: OverrideContext
) -> ModelChoice | None:
    """What the user prefers; None: nothing, or a model that is gone."""
    override = await store.read(model_overrides.read_override, user_id, context)
    if override is None:
        return None
    try:
        source = catalog.source(override.model_config_id)
    except BadRequest:
        return None
    wanted = override.reasoning_effort
    # The installation may offer less by now.
    return ModelChoice(override.model_config_id, None if wanted is None else source.effort(wanted))


def choose_model(
    catalog: Catalog, default: ModelChoice, *, model: str | None, effort: ReasoningEffort | None
) -> ModelChoice:
    """
    What was named, else *default*; an effort alone is one of the default's model.

    Raises:
        BadRequest: there is no such model, or it does not offer the effort; the text lists what there is.
    """
    chosen = default if model is None else ModelChoice(catalog.resolve(model))
    if effort is None:
        return chosen
    source = catalog.source(chosen.model_config_id)
    check_effort(effort, source.efforts, model=source.display_name)
    return chosen._replace(effort=effort)
