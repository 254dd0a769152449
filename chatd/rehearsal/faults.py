"""
How a scripted answer fails.

====================  ==========================================================================
``http``              a status other than 200, in the vendor's shape or with *body* instead
``cut``               the connection closes after so many events (*reset*: with a TCP reset)
``end``               the stream ends after so many events as if it was whole
``silence``           nothing for a while after so many events, then the rest
``malformed``         an event that is *data* instead of JSON after so many events, then the rest
``report``            the vendor's own error event after so many events, then the end
``reset_stream``      HTTP/2: RST_STREAM with *code* after so many events
``goaway``            HTTP/2: GOAWAY with *code* after so many events, then the connection closes;
                      *processed* false: the call is one that the vendor says it never began
====================  ==========================================================================

An answer that is no stream fails before it is sent; so does any over HTTP/2 that is to be reset
or sent away after no event: not even its headers are sent then. Whoever speaks HTTP/1.1 gets a
505 in place of what only HTTP/2 has.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = [
    "CutFault",
    "DelayMs",
    "EndFault",
    "EventCount",
    "Fault",
    "GoawayFault",
    "Http2Fault",
    "HttpFault",
    "MalformedFault",
    "ReportFault",
    "ResetStreamFault",
    "SilenceFault",
    "Strict",
]

# Milliseconds. Longer than any client's patience.
MAX_DELAY_MS = 3_600_000
MAX_EVENTS = 1_000_000

DelayMs = Annotated[int, Field(ge=0, le=MAX_DELAY_MS)]
EventCount = Annotated[int, Field(ge=0, le=MAX_EVENTS)]
Status = Annotated[int, Field(ge=400, le=599)]
# RFC 9113, 7.
ErrorCode = Literal[
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
]


class Strict(BaseModel):
    """Part of a scenario: unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class HttpFault(Strict):
    """Answer with a status other than 200."""

    kind: Literal["http"]
    status: Status
    message: str = "Scripted failure."
    headers: dict[str, str] = Field(default_factory=dict)
    body: dict[str, Any] | str | None = None


class CutFault(Strict):
    """Close the connection after some events; an answer without events is never sent."""

    kind: Literal["cut"]
    after_events: EventCount = 0
    reset: bool = False


class EndFault(Strict):
    """End the stream after some events, without the vendor's own end."""

    kind: Literal["end"]
    after_events: EventCount = 0


class SilenceFault(Strict):
    """Send nothing for a while after some events."""

    kind: Literal["silence"]
    after_events: EventCount = 0
    silence_ms: DelayMs


class MalformedFault(Strict):
    """Send an event that is no JSON after some events."""

    kind: Literal["malformed"]
    after_events: EventCount = 0
    data: str = "{broken"


class ReportFault(Strict):
    """Report an error in the stream after some events, as this vendor does."""

    kind: Literal["report"]
    after_events: EventCount = 0
    status: Status = 500
    message: str = "Scripted failure."


class ResetStreamFault(Strict):
    """Give up the one stream after some events, as HTTP/2 does."""

    kind: Literal["reset_stream"]
    after_events: EventCount = 0
    code: ErrorCode = "INTERNAL_ERROR"


class GoawayFault(Strict):
    """Send the whole connection away after some events, as HTTP/2 does."""

    kind: Literal["goaway"]
    after_events: EventCount = 0
    code: ErrorCode = "NO_ERROR"
    processed: bool = True


Http2Fault = ResetStreamFault | GoawayFault
Fault = Annotated[
    HttpFault | CutFault | EndFault | SilenceFault | MalformedFault | ReportFault | Http2Fault,
    Field(discriminator="kind"),
]
