"""
Find what of a history a vendor refuses, so that it can be set aside.

Where the vendor's words point, by place or by id; else by asking it for almost nothing with ever shorter
histories, a bounded number of times.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

import structlog

from chatd.errors import ProviderFault
from chatd.faults import fault_words, is_malformed_fault
from chatd.loop.request import build_prompt
from chatd.prompt.quarantine import note_of, pointed_at, pointed_item, set_aside
from chatd.provider.catalog import ModelSource
from chatd.provider.counting import count_items
from chatd.provider.protocol import ModelRequest
from chatd.wire import Chat, Message, Part
from chatd.worker.services import Services
from chatd.worker.side_calls import SideCall, collect_text

__all__ = ["Healing", "find_healing"]

# Questions that are asked at most, each for few tokens and in little time.
MAX_PROBES = 8
PROBE_TOKENS = 16
PROBE_S = 60.0
log = structlog.get_logger("chatd.healing")


@dataclass(frozen=True, slots=True, kw_only=True)
class Healing:
    """What rows become, by their ids, and what people are told."""

    changes: dict[int, tuple[Part, ...]]
    note: str


async def find_healing(
    services: Services, chat: Chat, rows: Sequence[Message], request: ModelRequest, fault: ProviderFault
) -> Healing | None:
    """
    What to set aside after a vendor refused *request*, made of *rows*, with *fault*.

    Returns:
        None if the history is not to blame, or nothing in it can be set aside.

    Cancellation: no further question is asked.
    """
    suspects = {place for place, row in enumerate(rows) if set_aside(row.content) is not None}
    if not is_malformed_fault(fault) or not suspects:
        return None
    source = services.catalog.source(chat.last_model_config_id)
    search = _Search(services, chat, rows, request, source)
    blamed = suspects & set(pointed_at(fault_words(fault), rows))
    blamed = blamed or suspects & await search.pointed(fault)
    blamed = blamed or suspects & await search.bisected()
    if not blamed:
        return None
    log.warning("part of a history is set aside", action="history_healed", chat_id=str(chat.id))
    changes = {rows[place].id: set_aside(rows[place].content) or () for place in blamed}
    return Healing(changes=changes, note=note_of(fault.detail or str(fault)))


@dataclass(frozen=True, slots=True)
class _Search:
    services: Services
    chat: Chat
    rows: Sequence[Message]
    request: ModelRequest
    source: ModelSource

    async def pointed(self, fault: ProviderFault) -> set[int]:
        """Rows that hold the item which the vendor's words point at."""
        item = pointed_item(fault_words(fault))
        if item is None:
            return set()

        async def count(length: int) -> int:
            return count_items(self.source.provider, await self._of(length))

        async def is_within(length: int) -> bool:
            return await count(length) > item

        found = await _first(self._cuts(), is_within)
        if found is None:
            return set()
        is_last = self.rows[found[1] - 1].role == "user" and await count(found[1]) == item + 1
        return {found[1] - 1} if is_last else set(range(*found))

    async def bisected(self) -> set[int]:
        """Rows between the longest history that is taken and the shortest that is refused."""
        asked = 0

        async def is_refused(length: int) -> bool:
            nonlocal asked
            asked += 1
            if asked > MAX_PROBES:
                raise _Unknown
            return await self._is_refused(length)

        try:
            found = await _first(self._cuts(), is_refused, is_last_known=True)
        except _Unknown:
            return set()
        return set() if found is None else set(range(*found))

    def _cuts(self) -> list[int]:
        """Lengths of histories that end with no assistant, and never between calls and results."""
        after = [*(row.role for row in self.rows[1:]), "user"]
        return [
            place + 1
            for place, row in enumerate(self.rows)
            if row.role == "user" or (row.role == "tool" and after[place] != "tool")
        ]

    async def _is_refused(self, length: int) -> bool:
        few = replace(await self._of(length), may_call=False, effort=None, max_output_tokens=PROBE_TOKENS)
        call = SideCall(chat_id=self.chat.id, purpose="repair", source=self.source)
        try:
            await collect_text(self.services, call, few, timeout_s=PROBE_S)
        except ProviderFault as fault:
            if is_malformed_fault(fault):
                return True
            raise _Unknown from fault
        return False

    async def _of(self, length: int) -> ModelRequest:
        """The request with the first rows alone."""
        prompt = await build_prompt(
            self.services.store,
            self.rows[:length],
            provider=self.source.provider,
            cache=self.services.files,
        )
        return replace(self.request, messages=prompt)


class _Unknown(Exception):
    """The vendor said something else, or was asked often enough."""


async def _first(
    lengths: Sequence[int], holds: Callable[[int], Awaitable[bool]], *, is_last_known: bool = False
) -> tuple[int, int] | None:
    """The length before the first that holds, and that; None if none does. Behind it all of them do."""
    low, high = -1, len(lengths) - 1
    if high < 0 or not (is_last_known or await holds(lengths[high])):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if await holds(lengths[middle]):
            high = middle
        else:
            low = middle
    return (lengths[low] if low >= 0 else 0, lengths[high])
