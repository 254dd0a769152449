"""
The rehearsal model, whatever HTTP it is asked over: a request in, an answer out.

Vendors' wire protocols by path::

    POST /anthropic/v1/messages          Anthropic Messages
    POST /openai/v1/responses            OpenAI Responses
    POST /openai/v1/chat/completions     OpenAI Chat Completions
    POST /google/{version}/models/{model}:streamGenerateContent    Gemini
    GET  /{anthropic,openai}/v1/models, /google/{version}/models

Any key is accepted except "invalid" (401), any model except "missing" (404).
It keeps nothing between requests, but for the count of calls a scenario needs.
"""

import asyncio
import json
import logging
import re
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from itertools import islice

from chatd.rehearsal.anthropic import AnthropicCodec
from chatd.rehearsal.brain import decide
from chatd.rehearsal.codec import ApiError, Codec, Event, Json, Stamp
from chatd.rehearsal.completions import CompletionsCodec
from chatd.rehearsal.conversation import Conversation, Reply
from chatd.rehearsal.faults import (
    CutFault,
    EndFault,
    Fault,
    GoawayFault,
    Http2Fault,
    HttpFault,
    MalformedFault,
    ReportFault,
    ResetStreamFault,
    SilenceFault,
)
from chatd.rehearsal.gemini import GeminiCodec, path_fields
from chatd.rehearsal.responses import ResponsesCodec
from chatd.rehearsal.rules import Protocol, violations
from chatd.rehearsal.scenario import Player, Scenario, ScenarioTurn, scripted_reply

__all__ = [
    "INVALID_KEY",
    "MAX_BODY_BYTES",
    "MISSING_MODEL",
    "MODEL",
    "Answer",
    "Asked",
    "Broken",
    "Engine",
    "Question",
    "encode_event",
]

MODEL = "rehearsal"
# The vendors' own search; it is run for those who asked for it.
SEARCH_TOOL = "web_search"
INVALID_KEY = "invalid"
MISSING_MODEL = "missing"
# Bytes of a request: some dozens of screenshots, as vendors allow.
MAX_BODY_BYTES = 64 * 1024 * 1024

_log = logging.getLogger(__name__)
_ANTHROPIC = AnthropicCodec()
_RESPONSES = ResponsesCodec()
_COMPLETIONS = CompletionsCodec()
_GEMINI = GeminiCodec()
_PROTOCOLS: dict[Codec, Protocol] = {
    _ANTHROPIC: "anthropic",
    _RESPONSES: "responses",
    _COMPLETIONS: "completions",
    _GEMINI: "gemini",
}
_ASKED: tuple[tuple[re.Pattern[str], Codec], ...] = (
    (re.compile(r"/anthropic/v1/messages"), _ANTHROPIC),
    (re.compile(r"/openai/v1/responses"), _RESPONSES),
    (re.compile(r"/openai/v1/chat/completions"), _COMPLETIONS),
    (re.compile(r"/google/[^/]+/models/(?P<method>[^/]+)"), _GEMINI),
)
_MODELS = re.compile(r"/(anthropic/v1|openai/v1|google/[^/]+)/models")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request; *headers* by lowercased name."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    is_http2: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response: *body* is whole, or is streamed by *events*, which may end in ``Broken``."""

    status: int = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    events: AsyncGenerator[bytes, None] | None = None


class Broken(Exception):
    """Now the connection, or the stream, is to fail as *fault* says."""

    def __init__(self, fault: CutFault | Http2Fault) -> None:
        super().__init__(fault.kind)
        self.fault = fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One model call as it arrived; *at* is of ``time.monotonic``, *problem* why the vendor refuses it."""

    at: float
    protocol: str
    body: Json
    fault: Fault | None = None
    problem: str | None = None
    is_http2: bool = False


class Engine:
    """
    Answers requests; *observe* is told of every model call, before it is answered.

    Its count of calls is its own.
    """

    def __init__(
        self, scenario: Scenario | None = None, observe: Callable[[Asked], None] | None = None
    ) -> None:
        self._player = Player.of(scenario)
        self._observe = observe or (lambda _: None)

    async def answer(self, question: Question) -> Answer:
        """
        Answer one request; every failure leaves in the vendor's shape.

        Raises:
            Broken: the connection is to fail in place of an answer.
        """
        try:
            return await self._answer(question)
        except ApiError as error:
            return refusal(question.path, error)
        except Broken:
            raise
        except Exception:  # noqa: BLE001 - logged; a client must get the vendor's shape whatever happens
            _log.exception("the rehearsal model failed", extra={"action": "rehearsal_failed"})
            return refusal(question.path, ApiError("Internal server error", status=500))

    async def _answer(self, question: Question) -> Answer:
        if _MODELS.fullmatch(question.path):
            _require(question, "GET")
            codec = _codec_for(question.path)
            return _json(codec, codec.models([MODEL]))
        for pattern, codec in _ASKED:
            if found := pattern.fullmatch(question.path):
                _require(question, "POST")
                return await self._call(question, codec, found.groupdict())
        raise ApiError("Not Found", status=404)

    async def _call(self, question: Question, codec: Codec, fields: Mapping[str, str]) -> Answer:
        body = _body(question)
        if "method" in fields:
            body |= path_fields(fields["method"])
        asked = Asked(at=time.monotonic(), protocol=_PROTOCOLS[codec], body=body, is_http2=question.is_http2)
        try:
            conversation = _accept(codec, body)
        except ApiError as error:
            self._observe(replace(asked, problem=error.user_text))
            raise
        turn = self._player.next_turn(conversation, question.body.decode(errors="replace"))
        fault = turn.fault if turn else None
        self._observe(replace(asked, fault=fault))
        _fail_at_once(fault, question)
        if isinstance(fault, HttpFault):
            return _http_fault(codec, fault)
        reply = await _reply(conversation, turn)
        stamp = Stamp(nonce=secrets.token_hex(8), created=int(time.time()))
        if conversation.stream:
            headers = {
                "content-type": "text/event-stream",
                "cache-control": "no-cache",
                **_request_id(codec),
            }
            return Answer(
                headers=headers, events=_stream(codec, codec.events(conversation, reply, stamp), fault)
            )
        if isinstance(fault, EndFault | MalformedFault | ReportFault):
            raise ApiError("Scripted failure.", status=500)
        await _obey(fault, 0, is_last=True)
        return _json(codec, codec.encode(conversation, reply, stamp))


def refusal(path: str, error: ApiError) -> Answer:
    """*error* in the shape of the vendor that *path* belongs to."""
    codec = _codec_for(path)
    headers = _request_id(codec)
    return _json(
        codec, codec.error(error, headers[codec.request_id_header]), status=error.status, headers=headers
    )


def _codec_for(path: str) -> Codec:
    if path.startswith("/anthropic/"):
        return _ANTHROPIC
    if path.startswith("/google/"):
        return _GEMINI
    return _COMPLETIONS if path.endswith("/chat/completions") else _RESPONSES


def _require(question: Question, method: str) -> None:
    if question.method != method:
        raise ApiError("Method Not Allowed", status=405)
    given = question.headers.get("x-api-key") or question.headers.get("x-goog-api-key")
    key = given or question.headers.get("authorization", "").removeprefix("Bearer ")
    if not key.strip() or key.strip() == INVALID_KEY:
        raise ApiError("invalid x-api-key" if key else "no API key was given", status=401)


def _accept(codec: Codec, body: Json) -> Conversation:
    """The request, if the vendor would take it; ``ApiError`` with its words if not."""
    conversation = codec.decode(body)
    broken = violations(_PROTOCOLS[codec], body)
    if broken:
        raise ApiError(broken[0])
    if conversation.model == MISSING_MODEL:
        raise ApiError(f"model: {conversation.model}", status=404, param="model", reason="model_not_found")
    return conversation


def _body(question: Question) -> Json:
    try:
        body = json.loads(question.body)
    except (ValueError, RecursionError) as error:
        raise ApiError("We could not parse the JSON body of your request.") from error
    if not isinstance(body, dict):
        raise ApiError("The body of the request should be a JSON object.")
    return body


async def _reply(conversation: Conversation, turn: ScenarioTurn | None) -> Reply:
    if turn is not None and turn.reply is not None:
        reply = scripted_reply(turn.reply, conversation)
        return reply if SEARCH_TOOL in conversation.tools else replace(reply, searches=())
    # Reading a screenshot takes a tenth of a second of processor time: not on the event loop.
    return await asyncio.to_thread(decide, conversation)


# -- failures -------------------------------------------------------------------


def _fail_at_once(fault: Fault | None, question: Question) -> None:
    if not isinstance(fault, Http2Fault):
        return
    if not question.is_http2:
        raise ApiError(f"The scenario's {fault.kind} is one of HTTP/2; this is HTTP/1.1.", status=505)
    if fault.after_events == 0:
        raise Broken(fault)


async def _stream(codec: Codec, events: Iterator[Event], fault: Fault | None) -> AsyncGenerator[bytes, None]:
    sent = 0
    for event in _failing(codec, events, fault):
        await _obey(fault, sent)
        if event.delay_ms:
            await asyncio.sleep(event.delay_ms / 1_000)
        yield encode_event(event)
        sent += 1
    await _obey(fault, sent, is_last=True)


def _failing(codec: Codec, events: Iterator[Event], fault: Fault | None) -> Iterator[Event]:
    """The events that are sent, where the fault is one of them; the end of a short answer is left out."""
    match fault:
        case EndFault():
            yield from list(events)[:-1][: fault.after_events]
        case MalformedFault():
            yield from islice(events, fault.after_events)
            yield Event(name="scripted", data=fault.data)
            yield from events
        case ReportFault():
            yield from list(events)[:-1][: fault.after_events]
            yield codec.report(_scripted(fault), "")
        case _:
            yield from events


async def _obey(fault: Fault | None, sent: int, *, is_last: bool = False) -> None:
    """Fail as the scenario says, now that *sent* events are out."""
    match fault:
        case SilenceFault() if fault.after_events == sent or (is_last and fault.after_events > sent):
            await asyncio.sleep(fault.silence_ms / 1_000)
        case CutFault() | ResetStreamFault() | GoawayFault() if fault.after_events <= sent or is_last:
            raise Broken(fault)


def _scripted(fault: HttpFault | ReportFault) -> ApiError:
    return ApiError(fault.message, status=fault.status)


def _http_fault(codec: Codec, fault: HttpFault) -> Answer:
    headers = _request_id(codec)
    told = {**headers, **fault.headers}
    if isinstance(fault.body, str):
        told = {"content-type": "text/plain; charset=utf-8", **told}
        return Answer(status=fault.status, headers=told, body=fault.body.encode())
    body = (
        codec.error(_scripted(fault), headers[codec.request_id_header]) if fault.body is None else fault.body
    )
    return _json(codec, body, status=fault.status, headers=told)


# -- bytes ----------------------------------------------------------------------


def encode_event(event: Event) -> bytes:
    """One server-sent event as it goes over the wire."""
    data = event.data if isinstance(event.data, str) else json.dumps(event.data)
    name = f"event: {event.name}\n" if event.name else ""
    return f"{name}data: {data}\n\n".encode()


def _request_id(codec: Codec) -> dict[str, str]:
    return {codec.request_id_header: f"req_{secrets.token_hex(12)}"}


def _json(codec: Codec, body: Json, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    told = {"content-type": "application/json; charset=utf-8"} | dict(headers or _request_id(codec))
    return Answer(status=status, headers=told, body=json.dumps(body).encode())
