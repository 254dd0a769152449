"""Copying one WebSocket's bytes to another, and how an end is told to the other side."""

import contextlib
from dataclasses import dataclass

from aiohttp import ClientWebSocketResponse, WSCloseCode, WSMessage, WSMsgType, web

from agentd.wire.upgrade import ALIVE

__all__ = ["Ending", "WebSocket", "copy"]

# Codes that may be told to the other side; others are made up by libraries.
PASSED_CODES = frozenset({1000, 1001, 1002, 1003, 1008, 1009, 1011, 1012, 1013})

WebSocket = web.WebSocketResponse | ClientWebSocketResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Why the stream ended, for whoever did not end it."""

    code: int
    reason: str


async def copy(source: WebSocket, target: WebSocket, otherwise: str) -> Ending:
    """
    Copy until *source* ends; what it gives as its reason, or else *otherwise*.

    Back-pressure: waits for *target*'s writer, so memory stays bounded.

    *source* leaves pings to us: those that ask for the other end's sign of life, and their answers, go on.
    """
    with contextlib.suppress(ConnectionError, TimeoutError):
        while True:
            message = await source.receive()
            if message.type is WSMsgType.BINARY:
                await target.send_bytes(message.data)
            elif message.type is WSMsgType.CLOSE:
                code = message.data if message.data in PASSED_CODES else WSCloseCode.OK
                return Ending(code=code, reason=message.extra or otherwise)
            elif message.type in (WSMsgType.PING, WSMsgType.PONG):
                await _pass_on(message, source, target)
            elif message.type is not WSMsgType.TEXT:
                break
    return Ending(code=WSCloseCode.OK, reason=otherwise)


async def _pass_on(message: WSMessage, source: WebSocket, target: WebSocket) -> None:
    is_ping, payload = message.type is WSMsgType.PING, bytes(message.data)
    if payload == ALIVE:
        await (target.ping(payload) if is_ping else target.pong(payload))
    elif is_ping:
        await source.pong(payload)
