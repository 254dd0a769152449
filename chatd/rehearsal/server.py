"""
The rehearsal model's server: vendors' wire protocols over loopback HTTP.

A thin shell round the codecs and the brain::

    POST /anthropic/v1/messages          Anthropic Messages
    POST /openai/v1/responses            OpenAI Responses
    POST /openai/v1/chat/completions     OpenAI Chat Completions
    GET  /{anthropic,openai}/v1/models

Any key is accepted except "invalid" (401), any model except "missing" (404).
It keeps nothing between requests, but for the count of calls a scenario needs.
"""

import asyncio
import json
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator

from aiohttp import web

from chatd.errors import Misuse
from chatd.rehearsal.anthropic import AnthropicCodec
from chatd.rehearsal.brain import decide
from chatd.rehearsal.codec import ApiError, Codec, Event, Json, Stamp
from chatd.rehearsal.completions import CompletionsCodec
from chatd.rehearsal.conversation import Conversation, Reply
from chatd.rehearsal.responses import ResponsesCodec
from chatd.rehearsal.scenario import (
    CutFault,
    Fault,
    HttpFault,
    Player,
    Scenario,
    ScenarioTurn,
    SilenceFault,
    scripted_reply,
)

__all__ = ["INVALID_KEY", "MISSING_MODEL", "MODEL", "RehearsalServer", "create_app"]

MODEL = "rehearsal"
INVALID_KEY = "invalid"
MISSING_MODEL = "missing"
# Bytes of a request: some dozens of screenshots, as vendors allow.
MAX_BODY_BYTES = 64 * 1024 * 1024
# Seconds that requests still running get when the server stops.
SHUTDOWN_S = 0.5

_log = logging.getLogger(__name__)
_ANTHROPIC = AnthropicCodec()
_RESPONSES = ResponsesCodec()
_COMPLETIONS = CompletionsCodec()
_PLAYER = web.AppKey("player", Player)

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class RehearsalServer:
    """The server as something to start and stop, beside others in one process."""

    def __init__(self) -> None:
        self._runner: web.AppRunner | None = None

    async def start(self, host: str = "127.0.0.1", port: int = 0, scenario: Scenario | None = None) -> str:
        """
        Listen, on a free port when *port* is 0.

        Returns:
            The base URL, without a vendor: ``http://127.0.0.1:40123``.

        Raises:
            Misuse: it is already running.
            OSError: the port is taken.

        Cancellation: nothing listens.
        """
        if self._runner is not None:
            raise Misuse("the rehearsal server is already running")
        runner = web.AppRunner(
            create_app(scenario), handler_cancellation=True, access_log=None, shutdown_timeout=SHUTDOWN_S
        )
        try:
            await runner.setup()
            await web.TCPSite(runner, host, port).start()
        except BaseException:
            await runner.cleanup()
            raise
        self._runner = runner
        bound_host, bound_port = runner.addresses[0][:2]
        return (
            f"http://[{bound_host}]:{bound_port}"
            if ":" in bound_host
            else f"http://{bound_host}:{bound_port}"
        )

    async def stop(self) -> None:
        """Stop listening and end running requests; does nothing when not running."""
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()


def create_app(scenario: Scenario | None = None) -> web.Application:
    """The application, with its own count of calls."""
    app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[_errors])
    app[_PLAYER] = Player.of(scenario)
    app.router.add_post("/anthropic/v1/messages", _answering(_ANTHROPIC))
    app.router.add_post("/openai/v1/responses", _answering(_RESPONSES))
    app.router.add_post("/openai/v1/chat/completions", _answering(_COMPLETIONS))
    app.router.add_get("/anthropic/v1/models", _models)
    app.router.add_get("/openai/v1/models", _models)
    return app


def _codec_for(request: web.Request) -> Codec:
    if request.path.startswith("/anthropic/"):
        return _ANTHROPIC
    return _COMPLETIONS if request.path.endswith("/chat/completions") else _RESPONSES


@web.middleware
async def _errors(request: web.Request, handler: _Handler) -> web.StreamResponse:
    """Every failure leaves in the vendor's shape."""
    codec = _codec_for(request)
    try:
        return await handler(request)
    except ApiError as error:
        return _error_response(codec, error)
    except web.HTTPException as error:
        return _error_response(codec, ApiError(error.reason, status=error.status))
    except ConnectionError:
        # Nobody is left to read it; aiohttp drops it quietly, but would log the exception.
        return web.Response()
    except Exception:  # noqa: BLE001 - logged; a client must get the vendor's shape whatever happens
        _log.exception("the rehearsal model failed", extra={"action": "rehearsal_failed"})
        return _error_response(codec, ApiError("Internal server error", status=500))


def _answering(codec: Codec) -> _Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        _authenticate(request)
        conversation = codec.decode(await _body(request))
        if conversation.model == MISSING_MODEL:
            raise ApiError(
                f"model: {conversation.model}", status=404, param="model", reason="model_not_found"
            )
        turn = request.app[_PLAYER].next_turn(conversation)
        fault = turn.fault if turn else None
        if isinstance(fault, HttpFault):
            return _http_fault(codec, fault)
        reply = await _reply(conversation, turn)
        stamp = Stamp(nonce=secrets.token_hex(8), created=int(time.time()))
        if not conversation.stream:
            await _obey(request, fault, 0, is_last=True)
            return _json_response(codec, codec.encode(conversation, reply, stamp))
        return await _stream(request, codec, codec.events(conversation, reply, stamp), fault)

    return answer


async def _models(request: web.Request) -> web.StreamResponse:
    _authenticate(request)
    codec = _codec_for(request)
    return _json_response(codec, codec.models([MODEL]))


def _authenticate(request: web.Request) -> None:
    key = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix("Bearer ")
    if not key.strip() or key.strip() == INVALID_KEY:
        raise ApiError("invalid x-api-key" if key else "no API key was given", status=401)


async def _body(request: web.Request) -> Json:
    try:
        body = json.loads(await request.read())
    except (ValueError, RecursionError) as error:
        raise ApiError("We could not parse the JSON body of your request.") from error
    if not isinstance(body, dict):
        raise ApiError("The body of the request should be a JSON object.")
    return body


async def _reply(conversation: Conversation, turn: ScenarioTurn | None) -> Reply:
    if turn is not None and turn.reply is not None:
        return scripted_reply(turn.reply)
    # Reading a screenshot takes a tenth of a second of processor time: not on the event loop.
    return await asyncio.to_thread(decide, conversation)


async def _stream(
    request: web.Request, codec: Codec, events: Iterator[Event], fault: Fault | None
) -> web.StreamResponse:
    headers = {"content-type": "text/event-stream", "cache-control": "no-cache", **_request_id(codec)}
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    sent = 0
    for event in events:
        await _obey(request, fault, sent)
        if event.delay_ms:
            await asyncio.sleep(event.delay_ms / 1_000)
        await response.write(_encoded(event))
        sent += 1
    await _obey(request, fault, sent, is_last=True)
    await response.write_eof()
    return response


async def _obey(request: web.Request, fault: Fault | None, sent: int, *, is_last: bool = False) -> None:
    """Fail as the scenario says, now that *sent* events are out."""
    match fault:
        case SilenceFault() if fault.after_events == sent or (is_last and fault.after_events > sent):
            await asyncio.sleep(fault.silence_ms / 1_000)
        case CutFault() if fault.after_events <= sent or is_last:
            if request.transport is not None:
                request.transport.close()
            raise ConnectionResetError("cut by the scenario")


def _encoded(event: Event) -> bytes:
    data = event.data if isinstance(event.data, str) else json.dumps(event.data)
    name = f"event: {event.name}\n" if event.name else ""
    return f"{name}data: {data}\n\n".encode()


def _request_id(codec: Codec) -> dict[str, str]:
    return {codec.request_id_header: f"req_{secrets.token_hex(12)}"}


def _json_response(codec: Codec, body: Json) -> web.Response:
    return web.json_response(body, headers=_request_id(codec))


def _error_response(codec: Codec, error: ApiError) -> web.Response:
    headers = _request_id(codec)
    body = codec.error(error, headers[codec.request_id_header])
    return web.json_response(body, status=error.status, headers=headers)


def _http_fault(codec: Codec, fault: HttpFault) -> web.Response:
    headers = _request_id(codec)
    headers = {**headers, **fault.headers}
    if isinstance(fault.body, str):
        return web.Response(text=fault.body, status=fault.status, headers=headers)
    error = ApiError(fault.message, status=fault.status)
    body = codec.error(error, headers[codec.request_id_header]) if fault.body is None else fault.body
    return web.json_response(body, status=fault.status, headers=headers)
