"""JSON-RPC 2.0 messages: parsing and rendering, pure."""

import json
from typing import Annotated, Any, Literal, NoReturn

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    TypeAdapter,
    ValidationError,
)

__all__ = [
    "BUSY",
    "CANCELLED",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "INVALID_REQUEST",
    "METHOD_NOT_FOUND",
    "PARSE_ERROR",
    "REFUSED",
    "ErrorBody",
    "ErrorResponse",
    "Frame",
    "FrameError",
    "Notification",
    "Request",
    "RequestId",
    "Response",
    "parse_frame",
    "render_frame",
]

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
# Of ours, in the range JSON-RPC leaves to implementations; ErrorBody.data.code holds the stable word.
REFUSED = -32000
BUSY = -32001
CANCELLED = -32800

# Characters of an error's sentence; it may quote names from the frame.
MAX_MESSAGE_CHARACTERS = 500


def _check_encodable(text: str) -> str:
    """Refuse lone surrogates, which JSON can escape and UTF-8 can't carry: an id must be sent back."""
    text.encode()
    return text


RequestId = StrictInt | Annotated[StrictStr, AfterValidator(_check_encodable)]


class _Frame(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    jsonrpc: Literal["2.0"] = "2.0"


class Request(_Frame):
    """A call that wants an answer."""

    id: RequestId
    method: Annotated[str, Field(max_length=200)]
    params: dict[str, Any] = Field(default_factory=dict)


class Notification(_Frame):
    """A call that wants none."""

    method: Annotated[str, Field(max_length=200)]
    params: dict[str, Any] = Field(default_factory=dict)


class ErrorBody(BaseModel):
    """Why a call failed; *data* carries ``{"code": stable word}``."""

    code: int
    message: str
    data: dict[str, Any] | None = None


class Response(_Frame):
    """The answer of a call that went well."""

    id: RequestId
    result: Any = None


class ErrorResponse(_Frame):
    """The answer of a call that failed; a null id answers a frame that could not be read."""

    id: RequestId | None = None
    error: ErrorBody


Frame = Request | Notification | Response | ErrorResponse
_request_id: TypeAdapter[RequestId] = TypeAdapter(RequestId)
_request = TypeAdapter(Request)
_notification = TypeAdapter(Notification)
_response = TypeAdapter(Response)
_error = TypeAdapter(ErrorResponse)


class FrameError(ValueError):
    """A frame that is not JSON-RPC; *body* is the error to answer with."""

    def __init__(self, code: int, message: str, request_id: RequestId | None = None) -> None:
        message = message[:MAX_MESSAGE_CHARACTERS].encode(errors="backslashreplace").decode()
        super().__init__(message)
        self.response = ErrorResponse(id=request_id, error=ErrorBody(code=code, message=message))


def parse_frame(text: str | bytes) -> Frame:
    """
    Read one frame.

    Raises:
        FrameError: not JSON, or not a JSON-RPC 2.0 message.

    Source: JSON-RPC 2.0, sections 4 and 5. Batches are not offered.
    """
    try:
        raw = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as exc:
        raise FrameError(PARSE_ERROR, f"not JSON: {exc}") from exc
    if not isinstance(raw, dict):
        raise FrameError(INVALID_REQUEST, "a frame is a JSON object")
    try:
        frame: Frame = _adapter_for(raw).validate_python(raw)
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        where = ".".join(str(step) for step in first["loc"]) or "frame"
        code = INVALID_PARAMS if where == "params" else INVALID_REQUEST
        raise FrameError(code, f"{where}: {first['msg']}", _id_of(raw)) from exc
    return frame


def _refuse_constant(name: str) -> NoReturn:
    """Python reads NaN and Infinity; JSON (RFC 8259, section 6) has neither."""
    msg = f"{name} is no JSON value"
    raise ValueError(msg)


def _id_of(raw: dict[str, Any]) -> RequestId | None:
    """The id to answer an unusable frame with; None where it is not usable either."""
    try:
        return _request_id.validate_python(raw.get("id"))
    except ValidationError:
        return None


def _adapter_for(raw: dict[str, Any]) -> TypeAdapter[Any]:
    if "method" in raw:
        return _request if "id" in raw else _notification
    return _error if "error" in raw else _response


def render_frame(frame: Frame) -> str:
    """Write one frame as compact JSON."""
    return frame.model_dump_json(by_alias=True)
