"""
The JSON-RPC peer, written once and used by both ends of the link.

Owns calls in flight in both directions; knows neither WebSockets nor methods.
Feed it frames by ``run``; it sends through the function it was given.

Invariant: every call ends exactly once, with a result, an ``RpcError`` or
``LinkLost``; when ``run`` returns, nothing is in flight and no handler runs.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from agentd.wire import jsonrpc
from agentd.wire.jsonrpc import ErrorBody, ErrorResponse, Notification, Request, RequestId, Response
from agentd.wire.link import CANCEL, CancelParams

__all__ = ["Handler", "JsonRpcPeer", "LinkLost", "RpcError"]

# Requests of the other side that may run at once; more are answered "busy".
MAX_RUNNING_HANDLERS = 256
# Calls of ours that may wait at once.
MAX_PENDING_CALLS = 1024

Handler = Callable[[dict[str, Any]], Awaitable[BaseModel]]
ResultT = TypeVar("ResultT", bound=BaseModel)


class LinkLost(ConnectionError):
    """The connection went away before the answer came; the call may or may not have run."""

    code = "link_lost"


class RpcError(Exception):
    """The other side answered with an error, or a handler wants it answered with one."""

    def __init__(self, rpc_code: int, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.rpc_code = rpc_code
        self.message = message
        self.code = code or "rpc_error"

    def body(self) -> ErrorBody:
        """As it travels."""
        return ErrorBody(code=self.rpc_code, message=self.message, data={"code": self.code})

    @classmethod
    def from_body(cls, body: ErrorBody) -> "RpcError":
        """As it arrived."""
        word = (body.data or {}).get("code")
        return cls(body.code, body.message, code=word if isinstance(word, str) else None)


class JsonRpcPeer:
    """
    One end of a connection.

    Args:
        send: sends one frame.
        handlers: of the other side's requests, by method.
        max_handlers: requests of the other side that may run at once, more are answered "busy"; None: as
            between a workspace and its control plane.
        max_calls: calls of ours that may wait at once; None likewise.
        notes: take notifications, by method; they must not block. One that can't be read is dropped.
    """

    def __init__(
        self,
        send: Callable[[str], Awaitable[None]],
        handlers: Mapping[str, Handler],
        *,
        notes: Mapping[str, Callable[[dict[str, Any]], None]] | None = None,
        max_handlers: int | None = None,
        max_calls: int | None = None,
    ) -> None:
        self._send = send
        self._handlers = handlers
        self._limits = max_handlers, max_calls
        self._notes = notes or {}
        self._is_leaving = False
        self._ids = itertools.count(1)
        self._pending: dict[RequestId, asyncio.Future[Any]] = {}
        self._running: dict[RequestId, asyncio.Task[None]] = {}
        self._closed = False

    @property
    def is_closed(self) -> bool:
        """Whether the connection has ended; handlers cancelled then were not stopped by a wish."""
        return self._closed

    @property
    def _max_handlers(self) -> int:
        return MAX_RUNNING_HANDLERS if self._limits[0] is None else self._limits[0]

    @property
    def _max_calls(self) -> int:
        return MAX_PENDING_CALLS if self._limits[1] is None else self._limits[1]

    async def call(
        self, method: str, params: BaseModel, result: type[ResultT], *, timeout_s: float
    ) -> ResultT:
        """
        Call the other side.

        Raises:
            RpcError: it answered with an error.
            LinkLost: the connection ended first.
            TimeoutError: no answer within *timeout_s*; the other side is told to stop.

        Cancellation: the other side is told to stop; the answer is dropped.
        """
        if self._closed:
            raise LinkLost("the link is down")
        if len(self._pending) >= self._max_calls:
            raise RpcError(jsonrpc.BUSY, "too many calls in flight", code="busy")
        request_id = next(self._ids)
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._pending[request_id] = future
        request = Request(id=request_id, method=method, params=params.model_dump(mode="json", by_alias=True))
        try:
            async with asyncio.timeout(timeout_s):
                await self._transmit(jsonrpc.render_frame(request))
                answer = await future
        except (TimeoutError, asyncio.CancelledError):
            await self._tell_cancelled(request_id)
            raise
        finally:
            self._pending.pop(request_id, None)
        try:
            return result.model_validate(answer)
        except ValidationError as exc:
            raise RpcError(jsonrpc.INTERNAL_ERROR, f"{method}: unreadable result", code="bad_result") from exc

    async def notify(self, method: str, params: BaseModel) -> None:
        """Tell the other side something; no answer comes."""
        note = Notification(method=method, params=params.model_dump(mode="json", by_alias=True))
        await self._transmit(jsonrpc.render_frame(note))

    async def run(self, frames: AsyncIterator[str | bytes]) -> None:
        """
        Serve the connection until *frames* ends.

        Cancellation: handlers are cancelled and awaited, pending calls fail.
        """
        try:
            async with asyncio.TaskGroup() as group:
                try:
                    async for frame in frames:
                        await self._receive(frame, group)
                finally:
                    self._closed = True
                    for task in list(self._running.values()):
                        task.cancel()
        finally:
            self._fail_pending()

    def _fail_pending(self) -> None:
        self._closed = True
        for future in self._pending.values():
            if not future.done():
                future.set_exception(LinkLost("the link went down"))

    async def _transmit(self, text: str) -> None:
        try:
            await self._send(text)
        except (ConnectionError, OSError) as exc:
            raise LinkLost("the link went down") from exc

    def leave(self) -> None:
        """
        We go away: calls of ours that are cancelled from now on were not stopped by a wish.

        The other side is not told; it learns of the connection's end.
        """
        self._is_leaving = True

    async def _tell_cancelled(self, request_id: int) -> None:
        if self._closed or self._is_leaving:
            return
        try:
            async with asyncio.timeout(5):
                await self.notify(CANCEL, CancelParams(id=request_id))
        except (LinkLost, TimeoutError):
            return

    async def _receive(self, text: str | bytes, group: asyncio.TaskGroup) -> None:
        try:
            frame = jsonrpc.parse_frame(text)
        except jsonrpc.FrameError as exc:
            await self._answer(jsonrpc.render_frame(exc.response))
            return
        match frame:
            case Request():
                await self._start(frame, group)
            case Notification():
                self._on_notification(frame)
            case Response():
                self._resolve(frame.id, frame.result)
            case ErrorResponse():
                self._resolve_error(frame)

    async def _start(self, request: Request, group: asyncio.TaskGroup) -> None:
        handler = self._handlers.get(request.method)
        refusal: RpcError | None = None
        if handler is None:
            refusal = RpcError(
                jsonrpc.METHOD_NOT_FOUND, f"unknown method {request.method}", code="unknown_method"
            )
        elif request.id in self._running:
            refusal = RpcError(jsonrpc.INVALID_REQUEST, "this id is in use", code="duplicate_id")
        elif len(self._running) >= self._max_handlers:
            refusal = RpcError(jsonrpc.BUSY, "too many requests at once", code="busy")
        if refusal is not None or handler is None:
            assert refusal is not None  # noqa: S101 -- a missing handler always made a refusal
            await self._answer(_render_error(request.id, refusal))
            return
        task = group.create_task(self._serve(request, handler))
        self._running[request.id] = task
        task.add_done_callback(lambda _: self._running.pop(request.id, None))
        # Let it take its first step: a task that is cancelled before it would never answer.
        await asyncio.sleep(0)

    async def _serve(self, request: Request, handler: Handler) -> None:
        try:
            result = await handler(request.params)
            response = Response(id=request.id, result=result.model_dump(mode="json", by_alias=True))
            text = jsonrpc.render_frame(response)
        except asyncio.CancelledError:
            if not self._closed:
                problem = RpcError(jsonrpc.CANCELLED, "cancelled", code="cancelled")
                await self._answer(_render_error(request.id, problem))
            raise
        except RpcError as exc:
            text = _render_error(request.id, exc)
        except ValidationError as exc:
            problem = RpcError(jsonrpc.INVALID_PARAMS, _first_problem(exc), code="invalid_params")
            text = _render_error(request.id, problem)
        except Exception as exc:  # noqa: BLE001 -- a bug in one handler must not end the connection
            problem = RpcError(jsonrpc.INTERNAL_ERROR, f"{type(exc).__name__}: {exc}", code="internal")
            text = _render_error(request.id, problem)
        await self._answer(text)

    async def _answer(self, text: str) -> None:
        try:
            await self._transmit(text)
        except LinkLost:
            return

    def _on_notification(self, note: Notification) -> None:
        if note.method != CANCEL:
            take = self._notes.get(note.method)
            if take is not None:
                with suppress(ValidationError):
                    take(note.params)
            return
        try:
            params = CancelParams.model_validate(note.params)
        except ValidationError:
            return
        task = self._running.get(params.id)
        if task is not None:
            task.cancel()

    def _resolve(self, request_id: RequestId, result: Any) -> None:  # noqa: ANN401 -- JSON
        future = self._pending.get(request_id)
        if future is not None and not future.done():
            future.set_result(result)

    def _resolve_error(self, response: ErrorResponse) -> None:
        future = self._pending.get(response.id) if response.id is not None else None
        if future is not None and not future.done():
            future.set_exception(RpcError.from_body(response.error))


def _render_error(request_id: RequestId, problem: RpcError) -> str:
    """An error's frame; what a handler quoted from outside may hold characters that have no encoding."""
    body = problem.body()
    message = body.message.encode(errors="backslashreplace").decode()
    return jsonrpc.render_frame(
        ErrorResponse(id=request_id, error=body.model_copy(update={"message": message}))
    )


def _first_problem(exc: ValidationError) -> str:
    first = exc.errors(include_url=False)[0]
    where = ".".join(str(step) for step in first["loc"]) or "params"
    return f"{where}: {first['msg']}"
