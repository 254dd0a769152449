"""The conformance suite of the protocol's makers, against our server: every scenario, run or left out."""

import asyncio
import base64
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import mcp_types as types
import pytest
from aiohttp import web

from agentd.app import Daemon
from agentd.mcp_server.http import McpHttp
from agentd.mcp_server.server import make_server
from agentd.mcp_server.tools import ServedTool
from agentd.settings import AgentdSettings
from agentd.wire.content import ToolResult
from agentd.wire.link import ToolCallParams
from tests.peers import NODE, conformance

LIMIT_S = 90
TOKEN = "t-0-k-e-n"
DATA = base64.b64encode(b"bytes that nobody looks at").decode()

# Against the daemon as it is.
OF_OURS = (
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)
# Against the same server and transport with tools that the suite asks for by name.
OF_TOOLS = (
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-error",
    "tools-call-with-progress",
    "json-schema-2020-12",
)
NO_PROMPTS = "we offer no prompts"
NO_QUESTIONS = "our tools ask the client nothing: no sampling, no elicitation"
NO_BLOCKS = "results of ours hold text, pictures and sound; no embedded resources"
FIXED = "asks for a resource of the suite by address; ours are read in test_mcp_tools and by the Inspector"
NO_SUBSCRIPTIONS = "our resources are read when they are wanted; nobody is told of changes"
LEFT_OUT = {
    "logging-set-level": "our log is no business of clients",
    "tools-call-with-logging": "our log is no business of clients",
    "completion-complete": "no prompts and no resource templates, so nothing to complete",
    "tools-call-embedded-resource": NO_BLOCKS,
    "tools-call-mixed-content": NO_BLOCKS,
    "tools-call-sampling": NO_QUESTIONS,
    "tools-call-elicitation": NO_QUESTIONS,
    "elicitation-sep1034-defaults": NO_QUESTIONS,
    "elicitation-sep1330-enums": NO_QUESTIONS,
    "server-sse-polling": "asks for streams that are ended and resumed; ours last as long as their call",
    "resources-read-text": FIXED,
    "resources-read-binary": FIXED,
    "resources-templates-read": "we offer no resource templates",
    "resources-subscribe": NO_SUBSCRIPTIONS,
    "resources-unsubscribe": NO_SUBSCRIPTIONS,
    "prompts-list": NO_PROMPTS,
    "prompts-get-simple": NO_PROMPTS,
    "prompts-get-with-args": NO_PROMPTS,
    "prompts-get-embedded-resource": NO_PROMPTS,
    "prompts-get-with-image": NO_PROMPTS,
}

JSON_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}


@pytest.fixture
async def daemon(runtime_dir: Path) -> AsyncIterator[Daemon]:
    """A daemon that listens."""
    daemon = Daemon(AgentdSettings(runtime_dir=runtime_dir, desktop_backend="xvnc"))
    await daemon.start()
    yield daemon
    await daemon.stop()


async def _run(*arguments: str, home: Path) -> str:
    process = await asyncio.create_subprocess_exec(
        *conformance(*arguments),
        env={"PATH": f"{Path(NODE).parent}:{os.environ['PATH']}", "HOME": str(home)},
        cwd=home,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    return out.decode()


@asynccontextmanager
async def _serving(http: McpHttp) -> AsyncIterator[str]:
    """An address that needs no token, for a suite that has none to give."""
    await http.start(0)
    url = f"http://127.0.0.1:{http.port}/mcp"

    async def forward(request: web.Request) -> web.StreamResponse:
        headers = {k: v for k, v in request.headers.items() if k.lower() != "content-length"}
        headers["Authorization"] = f"Bearer {TOKEN}"
        async with (
            aiohttp.ClientSession() as session,
            session.request(request.method, url, data=await request.read(), headers=headers) as answer,
        ):
            kept = {"content-type", "mcp-session-id"}
            response = web.StreamResponse(
                status=answer.status, headers={k: v for k, v in answer.headers.items() if k.lower() in kept}
            )
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            return response

    app = web.Application()
    app.router.add_route("*", "/mcp", forward)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    finally:
        await runner.cleanup()
        await http.close()


async def _failures(url: str, scenarios: tuple[str, ...], home: Path) -> dict[str, str]:
    """What the suite says of those scenarios that did not pass."""
    runs = [_run("server", "--url", url, "--scenario", scenario, home=home) for scenario in scenarios]
    reports = dict(zip(scenarios, await asyncio.gather(*runs), strict=True))
    return {name: said for name, said in reports.items() if "0 failed" not in said or "Passed: 0/" in said}


@pytest.mark.timeout(LIMIT_S)
async def test_what_the_suite_asks_of_every_server(daemon: Daemon, tmp_path: Path) -> None:
    """Handshake, lists, several streams at once, other hosts' names for our address."""
    async with _serving(McpHttp(daemon.mcp_server, TOKEN)) as url:
        failures = await _failures(url, OF_OURS, tmp_path)

    assert failures == {}


@pytest.mark.timeout(LIMIT_S)
async def test_what_the_suite_asks_of_tools(daemon: Daemon, tmp_path: Path) -> None:
    """Its own tools, served as ours are: results of each kind, errors, progress, schemas."""
    server = make_server(_tools(), daemon.calls, daemon.context)
    async with _serving(McpHttp(server, TOKEN)) as url:
        failures = await _failures(url, OF_TOOLS, tmp_path)

    assert failures == {}


@pytest.mark.timeout(LIMIT_S)
async def test_every_scenario_is_run_or_left_out_for_a_reason(tmp_path: Path) -> None:
    """A newer suite may have more."""
    listed = (await _run("list", home=tmp_path)).partition("Client scenarios")[0]
    names = [line.split()[1] for line in listed.splitlines() if line.startswith("  - ")]

    assert sorted(names) == sorted([*OF_OURS, *OF_TOOLS, *LEFT_OUT])


def _tools() -> dict[str, ServedTool]:
    async def work(_: ToolCallParams) -> ToolResult:
        # Three words of progress: one comes each second.
        await asyncio.sleep(3.5)
        return _result({"type": "text", "text": "done"})

    def give(block: dict[str, str], *, is_error: bool = False) -> Callable[[ToolCallParams], Awaitable[Any]]:
        async def run(_: ToolCallParams) -> ToolResult:
            return _result(block, is_error=is_error)

        return run

    runs = {
        "test_simple_text": give({"type": "text", "text": "This is a simple text response for testing."}),
        "test_image_content": give({"type": "image", "data": DATA, "mime_type": "image/png"}),
        "test_audio_content": give({"type": "audio", "data": DATA, "mime_type": "audio/wav"}),
        "test_error_handling": give({"type": "text", "text": "It failed on purpose."}, is_error=True),
        "test_tool_with_progress": work,
        "json_schema_2020_12_tool": give({"type": "text", "text": "ok"}),
    }
    return {
        name: ServedTool(
            definition=types.Tool(
                name=name, input_schema=JSON_SCHEMA if name.startswith("json") else {"type": "object"}
            ),
            run=run,
        )
        for name, run in runs.items()
    }


def _result(block: dict[str, str], *, is_error: bool = False) -> ToolResult:
    return ToolResult.model_validate({"content": [block], "is_error": is_error})
