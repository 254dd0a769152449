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

from chatd.errors import BadRequest, ProviderFault
from chatd.faults import FaultKind, is_malformed_fault, make_fault, retry_banner
from chatd.loop.failover import helps_elsewhere
from chatd.metrics import ModelLabels
from chatd.provider.protocol import ModelRequest
from chatd.store import catalog_rows
from chatd.store.catalog_rows import ModelName
from chatd.store.machine import ChatTx
from chatd.wire import Chat, Message
from chatd.worker.healing import find_healing
from chatd.worker.retrying import error_of, retry_payload
from chatd.worker.services import Services

__all__ = ["Failed", "Rescue"]

KEY_GONE = "The API key this conversation used is gone. Choose another model, or have the key set again."
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
        source = catalog.source(own)
        labels = ModelLabels(source.provider, source.model)
        return self._go_over(failed.chat.id, found, fault, attempt=failed.attempt, labels=labels)

    async def replace_model(self, row: sa.RowMapping) -> Callable[[ChatTx], object]:
        """
        The write after a step of the chat of *row* found its model's key gone.

        Its fallback goes on, where it has one; else the turn ends with the reason.
        """
        own = row["last_model_config_id"]
        named = await self._services.store.read(catalog_rows.name_of, own) or ModelName("", "")
        fault = make_fault(FaultKind.MISSING_KEY, named.provider, user_text=KEY_GONE)
        found = None if self._fallback else self._configured_fallback(named)
        if found is None:
            log.warning("key gone", action="model_gone", chat_id=str(row["id"]), provider=fault.provider)
            return lambda tx: tx.finish_error(error_of(fault))
        attempt = max(row["generation_attempt"], 1)
        return self._go_over(row["id"], found, fault, attempt=attempt, labels=ModelLabels(*named))

    def _configured_fallback(self, named: ModelName) -> UUID | None:
        """What the settings name for a model that the catalog has not any more."""
        name = self._services.settings.model_fallbacks.get(f"{named.provider}:{named.model}")
        try:
            return None if name is None else self._services.catalog.resolve(name)
        except BadRequest:
            # Its own key is gone as well.
            return None

    def _go_over(
        self, chat_id: UUID, found: UUID, fault: ProviderFault, *, attempt: int, labels: ModelLabels
    ) -> Callable[[ChatTx], object]:
        self._fallback = found
        other = self._services.catalog.source(found)
        self._services.metrics.failed_over(labels, fault.kind)
        log.warning(
            "failover",
            action="failover",
            chat_id=str(chat_id),
            provider=fault.provider,
            kind=fault.kind,
            fallback=f"{other.provider}:{other.model}",
        )
        payload = retry_payload(
            fault,
            attempt=attempt,
            delay_ms=0,
            banner=f"{retry_banner(fault)} Going on with {other.display_name}.",
            now=self._services.store.now(),
        )
        return lambda tx: tx.record_retry(payload)
