"""How model calls fail, in the words of each vendor; data, and the bytes that it becomes."""

import json
from collections.abc import Mapping
from typing import Any

from h2.errors import ErrorCodes

from chatd.provider.factory import ProviderName
from tests.contract.provider import transcripts
from tests.support.failing_vendor import Failure, Http2Failure

__all__ = ["COMMON", "HTTP2", "REFUSALS", "STREAMS", "find_failure", "find_http2"]

Status = tuple[int, dict[str, str], Any]

# What stands before a vendor rather than behind it; the same for all.
COMMON: dict[str, Failure] = {
    "reset at once": Failure(ending="reset"),
    "closed at once": Failure(),
    "no http": Failure(sent=b"SSH-2.0-OpenSSH_9.6\r\n"),
    "silent": Failure(ending="hang"),
    "gateway page": Failure(
        sent=b"HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 25\r\n\r\n"
        b"<html>502 Bad Gateway</ht"
    ),
    "login page": Failure(
        sent=b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 25\r\n\r\n"
        b"<html>Please log in</html"
    ),
    "empty answer": Failure(
        sent=b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n"
    ),
}


def _openai(message: str, kind: str, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def _anthropic(message: str, kind: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011CTest"}


def _google(code: int, message: str, status: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


_GOOGLE_RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}
_GOOGLE_KEY = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    "reason": "API_KEY_INVALID",
    "domain": "googleapis.com",
}

# Answers other than 200, as each vendor words them.
REFUSALS: dict[ProviderName, dict[str, Status]] = {
    "anthropic": {
        "malformed": (
            400,
            {},
            _anthropic(
                "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: "
                "toolu_01. Each `tool_use` block must have a corresponding `tool_result` block in the next "
                "message.",
                "invalid_request_error",
            ),
        ),
        "too long": (
            400,
            {},
            _anthropic("prompt is too long: 208310 tokens > 200000 maximum", "invalid_request_error"),
        ),
        "no credit": (
            400,
            {},
            _anthropic(
                "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to "
                "upgrade or purchase credits.",
                "invalid_request_error",
            ),
        ),
        "bad key": (401, {}, _anthropic("invalid x-api-key", "authentication_error")),
        "no permission": (
            403,
            {},
            _anthropic(
                "Your API key does not have permission to use the specified resource.", "permission_error"
            ),
        ),
        "no model": (404, {}, _anthropic("model: claude-none", "not_found_error")),
        "too large": (413, {}, _anthropic("Request exceeds the maximum size", "request_too_large")),
        "rate": (
            429,
            {"retry-after": "12"},
            _anthropic(
                "This request would exceed your account's rate limit. Please try again later.",
                "rate_limit_error",
            ),
        ),
        "internal": (500, {}, _anthropic("Internal server error", "api_error")),
        "timeout": (504, {}, _anthropic("Request timed out", "timeout_error")),
        "overloaded": (529, {"retry-after-ms": "1500"}, _anthropic("Overloaded", "overloaded_error")),
    },
    "openai": {
        "malformed": (
            400,
            {},
            _openai("No tool output found for function call call_9f3.", "invalid_request_error"),
        ),
        "missing reasoning": (
            400,
            {},
            _openai(
                "Item 'ws_6' of type 'web_search_call' was provided without its required 'reasoning' item: "
                "'rs_6'.",
                "invalid_request_error",
            ),
        ),
        "too long": (
            400,
            {},
            _openai(
                "Your input exceeds the context window of this model. Please adjust your input and try "
                "again.",
                "invalid_request_error",
                "context_length_exceeded",
            ),
        ),
        "flagged": (
            400,
            {},
            _openai(
                "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
                "invalid_request_error",
                "invalid_prompt",
            ),
        ),
        "bad key": (
            401,
            {},
            _openai(
                "Incorrect API key provided: sk-proj-abcd1234. You can find your API key at "
                "https://platform.openai.com/account/api-keys.",
                "invalid_request_error",
                "invalid_api_key",
            ),
        ),
        "no permission": (
            403,
            {},
            _openai(
                "Country, region, or territory not supported",
                "request_forbidden",
                "unsupported_country_region_territory",
            ),
        ),
        "no model": (
            404,
            {},
            _openai(
                "The model `gpt-none` does not exist or you do not have access to it.",
                "invalid_request_error",
                "model_not_found",
            ),
        ),
        "rate": (
            429,
            {"retry-after-ms": "850", "retry-after": "1"},
            _openai(
                "Rate limit reached for gpt-5.5 in organization org-x on tokens per min (TPM): Limit 30000, "
                "Used 29000, Requested 2000. Please try again in 850ms.",
                "tokens",
                "rate_limit_exceeded",
            ),
        ),
        "no credit": (
            429,
            {},
            _openai(
                "You exceeded your current quota, please check your plan and billing details.",
                "insufficient_quota",
                "insufficient_quota",
            ),
        ),
        "internal": (
            500,
            {},
            _openai(
                "The server had an error while processing your request. Sorry about that!", "server_error"
            ),
        ),
        "overloaded": (
            503,
            {},
            _openai(
                "The engine is currently overloaded, please try again later",
                "service_unavailable_error",
                "overloaded",
            ),
        ),
    },
    "openai-compat": {
        "vllm no model": (
            404,
            {},
            {
                "object": "error",
                "message": "The model `x` does not exist.",
                "type": "NotFoundError",
                "code": 404,
            },
        ),
        "vllm too long": (
            400,
            {},
            {
                "object": "error",
                "message": "This model's maximum context length is 8192 tokens. However, you requested 9000 "
                "tokens.",
                "type": "BadRequestError",
                "code": 400,
            },
        ),
        "ollama no model": (404, {}, _openai('model "x" not found, try pulling it first', "api_error")),
        "llama.cpp loading": (
            503,
            {},
            {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
        ),
        "llama.cpp too long": (
            400,
            {},
            {
                "error": {
                    "code": 400,
                    "message": "the request exceeds the available context size. try increasing the context "
                    "size",
                    "type": "exceed_context_size_error",
                }
            },
        ),
        "openrouter no credit": (
            402,
            {},
            {"error": {"message": "Insufficient credits. Add more credits to continue.", "code": 402}},
        ),
        "openrouter upstream": (
            429,
            {"retry-after": "3"},
            {
                "error": {
                    "message": "Provider returned error",
                    "code": 429,
                    "metadata": {"raw": "x is temporarily rate-limited upstream"},
                }
            },
        ),
        "openrouter moderation": (
            403,
            {},
            {"error": {"message": "Your input was flagged", "code": 403, "metadata": {"reasons": ["x"]}}},
        ),
        "azure filter": (
            400,
            {},
            {
                "error": {
                    "message": "The response was filtered due to the prompt triggering Azure OpenAI's "
                    "content management policy.",
                    "type": None,
                    "param": "prompt",
                    "code": "content_filter",
                    "status": 400,
                }
            },
        ),
        "azure no deployment": (
            404,
            {},
            {
                "error": {
                    "code": "DeploymentNotFound",
                    "message": "The API deployment for this resource does not exist.",
                }
            },
        ),
        "plain text": (500, {}, "upstream connect error or disconnect/reset before headers"),
    },
    "google": {
        "malformed": (
            400,
            {},
            _google(
                400,
                "Please ensure that function call turn comes immediately after a user turn or after a "
                "function response turn.",
                "INVALID_ARGUMENT",
            ),
        ),
        "too long": (
            400,
            {},
            _google(
                400,
                "The input token count exceeds the maximum number of tokens allowed (1048576).",
                "INVALID_ARGUMENT",
            ),
        ),
        "bad key": (
            400,
            {},
            _google(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT", _GOOGLE_KEY),
        ),
        "no place": (
            400,
            {},
            _google(400, "User location is not supported for the API use.", "FAILED_PRECONDITION"),
        ),
        "no permission": (403, {}, _google(403, "Permission denied.", "PERMISSION_DENIED")),
        "no model": (
            404,
            {},
            _google(
                404,
                "models/gemini-none is not found for API version v1beta, or is not supported for "
                "generateContent.",
                "NOT_FOUND",
            ),
        ),
        "rate": (
            429,
            {},
            _google(
                429,
                "You exceeded your current quota, please check your plan and billing details.",
                "RESOURCE_EXHAUSTED",
                _GOOGLE_RETRY,
            ),
        ),
        "internal": (500, {}, _google(500, "An internal error has occurred.", "INTERNAL")),
        "overloaded": (
            503,
            {},
            _google(503, "The model is overloaded. Please try again later.", "UNAVAILABLE"),
        ),
        "timeout": (
            504,
            {},
            _google(504, "Deadline expired before operation could complete.", "DEADLINE_EXCEEDED"),
        ),
    },
}

# Events that vendors send when a stream that began well fails.
_REPORTED: dict[ProviderName, dict[str, list[dict[str, Any]]]] = {
    "anthropic": {
        "overloaded": [_anthropic("Overloaded", "overloaded_error")],
        "internal": [_anthropic("Internal server error", "api_error")],
    },
    "openai": {
        "rate": [
            {
                "type": "error",
                "sequence_number": 4,
                "code": "rate_limit_exceeded",
                "message": "Rate limit reached.",
                "param": None,
            }
        ],
        "server": [
            {
                "type": "response.failed",
                "sequence_number": 4,
                "response": {
                    "id": "resp_1",
                    "object": "response",
                    "status": "failed",
                    "error": {"code": "server_error", "message": "The model failed to generate."},
                },
            }
        ],
    },
    "openai-compat": {
        "upstream": [
            {
                "id": "gen-1",
                "object": "chat.completion.chunk",
                "error": {"code": "server_error", "message": "Provider disconnected"},
                "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
            }
        ],
        "vllm": [{"error": {"message": "Internal error", "type": "InternalServerError", "code": 500}}],
    },
    "google": {
        "overloaded": [_google(503, "The model is overloaded.", "UNAVAILABLE")],
        "internal": [_google(500, "Internal error encountered.", "INTERNAL")],
    },
}


def _event(event: Mapping[str, Any]) -> bytes:
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _stream(*pieces: bytes, end: bool = False) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(map(_chunk, pieces)) + (b"0\r\n\r\n" if end else b"")


def _streams(provider: ProviderName) -> dict[str, Failure]:
    events = [_event(event) for event in transcripts.ALL[provider]["text"]]
    begun = events[:3]
    made = {
        "cut in the middle": Failure(sent=_stream(*begun)),
        "reset in the middle": Failure(sent=_stream(*begun), ending="reset"),
        "ended without its end": Failure(sent=_stream(*begun, end=True)),
        "silent in the middle": Failure(sent=_stream(*begun), ending="hang"),
        "half an event": Failure(sent=_stream(*begun, events[3][: len(events[3]) // 2], end=True)),
        "no json": Failure(sent=_stream(*begun, b"event: x\ndata: {broken\n\n", end=True)),
        "no utf-8": Failure(sent=_stream(*begun, b'event: x\ndata: {"a": "\xff\xfe"}\n\n', end=True)),
        "bad chunk": Failure(sent=_stream(*begun) + b"zz\r\nnonsense"),
    }
    for name, reported in _REPORTED[provider].items():
        made[f"reports {name}"] = Failure(sent=_stream(*begun, *map(_event, reported), end=True))
    return made


STREAMS: dict[ProviderName, dict[str, Failure]] = {name: _streams(name) for name in transcripts.ALL}  # type: ignore[misc]

HTTP2: dict[str, Http2Failure] = {
    **{
        f"reset {code.name}": Http2Failure(frame="reset", code=code)
        for code in (
            ErrorCodes.NO_ERROR,
            ErrorCodes.INTERNAL_ERROR,
            ErrorCodes.REFUSED_STREAM,
            ErrorCodes.CANCEL,
            ErrorCodes.ENHANCE_YOUR_CALM,
            ErrorCodes.PROTOCOL_ERROR,
        )
    },
    "goaway": Http2Failure(frame="goaway"),
    "goaway ENHANCE_YOUR_CALM": Http2Failure(frame="goaway", code=ErrorCodes.ENHANCE_YOUR_CALM),
    "goaway after an answer began": Http2Failure(frame="goaway_all", sent=b": hello\n\n"),
    "reset in the middle": Http2Failure(frame="reset", code=ErrorCodes.INTERNAL_ERROR, sent=b": hello\n\n"),
    "closed in the middle": Http2Failure(frame="close", sent=b": hello\n\n"),
}


def _refusal(status: Status) -> Failure:
    code, headers, body = status
    text = (body if isinstance(body, str) else json.dumps(body)).encode()
    kind = "text/plain" if isinstance(body, str) else "application/json"
    lines = [f"HTTP/1.1 {code} Failed", f"Content-Type: {kind}", f"Content-Length: {len(text)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return Failure(sent="\r\n".join([*lines, "", ""]).encode() + text)


def find_failure(provider: ProviderName, name: str) -> Failure:
    """A failure over HTTP/1.1 by its name."""
    if name in REFUSALS[provider]:
        return _refusal(REFUSALS[provider][name])
    return COMMON.get(name) or STREAMS[provider][name]


def find_http2(name: str) -> Http2Failure:
    """A failure over HTTP/2 by its name."""
    return HTTP2[name]
