"""Web push against a stand-in of a push service that decrypts as a browser does."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import http_ece
import pytest
from aiohttp import web
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from chatd.push import sender
from chatd.push.message import Notification, Reaction
from chatd.store import push_subscriptions
from tests.integration.chatd.http.site import LIMIT_S, Site, bearer, serving, text

AUTH = b"0123456789abcdef"


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(data: str) -> bytes:
    return base64.urlsafe_b64decode(data + "=" * (-len(data) % 4))


@dataclass
class Service:
    """
    The stand-in.

    Attributes:
        answers: statuses by path, in order; 201 once there is none left.
        pushed: what arrived: path, headers, the notification.
        answering: nothing is answered while this is not set.
    """

    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    answers: dict[str, list[int]] = field(default_factory=dict)
    pushed: asyncio.Queue[tuple[str, dict[str, str], dict[str, str]]] = field(default_factory=asyncio.Queue)
    answering: asyncio.Event = field(default_factory=asyncio.Event)
    origin: str = ""

    async def take(self, request: web.Request) -> web.Response:
        """One push."""
        body = await request.read()
        assert len(body) <= 4096
        plain = http_ece.decrypt(body, private_key=self.key, auth_secret=AUTH, version="aes128gcm")
        await self.pushed.put((request.path, dict(request.headers), json.loads(plain)))
        left = self.answers.get(request.path)
        status = left.pop(0) if left else 201
        await self.answering.wait()
        return web.Response(status=status, headers={"Retry-After": "0", "Location": "/elsewhere"})

    def subscription(self, path: str) -> dict[str, Any]:
        """As a browser would give it."""
        point = self.key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        keys = {"p256dh": _encode(point), "auth": _encode(AUTH)}
        return {"endpoint": self.origin + path, "expirationTime": None, "keys": keys}

    async def next(self) -> tuple[str, dict[str, str], dict[str, str]]:
        """The next push."""
        async with asyncio.timeout(LIMIT_S):
            return await self.pushed.get()


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    """A push service on loopback."""
    service = Service()
    service.answering.set()
    app = web.Application()
    app.router.add_post("/{path:.*}", service.take)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    service.origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield service
    await runner.cleanup()


@pytest.fixture
async def site(tmp_path: Path, service: Service) -> AsyncIterator[Site]:
    """A control plane that may push to the stand-in."""
    slow = {"text": ["a word", {"text": "never said", "delay_ms": 3_600_000}]}
    scenario = {"turns": [{"when": {"contains": "slow"}, "reply": slow}]}
    (tmp_path / "scenario.json").write_text(json.dumps(scenario))
    settings = {"rehearsal_scenario": tmp_path / "scenario.json", "push_services": (service.origin,)}
    async with serving(tmp_path / "data", **settings) as site:
        yield site


async def _subscribe(site: Site, service: Service, path: str, who: str = "me") -> None:
    headers = {"Authorization": f"Bearer {site.tokens[who]}"}
    body = service.subscription(path)
    assert await site.status("POST", "/api/experimental/push/subscriptions", headers, json=body) == 204


async def _first_word(site: Site, chat_id: str) -> None:
    """Until the model has begun to answer."""
    path = f"/api/experimental/chats/{chat_id}/stream"
    headers = {"Authorization": f"Bearer {site.tokens['me']}"}
    async with asyncio.timeout(LIMIT_S), site.http.ws_connect(path, headers=headers) as socket:
        async for frame in socket:
            if any(event["type"] == "message_part" for event in json.loads(frame.data)):
                return


def _check_signature(authorization: str, public_key: str, audience: str) -> None:
    """RFC 8292, with nothing of the library that signed."""
    assert authorization.startswith("vapid ")
    fields = dict(item.strip().split("=", 1) for item in authorization.removeprefix("vapid ").split(","))
    assert fields["k"] == public_key
    head, claims, signature = fields["t"].split(".")
    raw = _decode(signature)
    der = utils.encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), _decode(public_key))
    point.verify(der, f"{head}.{claims}".encode(), ec.ECDSA(hashes.SHA256()))
    assert json.loads(_decode(claims))["aud"] == audience


async def test_a_turn_that_ends_is_told_once_to_every_browser_of_its_owner(
    site: Site, service: Service
) -> None:
    """The issue: on turn end; signed, encrypted for the browser; nobody else's browser hears of it."""
    for path, who in (("/one", "me"), ("/two", "me"), ("/three", "other")):
        await _subscribe(site, service, path, who)
    chat_id = await site.new_chat("say hello there")
    first, second = await service.next(), await service.next()
    key = (await site.ask("GET", "/push/key"))["public_key"]

    assert {first[0], second[0]} == {"/one", "/two"}
    _, headers, told = first
    assert told["body"] == "hello there"
    assert told["path"] == f"#/chats/{chat_id}"
    assert headers["Topic"] == UUID(chat_id).hex
    assert headers["Content-Encoding"] == "aes128gcm"
    _check_signature(headers["Authorization"], key, service.origin)
    assert service.pushed.empty()


async def test_a_stopped_turn_is_told_by_nobody(site: Site, service: Service) -> None:
    """The issue: nothing for interrupts; the next end is told."""
    await _subscribe(site, service, "/one")
    chat_id = await site.new_chat("be slow")
    await _first_word(site, chat_id)
    await site.ask("POST", f"/chats/{chat_id}/interrupt")
    await site.until(chat_id, "waiting")
    await site.ask("POST", f"/chats/{chat_id}/messages", json=text("say bye"))

    assert (await service.next())[2]["body"] == "bye"
    assert service.pushed.empty()


async def test_what_services_answer(site: Site, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """BUGS 71: gone is forgotten, busy is tried again and no more than so often, a redirect is refused."""
    monkeypatch.setattr(sender, "PAUSE_S", 0)
    service.answers = {
        "/gone": [410],
        "/missing": [404],
        "/busy": [429, 503, 201],
        "/down": [500] * 9,
        "/moved": [307],
    }
    for path in (*service.answers, "/well"):
        await _subscribe(site, service, path)
    tried = await site.ask("POST", "/push/test")
    left = await site.store.read(push_subscriptions.subscriptions_of, site.ids["me"])

    assert sorted(tried["results"]) == ["done", "done", "fail", "forget", "forget", "retry"]
    assert {one.endpoint.removeprefix(service.origin) for one in left} == {
        "/busy",
        "/down",
        "/moved",
        "/well",
    }
    counts = [service.pushed.get_nowait()[0] for _ in range(service.pushed.qsize())]
    assert {path: counts.count(path) for path in ("/busy", "/down", "/moved", "/elsewhere")} == {
        "/busy": 3,
        "/down": 3,
        "/moved": 1,
        "/elsewhere": 0,
    }


OPTIONS = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
ASK = {"questions": [{"header": "Colour", "question": "Which colour?", "options": OPTIONS}]}


@pytest.fixture
async def asking(tmp_path: Path, service: Service) -> AsyncIterator[Site]:
    """A control plane whose model asks: while it works when told to paint, at its turn's end to plan."""
    call = {"calls": [{"name": "ask_user_question", "arguments": ASK}]}
    turns = [
        {"when": {"contains": "paint"}, "reply": call},
        {"when": {"contains": "paint"}, "reply": {"text": ["going on"]}},
    ]
    turns += [{"when": {"contains": "plan"}, "reply": call}]
    turns += [{"when": {"contains": word}, "reply": {"text": ["thanks"]}} for word in ("Red", "Blue", "Anew")]
    (tmp_path / "scenario.json").write_text(json.dumps({"turns": turns}))
    settings = {"rehearsal_scenario": tmp_path / "scenario.json", "push_services": (service.origin,)}
    async with serving(tmp_path / "data", experiments=("chat-async-questions",), **settings) as site:
        yield site


async def _told(service: Service, count: int) -> dict[str, dict[str, Any]]:
    """The next *count* pushes by their topic."""
    pushed = [await service.next() for _ in range(count)]
    assert len({headers["Topic"] for _, headers, _ in pushed}) == count
    return {headers["Topic"]: note for _, headers, note in pushed}


async def _open_question(site: Site, chat_id: str) -> str:
    (question,) = (await site.ask("GET", f"/chats/{chat_id}/questions"))["questions"]
    return str(question["question_id"])


async def test_an_answer_takes_the_question_s_push_back(asking: Site, service: Service) -> None:
    """Requirement 004 leaves it open: the push is cleared on every browser, the turn's end stays."""
    await _subscribe(asking, service, "/one")
    chat = await asking.ask("POST", "/chats", status=201, json=text("paint the door", client_type="ui"))
    path = f"/chats/{chat['id']}"
    told = await _told(service, 2)
    end = UUID(chat["id"]).hex
    (topic,) = told.keys() - {end}
    question_id = await _open_question(asking, chat["id"])
    part = {"type": "question-answer", "question_id": question_id, "text": "Colour: Red"}
    await asking.ask("POST", f"{path}/messages", json={"content": [part]})
    after = await _told(service, 2)

    assert (told[topic]["type"], told[topic]["body"]) == ("show", "Question: Which colour?")
    assert after[topic].keys() == {"type", "tag", "at"}
    assert (after[topic]["type"], after[topic]["tag"]) == ("clear", told[topic]["tag"])
    assert after[topic]["at"] > told[topic]["at"]
    assert (after[end]["type"], after[end]["body"]) == ("show", "thanks")


async def test_an_answer_takes_the_push_of_a_question_that_ended_the_turn_back(
    asking: Site, service: Service
) -> None:
    """Requirement 004: the turn's end asked, and is of no use once somebody has said something."""
    await _subscribe(asking, service, "/one")
    chat = await asking.ask("POST", "/chats", status=201, json=text("plan it", plan_mode="plan"))
    _, _, asked = await service.next()
    await asking.ask("POST", f"/chats/{chat['id']}/messages", json=text("Blue"))
    _, _, first = await service.next()
    _, _, second = await service.next()

    assert (asked["type"], asked["body"]) == ("show", "Question: Which colour?")
    assert first == {"type": "clear", "tag": asked["tag"], "at": first["at"]}
    assert (second["type"], second["tag"], second["body"]) == ("show", asked["tag"], "thanks")
    assert asked["at"] < first["at"] < second["at"]


@pytest.mark.parametrize("how", ["edit", "archive"])
async def test_what_is_gone_is_taken_back(asking: Site, service: Service, how: str) -> None:
    """Ours: a question that an edit took away, or whose chat was put away, calls nobody any more."""
    await _subscribe(asking, service, "/one")
    chat = await asking.ask("POST", "/chats", status=201, json=text("paint the door", client_type="ui"))
    told = await _told(service, 2)
    await asking.until(chat["id"], "waiting")
    if how == "archive":
        headers = bearer(asking.tokens["me"])
        await asking.status(
            "PATCH", f"/api/experimental/chats/{chat['id']}", headers, json={"archived": True}
        )
        after = await _told(service, 2)
        assert {note["type"] for note in after.values()} == {"clear"}
    else:
        first = (await asking.ask("GET", f"/chats/{chat['id']}/messages"))["messages"][0]["id"]
        await asking.ask("PATCH", f"/chats/{chat['id']}/messages/{first}", json=text("Anew"))
        after = {}
        while len(after) < 2 or {note["type"] for note in after.values()} != {"clear", "show"}:
            _, headers, note = await service.next()
            after[headers["Topic"]] = note

    assert after.keys() == told.keys()


async def test_a_question_is_not_tried_again_once_it_was_taken_back(asking: Site, service: Service) -> None:
    """Ours: a push service that is down for a moment must not bring back what was answered."""
    service.answers, me, push = {"/one": [503]}, asking.ids["me"], asking.plane.services.push
    await _subscribe(asking, service, "/one")
    service.answering.clear()
    note = Notification(title="T", body="Question: ?", tag="q", at_ms=1)
    trying = asyncio.create_task(push.send_now(me, note))
    assert (await service.next())[2]["type"] == "show"
    push.notify(me, Notification(tag="q", is_clear=True))
    service.answering.set()

    assert await trying == [Reaction.SKIP]
    assert (await service.next())[2]["type"] == "clear"
    assert service.pushed.empty()


async def test_a_browser_that_unsubscribes_hears_no_more(site: Site, service: Service) -> None:
    """The issue: by its owner only; a browser belongs to who used it last."""
    await _subscribe(site, service, "/one")
    body = {"endpoint": service.origin + "/one"}
    for who, browsers in (("other", 1), ("me", 0)):
        headers = {"Authorization": f"Bearer {site.tokens[who]}"}
        await site.status("DELETE", "/api/experimental/push/subscriptions", headers, json=body)
        left = await site.store.read(push_subscriptions.subscriptions_of, site.ids["me"])
        assert len(left) == browsers
    await _subscribe(site, service, "/one", "me")
    await _subscribe(site, service, "/one", "other")

    assert await site.store.read(push_subscriptions.subscriptions_of, site.ids["me"]) == []


@pytest.mark.parametrize(
    "change",
    [
        {"endpoint": "https://169.254.169.254/latest/meta-data"},
        {"keys": {"p256dh": "AAAA", "auth": _encode(AUTH)}},
        {"keys": {"p256dh": "a", "auth": _encode(AUTH)}},
        {"auth": "AAAA"},
    ],
)
async def test_a_subscription_that_cannot_work_is_refused(
    site: Site, service: Service, change: dict[str, Any]
) -> None:
    """Ours: foreign places, points that lie on no curve, short secrets."""
    body = service.subscription("/one")
    if "auth" in change:
        change = {"keys": {**body["keys"], **change}}
    await site.ask("POST", "/push/subscriptions", status=400, json=body | change)

    assert await site.store.read(push_subscriptions.subscriptions_of, site.ids["me"]) == []


async def test_the_key_outlives_a_restart(site: Site) -> None:
    """Ours: browsers subscribe to one key; another would silence them."""
    before = await site.ask("GET", "/push/key")
    again = sender.PushSender(
        site.store, site.plane.services.mcp.sealer, allowed=(), contact="mailto:a@example.com"
    )

    assert await again.public_key() == before["public_key"]
