"""A window's size, found in whatever a server says."""

from typing import Any

import pytest

from chatd.prompt.limits import context_limit_in


@pytest.mark.parametrize(
    ("metadata", "limit"),
    [
        (None, None),
        ({}, None),
        ({"context_limit": 8192}, 8192),
        ({"Context-Window": "8192 "}, 8192),
        ({"maxInputTokens": 8192.0}, 8192),
        ({"input_token_limit": 1}, 1),
        ({"modelContextWindowSize": 5}, 5),
        ({"context_window_max": 5}, 5),
        ({"max_model_context_length": 5}, 5),
        ({"contextMaxTokens": 5}, 5),
        ({"limit_of_context_token": 5}, 5),
        ({"context_length": {"context_window": 7}, "x": [{"max_context": 9}]}, 9),
        ({"context_limit": 0}, None),
        ({"context_limit": -5}, None),
        ({"context_limit": True}, None),
        ({"context_limit": 1.5}, None),
        ({"context_limit": "many"}, None),
        ({"max_tokens": 5, "window_size": 6, "rate_limit": 7, "context": 8}, None),
    ],
)
def test_the_largest_limit_under_a_known_name_is_taken(metadata: Any, limit: int | None) -> None:
    """Spec 3.5: keys squeezed, or by their words; integers, integral floats, integer strings."""
    assert context_limit_in(metadata) == limit
