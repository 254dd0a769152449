"""What the guards of routes remember between requests: how often who asked, and whose token was just seen."""

import time
from collections import OrderedDict
from collections.abc import Hashable
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa
import structlog
from aiohttp import web

from chatd.addresses import client_address, sender_of
from chatd.errors import TooManyRequests
from chatd.ratelimit import RateLimit
from chatd.routes.context import services
from chatd.settings import ChatdSettings
from chatd.store import tokens
from chatd.store.accounts import Identity, TokenKind, token_hash

__all__ = [
    "GUARDS",
    "Guards",
    "count_login",
    "count_request",
    "count_stranger",
    "count_wrong_token",
    "guards",
    "note_use",
    "remote_of",
]

# Tokens whose last use is remembered; the others are looked up in the database.
MAX_REMEMBERED = 10_000

log = structlog.get_logger("chatd.auth")


class Identities:
    """Whose tokens were just looked up: thousands of streams of one token are no thousands of questions."""

    def __init__(self) -> None:
        # By digest: no token is kept here.
        self._found: OrderedDict[tuple[bytes, frozenset[TokenKind]], tuple[float, Identity]] = OrderedDict()

    def remember(self, token: str, kinds: frozenset[TokenKind], who: Identity) -> None:
        """Note an answer of the database's, just given."""
        key = (token_hash(token), kinds)
        self._found[key] = (time.monotonic(), who)
        self._found.move_to_end(key)
        if len(self._found) > MAX_REMEMBERED:
            self._found.popitem(last=False)

    def recall(self, token: str, kinds: frozenset[TokenKind], max_age_s: float) -> Identity | None:
        """The last answer, if it is at most so many seconds old."""
        at, who = self._found.get((token_hash(token), kinds), (float("-inf"), None))
        return who if time.monotonic() - at <= max_age_s else None


class Guards:
    """The memory of one process; every part of it is bounded."""

    def __init__(self, settings: ChatdSettings) -> None:
        # Read each time: they change while we run.
        self.logins = RateLimit(lambda: settings.login_attempts_per_minute)
        self.wrong_tokens = RateLimit(lambda: settings.login_attempts_per_minute)
        self.strangers = RateLimit(lambda: settings.address_requests_per_minute)
        self.users = RateLimit(lambda: settings.user_requests_per_minute)
        self.tokens = RateLimit(lambda: settings.token_requests_per_minute)
        self.trusted = settings.proxy_networks
        self.identities = Identities()
        self._touched: OrderedDict[UUID, datetime] = OrderedDict()

    def is_news(self, who: Identity, now: datetime) -> bool:
        """Whether the use of a token is to be written down: once a minute, however many ask at once."""
        last = max(filter(None, (who.used_at, self._touched.get(who.token_id))), default=None)
        if last is not None and now - last < tokens.USED_EVERY:
            return False
        self._touched[who.token_id] = now
        self._touched.move_to_end(who.token_id)
        if len(self._touched) > MAX_REMEMBERED:
            self._touched.popitem(last=False)
        return True


GUARDS: web.AppKey[Guards] = web.AppKey("guards", Guards)


def guards(request: web.Request) -> Guards:
    """The process's."""
    return request.app[GUARDS]


def remote_of(request: web.Request) -> str:
    """The address of who asks, behind proxies too."""
    forwarded = ",".join(request.headers.getall("X-Forwarded-For", []))
    return client_address(request.remote, forwarded, guards(request).trusted)


def count_stranger(request: web.Request) -> None:
    """
    Count a request that shows no token.

    Raises:
        TooManyRequests: too many came from this address.
    """
    _take(guards(request).strangers, sender_of(remote_of(request)), "requests from this address")


def count_login(request: web.Request) -> None:
    """
    Count a try of a login link, right or wrong, before it is looked at.

    Raises:
        TooManyRequests: too many came from this address.
    """
    _take(guards(request).logins, sender_of(remote_of(request)), "logins from this address")


def count_wrong_token(request: web.Request) -> None:
    """
    Count a token that is not valid; right ones from the same address, maybe a proxy's, are not held up.

    Raises:
        TooManyRequests: too many came from this address.
    """
    _take(guards(request).wrong_tokens, sender_of(remote_of(request)), "wrong tokens from this address")


def count_request(request: web.Request, who: Identity) -> None:
    """
    Count a request of a user's.

    Raises:
        TooManyRequests: the token, or the user with all of them, asks too often.
    """
    _take(guards(request).tokens, who.token_id, "requests with this token")
    _take(guards(request).users, who.user_id, "requests of this user")


def _take(limit: RateLimit, sender: Hashable, what: str) -> None:
    wait = limit.take(sender, time.monotonic())
    if wait > 0:
        raise TooManyRequests(f"too many {what}; try again in {wait:.1f} s", retry_after_s=wait)


async def note_use(request: web.Request, who: Identity) -> None:
    """Write down that the token was used; a database that can't be written to shuts nobody out."""
    store = services(request).store
    now = store.now()
    if not guards(request).is_news(who, now):
        return
    try:
        await store.write(tokens.touch, who.token_id, now=now)
    except sa.exc.SQLAlchemyError:
        log.warning("a token's use could not be noted", action="token_use_lost", exc_info=True)
