"""
Sends notifications to the browsers of users.

Owns the queue between turns and push services: a turn never waits for one. Redirects are not followed.
"""

import asyncio
import base64
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlsplit
from uuid import UUID

import aiohttp
import structlog
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_vapid import Vapid02  # type: ignore[import-untyped]

from chatd.push.message import SMALL_PAYLOAD_BYTES, Notification, Reaction, bears_silence, may_push_to, react
from chatd.sealing import Sealer
from chatd.store import push_subscriptions
from chatd.store.push_subscriptions import PushSubscription
from chatd.store.store import Store

__all__ = ["PushSender"]

# Notifications that wait; the newest is dropped when there are more.
MAX_WAITING = 256
# Users that are remembered to have no browser, and for how many seconds.
MAX_REMEMBERED = 10_000
REMEMBERED_S = 30.0
# Notifications that are sent at the same time.
AT_ONCE = 4
# Tries of one push, seconds between them unless the service says how long, and the longest such wish.
TRIES = 3
PAUSE_S = 2.0
MAX_PAUSE_S = 60.0
# Tags of which the newest notification is remembered, so that a retry shows nothing that was taken back.
MAX_TAGS = 10_000
# Seconds for one answer.
ANSWER_S = 20.0
# Seconds that a service keeps a push for a browser that is away, and that a signature is good for.
TTL_S = 24 * 3600
SIGNED_S = 12 * 3600

log = structlog.get_logger("chatd.push")


class PushSender:
    """
    The sender of one process.

    Args:
        store: subscriptions and the key.
        sealer: opens the key.
        allowed: push services; see ``may_push_to``.
        contact: ``mailto:`` or URL by which a service reaches whoever runs this.
    """

    def __init__(self, store: Store, sealer: Sealer, *, allowed: Sequence[str], contact: str) -> None:
        self._store, self._sealer = store, sealer
        self._allowed, self._contact = tuple(allowed), contact
        self._waiting: asyncio.Queue[tuple[UUID, Notification]] = asyncio.Queue(MAX_WAITING)
        self._vapid: Vapid02 | None = None
        # Users without a browser, and until when that is believed.
        self._unreachable: dict[UUID, float] = {}
        # By user and tag, when the newest notification was told; the tag told longest ago goes first.
        self._newest: OrderedDict[tuple[UUID, str], int] = OrderedDict()

    async def run(self) -> None:
        """Send what waits, until cancelled."""
        async with aiohttp.ClientSession() as http, asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(self._send_forever(http))

    def notify(self, user_id: UUID, notification: Notification) -> None:
        """Send in the background; what waits under the same tag is not sent any more."""
        at_ms = max(int(time.time() * 1000), self._newest.get((user_id, notification.tag), 0) + 1)
        try:
            self._waiting.put_nowait((user_id, replace(notification, at_ms=at_ms)))
        except asyncio.QueueFull:
            log.warning("notification dropped: too many wait", action="push_dropped", user_id=str(user_id))
            return
        if notification.tag:
            self._newest[user_id, notification.tag] = at_ms
            self._newest.move_to_end((user_id, notification.tag))
            while len(self._newest) > MAX_TAGS:
                self._newest.popitem(last=False)

    def _is_replaced(self, user_id: UUID, notification: Notification) -> bool:
        newest = self._newest.get((user_id, notification.tag), 0)
        return bool(notification.tag) and notification.at_ms < newest

    async def has_browser(self, user_id: UUID) -> bool:
        """Whether the user wants to be told; another replica's new subscription counts some seconds later."""
        now = time.monotonic()
        if self._unreachable.get(user_id, 0) > now:
            return False
        if await self._store.read(push_subscriptions.subscriptions_of, user_id):
            return True
        if len(self._unreachable) >= MAX_REMEMBERED:
            self._unreachable.clear()
        self._unreachable[user_id] = now + REMEMBERED_S
        return False

    def forget_absence(self, user_id: UUID) -> None:
        """The user has just subscribed a browser."""
        self._unreachable.pop(user_id, None)

    async def public_key(self) -> str:
        """What a browser subscribes with: an uncompressed point, url-safe base64."""
        key = await self._key()
        point = key.public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        return base64.urlsafe_b64encode(point).rstrip(b"=").decode()

    async def send_now(self, user_id: UUID, notification: Notification) -> list[Reaction]:
        """Send to every browser of the user's and wait; what became of each."""
        async with aiohttp.ClientSession() as http:
            return await self._send(http, user_id, notification)

    async def _send_forever(self, http: aiohttp.ClientSession) -> None:
        while True:
            user_id, notification = await self._waiting.get()
            try:
                await self._send(http, user_id, notification)
            except Exception:
                log.exception("notification not sent", action="push_failed", user_id=str(user_id))

    async def _send(
        self, http: aiohttp.ClientSession, user_id: UUID, notification: Notification
    ) -> list[Reaction]:
        browsers = await self._store.read(push_subscriptions.subscriptions_of, user_id)
        return list(await asyncio.gather(*(self._push(http, user_id, one, notification) for one in browsers)))

    async def _push(
        self,
        http: aiohttp.ClientSession,
        user_id: UUID,
        browser: PushSubscription,
        notification: Notification,
    ) -> Reaction:
        # The list of services may have become shorter since.
        if not may_push_to(browser.endpoint, self._allowed):
            return Reaction.FAIL
        if notification.is_clear and not bears_silence(browser.endpoint):
            return Reaction.SKIP
        payload, reaction, status = notification.payload(), Reaction.FAIL, 0
        for number in range(TRIES):
            if self._is_replaced(user_id, notification):
                return Reaction.SKIP
            status, pause_s = await self._post(http, browser, payload, notification.tag)
            reaction = react(status)
            if reaction is Reaction.SHRINK and len(payload) > SMALL_PAYLOAD_BYTES:
                payload = notification.payload(SMALL_PAYLOAD_BYTES)
            elif reaction is Reaction.RETRY and number < TRIES - 1:
                await asyncio.sleep(pause_s)
            else:
                break
        host = urlsplit(browser.endpoint).hostname
        if reaction is Reaction.FORGET:
            await self._store.write(push_subscriptions.forget, browser.endpoint)
            log.info("subscription has ended", action="push_forgotten", service=host)
        elif reaction not in {Reaction.DONE, Reaction.SKIP}:
            log.warning("push refused", action="push_refused", service=host, status=status)
        return reaction

    async def _post(
        self, http: aiohttp.ClientSession, browser: PushSubscription, payload: bytes, tag: str
    ) -> tuple[int, float]:
        """The answer's status, 599 when there was none, and seconds until another try makes sense."""
        # Loaded where there is a browser to tell: it brings an HTTP client of its own.
        from pywebpush import WebPusher  # type: ignore[import-untyped]  # noqa: PLC0415

        keys = {"p256dh": browser.p256dh, "auth": browser.auth}
        body = WebPusher({"endpoint": browser.endpoint, "keys": keys}).encode(payload)["body"]
        headers = await self._headers(browser.endpoint)
        if tag:
            headers["Topic"] = tag
        try:
            async with (
                asyncio.timeout(ANSWER_S),
                http.post(browser.endpoint, data=body, headers=headers, allow_redirects=False) as answer,
            ):
                return answer.status, _pause(answer.headers.get("Retry-After", ""))
        except (aiohttp.ClientError, TimeoutError):
            return 599, PAUSE_S

    async def _headers(self, endpoint: str) -> dict[str, str]:
        parts = urlsplit(endpoint)
        claims = {
            "aud": f"{parts.scheme}://{parts.netloc}",
            "sub": self._contact,
            "exp": int(time.time()) + SIGNED_S,
        }
        signed: dict[str, str] = (await self._key()).sign(claims)
        return {**signed, "Content-Encoding": "aes128gcm", "TTL": str(TTL_S), "Urgency": "normal"}

    async def _key(self) -> Vapid02:
        if self._vapid is None:
            read = push_subscriptions.read_key
            self._vapid = await self._store.write(read, self._sealer, now=self._store.now())
        return self._vapid


def _pause(told: str) -> float:
    return min(float(told), MAX_PAUSE_S) if told.isascii() and told.isdecimal() else PAUSE_S
