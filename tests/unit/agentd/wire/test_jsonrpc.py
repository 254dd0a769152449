"""JSON-RPC frames: what is read, what is refused and how the refusal is answered."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.wire import jsonrpc
from agentd.wire.jsonrpc import (
    ErrorBody,
    ErrorResponse,
    Frame,
    FrameError,
    Notification,
    Request,
    Response,
    parse_frame,
    render_frame,
)

HUGE = "x" * 2_000_000

GOOD: list[tuple[str, str | bytes, Frame]] = [
    ("request", '{"jsonrpc":"2.0","id":1,"method":"ping"}', Request(id=1, method="ping")),
    ("bytes", b'{"jsonrpc":"2.0","id":1,"method":"ping"}', Request(id=1, method="ping")),
    ("string id", '{"jsonrpc":"2.0","id":"a","method":"m"}', Request(id="a", method="m")),
    ("id zero", '{"jsonrpc":"2.0","id":0,"method":"m"}', Request(id=0, method="m")),
    ("params", '{"id":1,"method":"m","params":{"a":[1]}}', Request(id=1, method="m", params={"a": [1]})),
    ("notification", '{"jsonrpc":"2.0","method":"m"}', Notification(method="m")),
    ("response", '{"jsonrpc":"2.0","id":1,"result":{"a":1}}', Response(id=1, result={"a": 1})),
    ("null result", '{"jsonrpc":"2.0","id":1,"result":null}', Response(id=1)),
    (
        "error",
        '{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}',
        ErrorResponse(id=1, error=ErrorBody(code=-32000, message="no")),
    ),
    (
        "error with null id",
        '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}',
        ErrorResponse(id=None, error=ErrorBody(code=-32700, message="no")),
    ),
    ("unknown fields", '{"id":1,"method":"m","trace":7}', Request(id=1, method="m")),
    ("huge string", json.dumps({"id": 1, "result": HUGE}), Response(id=1, result=HUGE)),
    ("huge id", json.dumps({"id": HUGE, "result": 1}), Response(id=HUGE, result=1)),
    ("white space", ' \n{"method":"m"}\t', Notification(method="m")),
]


@pytest.mark.parametrize(("text", "frame"), [row[1:] for row in GOOD], ids=[row[0] for row in GOOD])
def test_good_frame_is_read(text: str | bytes, frame: Frame) -> None:
    """JSON-RPC 2.0, sections 4 and 5."""
    assert parse_frame(text) == frame


BAD: list[tuple[str, str | bytes, int, int | str | None]] = [
    ("empty", "", jsonrpc.PARSE_ERROR, None),
    ("half", '{"jsonrpc":"2.0","id":1,', jsonrpc.PARSE_ERROR, None),
    ("two values", "{}{}", jsonrpc.PARSE_ERROR, None),
    ("no UTF-8", b'{"id":1,"method":"\xff\xfe"}', jsonrpc.PARSE_ERROR, None),
    ("NaN", '{"id":1,"method":"m","params":{"x":NaN}}', jsonrpc.PARSE_ERROR, None),
    ("infinity", '{"id":1,"result":-Infinity}', jsonrpc.PARSE_ERROR, None),
    ("deep nesting", "[" * 200_000, jsonrpc.PARSE_ERROR, None),
    ("deep nesting in a frame", '{"id":1,"result":' + '{"a":' * 200_000, jsonrpc.PARSE_ERROR, None),
    ("long number", '{"id":' + "9" * 5_000 + ',"method":"m"}', jsonrpc.PARSE_ERROR, None),
    ("null", "null", jsonrpc.INVALID_REQUEST, None),
    ("number", "1", jsonrpc.INVALID_REQUEST, None),
    ("string", '"hello"', jsonrpc.INVALID_REQUEST, None),
    ("empty batch", "[]", jsonrpc.INVALID_REQUEST, None),
    ("batch", '[{"id":1,"method":"ping"}]', jsonrpc.INVALID_REQUEST, None),
    ("empty object", "{}", jsonrpc.INVALID_REQUEST, None),
    ("other version", '{"jsonrpc":"1.0","id":3,"method":"m"}', jsonrpc.INVALID_REQUEST, 3),
    ("true as id", '{"id":true,"method":"m"}', jsonrpc.INVALID_REQUEST, None),
    ("null as id", '{"id":null,"method":"m"}', jsonrpc.INVALID_REQUEST, None),
    ("fraction as id", '{"id":1.5,"method":"m"}', jsonrpc.INVALID_REQUEST, None),
    ("list as id", '{"id":[1],"method":"m"}', jsonrpc.INVALID_REQUEST, None),
    ("object as id", '{"id":{},"result":1}', jsonrpc.INVALID_REQUEST, None),
    ("surrogate in id", '{"id":"\\ud800","method":"m"}', jsonrpc.INVALID_REQUEST, None),
    ("number as method", '{"id":1,"method":5}', jsonrpc.INVALID_REQUEST, 1),
    ("null as method", '{"id":1,"method":null}', jsonrpc.INVALID_REQUEST, 1),
    ("huge method", json.dumps({"id": 1, "method": HUGE}), jsonrpc.INVALID_REQUEST, 1),
    ("list as params", '{"id":1,"method":"m","params":[1]}', jsonrpc.INVALID_PARAMS, 1),
    ("string as params", '{"id":1,"method":"m","params":"x"}', jsonrpc.INVALID_PARAMS, 1),
    ("null as params", '{"id":1,"method":"m","params":null}', jsonrpc.INVALID_PARAMS, 1),
    ("string as error", '{"id":1,"error":"no"}', jsonrpc.INVALID_REQUEST, 1),
    ("error without code", '{"id":1,"error":{"message":"no"}}', jsonrpc.INVALID_REQUEST, 1),
]


@pytest.mark.parametrize(
    ("text", "code", "request_id"), [row[1:] for row in BAD], ids=[row[0] for row in BAD]
)
def test_bad_frame_is_refused_with_its_answer(
    text: str | bytes, code: int, request_id: int | str | None
) -> None:
    """JSON-RPC 2.0, section 5.1: the code says what is wrong; the id is answered where it can be."""
    with pytest.raises(FrameError) as caught:
        parse_frame(text)

    response = caught.value.response
    assert (code, request_id) == (response.error.code, response.id)
    assert len(response.error.message) <= 6 * jsonrpc.MAX_MESSAGE_CHARACTERS


_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters())
_json = st.recursive(
    _scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner), max_leaves=8
)
_keys = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "code", "message"])
_near_frames = st.dictionaries(_keys, _json | st.just("2.0") | st.sampled_from(["\ud800", "a\udfff"]))


def _parses_or_refuses(text: str | bytes) -> None:
    try:
        frame = parse_frame(text)
    except FrameError as exc:
        frame = exc.response
        assert parse_frame(render_frame(frame)) == frame


@given(st.text(alphabet=st.characters(exclude_categories=())) | st.binary())
def test_any_text_is_a_frame_or_a_frame_error(text: str | bytes) -> None:
    """Ours: nothing that arrives raises anything else, and every refusal can be sent."""
    _parses_or_refuses(text)


@given(_near_frames)
def test_anything_like_a_frame_is_a_frame_or_a_frame_error(raw: dict[str, Any]) -> None:
    """Ours: the same for JSON that has the right names and the wrong values."""
    _parses_or_refuses(json.dumps(raw))


_ids = st.integers() | st.text()
_params = st.dictionaries(st.text(), st.text() | st.integers() | st.none() | st.booleans())
_bodies = st.builds(ErrorBody, code=st.integers(), message=st.text(), data=st.none() | _params)
_frames = (
    st.builds(Request, id=_ids, method=st.text(max_size=200), params=_params)
    | st.builds(Notification, method=st.text(max_size=200), params=_params)
    | st.builds(Response, id=_ids, result=_params)
    | st.builds(ErrorResponse, id=st.none() | _ids, error=_bodies)
)


@given(_frames)
def test_rendered_frame_reads_as_itself(frame: Frame) -> None:
    """Ours: both ends of the link use the same two functions."""
    assert parse_frame(render_frame(frame)) == frame
