"""What a failed model call shows: types, texts, the vendor's own fields; the rules judge it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from chatd.faults import messages, signals
from chatd.faults.detail import structured_detail, structured_error, structured_words
from chatd.faults.retry_after import parse_retry_after, parse_retry_delay
from chatd.faults.signals import Signal

__all__ = ["Evidence", "ReportedError", "StreamCut", "TransportReset", "chain_of", "gather"]

# Exceptions looked at along causes and groups.
_MAX_CHAIN = 16


class StreamCut(Exception):
    """A stream ended before its terminal event."""

    def __init__(self, provider: str) -> None:
        super().__init__(f"{provider} stream closed before terminal event")


class TransportReset(Exception):
    """The connection was cancelled by the other side while the caller still waited."""


class ReportedError(Exception):
    """An error the vendor reported inside a healthy stream; *body* is its JSON."""

    def __init__(self, message: str, *, body: Mapping[str, Any]) -> None:
        super().__init__(f"{message} {dict(body)}")
        self.message = message
        self.body = dict(body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """
    Everything the rules look at.

    *detail* is the vendor's own message, None when it gave none; *raw_text* all texts of
    the chain. *is_reset*: a connection that broke, or a peer that gave the stream up.
    """

    raw_text: str
    detail: str | None
    provider: str
    status: int
    retry_after_s: float
    signals: frozenset[Signal]
    continuity: str | None
    is_reset: bool
    is_permanent: bool
    is_malformed: bool
    is_deadline: bool
    is_cancel: bool

    def has(self, *wanted: Signal) -> bool:
        """Whether one of these signals was found."""
        return not self.signals.isdisjoint(wanted)


def gather(chain: tuple[BaseException, ...], provider: str, now: datetime) -> Evidence:
    """Look at every link of *chain*; *provider* is empty where the text must tell."""
    raw_text = _text(chain)
    detail = next((found for link in chain if (found := structured_detail(link))), None)
    words = " ".join(word for link in chain for word in structured_words(link))
    lowered = f"{raw_text} {detail or ''} {words}".lower().strip()
    transport = any(signals.has_type(link, signals.TRANSPORT_TYPES) for link in chain)
    permanent = any(signals.has_type(link, signals.PERMANENT_TYPES) for link in chain)
    peer_reset = signals.read_peer_reset(lowered)
    seen = signals.read_signals(lowered)
    if peer_reset is False:
        # The peer says that we broke the protocol, or we gave up ourselves: no reason to try again.
        seen -= {Signal.TIMEOUT}
        transport = False
    return Evidence(
        raw_text=raw_text,
        detail=detail,
        provider=messages.canonical_provider(provider) or signals.read_provider(lowered),
        status=_status(chain) or signals.read_status(lowered),
        retry_after_s=_retry_after(chain, now),
        signals=seen,
        continuity=signals.match_continuity(lowered),
        is_reset=(
            (transport and not permanent)
            or bool(peer_reset)
            or any(isinstance(link, TransportReset) for link in chain)
        ),
        is_permanent=permanent or Signal.NO_TLS in seen,
        is_malformed=any(signals.has_type(link, signals.MALFORMED_TYPES) for link in chain),
        is_deadline=Signal.DEADLINE in seen or (not transport and any(map(_is_deadline, chain))),
        is_cancel=any(signals.has_type(link, signals.CANCEL_TYPES) for link in chain),
    )


def chain_of(exc: BaseException) -> Iterator[BaseException]:
    """*exc*, its causes and the members of its groups, at most so many."""
    waiting: list[BaseException] = [exc]
    for _ in range(_MAX_CHAIN):
        if not waiting:
            return
        link = waiting.pop(0)
        yield link
        if isinstance(link, BaseExceptionGroup):
            waiting.extend(link.exceptions)
        if link.__cause__ is not None:
            waiting.append(link.__cause__)


def _is_deadline(exc: BaseException) -> bool:
    # The operating system's ETIMEDOUT is a TimeoutError too, but it has an errno.
    return isinstance(exc, TimeoutError) and exc.errno is None


def _text(chain: tuple[BaseException, ...]) -> str:
    texts: dict[str, None] = {}
    for link in chain:
        text = str(link).strip()
        if text and not isinstance(link, BaseExceptionGroup):
            texts.setdefault(text)
    return ": ".join(texts) or type(chain[0]).__name__


def _status(chain: tuple[BaseException, ...]) -> int:
    for link in chain:
        # Google's SDK calls it "code"; inside a stream only the body's own code tells.
        given = (getattr(link, "status_code", None), getattr(link, "code", None))
        for status in (*given, structured_error(link).get("code")):
            # An error event inside a stream rides on a response that began with 200.
            if isinstance(status, int) and 400 <= status < 600:
                return status
    return 0


def _retry_after(chain: tuple[BaseException, ...], now: datetime) -> float:
    for link in chain:
        headers = getattr(getattr(link, "response", None), "headers", None)
        hint = parse_retry_after(headers, now=now) if headers is not None else 0.0
        hint = hint or parse_retry_delay(structured_error(link).get("details"))
        if hint:
            return hint
    return 0.0
