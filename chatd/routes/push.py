"""Browsers that want to be told of chats: subscribe, unsubscribe, try it."""

import base64
import binascii
from typing import Annotated

from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec
from pydantic import BaseModel, ConfigDict, Field

from chatd.errors import BadRequest
from chatd.push.message import Notification, Reaction, may_push_to
from chatd.routes.chats import answer
from chatd.routes.context import identity, services
from chatd.routes.describe import describe
from chatd.routes.errors import read_body
from chatd.store import push_subscriptions

__all__ = ["routes"]

# Bytes of a browser's secret, and how it may be written.
AUTH_BYTES = 16
PATH = "/api/experimental/push"
Base64 = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+={0,2}$", max_length=200)]
Endpoint = Annotated[str, Field(min_length=1, max_length=2_000)]

routes = web.RouteTableDef()


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class PushKeys(_Strict):
    """What only the browser can read by."""

    p256dh: Base64 = Field(description="A point of P-256, uncompressed, url-safe base64.")
    auth: Base64 = Field(description="16 bytes, url-safe base64.")


class NewSubscription(BaseModel):
    """``PushSubscription.toJSON()`` of a browser."""

    model_config = ConfigDict(extra="ignore")

    endpoint: Endpoint
    keys: PushKeys


class OldSubscription(_Strict):
    """The endpoint of one."""

    endpoint: Endpoint


class PushKey(_Strict):
    """The ``applicationServerKey`` to subscribe with."""

    public_key: str


class PushTried(_Strict):
    """What became of a push, for each browser."""

    results: list[Reaction]


@routes.get(PATH + "/key")
@describe(answer=PushKey)
async def key(request: web.Request) -> web.Response:
    """The public key of this control plane's pushes."""
    return answer(PushKey(public_key=await services(request).push.public_key()))


@routes.post(PATH + "/subscriptions")
@describe(body=NewSubscription, status=204)
async def subscribe(request: web.Request) -> web.Response:
    """Tell this browser of the caller's chats."""
    wish = await read_body(request, NewSubscription)
    parts = services(request)
    if not may_push_to(wish.endpoint, parts.settings.push_services):
        raise BadRequest("endpoint: this is no push service that is known here; see CHATD_PUSH_SERVICES")
    _check_keys(wish.keys)
    await parts.store.write(
        push_subscriptions.save,
        identity(request).user_id,
        endpoint=wish.endpoint,
        p256dh=wish.keys.p256dh,
        auth=wish.keys.auth,
        now=parts.store.now(),
    )
    parts.push.forget_absence(identity(request).user_id)
    return web.Response(status=204)


@routes.delete(PATH + "/subscriptions")
@describe(body=OldSubscription, status=204)
async def unsubscribe(request: web.Request) -> web.Response:
    """Tell this browser no more; harmless when it was not told."""
    wish = await read_body(request, OldSubscription)
    user_id = identity(request).user_id
    await services(request).store.write(push_subscriptions.forget, wish.endpoint, user_id=user_id)
    return web.Response(status=204)


@routes.post(PATH + "/test")
@describe(answer=PushTried)
async def test(request: web.Request) -> web.Response:
    """Send a notification to every browser of the caller's, and say what became of it."""
    note = Notification(title="Notifications work", body="This browser will be told when a chat needs you.")
    results = await services(request).push.send_now(identity(request).user_id, note)
    return answer(PushTried(results=results))


def _check_keys(keys: PushKeys) -> None:
    """
    See that something can be encrypted for the browser.

    Raises:
        BadRequest: it can't.
    """
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), _decode(keys.p256dh))
    except ValueError as exc:
        raise BadRequest("keys.p256dh: must be an uncompressed point of P-256") from exc
    if len(_decode(keys.auth)) != AUTH_BYTES:
        msg = f"keys.auth: must be {AUTH_BYTES} bytes"
        raise BadRequest(msg)


def _decode(text: str) -> bytes:
    bare = text.rstrip("=")
    try:
        return base64.urlsafe_b64decode(bare + "=" * (-len(bare) % 4))
    except binascii.Error as exc:
        raise BadRequest("keys: no base64") from exc
