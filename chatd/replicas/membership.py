"""Who we are among the replicas, and which others there are; kept by ``Registry``, read by everybody."""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

__all__ = ["Membership"]


@dataclass(slots=True)
class Membership:
    """
    One process.

    *replica_id* is new for each start, and after a time in which the others took us for dead;
    *addresses* has the others that live, ``http(s)://host:port``.
    """

    replica_id: UUID = field(default_factory=uuid.uuid4)
    credential: str = ""
    addresses: Mapping[UUID, str] = field(default_factory=dict)
    # Called when *addresses* changed, or we have another id.
    on_change: list[Callable[[], None]] = field(default_factory=list)

    def change(self) -> None:
        """Tell those who wait for news."""
        for tell in self.on_change:
            tell()

    @property
    def headers(self) -> dict[str, str]:
        """What proves to another replica who we are."""
        return {"Authorization": f"Replica {self.replica_id}.{self.credential}"}
