"""Bodies and queries that make no sense: a status and a code, never a failure of ours."""

import asyncio
import io
import json
import uuid
from typing import Any

import pytest

from chatd.store.machine import MAX_QUEUED
from tests.integration.chatd.http.site import API, Site, bearer, text

JSON = b"Content-Type: application/json"
BLANK = " \n\t"
LONG = "x" * 200_001
# Body, and a word that the message must hold.
BAD: list[tuple[str, Any, str]] = [
    ("nothing", b"", "JSON"),
    ("malformed", b"{", "JSON"),
    ("not UTF-8", b'{"content": "\xff"}', "JSON"),
    ("too deep", b"[" * 100_000, "JSON"),
    ("a number too long to read", b'{"content": ' + b"1" * 5_000 + b"}", "JSON"),
    ("a list", [], "body"),
    ("null", None, "body"),
    ("no content", {}, "content"),
    ("empty content", {"content": []}, "content"),
    ("content is text", {"content": "x"}, "content"),
    ("too many parts", {"content": [{"type": "text", "text": "x"}] * 101}, "content"),
    ("blank text", text(BLANK), "blank"),
    ("no text", text(""), "text"),
    ("one blank part", {"content": [{"type": "text", "text": "x"}, {"type": "text", "text": " "}]}, "1"),
    ("too long", text(LONG), "200000"),
    ("text is a number", {"content": [{"type": "text", "text": 5}]}, "text"),
    ("unknown type", {"content": [{"type": "image", "text": "x"}]}, "content.0: Input tag"),
    ("a file without id", {"content": [{"type": "file"}]}, "content.0.file.file_id"),
    ("unknown field", text("x", surprise=1), "surprise"),
    ("unknown field of a part", {"content": [{"type": "text", "text": "x", "data": 1}]}, "data"),
    ("lone surrogate", b'{"content": [{"type": "text", "text": "\\ud800"}]}', "text"),
    ("lone surrogate as a name", b'{"content": [{"type": "text", "text": "x"}], "\\udfff": 1}', "unicode"),
]
CREATE: list[tuple[str, Any, str]] = [
    ("bad model", text("x", model_config_id="gpt-0"), "gpt-0"),
    ("model of no one", text("x", model_config_id=str(uuid.UUID(int=5))), "unknown"),
    ("model is a number", text("x", model_config_id=5), "model_config_id"),
    ("an empty label", text("x", labels={"": "v"}), "label"),
    ("a label that begins badly", text("x", labels={".a": "v"}), "label"),
    ("a label too long", text("x", labels={"a": "v" * 257}), "label"),
    ("too many labels", text("x", labels={f"l{n}": "v" for n in range(51)}), "labels"),
    ("a nameless tool", text("x", unsafe_dynamic_tools=[{"name": ""}]), "unsafe_dynamic_tools"),
    ("a tool twice", text("x", unsafe_dynamic_tools=[{"name": "a"}] * 2), "one name"),
    ("too many tools", text("x", unsafe_dynamic_tools=[{"name": f"t{n}"} for n in range(251)]), "250"),
    ("a file that is none", {"content": [{"type": "file", "file_id": str(uuid.UUID(int=9))}]}, "no file"),
    ("title too long", text("x", title="t" * 201), "title"),
    ("surrogate title", b'{"content": [{"type": "text", "text": "x"}], "title": "\\ud800"}', "title"),
    ("surrogate model", b'{"content": [{"type":"text","text":"x"}], "model_config_id": "\\ud800"}', "model"),
]
SEND: list[tuple[str, Any, str]] = [
    ("bad behaviour", text("x", busy_behavior="wait"), "busy_behavior"),
    ("a title", text("x", title="t"), "title"),
]


def encode(body: Any) -> bytes:
    """A body as it is sent."""
    return body if isinstance(body, bytes) else json.dumps(body).encode()


async def refused(site: Site, path: str, name: str, body: Any, word: str) -> None:
    """POST *body*; it must be refused with 400 and a message that holds *word*."""
    head = f"POST {API}{path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {site.tokens['me']}\r\n"
    status, answer = await site.raw(head.encode() + JSON, encode(body))

    assert (status, answer.get("code")) == (400, "bad_request"), (name, answer)
    assert word in answer["message"], name


async def test_a_bad_new_chat_is_refused(site: Site) -> None:
    """Spec 3: 400 that names the field; nothing is made."""
    for name, body, word in BAD + CREATE:
        await refused(site, "/chats", name, body, word)

    assert await site.ask("GET", "/chats") == []


async def test_a_bad_message_is_refused(site: Site) -> None:
    """Spec 3: 400, and the chat stays as it is."""
    chat_id = await site.quiet_chat()
    for name, body, word in BAD + SEND:
        await refused(site, f"/chats/{chat_id}/messages", name, body, word)

    assert len((await site.ask("GET", f"/chats/{chat_id}/messages"))["messages"]) == 2


async def test_a_bad_page_is_refused(site: Site) -> None:
    """Spec 3: 1 to 200, numbers only; the stream reads after_id the same way."""
    chat_id = await site.quiet_chat()
    limits = ["0", "201", "-1", "abc", "", "1.5"]
    ids = ["x", "-1", str(2**63), "9" * 5000]
    queries = [("limit", value, "messages") for value in limits]
    queries += [("after_id", value, route) for value in ids for route in ("messages", "stream")]
    for name, value, route in queries:
        answer = await site.ask("GET", f"/chats/{chat_id}/{route}", params={name: value}, status=400)

        assert answer["code"] == "bad_request"
        assert name in answer["message"]


async def test_an_id_that_is_none_is_not_found(site: Site) -> None:
    """Spec 3: whatever stands in the path."""
    for chat_id in ("x", "1", "%00", "%ff", str(uuid.UUID(int=1)), "0" * 5000, "watch/x"):
        path = f"GET {API}/chats/{chat_id} HTTP/1.1"
        head = f"{path}\r\nHost: localhost\r\nAuthorization: Bearer {site.tokens['me']}"
        status, answer = await site.raw(head.encode())

        assert status == 404, (chat_id, answer)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", f"{API}/nothing", 404), ("DELETE", f"{API}/chats", 405), ("PUT", f"{API}/me", 405)],
)
async def test_what_there_is_not_is_told_as_json(site: Site, method: str, path: str, status: int) -> None:
    """Ours: every error has the same shape."""
    async with site.http.request(method, path, headers=bearer(site.tokens["me"])) as answer:
        body = await answer.json()

    assert (answer.status, body["code"]) == (status, "http_error")
    assert ("Allow" in answer.headers) == (status == 405)


async def test_a_body_past_the_limit_is_too_large(site: Site) -> None:
    """Ours: 8 MiB."""
    body = io.BytesIO(b"x" * (8 * 1024 * 1024 + 1))

    assert await site.status("POST", f"{API}/chats", bearer(site.tokens["me"]), data=body) == 413


@pytest.mark.parametrize("charset", ["latin-1", "nonsense", "hex", "idna", "utf-16"])
async def test_a_charset_decides_or_is_refused(site: Site, charset: str) -> None:
    """Ours: any charset a client may name."""
    headers = bearer(site.tokens["me"]) | {"Content-Type": f"application/json; charset={charset}"}
    status = await site.status("POST", f"{API}/chats", headers, data=encode(text("x")))

    assert status in {201, 400, 415}


@pytest.mark.parametrize("value", ["a\x00b", "😀 \U0010ffff", "a\u2028\u202eb", "\x1b[31m", "é" * 100_000])
async def test_odd_characters_come_back_as_they_were(site: Site, value: str) -> None:
    """Spec 4.1: NUL, astral and control characters in content and title."""
    chat = await site.ask("POST", "/chats", status=201, json=text(value, title=value[:50]))
    await site.until(chat["id"], "waiting", "error")
    page = await site.ask("GET", f"/chats/{chat['id']}/messages")
    sent = await site.ask("POST", f"/chats/{chat['id']}/messages", json=text(value))

    assert page["messages"][0]["content"] == [{"type": "text", "text": value}]
    assert sent["message"]["content"] == [{"type": "text", "text": value}]
    assert (await site.ask("GET", f"/chats/{chat['id']}"))["title"] == chat["title"] == value[:50].strip()


async def test_escaped_surrogate_pairs_are_characters(site: Site) -> None:
    """Ours: JSON may write an astral character as two escapes."""
    body = b'{"content": [{"type": "text", "text": "\\ud83d\\ude00"}]}'
    headers = bearer(site.tokens["me"]) | {"Content-Type": "application/json"}
    async with site.http.post(f"{API}/chats", headers=headers, data=body) as answer:
        chat = await answer.json()

    assert (answer.status, chat["title"]) == (201, "😀")


async def test_a_full_queue_is_429(site: Site) -> None:
    """Spec 8: 20 messages wait."""
    async with site.workspace(tools_list=hang):
        chat_id = await site.new_chat(who="owner")
        path = f"/chats/{chat_id}/messages"
        for number in range(MAX_QUEUED):
            sent = await site.ask("POST", path, who="owner", json=text(str(number)))
            assert (sent["queued"], sent["message"], sent["messages"]) == (True, None, [])
        answer = await site.ask("POST", path, who="owner", status=429, json=text("x"))
        page = await site.ask("GET", path, who="owner")

    assert answer["code"] == "queue_full"
    assert len(page["queued_messages"]) == MAX_QUEUED


async def hang(_: dict[str, Any]) -> Any:
    """A workspace that does not answer."""
    await asyncio.Event().wait()


async def test_what_the_state_forbids_is_409(site: Site) -> None:
    """Spec 3: an idle chat can't be interrupted."""
    chat_id = await site.quiet_chat()
    answer = await site.ask("POST", f"/chats/{chat_id}/interrupt", status=409)

    assert answer["code"] == "transition_not_allowed"


async def test_nothing_is_taken_for_something_else(site: Site) -> None:
    """Found by schemathesis: 0 was false, "1" was 1; a page that sends the wrong type is told so."""
    chat_id = await site.quiet_chat()
    wrong: list[tuple[str, Any]] = [
        ("archived", 0),
        ("archived", "false"),
        ("pin_order", True),
        ("pin_order", "1"),
        ("pin_order", 1.0),
        ("title", 5),
    ]
    for name, value in wrong:
        answer = await site.ask("PATCH", f"/chats/{chat_id}", status=400, json={name: value})

        assert answer["message"].startswith(f"{name}: "), answer


async def test_a_long_search_is_one(site: Site) -> None:
    """Found by schemathesis: what the description allows, four bytes a character, was no request at all."""
    chat_id = await site.quiet_chat()

    assert await site.ask("GET", "/chats", params={"q": "😀" * 1000}) == []
    labels = [("label", f"{'k' * 64}:{'é' * 128}")] * 50
    assert await site.ask("GET", "/chats", params=[*labels, ("q", "😀" * 1000)]) == []
    assert len(await site.ask("GET", "/chats")) == 1, chat_id


@pytest.mark.parametrize(
    "line",
    [
        b"GET /" + b"x" * 70_000 + b" HTTP/1.1",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000,
        b"GET /\x00 HTTP/1.1",
    ],
    ids=["long address", "long header", "no HTTP"],
)
async def test_what_no_route_saw_is_refused_as_json(site: Site, line: bytes) -> None:
    """Ours: every error has the same shape, also the HTTP parser's."""
    status, answer = await site.raw(line + b"\r\nHost: localhost")

    assert status == 400
    assert answer["code"] == "http_error"
    assert answer["message"]
