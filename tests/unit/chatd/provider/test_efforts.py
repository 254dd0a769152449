"""How hard a model may be asked to think: the table, and what each vendor is sent."""

import pytest
from anthropic.types import OutputConfigParam, ThinkingConfigParam
from google.genai.types import ThinkingConfig
from openai.types.shared_params import Reasoning
from pydantic import TypeAdapter

from chatd.errors import BadRequest
from chatd.model_wire import EFFORTS, ReasoningEffort
from chatd.provider.anthropic_prompt import goes_on_unthought
from chatd.provider.efforts import (
    BUDGETS,
    ROWS,
    anthropic_thinking,
    check_effort,
    fit_effort,
    gemini_thinking,
    known_efforts,
    limit_efforts,
)
from chatd.provider.protocol import MAX_OUTPUT_TOKENS

# One model of each row, in its order, and what may be chosen.
MODELS: list[tuple[str, str, str]] = [
    ("anthropic", "claude-3-7-sonnet-20250219", ""),
    ("anthropic", "claude-sonnet-4-5-20250929", "low medium high"),
    ("anthropic", "claude-sonnet-4-6", "low medium high"),
    ("anthropic", "claude-opus-4-6", "low medium high max"),
    ("anthropic", "claude-opus-5-5", "low medium high xhigh max"),
    ("openai", "gpt-5.2-chat-latest", ""),
    ("openai", "gpt-5-pro", "high"),
    ("openai", "gpt-5.2-pro", "medium high xhigh"),
    ("openai", "gpt-5.1-codex-mini", "low medium high"),
    ("openai", "gpt-5.1-codex-max", "low medium high xhigh"),
    ("openai", "gpt-5-mini", "minimal low medium high"),
    ("openai", "gpt-5.1", "none low medium high"),
    ("openai", "gpt-5.5", "none low medium high xhigh"),
    ("openai", "gpt-5.6-terra", "none low medium high xhigh max"),
    ("openai", "o1-mini", ""),
    ("openai", "o3", "low medium high"),
    ("google", "gemini-2.5-pro", "low medium high"),
    ("google", "gemini-2.5-flash-lite", "none low medium high"),
    ("google", "gemini-3-pro-preview", "low high"),
    ("google", "gemini-3.5-flash", "minimal low medium high"),
    ("google", "gemini-3.1-pro-preview", "low medium high"),
]
UNKNOWN = [
    ("openai", "gpt-4o"), ("openai", "computer-use-preview"), ("google", "gemini-1.5-pro"),
    ("openai-compat", "gpt-5.5"), ("anthropic", "rehearsal"),
]  # fmt: skip
OFFERED: tuple[ReasoningEffort, ...] = ("low", "high", "max")


@pytest.mark.parametrize(("provider", "model", "efforts"), MODELS, ids=[model for _, model, _ in MODELS])
def test_a_model_offers_what_its_vendor_documents(provider: str, model: str, efforts: str) -> None:
    """Vendors' documents: the least first."""
    assert known_efforts(provider, model) == tuple(efforts.split())


def test_every_row_has_its_model() -> None:
    """Ours: rows are tried in order, so one that is hidden by another would never be met."""
    first = [
        next(row for row in ROWS if row.provider == provider and row.model.match(model))
        for provider, model, _ in MODELS
    ]

    assert first == list(ROWS)


@pytest.mark.parametrize(("provider", "model"), UNKNOWN, ids=[model for _, model in UNKNOWN])
def test_a_model_that_nobody_knows_offers_nothing(provider: str, model: str) -> None:
    """Ours: a vendor refuses what it does not know, so nothing is guessed."""
    assert known_efforts(provider, model) == ()


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [(None, None), ("none", "low"), ("low", "low"), ("medium", "low"), ("xhigh", "high"), ("max", "max")],
)
def test_an_effort_of_another_model_is_lowered(
    wanted: ReasoningEffort | None, expected: ReasoningEffort | None
) -> None:
    """Ours: the nearest that is not more, else the least; a model without a choice is asked nothing."""
    assert fit_effort(wanted, OFFERED) == expected
    assert fit_effort(wanted, ()) is None


def test_there_may_be_a_most() -> None:
    """Spec 2.3: reasoning effort {default, max}."""
    assert limit_efforts(OFFERED, "high") == ("low", "high")
    assert limit_efforts(OFFERED, None) == OFFERED


def test_what_is_not_offered_is_refused_with_what_is() -> None:
    """Brief: a clear error."""
    check_effort(None, (), model="M")
    check_effort("low", OFFERED, model="M")
    with pytest.raises(BadRequest, match="M does not offer 'medium'; there are: low, high, max"):
        check_effort("medium", OFFERED, model="M")
    with pytest.raises(BadRequest, match="it offers no choice"):
        check_effort("low", (), model="M")


@pytest.mark.parametrize(
    ("model", "effort", "thinking", "has_effort"),
    [
        ("claude-sonnet-4-5", "low", {"type": "enabled", "budget_tokens": 4096}, False),
        ("claude-haiku-4-5-20251001", "high", {"type": "enabled", "budget_tokens": 20480}, False),
        ("claude-opus-4-1", "medium", {"type": "enabled", "budget_tokens": 10240}, False),
        ("claude-opus-4-5-20251101", "low", {"type": "enabled", "budget_tokens": 4096}, True),
        ("claude-opus-4-6", "max", {"type": "adaptive", "display": "summarized"}, True),
        ("claude-opus-5-5", "xhigh", {"type": "adaptive", "display": "summarized"}, True),
    ],
)
def test_anthropic_thinks_by_budget_or_by_itself(
    model: str, effort: ReasoningEffort, thinking: dict[str, object], *, has_effort: bool
) -> None:
    """Vendor: budgets until 4.5, adaptive from 4.6 on; efforts from Opus 4.5 on."""
    sent = anthropic_thinking(model, effort)

    assert sent["thinking"] == thinking
    assert sent.get("output_config") == ({"effort": effort} if has_effort else None)
    TypeAdapter(ThinkingConfigParam).validate_python(sent["thinking"])
    TypeAdapter(OutputConfigParam).validate_python(sent.get("output_config", {}))


@pytest.mark.parametrize(
    ("model", "effort", "expected"),
    [
        ("gemini-2.5-flash", "none", {"thinking_budget": 0}),
        ("gemini-2.5-pro", "high", {"thinking_budget": 24576}),
        ("gemini-3.5-flash", "minimal", {"thinking_level": "MINIMAL"}),
        ("gemini-3.1-pro", "medium", {"thinking_level": "MEDIUM"}),
    ],
)
def test_gemini_thinks_by_budget_or_by_level(
    model: str, effort: ReasoningEffort, expected: dict[str, object]
) -> None:
    """Vendor: levels since Gemini 3; both in one request are refused."""
    assert gemini_thinking(model, effort) == expected
    ThinkingConfig(**gemini_thinking(model, effort))


def test_nothing_chosen_is_nothing_sent() -> None:
    """Ours: the vendor's default stays its own."""
    assert (anthropic_thinking("claude-opus-5-5", None), gemini_thinking("gemini-3-pro", None)) == ({}, {})


@pytest.mark.parametrize(
    ("provider", "model"),
    [(provider, model) for provider, model, _ in MODELS],
    ids=[model for _, model, _ in MODELS],
)
def test_all_that_is_offered_can_be_sent(provider: str, model: str) -> None:
    """Ours: no effort of the table is without a form in the vendor's own types."""
    for effort in known_efforts(provider, model):
        if provider == "anthropic":
            sent = anthropic_thinking(model, effort)
            TypeAdapter(OutputConfigParam).validate_python(sent.get("output_config", {}))
        elif provider == "google":
            ThinkingConfig(**gemini_thinking(model, effort))
        else:
            TypeAdapter(Reasoning).validate_python({"effort": effort})


def test_a_budget_leaves_room_for_the_answer() -> None:
    """Vendor: budget_tokens is at least 1024 and below max_tokens."""
    assert all(1024 <= budget <= MAX_OUTPUT_TOKENS // 1.5 for budget in BUDGETS.values())
    assert set(BUDGETS) <= set(EFFORTS)


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        ([], False),
        ([{"type": "text", "text": "a"}], False),
        ([{"type": "tool_use"}], True),
        ([{"type": "text", "text": "a"}, {"type": "tool_use"}], True),
        ([{"type": "thinking"}, {"type": "tool_use"}], False),
        ([{"type": "redacted_thinking"}, {"type": "tool_use"}], False),
    ],
)
def test_a_budget_waits_for_an_answer_that_can_be_thought_about(
    blocks: list[dict[str, str]], *, expected: bool
) -> None:
    """Vendor: with a budget, the answer whose tools ran must begin with its thought."""
    said = [{"role": "assistant", "content": blocks}] if blocks else []
    messages = [{"role": "user", "content": []}, *said, {"role": "user", "content": []}]

    assert goes_on_unthought(messages) is expected
    sent = anthropic_thinking("claude-sonnet-4-5", "low", goes_on=expected)
    assert ("thinking" in sent) is not expected
    assert anthropic_thinking("claude-opus-5-5", "low", goes_on=expected)["thinking"]["type"] == "adaptive"
