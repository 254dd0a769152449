"""
How hard a model may be asked to think, by what the vendors document. Pure tables.

A model that no row knows offers no choice, unless the installation says so (``CHATD_MODEL_OPTIONS``).
"""

import re
from typing import Any, NamedTuple

from chatd.errors import BadRequest
from chatd.model_wire import EFFORTS, ReasoningEffort

__all__ = [
    "anthropic_thinking",
    "check_effort",
    "fit_effort",
    "gemini_thinking",
    "known_efforts",
    "limit_efforts",
]


class _Row(NamedTuple):
    provider: str
    model: re.Pattern[str]
    efforts: tuple[ReasoningEffort, ...]


def _row(provider: str, model: str, efforts: str) -> _Row:
    named = efforts.split()
    return _Row(provider, re.compile(model), tuple(one for one in EFFORTS if one in named))


# First match wins: exceptions stand before their family.
# Sources: platform.claude.com (effort, thinking), developers.openai.com (reasoning; models),
# ai.google.dev (thinking), and the literals of the vendors' SDKs.
ROWS: tuple[_Row, ...] = (
    _row("anthropic", r"claude-(?:2|3|instant)", ""),
    # Budgets of tokens rather than efforts; see BUDGETS.
    _row("anthropic", r"claude-(?:opus|sonnet|haiku)-4(?:-[0-5])?(?:-\d{8})?$", "low medium high"),
    _row("anthropic", r"claude-sonnet-4-6", "low medium high"),
    _row("anthropic", r"claude-opus-4-6", "low medium high max"),
    _row("anthropic", r"claude-", "low medium high xhigh max"),
    _row("openai", r"gpt-5[\d.]*-chat|chat-latest$", ""),
    _row("openai", r"gpt-5-pro", "high"),
    _row("openai", r"gpt-5[\d.]*-pro", "medium high xhigh"),
    _row("openai", r"gpt-5-codex|gpt-5\.1-codex(?!-max)", "low medium high"),
    _row("openai", r"gpt-5[\d.]*-codex", "low medium high xhigh"),
    _row("openai", r"gpt-5(?!\.)", "minimal low medium high"),
    _row("openai", r"gpt-5\.1(?!\d)", "none low medium high"),
    _row("openai", r"gpt-5\.[2-5](?!\d)", "none low medium high xhigh"),
    _row("openai", r"gpt-(?:[5-9]|\d\d)", "none low medium high xhigh max"),
    _row("openai", r"o1-(?:mini|preview)", ""),
    _row("openai", r"o\d", "low medium high"),
    _row("google", r"gemini-2\.5-pro", "low medium high"),
    _row("google", r"gemini-2\.5-flash", "none low medium high"),
    _row("google", r"gemini-3-pro", "low high"),
    _row("google", r"gemini-3(?:\.[1-5])?-flash", "minimal low medium high"),
    _row("google", r"gemini-(?:[3-9]|\d\d)", "low medium high"),
)

# Models of Anthropic's that take a budget of thinking tokens, and no effort.
_BUDGETED = re.compile(r"claude-(?:opus-4(?:-[01])?|sonnet-4(?:-[0-5])?|haiku-4(?:-[0-5])?)(?:-\d{8})?$")
# One that takes an effort, but decides by itself only with a budget.
_BUDGETED_EFFORT = re.compile(r"claude-opus-4-5(?:-\d{8})?$")
# Tokens, below every answer's limit of 32,000.
BUDGETS = {"low": 4_096, "medium": 10_240, "high": 20_480}
# Tokens that Google itself takes these words for (its OpenAI-compatible endpoint).
GEMINI_BUDGETS = {"none": 0, "low": 1_024, "medium": 8_192, "high": 24_576}


def known_efforts(provider: str, model: str) -> tuple[ReasoningEffort, ...]:
    """What the vendor documents for *model*, the least first; empty: it can't be chosen, or is not known."""
    rows = (row.efforts for row in ROWS if row.provider == provider and row.model.match(model))
    return next(rows, ())


def limit_efforts(
    efforts: tuple[ReasoningEffort, ...], most: ReasoningEffort | None
) -> tuple[ReasoningEffort, ...]:
    """Those of *efforts* that are not above *most*; None: no limit."""
    if most is None:
        return efforts
    return tuple(effort for effort in efforts if EFFORTS.index(effort) <= EFFORTS.index(most))


def fit_effort(
    wanted: ReasoningEffort | None, offered: tuple[ReasoningEffort, ...]
) -> ReasoningEffort | None:
    """The nearest of *offered* that is not above *wanted*, else the least; None: the vendor's own."""
    if wanted is None or not offered:
        return None
    return limit_efforts(offered, wanted)[-1] if limit_efforts(offered, wanted) else offered[0]


def check_effort(wanted: ReasoningEffort | None, offered: tuple[ReasoningEffort, ...], *, model: str) -> None:
    """
    See that a person may choose *wanted*.

    Raises:
        BadRequest: the model does not offer it; the text says what it does.
    """
    if wanted is None or wanted in offered:
        return
    known = f"there are: {', '.join(offered)}" if offered else "it offers no choice"
    raise BadRequest(f"reasoning_effort: {model} does not offer {wanted!r}; {known}")


def anthropic_thinking(
    model: str, effort: ReasoningEffort | None, *, goes_on: bool = False
) -> dict[str, Any]:
    """
    Parameters of a Messages request; without an effort none: the model's own default.

    *goes_on*: the last answer called tools without a thought before them. A budget is refused then;
    a model that decides by itself may go on.

    Source: ``anthropic.types.thinking_config_param``, ``output_config_param``.
    """
    if effort is None:
        return {}
    output = {"output_config": {"effort": effort}}
    if _BUDGETED.match(model) or _BUDGETED_EFFORT.match(model):
        thinking = {"type": "enabled", "budget_tokens": BUDGETS[effort]}
        budget = {} if goes_on else {"thinking": thinking}
        return budget | (output if _BUDGETED_EFFORT.match(model) else {})
    # Newer models show no thinking unless they are asked to.
    return output | {"thinking": {"type": "adaptive", "display": "summarized"}}


def gemini_thinking(model: str, effort: ReasoningEffort | None) -> dict[str, Any]:
    """
    Fields of a ``ThinkingConfig``: a level, or a budget of tokens for models before Gemini 3.

    Source: ``google.genai.types.ThinkingConfig``.
    """
    if effort is None:
        return {}
    if model.startswith("gemini-2"):
        return {"thinking_budget": GEMINI_BUDGETS[effort]}
    return {"thinking_level": effort.upper()}
