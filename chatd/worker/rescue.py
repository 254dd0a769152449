"""
What helps a turn whose model call failed, other than to wait: mend the history, or ask another model.

Each is done once: a history for each message of a person, a change of model while one runner drives the chat.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast
from uuid import UUID

import sqlalchemy as sa
import structlog

from chatd.errors import ProviderFault
from chatd.faults import is_malformed_fault, retry_banner
from chatd.loop.failover import helps_elsewhere
from chatd.metrics import ModelLabels
from chatd.provider.protocol import ModelRequest
from chatd.store.machine import ChatTx
from chatd.wire import Chat, Message
from chatd.worker.healing import find_healing
from chatd.worker.retrying import retry_payload
from chatd.worker.services import Services

__all__ = ["Failed", "Rescue"]

log = structlog.get_logger("chatd.rescue")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A model call that failed; *attempt* is the number of the try."""

    chat: Chat
    messages: list[Message]
    request: ModelRequest
    fault: ProviderFault
    attempt: int


class Rescue:
    """The help that one runner has had."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._fallback: UUID | None = None
        # The message whose turn had its history looked through.
        self._healed_at = -1

    def divert(self, row: sa.RowMapping) -> sa.RowMapping:
        """The chat's row as a step reads it: with the model that goes on in place of its own."""
        if self._fallback is None:
            return row
        return cast("sa.RowMapping", {**row, "last_model_config_id": self._fallback})

    async def find(self, failed: Failed) -> Callable[[ChatTx], object] | None:
        """
        The write after which the model is to be asked again at once; None: nothing helps.

        Cancellation: nothing is left behind.
        """
        return await self._heal(failed) or self._fail_over(failed)

    async def _heal(self, failed: Failed) -> Callable[[ChatTx], object] | None:
        asked = max((one.id for one in failed.messages if one.role == "user"), default=0)
        if self._healed_at == asked or not is_malformed_fault(failed.fault):
            return None
        self._healed_at = asked
        healing = await find_healing(
            self._services, failed.chat, failed.messages, failed.request, failed.fault
        )
        return None if healing is None else lambda tx: tx.set_aside(healing.changes, healing.note)

    def _fail_over(self, failed: Failed) -> Callable[[ChatTx], object] | None:
        """
        Go on with the model's fallback, where it has one that may do better.

        Builders of prompts send each vendor its own metadata alone, so nothing needs to be taken out.
        """
        catalog, settings, fault = self._services.catalog, self._services.settings, failed.fault
        own = failed.chat.last_model_config_id
        found = None if self._fallback else catalog.fallback(own)
        patience = min(settings.failover_attempts, settings.max_attempts)
        if found is None or not helps_elsewhere(fault, attempt=failed.attempt, patience=patience):
            return None
        self._fallback = found
        source, other = catalog.source(own), catalog.source(found)
        self._services.metrics.failed_over(ModelLabels(source.provider, source.model), fault.kind)
        log.warning(
            "failover",
            action="failover",
            chat_id=str(failed.chat.id),
            provider=fault.provider,
            kind=fault.kind,
            fallback=f"{other.provider}:{other.model}",
        )
        payload = retry_payload(
            fault,
            attempt=failed.attempt,
            delay_ms=0,
            banner=f"{retry_banner(fault)} Going on with {other.display_name}.",
            now=self._services.store.now(),
        )
        return lambda tx: tx.record_retry(payload)
