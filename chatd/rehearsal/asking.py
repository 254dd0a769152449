"""
What each vendor asks of the fields beside a request's messages: how hard to think, how many tools. Pure.

Sources: the parameter types of the vendors' SDKs, their API references and error messages.
"""

from collections.abc import Iterator
from typing import Any

__all__ = ["anthropic_asking", "completions_asking", "gemini_asking", "responses_asking"]

Json = dict[str, Any]
# Tools of one request.
_TOOLS = 128
_MIN_BUDGET = 1_024
_ANTHROPIC_EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})
_OPENAI_EFFORTS = frozenset({"none", "minimal", "low", "medium", "high", "xhigh", "max"})
_GEMINI_LEVELS = frozenset({"MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH"})


def anthropic_asking(body: Json) -> Iterator[str]:
    """Effort and thinking of a Messages request."""
    yield from _one_of(body.get("output_config") or {}, "effort", _ANTHROPIC_EFFORTS, "output_config.effort")
    thinking = body.get("thinking") or {}
    budget = thinking.get("budget_tokens")
    if thinking.get("type") == "enabled":
        if not isinstance(budget, int) or budget < _MIN_BUDGET:
            yield f"thinking.budget_tokens: must be at least {_MIN_BUDGET}"
        elif budget >= body["max_tokens"]:
            yield "thinking.budget_tokens: must be less than max_tokens"
    elif budget is not None:
        yield "thinking.budget_tokens: extra inputs are not permitted"


def responses_asking(body: Json) -> Iterator[str]:
    """Effort and tools of a Responses request."""
    yield from _one_of(body.get("reasoning") or {}, "effort", _OPENAI_EFFORTS, "reasoning.effort")
    yield from _few_tools(body)


def completions_asking(body: Json) -> Iterator[str]:
    """Effort and tools of a Chat Completions request."""
    yield from _one_of(body, "reasoning_effort", _OPENAI_EFFORTS, "reasoning_effort")
    yield from _few_tools(body)


def gemini_asking(body: Json) -> Iterator[str]:
    """Thinking of a ``generateContent`` request; its fields come in either spelling."""
    config = body.get("generationConfig") or {}
    thinking = config.get("thinkingConfig") or {}
    level = thinking.get("thinking_level", thinking.get("thinkingLevel"))
    budget = thinking.get("thinking_budget", thinking.get("thinkingBudget"))
    if level is not None and budget is not None:
        yield "thinking_config: you can only set one of thinking_budget and thinking_level"
    yield from _one_of({"level": level}, "level", _GEMINI_LEVELS, "thinking_level")


def _one_of(fields: Json, name: str, known: frozenset[str], where: str) -> Iterator[str]:
    value = fields.get(name)
    if value is not None and value not in known:
        yield f"{where}: unsupported value {value!r}; supported values are {', '.join(sorted(known))}"


def _few_tools(body: Json) -> Iterator[str]:
    count = len(body.get("tools") or ())
    if count > _TOOLS:
        yield f"tools: array too long; expected at most {_TOOLS}, got {count}"
