"""What is tried out and switched on by name. Pure."""

from collections.abc import Iterable

__all__ = ["ASYNC_QUESTIONS", "is_on"]

# Questions that do not end the turn.
ASYNC_QUESTIONS = "chat-async-questions"
# Experiments that "*" switches on: those that are fit for everybody who is curious.
SAFE: frozenset[str] = frozenset()


def is_on(name: str, listed: Iterable[str]) -> bool:
    """Whether *listed*, the setting, switches the experiment on; names that we don't know mean nothing."""
    names = set(listed)
    return name in names or ("*" in names and name in SAFE)
