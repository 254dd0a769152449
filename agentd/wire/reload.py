"""What becomes of settings that changed while a daemon runs; the same for both daemons."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from pydantic import BaseModel

__all__ = ["Reload", "plan_reload"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload:
    """Names of the settings that are *taken* up, and of those that *wait* for a restart; both sorted."""

    taken: tuple[str, ...] = ()
    wait: tuple[str, ...] = ()

    def postponed(self, names: AbstractSet[str]) -> "Reload":
        """The same, but that *names* wait."""
        return Reload(
            taken=tuple(name for name in self.taken if name not in names),
            wait=tuple(sorted({*self.wait, *(names & set(self.taken))})),
        )

    def __str__(self) -> str:
        if not (self.taken or self.wait):
            return "no setting changed"
        found = [f"reloaded: {', '.join(self.taken)}"] if self.taken else []
        if self.wait:
            found.append(f"a restart is needed for: {', '.join(self.wait)}")
        return "; ".join(found)


def plan_reload(old: BaseModel, new: BaseModel, reloadable: AbstractSet[str]) -> Reload:
    """Which fields of two settings of one kind differ, and what becomes of each."""
    changed = {name for name in type(old).model_fields if getattr(old, name) != getattr(new, name)}
    return Reload(taken=tuple(sorted(changed & reloadable)), wait=tuple(sorted(changed - reloadable)))
