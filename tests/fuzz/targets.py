"""
What is fed with anything at all: one function for each parser, from bytes to nothing.

A target returns when the parser kept its contract, refusals included, and raises anything else when it did
not. The same functions are fed by hypothesis in the tests and, guided by coverage, by ``script/fuzz``.
"""

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast, get_args

from openai._streaming import SSEDecoder

from agentd.wire import jsonrpc
from agentd.wire.jsonrpc import FrameError
from chatd.rehearsal import language
from chatd.rehearsal.anthropic import AnthropicCodec
from chatd.rehearsal.codec import ApiError, Codec, Event, Stamp
from chatd.rehearsal.completions import CompletionsCodec
from chatd.rehearsal.conversation import Call, Chunk, Reply
from chatd.rehearsal.engine import encode_event
from chatd.rehearsal.gemini import GeminiCodec
from chatd.rehearsal.responses import ResponsesCodec
from chatd.rehearsal.rules import Protocol, violations
from chatd.store.legacy import read_legacy
from chatd.store.rows import CONTENT_VERSION, dump_parts, read_content
from chatd.wire import Role
from computer.errors import ComputerError, InvalidAction, UnknownKey
from computer.keys import parse_chord
from computer.rfb.client import SMALL, RfbClient
from computer.rfb.roles import Role as ViewerRole
from computer.rfb.roles import RoleFilter
from computer.rfb.viewer import KeyMessage, PointerMessage, ViewerParser
from context_push.classify import check_mcp_config, decode_text, parse_manifest, parse_skill
from mcp_bridge.config import parse_config

__all__ = ["TARGETS"]

CODECS: tuple[tuple[Protocol, Codec], ...] = (
    ("anthropic", AnthropicCodec()),
    ("responses", ResponsesCodec()),
    ("completions", CompletionsCodec()),
    ("gemini", GeminiCodec()),
)
ROLES = cast("tuple[Role, ...]", get_args(Role))
# A viewer's side of the handshake: version, no security, shared.
VIEWER_HELLO = b"RFB 003.008\n\x01\x01"
# A server's: version, no security, accepted, 8 by 8 pixels of our format, no name.
SERVER_HELLO = b"RFB 003.008\n\x01\x01\0\0\0\0\0\x08\0\x08" + bytes(16) + bytes(4)


def fuzz_link(data: bytes) -> None:
    """JSON-RPC frames of the link: refused with a frame that can be sent, or the same when written again."""
    for text in (data, data.decode(errors="replace")):
        try:
            frame = jsonrpc.parse_frame(text)
        except FrameError as exc:
            jsonrpc.parse_frame(jsonrpc.render_frame(exc.response))
        else:
            assert jsonrpc.parse_frame(jsonrpc.render_frame(frame)) == frame


def fuzz_rfb_server(data: bytes) -> None:
    """What a VNC server sends: the first byte chooses whether the handshake is right, and how it is cut."""
    if not data:
        return
    stream = (SERVER_HELLO if data[0] & 1 else b"") + data[1:]
    whole, pieces = RfbClient(encodings=SMALL), RfbClient(encodings=SMALL)
    size = 1 + (data[0] >> 1)
    ends = []
    for client, parts in (
        (whole, [stream]),
        (pieces, [stream[i : i + size] for i in range(0, len(stream), size)]),
    ):
        error = ""
        try:
            for part in parts:
                client.receive(part)
        except ComputerError as exc:
            error = str(exc)
        ends.append((error, client.size, client.framebuffer.tobytes(), client.data_to_send()))
    assert ends[0] == ends[1]


def fuzz_rfb_viewer(data: bytes) -> None:
    """What a viewer sends: whole messages only, however it is cut; one without control presses nothing."""
    if not data:
        return
    stream = (VIEWER_HELLO if data[0] & 1 else b"") + data[1:]
    size = 1 + (data[0] >> 1)
    whole, pieces = ViewerParser(b"init"), ViewerParser(b"init")
    messages = whole.receive(stream)
    cut = [message for i in range(0, len(stream), size) for message in pieces.receive(stream[i : i + size])]
    assert (messages, str(whole.error)) == (cut, str(pieces.error))
    watching, holding = RoleFilter(), RoleFilter(role=ViewerRole.CONTROLLER)
    for message in messages:
        if isinstance(message, KeyMessage | PointerMessage):
            assert watching.pass_on(message) == b""
        else:
            watching.pass_on(message)
        holding.pass_on(message)
    holding.release()
    assert not watching.is_holding
    assert not holding.is_holding


def fuzz_rehearsal(data: bytes) -> None:
    """Requests in the four protocols of the rehearsal model: refused in words, or answered in both ways."""
    body = _json(data)
    if not isinstance(body, dict):
        return
    for protocol, codec in CODECS:
        try:
            conversation = codec.decode(dict(body))
        except ApiError as exc:
            json.dumps(codec.error(exc, "r"))
            continue
        violations(protocol, body)
        reply = Reply(chunks=(Chunk(text="well\n\ndata: x"),), calls=(Call(name="f", arguments={}),))
        json.dumps(codec.encode(conversation, reply, Stamp(nonce="n", created=1)))
        check_stream(list(codec.events(conversation, reply, Stamp(nonce="n", created=1))))


def fuzz_sse(data: bytes) -> None:
    """Server-sent events that the rehearsal model writes: the vendor's SDK reads back what was meant."""
    lines = data.decode(errors="replace").split("\n\x00")
    check_stream([Event(data={"text": line, "n": number}) for number, line in enumerate(lines)])
    # What did not come from us is read to its end all the same.
    list(SSEDecoder().iter_bytes(iter([data.decode(errors="replace").encode()])))


def check_stream(events: list[Event]) -> None:
    """Assert that the SDK's parser finds *events* in what we write of them, in whatever pieces it comes."""
    written = b"".join(map(encode_event, events))
    middle = len(written) // 2
    read = [found.data for found in SSEDecoder().iter_bytes(iter([written[:middle], written[middle:]]))]
    assert [_json(text.encode()) if text != "[DONE]" else text for text in read] == [
        event.data if event.data == "[DONE]" else _json(json.dumps(event.data).encode()) for event in events
    ]


def fuzz_chord(data: bytes) -> None:
    """Chords: refused by name, or keys that can be pressed, each once."""
    text = data.decode(errors="replace")
    try:
        chord = parse_chord(text)
    except (UnknownKey, InvalidAction):
        return
    assert chord.keysyms
    assert len(set(chord.keysyms)) == len(chord.keysyms)
    assert all(0 < keysym < 2**29 for keysym in chord.keysyms)


def fuzz_mcp_json(data: bytes) -> None:
    """``.mcp.json``: problems are told, values never."""
    check_mcp_config(data)
    text = data.decode(errors="replace")
    environment = {"HOME": "/home/agent", "SECRET": "hunter2-hunter2"}
    found = parse_config(text, source="f", environment=environment)
    for problem in found.problems:
        assert "hunter2" not in problem.reason or "hunter2" in text
    names = [server.name for server in found.servers]
    assert len(set(names)) == len(names)


def fuzz_front_matter(data: bytes) -> None:
    """Front matter of skills, and manifests of plugins: read, or told what is wrong with them."""
    parse_manifest(data)
    text = decode_text(data)
    if isinstance(text, str):
        parse_skill(text, "skill")
        parse_skill(f"---\n{text}\n---\n", "skill")


def fuzz_legacy(data: bytes) -> None:
    """Content of old rows: always parts, which are the same when they were stored as parts."""
    content = _json(data)
    for role in ROLES:
        parts = read_legacy(content, role)
        assert read_content(dump_parts(parts), CONTENT_VERSION, role) == parts


def fuzz_language(data: bytes) -> None:
    """Instructions to the rehearsal model: steps in the order of the text, nothing twice."""
    text = data.decode(errors="replace")
    program = language.parse(text)
    assert len(program.steps) + len(program.unknown) <= len(text) + 1
    for one, other in pairwise(program.unknown):
        assert one
        assert other


def _json(data: bytes) -> Any:
    """The value; None where it is no JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


TARGETS: dict[str, Callable[[bytes], None]] = {
    "chord": fuzz_chord,
    "front-matter": fuzz_front_matter,
    "language": fuzz_language,
    "legacy": fuzz_legacy,
    "link": fuzz_link,
    "mcp-json": fuzz_mcp_json,
    "rehearsal": fuzz_rehearsal,
    "rfb-server": fuzz_rfb_server,
    "rfb-viewer": fuzz_rfb_viewer,
    "sse": fuzz_sse,
}
