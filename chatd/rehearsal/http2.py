"""
The rehearsal model over HTTP/2 without TLS, for whoever knows beforehand that it is spoken (RFC 9113, 3.3).

One connection, one task; each request is answered in a task of its own below it. Flow control is the
client's: nobody is sent more than there is room for.
"""

import asyncio
import contextlib
from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import ProtocolError

from chatd.rehearsal.codec import ApiError
from chatd.rehearsal.connection import hang_up
from chatd.rehearsal.engine import MAX_BODY_BYTES, Answer, Broken, Engine, Question, refusal
from chatd.rehearsal.faults import CutFault, GoawayFault, ResetStreamFault

__all__ = ["serve_http2"]

READ_BYTES = 65_536


async def serve_http2(engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """
    Serve one connection to its end.

    Cancellation: running answers are given up, the connection is closed.
    """
    try:
        async with asyncio.TaskGroup() as answers:
            connection = _Connection(engine, writer, answers)
            await connection.serve(reader)
            connection.cancel_all()
    except* (ConnectionError, ProtocolError):
        # Whoever leaves, or speaks no HTTP/2, has nobody to tell it to.
        pass
    finally:
        writer.close()


@dataclass(slots=True)
class _Stream:
    """A request that is arriving, then its answer."""

    headers: dict[str, str]
    body: bytearray = field(default_factory=bytearray)
    is_too_large: bool = False
    answer: asyncio.Task[None] | None = None


class _Connection:
    def __init__(self, engine: Engine, writer: asyncio.StreamWriter, answers: asyncio.TaskGroup) -> None:
        self._engine = engine
        self._writer = writer
        self._answers = answers
        self._h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self._streams: dict[int, _Stream] = {}
        # Set and replaced whenever a client makes room.
        self._room = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Read until the client goes, or we sent it away."""
        self._h2.initiate_connection()
        await self._flush()
        while data := await reader.read(READ_BYTES):
            for event in self._h2.receive_data(data):
                self._take(event)
            await self._flush()

    def cancel_all(self) -> None:
        """Give every running answer up."""
        for stream in self._streams.values():
            if stream.answer is not None:
                stream.answer.cancel()

    def _take(self, event: Event) -> None:
        match event:
            case RequestReceived(stream_id=int(number), headers=headers):
                self._streams[number] = _Stream({str(name): str(value) for name, value in headers or ()})
            case DataReceived(stream_id=int(number), data=data, flow_controlled_length=length):
                self._collect(number, data or b"", length or 0)
            case StreamEnded(stream_id=int(number)) if number in self._streams:
                stream = self._streams[number]
                stream.answer = self._answers.create_task(self._answer(number, stream))
            case StreamReset(stream_id=int(number)) if number in self._streams:
                answer = self._streams.pop(number).answer
                if answer is not None:
                    answer.cancel()
            case WindowUpdated() | RemoteSettingsChanged():
                self._room.set()
                self._room = asyncio.Event()

    def _collect(self, number: int, data: bytes, length: int) -> None:
        stream = self._streams.get(number)
        if stream is not None:
            stream.is_too_large |= len(stream.body) + len(data) > MAX_BODY_BYTES
            if not stream.is_too_large:
                stream.body += data
        self._h2.acknowledge_received_data(length, number)

    async def _answer(self, number: int, stream: _Stream) -> None:
        try:
            await self._send(number, await self._ask(stream))
        except Broken as broken:
            await self._break(number, broken.fault)
        except ProtocolError:
            # The stream, or the connection, was closed while we spoke.
            pass
        finally:
            self._streams.pop(number, None)

    async def _ask(self, stream: _Stream) -> Answer:
        path = stream.headers.get(":path", "/").partition("?")[0]
        if stream.is_too_large:
            return refusal(path, ApiError("Request Entity Too Large", status=413))
        question = Question(
            method=stream.headers.get(":method", "GET"),
            path=path,
            headers={name: value for name, value in stream.headers.items() if not name.startswith(":")},
            body=bytes(stream.body),
            is_http2=True,
        )
        return await self._engine.answer(question)

    async def _send(self, number: int, answer: Answer) -> None:
        self._h2.send_headers(number, [(":status", str(answer.status)), *answer.headers.items()])
        await self._flush()
        if answer.events is None:
            await self._write(number, answer.body)
        else:
            async with contextlib.aclosing(answer.events) as events:
                async for data in events:
                    await self._write(number, data)
        self._h2.end_stream(number)
        await self._flush()

    async def _write(self, number: int, data: bytes) -> None:
        while data:
            room = min(self._h2.local_flow_control_window(number), self._h2.max_outbound_frame_size)
            if room <= 0:
                await self._room.wait()
                continue
            self._h2.send_data(number, data[:room])
            data = data[room:]
            await self._flush()

    async def _break(self, number: int, fault: CutFault | ResetStreamFault | GoawayFault) -> None:
        match fault:
            case ResetStreamFault():
                self._h2.reset_stream(number, ErrorCodes[fault.code])
                await self._flush()
            case GoawayFault():
                last = number if fault.processed else max(number - 2, 0)
                self._h2.close_connection(ErrorCodes[fault.code], last_stream_id=last)
                await self._flush()
                hang_up(self._writer.transport, is_reset=False)
            case CutFault():
                hang_up(self._writer.transport, is_reset=fault.reset)

    async def _flush(self) -> None:
        self._writer.write(self._h2.data_to_send())
        await self._writer.drain()
