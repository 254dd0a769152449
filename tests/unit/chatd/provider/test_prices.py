"""Costs of model calls."""

from typing import Any

import pytest

from chatd.provider.catalog import ModelSource
from chatd.provider.prices import cost_micros
from chatd.wire import Usage

MILLION = 1_000_000


def source(**fields: Any) -> ModelSource:
    """A model that has a price."""
    values = {
        "provider": "anthropic",
        "model": "claude-3-5-haiku-latest",
        "display_name": "x",
        "api_key": "k",
    }
    return ModelSource(**(values | fields))


def test_a_known_model_costs_by_its_table() -> None:
    """Spec 3: token counts times prices, in micros: 0.80 and 4 dollars a million for this one."""
    assert cost_micros(source(), Usage(input_tokens=MILLION, output_tokens=0)) == 800_000
    assert cost_micros(source(), Usage(input_tokens=0, output_tokens=MILLION)) == 4_000_000


def test_cached_tokens_are_cheaper_and_never_counted_twice() -> None:
    """Ours: our input tokens leave cached ones out; read ones cost a tenth, written ones a quarter more."""
    cost = cost_micros(source(), Usage(input_tokens=0, output_tokens=0, cache_read_tokens=MILLION))
    written = cost_micros(source(), Usage(input_tokens=0, output_tokens=0, cache_creation_tokens=MILLION))

    assert (cost, written) == (80_000, 1_000_000)


def test_every_vendor_of_ours_is_priced() -> None:
    """Ours: what has a published price counts for limits, whoever sold it; thoughts are paid as answers."""
    google = source(provider="google", model="gemini-2.5-flash")

    assert cost_micros(google, Usage(input_tokens=MILLION, output_tokens=0)) == 300_000
    assert cost_micros(google, Usage(input_tokens=0, output_tokens=MILLION, reasoning_tokens=7)) == 2_500_000
    assert cost_micros(source(provider="openai", model="gpt-4o-mini"), Usage(output_tokens=MILLION))


def test_a_fraction_is_rounded_up() -> None:
    """Ours: many small calls are not free."""
    assert cost_micros(source(), Usage(input_tokens=1, output_tokens=0)) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"model": "no-such-model-9"},
        {"rehearsal": True},
        {"base_url": "http://here"},
        {"provider": "openai-compat"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_has_no_price_is_none_not_zero(fields: dict[str, Any]) -> None:
    """Spec 3: rows with tokens but no price count as unpriced."""
    assert cost_micros(source(**fields), Usage(input_tokens=5, output_tokens=5)) is None
    assert cost_micros(source(), Usage(input_tokens=5)) is None
    assert cost_micros(source(), None) is None
