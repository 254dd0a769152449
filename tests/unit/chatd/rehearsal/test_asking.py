"""The rehearsal model refuses what a vendor refuses beside the messages."""

from typing import Any

import pytest

from chatd.rehearsal.rules import Protocol, violations

BASE: dict[str, dict[str, Any]] = {
    "anthropic": {"max_tokens": 32_000, "messages": [{"role": "user", "content": "x"}]},
    "responses": {"input": [{"type": "message", "role": "user", "content": "x"}]},
    "completions": {"messages": [{"role": "user", "content": "x"}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "x"}]}]},
}
TOOLS = [{"type": "function", "name": f"t{n}", "function": {"name": f"t{n}"}} for n in range(129)]
GOOD: list[tuple[Protocol, dict[str, Any]]] = [
    ("anthropic", {"output_config": {"effort": "max"}, "thinking": {"type": "adaptive"}}),
    ("anthropic", {"thinking": {"type": "enabled", "budget_tokens": 1_024}}),
    ("responses", {"reasoning": {"effort": "none"}, "tools": TOOLS[:128]}),
    ("completions", {"reasoning_effort": "xhigh", "tools": TOOLS[:128]}),
    ("gemini", {"generationConfig": {"thinkingConfig": {"thinking_level": "LOW"}}}),
    ("gemini", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0}}}),
]
BAD: list[tuple[Protocol, dict[str, Any], str]] = [
    ("anthropic", {"output_config": {"effort": "none"}}, "output_config.effort"),
    ("anthropic", {"thinking": {"type": "enabled", "budget_tokens": 1_023}}, "at least 1024"),
    ("anthropic", {"thinking": {"type": "enabled"}}, "at least 1024"),
    ("anthropic", {"thinking": {"type": "enabled", "budget_tokens": 32_000}}, "less than max_tokens"),
    ("anthropic", {"thinking": {"type": "adaptive", "budget_tokens": 2_000}}, "not permitted"),
    ("responses", {"reasoning": {"effort": "hard"}}, "reasoning.effort"),
    ("responses", {"tools": TOOLS}, "at most 128, got 129"),
    ("completions", {"reasoning_effort": "hard"}, "reasoning_effort"),
    ("completions", {"tools": TOOLS}, "at most 128, got 129"),
    ("gemini", {"generationConfig": {"thinkingConfig": {"thinkingLevel": "MAX"}}}, "thinking_level"),
    (
        "gemini",
        {"generationConfig": {"thinkingConfig": {"thinking_level": "LOW", "thinking_budget": 1}}},
        "only set one",
    ),
]


@pytest.mark.parametrize(("protocol", "fields"), GOOD)
def test_what_the_vendors_take_is_taken(protocol: Protocol, fields: dict[str, Any]) -> None:
    """Vendors' references: each field within its values."""
    assert violations(protocol, BASE[protocol] | fields) == []


@pytest.mark.parametrize(("protocol", "fields", "text"), BAD)
def test_what_the_vendors_refuse_is_refused(protocol: Protocol, fields: dict[str, Any], text: str) -> None:
    """Vendors' references: and the text names the field."""
    (found,) = violations(protocol, BASE[protocol] | fields)

    assert text in found
