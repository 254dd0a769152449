"""What a hostile page, client or header tries: CSRF, hijacked sockets, traversal, bombs, headers, logs."""

import asyncio
import contextlib
import io
import json
import os
import re
import resource
import sys
import zlib
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.integration.chatd.http.site import API, LIMIT_S, UPGRADE, Site, bearer, text
from tests.integration.chatd.http.test_auth import fill, user_routes

pytestmark = pytest.mark.attack
ROOT = Path(__file__).parents[4]
FOREIGN = (
    "https://evil.example",
    "null",
    "http://localhost.evil.example",
    "http://127.0.0.1",
    "http://{host}.evil.example",
    "http://evil.example@{host}",
    "http://{host}@evil.example",
    "file://",
    "",
)
# Every way into a stream or a desktop.
SOCKETS = (
    f"{API}/chats/watch",
    f"{API}/chats/{{chat_id}}/stream",
    f"{API}/chats/{{chat_id}}/desktop",
    f"{API}/agents/box/desktop",
)


async def cookie_of(site: Site, who: str = "me") -> dict[str, str]:
    """What a browser sends by itself."""
    return {"Cookie": f"agentd_session={await site.issue('session', who)}"}


async def test_no_other_site_changes_anything_by_a_browser_s_cookie(site: Site) -> None:
    """CSRF: every route that is no GET, with the cookie and every kind of foreign Origin, or none."""
    cookie, host = await cookie_of(site), site.plane.url.removeprefix("http://")
    changing = [(method, path) for method, path in user_routes(site) if method not in {"GET", "HEAD"}]
    wrong = []
    for method, path in changing:
        for origin in FOREIGN:
            headers = cookie | ({"Origin": origin.format(host=host)} if origin else {})
            status = await site.status(method, fill(path), headers, json={})
            if status != 403:
                wrong.append((method, path, origin, status))

    assert wrong == []
    assert len(changing) > 40
    # A form needs no leave of ours to be sent: its types are no way round.
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        headers = cookie | {"Content-Type": kind, "Origin": "https://evil.example"}
        assert await site.status("POST", f"{API}/chats", headers, data=json.dumps(text("x"))) == 403
    assert await site.ask("GET", "/chats") == []


async def test_no_other_site_opens_a_socket(site: Site) -> None:
    """WebSocket hijack: browsers send cookies with any upgrade, so its Origin must be ours; none is none."""
    cookie, host = await cookie_of(site, "owner"), site.plane.url.removeprefix("http://")
    chat_id = await site.new_chat(who="owner")
    found = {}
    for path in SOCKETS:
        for origin in FOREIGN:
            headers = cookie | UPGRADE | ({"Origin": origin.format(host=host)} if origin else {})
            found[path, origin] = await site.status("GET", path.format(chat_id=chat_id), headers)

    assert set(found.values()) == {403}, found
    own = cookie | {"Origin": site.plane.url}
    async with site.http.ws_connect(f"{API}/chats/watch", headers=own):
        pass


async def test_no_other_site_reads_answers(site: Site) -> None:
    """CORS: no answer, and no preflight's, allows any origin anything."""
    cookie = await cookie_of(site)
    for method, path in (
        ("OPTIONS", f"{API}/chats"),
        ("GET", f"{API}/me"),
        ("GET", "/"),
        ("GET", "/api/docs"),
    ):
        headers = cookie | {
            "Origin": "https://evil.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization",
        }
        async with site.http.request(method, path, headers=headers) as answer:
            told = [name for name in answer.headers if name.lower().startswith("access-control")]
            assert told == [], path


async def test_a_token_counts_in_its_place_alone(site: Site) -> None:
    """Ours: addresses end up in logs and histories, so none is taken from there."""
    token, path = site.tokens["me"], f"{API}/chats"
    names = ("X-Api-Key", "X-Auth-Token", "Sec-WebSocket-Protocol", "Proxy-Authorization")
    agent = {"Cookie": f"agentd_session={site.tokens['agent']}", "Origin": site.plane.url}
    cases: list[tuple[str, dict[str, Any]]] = [
        (f"{path}?token={token}&access_token={token}", {"headers": {}}),
        (path, {"headers": dict.fromkeys(names, token)}),
        (path, {"headers": {}, "json": {"token": token}}),
        (path, {"headers": agent}),
    ]

    assert [await site.status("GET", where, **request) for where, request in cases] == [401] * 4


PATHS = (
    "/assets/../app.py",
    "/assets/..%2f..%2fapp.py",
    "/assets/%2e%2e/%2e%2e/app.py",
    "/assets/..\\..\\app.py",
    "/assets/%2fetc/passwd",
    "/assets//etc/passwd",
    "/assets/.%00./app.py",
    "/..%2fapp.py",
    "/sw.js/../../app.py",
    f"{API}/chats/files/..%2f..%2fsecrets.key",
    f"{API}/chats/..%2f..%2f..%2fetc%2fpasswd",
    "/share/..%2f..%2fapp.py/status",
    "/download/..%2f..%2fsecrets.key",
    "/%2e%2e/%2e%2e/etc/passwd",
)


async def test_no_path_leads_out_of_the_page(site: Site) -> None:
    """Path traversal: sent as it stands here, since a client would tidy it up."""
    for path in PATHS:
        answer = await answer_to(site, path)
        assert int(answer.split()[1]) in {400, 403, 404}, (path, answer[:200])
        assert not re.search(r"root:|import asyncio|ControlPlane", answer), path


async def answer_to(site: Site, path: str) -> str:
    """The whole answer to a GET of *path*, byte for byte."""
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {site.tokens['me']}"
    reader, writer = await asyncio.open_connection(site.plane.settings.host, site.plane.port)
    writer.write(f"{head}\r\nConnection: close\r\n\r\n".encode())
    async with asyncio.timeout(LIMIT_S):
        answer = (await reader.read()).decode(errors="replace")
    writer.close()
    await writer.wait_closed()
    return answer


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_body_that_swells_is_cut_off(site: Site, coding: str) -> None:
    """Bombs: a quarter of a megabyte that would become 256 MiB is refused once it is past the limit."""
    compress = zlib.compressobj(1, zlib.DEFLATED, 31 if coding == "gzip" else 15)
    bomb = b"".join([*(compress.compress(bytes(2**20)) for _ in range(256)), compress.flush()])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    headers = bearer(site.tokens["me"]) | {"Content-Encoding": coding}
    found: list[int] = []
    for path, kind in ((f"{API}/chats", "application/json"), (f"{API}/chats/files", "image/png")):
        # Who is cut off while still sending may see that before the answer.
        with contextlib.suppress(aiohttp.ClientConnectionError):
            found.append(
                await site.status("POST", path, headers | {"Content-Type": kind}, data=io.BytesIO(bomb))
            )
    grown_mib = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024

    assert len(bomb) < 2**21
    assert set(found) <= {400, 413}, found
    assert grown_mib < 100
    assert await site.ask("GET", "/chats") == []


async def test_no_frame_is_inflated(site: Site) -> None:
    """Bombs: no socket of ours takes up compression, whatever is offered: a small frame stays small."""
    headers = bearer(site.tokens["me"])
    async with site.http.ws_connect(f"{API}/chats/watch", headers=headers, compress=15) as socket:
        assert socket.compress == 0
    agent = bearer(site.tokens["agent"])
    async with site.http.ws_connect("/api/agent/link", headers=agent, compress=15) as socket:
        assert socket.compress == 0


NAMES = (
    "a\r\nSet-Cookie: x=y",
    'a"; filename="b.html',
    "a\nContent-Type: text/html\n\n<script>",
    "../../etc/passwd",
    "\u2028evil",
    "a" * 2000,
    ";" * 50,
)


async def test_a_file_s_name_writes_no_header(site: Site) -> None:
    """Header injection: what a name holds is one parameter of one header, and never a path."""
    for name in NAMES:
        value = "attachment; filename*=UTF-8''" + "".join(f"%{byte:02x}" for byte in name.encode())
        headers = {"Content-Type": "text/plain", "Content-Disposition": value}
        file_id = await upload(site, b"<script>alert(1)</script>", headers)
        for disposition, path, sent in (
            ("inline", f"{API}/chats/files/{file_id}", bearer(site.tokens["me"])),
            ("attachment", await download(site, file_id), {}),
        ):
            async with site.http.get(path, headers=sent) as answer:
                told = answer.headers
            assert "Set-Cookie" not in told
            assert told["Content-Type"] == "text/plain; charset=utf-8"
            assert told["X-Content-Type-Options"] == "nosniff"
            assert told["Content-Disposition"].startswith(disposition)
            assert not re.search(r"[\r\n/\\]", told["Content-Disposition"])


async def upload(site: Site, data: bytes, headers: dict[str, str]) -> str:
    """The id of an uploaded file."""
    path = f"{API}/chats/files"
    async with site.http.post(path, data=data, headers=bearer(site.tokens["me"]) | headers) as answer:
        made = await answer.json()
        assert answer.status == 201, made
    return str(made["id"])


async def download(site: Site, file_id: str) -> str:
    """The signed address of a file."""
    made = await site.ask("POST", f"/chats/files/{file_id}/download-url")
    return f"/{made['url']}"


async def test_nothing_that_a_browser_runs_is_served_as_such(site: Site) -> None:
    """Stored XSS: files come from the page's own origin, so scripts among them have no type of their own."""
    data = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"
    for kind in ("text/html", "image/svg+xml", "application/javascript", "text/xml", "image/png"):
        headers = bearer(site.tokens["me"]) | {"Content-Type": kind}
        async with site.http.post(f"{API}/chats/files", data=data, headers=headers) as answer:
            made, status = await answer.json(), answer.status
        assert status in {201, 400}, kind
        if status == 201:
            path = f"{API}/chats/files/{made['id']}"
            async with site.http.get(path, headers=bearer(site.tokens["me"])) as answer:
                assert answer.content_type in {"text/plain", "application/octet-stream"}, kind


async def test_the_page_loads_and_runs_nothing_of_others(site: Site) -> None:
    """XSS: no inline script, no other host, no frame, in every answer that is a page."""
    for path in ("/", "/share/x", "/login", "/api/docs"):
        async with site.http.get(path, headers={"Sec-Fetch-Site": "cross-site"}) as answer:
            policy = answer.headers["Content-Security-Policy"]
            assert "unsafe-inline" not in policy.split("style-src")[0], path
            assert "unsafe-eval" not in policy
            assert re.search(r"default-src '(self|none)'", policy)


REQUESTS = (
    ("GET", "/login?token={login}", {}),
    ("GET", "/login?token=login_WRONGCANARY", {}),
    ("GET", "/api/experimental/me", {"Authorization": "Bearer {api}"}),
    ("GET", "/api/experimental/me", {"Authorization": "Bearer api_WRONGCANARY"}),
    ("GET", "/api/experimental/me", {"Cookie": "agentd_session=session_WRONGCANARY"}),
    ("GET", "/api/experimental/chats/x/stream?token={api}", {"Authorization": "Bearer {api}"}),
    ("GET", "/share/WRONGCANARY/status", {}),
    ("GET", "/download/WRONGCANARY", {}),
    ("POST", "/api/experimental/chats", {"Authorization": "Bearer {api}", "Content-Type": "x/WRONGCANARY"}),
    ("GET", "/api/agent/link", {"Authorization": "Bearer {agent}"}),
    ("GET", "/metrics", {"Authorization": "Bearer {api}"}),
)


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_no_token_is_in_what_the_process_logs(tmp_path: Path) -> None:
    """BUGS 74: canaries in every place where a request can carry one; the logs at their most talkative."""
    command = "import logging; logging.basicConfig(level=0); from chatd.cli import main; main()"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", command, "serve", "--data", str(tmp_path / "d"), "--port", "0"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "ANTHROPIC_API_KEY": "sk-ant-CANARY", "CHATD_REHEARSAL": "always"},
    )
    assert process.stdout is not None
    line = json.loads(await process.stdout.readline())
    tokens = {"api": line["token"], "agent": line["agent_token"], "login": "none"}
    told = []
    try:
        async with asyncio.timeout(LIMIT_S), aiohttp.ClientSession(line["url"]) as http:
            path = f"{API}/login-tokens"
            async with http.post(path, headers={"Authorization": f"Bearer {tokens['api']}"}) as answer:
                tokens["login"] = (await answer.json())["token"]
            for method, path, headers in REQUESTS:
                sent = {name: value.format(**tokens) for name, value in headers.items()}
                async with http.request(method, path.format(**tokens), headers=sent) as answer:
                    told.append(await answer.text())
    finally:
        process.terminate()
        _, log = await process.communicate()
    written = log.decode() + "".join(told)

    assert '"action"' in log.decode()
    for secret in ("WRONGCANARY", "CANARY", *(token.partition("_")[2] for token in tokens.values())):
        assert secret not in written, secret
