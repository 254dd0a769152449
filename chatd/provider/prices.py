"""What a model call cost and how large a model's window is, as a library publishes it; nothing is fetched."""

import math
from functools import cache
from typing import Any

from chatd.provider.catalog import ModelSource
from chatd.wire import Usage

__all__ = ["context_window", "cost_micros"]

# Who sells over the protocol that bears their name; a compatible server may be anybody's.
SELLERS = frozenset({"anthropic", "google", "openai"})
MICROS = 1_000_000


def cost_micros(source: ModelSource, usage: Usage | None) -> int | None:
    """
    Millionths of a dollar, rounded up; None when the model has no known price.

    The rehearsal model and servers of one's own cost nothing that we know of.
    """
    if usage is None or source.rehearsal or usage.output_tokens is None:
        return None
    if source.provider not in SELLERS or source.base_url is not None:
        return None
    prices = _prices()
    cached, created = usage.cache_read_tokens or 0, usage.cache_creation_tokens or 0
    counts = prices.Usage(
        # The library counts cached tokens in, we keep them apart.
        input_tokens=(usage.input_tokens or 0) + cached + created,
        cache_read_tokens=cached,
        cache_write_tokens=created,
        output_tokens=usage.output_tokens,
    )
    try:
        price = prices.calc_price(counts, source.model, provider_id=source.provider).total_price
    except LookupError:
        return None
    micros: int = math.ceil(price * MICROS)
    return micros


def context_window(source: ModelSource) -> int | None:
    """
    Tokens that a model's prompt and answer may have; None when nobody tells.

    What the installation says wins. A compatible server may serve anything under any name.
    """
    if source.context_window is not None or source.rehearsal:
        return source.context_window
    return _published_window(source.provider, source.model) if source.provider in SELLERS else None


@cache
def _published_window(seller: str, model: str) -> int | None:
    snapshot = _prices().data_snapshot.get_snapshot()
    try:
        _, info = snapshot.find_provider_model(model, None, seller, None)
    except LookupError:
        return None
    window: int | None = info.context_window
    return window


@cache
def _prices() -> Any:  # noqa: ANN401 -- a module, loaded when the first answer is priced
    import genai_prices  # noqa: PLC0415 -- a table of a megabyte

    return genai_prices
