"""An answer that can't be finished: its connection ends, and no second answer follows it."""

import asyncio
from typing import Any

import pytest
from aiohttp import web
from aiohttp.client_exceptions import ClientPayloadError
from aiohttp.test_utils import TestClient, TestServer

from agentd.errors import AgentError
from agentd.routes import errors as of_agentd
from chatd.app import make_web_app
from chatd.errors import BadRequest
from chatd.routes import errors as of_chatd
from tests.integration.chatd.http.site import Site

LIMIT_S = 10.0


async def _begin(request: web.Request) -> None:
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b"half")


@pytest.mark.parametrize("failure", [OSError("no disk"), BadRequest("late"), AgentError("late")], ids=repr)
@pytest.mark.parametrize("daemon", [of_chatd, of_agentd], ids=["chatd", "agentd"])
async def test_an_answer_that_breaks_off_ends_with_its_connection(daemon: Any, failure: Exception) -> None:
    """Ours: aiohttp would write a second answer into the first, whose reader waits for its end."""

    async def handler(request: web.Request) -> web.StreamResponse:
        await _begin(request)
        raise failure

    app = web.Application(middlewares=[daemon.error_middleware])
    app.on_response_prepare.append(daemon.note_begun)
    app.router.add_get("/", handler)
    async with asyncio.timeout(LIMIT_S), TestClient(TestServer(app)) as client:
        answer = await client.get("/")
        with pytest.raises(ClientPayloadError):
            await answer.read()


async def test_chatd_notes_that_an_answer_has_begun(site: Site) -> None:
    """Ours: without the signal the rule above would never apply."""
    assert of_chatd.note_begun in make_web_app(site.plane.services).on_response_prepare
