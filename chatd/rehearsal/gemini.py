"""
Google's Gemini API, from the vendor's side.

Source: the types of the vendor's SDK, which sends some names in camel case and some in snake case;
the API takes both. The model stands in the path, as ``model:streamGenerateContent``.
"""

import base64
import binascii
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence

from chatd.rehearsal.codec import (
    ApiError,
    Event,
    Json,
    Stamp,
    a_count,
    a_list,
    a_text,
    an_object,
    pairing_problem,
)
from chatd.rehearsal.conversation import (
    ComputerForm,
    Conversation,
    Entry,
    Finish,
    Picture,
    Reply,
    ToolOutput,
    ToolUse,
)
from chatd.rehearsal.openai_shapes import call_id_of
from computer.wire import Action

__all__ = ["STREAM_METHOD", "GeminiCodec", "path_fields"]

STREAM_METHOD = "streamGenerateContent"
METHODS = frozenset({STREAM_METHOD, "generateContent"})
_FINISH_REASONS: dict[Finish, str] = {
    "stop": "STOP",
    "tool-calls": "STOP",
    "length": "MAX_TOKENS",
    # This vendor has no word of its own for it; nor has OpenAI.
    "context-exceeded": "MAX_TOKENS",
    "content-filter": "SAFETY",
}
_STATUS_WORDS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
# Functions of the computer tool for desktops.
_CLICKS = ("click", "double_click", "triple_click", "middle_click", "right_click")
_BUTTONS = ("mouse_down", "mouse_up", "move", "drag_and_drop", "scroll")
_KEYS = ("type", "press_key", "key_down", "key_up", "hotkey")
_DESKTOP = frozenset({*_CLICKS, *_BUTTONS, *_KEYS, "wait", "take_screenshot"})
# Parts that each side of the screen is divided into, and the screen when no picture told its size.
GRID = 1_000
DEFAULT_SCREEN = (1280, 800)
PIXELS_PER_NOTCH = 100
_STANDARD_BASE64 = str.maketrans("-_", "+/")


def path_fields(model_and_method: str) -> Json:
    """
    What the path says: ``model`` and ``stream``.

    Raises:
        ApiError: no such method.
    """
    model, _, method = model_and_method.rpartition(":")
    if method not in METHODS or not model:
        raise ApiError(f"unknown method {method!r}", status=404)
    return {"model": model, "stream": method == STREAM_METHOD}


def _may_call(body: Json) -> bool:
    tool_config = an_object(_get(body, "toolConfig") or {}, "tool_config")
    calling = an_object(_get(tool_config, "functionCallingConfig") or {}, "function_calling_config")
    return calling.get("mode") != "NONE"


class GeminiCodec:
    """``POST /v1/models/{model}:streamGenerateContent``."""

    request_id_header = "x-request-id"

    def decode(self, body: Json) -> Conversation:
        """Read a request, with the path's fields in it; ``ApiError`` where the vendor would refuse it."""
        contents = a_list(body.get("contents"), "contents")
        if not contents:
            raise ApiError("contents is not specified", param="contents")
        tools = [an_object(tool, "tools") for tool in a_list(body.get("tools") or [], "tools")]
        config = an_object(_get(body, "generationConfig") or {}, "generation_config")
        limit = _get(config, "maxOutputTokens")
        names = frozenset(name for tool in tools for name in _function_names(tool))
        system = _get(body, "systemInstruction")
        return Conversation(
            model=a_text(body.get("model"), "model", is_required=True),
            max_output_tokens=0 if limit is None else a_count(limit, "max_output_tokens"),
            system=_text(_parts(system, "system_instruction")) if system is not None else "",
            entries=_entries(contents),
            tools=names,
            computer=_computer_form(tools, names),
            stream=bool(body.get("stream")),
            include_usage=True,
            may_call=_may_call(body),
        )

    def encode(self, conversation: Conversation, reply: Reply, stamp: Stamp) -> Json:
        """Write a whole response."""
        parts: list[Json] = [{"text": reply.text}] if reply.text else []
        parts += _call_parts(conversation, reply, stamp)
        return _response(conversation, reply, stamp, parts, is_last=True)

    def events(self, conversation: Conversation, reply: Reply, stamp: Stamp) -> Iterator[Event]:
        """Write a response as a stream."""
        for chunk in reply.chunks:
            data = _response(conversation, reply, stamp, [{"text": chunk.text}])
            yield Event(data=data, delay_ms=chunk.delay_ms)
        for part in _call_parts(conversation, reply, stamp):
            yield Event(data=_response(conversation, reply, stamp, [part]))
        yield Event(data=_response(conversation, reply, stamp, [], is_last=True))

    def error(self, error: ApiError, request_id: str) -> Json:  # noqa: ARG002 - the vendor sends it in a header
        """Write an error."""
        word = _STATUS_WORDS.get(error.status, "INTERNAL")
        return {"error": {"code": error.status, "message": error.user_text, "status": word}}

    def report(self, error: ApiError, request_id: str) -> Event:
        """Write an error as an event of a stream."""
        return Event(data=self.error(error, request_id))

    def models(self, names: Sequence[str]) -> Json:
        """Write the list of models."""
        methods = sorted(METHODS)
        return {
            "models": [{"name": f"models/{name}", "supportedGenerationMethods": methods} for name in names]
        }


def _get(value: Json, name: str) -> object:
    """A field by its camel-case name, or by the same in snake case."""
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return value.get(name, value.get(snake))


def _function_names(tool: Json) -> list[str]:
    declared = a_list(_get(tool, "functionDeclarations") or [], "tools.function_declarations")
    return [
        a_text(an_object(function, "tools").get("name"), "tools.function_declarations.name", is_required=True)
        for function in declared
    ]


def _computer_form(tools: list[Json], names: frozenset[str]) -> ComputerForm | None:
    for tool in tools:
        use = _get(tool, "computerUse")
        if use is not None:
            environment = an_object(use, "tools.computer_use").get("environment")
            if environment != "ENVIRONMENT_DESKTOP":
                raise ApiError(f"tools.computer_use.environment: {environment!r} is not offered here")
            return ComputerForm.GOOGLE_TOOL
    return ComputerForm.FUNCTION if "computer" in names else None


def _parts(content: object, where: str) -> list[Json]:
    value = an_object(content, where)
    return [an_object(part, f"{where}.parts") for part in a_list(value.get("parts"), f"{where}.parts")]


def _text(parts: list[Json]) -> str:
    return "\n".join(
        part["text"] for part in parts if isinstance(part.get("text"), str) and not part.get("thought")
    )


def _entries(contents: list[object]) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    for index, content in enumerate(contents):
        where = f"contents[{index}]"
        role = an_object(content, where).get("role", "user")
        if not isinstance(role, str) or role not in {"user", "model"}:
            raise ApiError("Please use a valid role: user, model.", param=f"{where}.role")
        parts = _parts(content, where)
        if not parts:
            raise ApiError(f"{where}.parts must not be empty", param=f"{where}.parts")
        entries.append(_entry(str(role), parts, where))
    problem = pairing_problem(entries)
    if problem is not None:
        raise ApiError(
            "Please ensure that the number of function response parts is equal to the number of function "
            f"call parts of the function call turn ({problem[0]} {problem[1]})."
        )
    return tuple(entries)


def _entry(role: str, parts: list[Json], where: str) -> Entry:
    if role == "model":
        calls = [
            _call(an_object(call, where), where) for part in parts if (call := _get(part, "functionCall"))
        ]
        return Entry(role="assistant", text=_text(parts), calls=tuple(calls))
    outputs = [
        _output(an_object(out, where), where) for part in parts if (out := _get(part, "functionResponse"))
    ]
    if outputs:
        return Entry(role="tool", outputs=tuple(outputs))
    return Entry(role="user", text=_text(parts), pictures=_pictures(parts))


def _fields(parts: list[Json], name: str, where: str) -> list[Json]:
    found = [_get(part, name) for part in parts]
    return [an_object(value, where) for value in found if value is not None]


def _call(call: Json, where: str) -> ToolUse:
    name = a_text(call.get("name"), f"{where}.function_call.name", is_required=True)
    arguments = an_object(call.get("args") or {}, f"{where}.function_call.args")
    call_id = a_text(call.get("id"), f"{where}.function_call.id", is_required=True)
    actions = arguments.get("actions")
    count = len(actions) if name == "computer" and isinstance(actions, list) else 1
    shown = "computer" if name in _DESKTOP else name
    return ToolUse(call_id=call_id, name=shown, arguments=arguments, action_count=count)


def _output(response: Json, where: str) -> ToolOutput:
    answer = an_object(response.get("response") or {}, f"{where}.function_response.response")
    error = answer.get("error")
    text = error if error is not None else answer.get("output", "")
    parts = [an_object(part, where) for part in a_list(response.get("parts") or [], where)]
    return ToolOutput(
        call_id=a_text(response.get("id"), f"{where}.function_response.id", is_required=True),
        text=text if isinstance(text, str) else str(text),
        pictures=_pictures(parts),
        is_error=error is not None,
    )


def _pictures(parts: list[Json]) -> tuple[Picture, ...]:
    found = []
    for part in parts:
        inline = _get(part, "inlineData")
        if isinstance(inline, dict):
            media_type, data = _get(inline, "mimeType"), inline.get("data")
            # The SDK writes base64 in its alphabet for URLs.
            standard = a_text(data, "data").translate(_STANDARD_BASE64)
            found.append(Picture(media_type=a_text(media_type, "mime_type"), data=standard))
    return tuple(found)


def _response(
    conversation: Conversation, reply: Reply, stamp: Stamp, parts: list[Json], *, is_last: bool = False
) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    if is_last:
        candidate["finishReason"] = _FINISH_REASONS[reply.finish]
    prompt, answer = conversation.input_tokens, reply.output_tokens
    usage = {"promptTokenCount": prompt, "candidatesTokenCount": answer, "totalTokenCount": prompt + answer}
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": conversation.model,
        "responseId": f"resp-{stamp.nonce}",
    }


def _call_parts(conversation: Conversation, reply: Reply, stamp: Stamp) -> list[Json]:
    screen = _screen(conversation)
    parts: list[Json] = []
    for call in reply.calls:
        if not call.actions:
            said = [(call.name, call.arguments)]
        elif conversation.computer is ComputerForm.GOOGLE_TOOL:
            said = [_spoken(action, screen) for action in call.actions]
        else:
            actions = [action.model_dump(mode="json", exclude_none=True) for action in call.actions]
            said = [("computer", {"actions": actions})]
        for name, arguments in said:
            call_id = call_id_of(call, stamp, len(parts))
            parts.append({"functionCall": {"id": call_id, "name": name, "args": arguments}})
    return parts


def _spoken(action: Action, screen: tuple[int, int]) -> tuple[str, Json]:
    """An action in the words of the desktop's functions."""
    fields = action.model_dump(mode="json", exclude_none=True)
    spoken = _WORDS.get(action.action)
    name, arguments = spoken(fields) if spoken is not None else ("take_screenshot", {})
    if "coordinate" in fields:
        x, y = fields["coordinate"]
        arguments |= {"x": _share(x, screen[0]), "y": _share(y, screen[1])}
    return name, {**arguments, "intent": name.replace("_", " ")}


def _plainly(name: str) -> Callable[[Json], tuple[str, Json]]:
    return lambda _given: (name, {})


_WORDS: Mapping[str, Callable[[Json], tuple[str, Json]]] = {
    "left_click": _plainly("click"),
    "double_click": _plainly("double_click"),
    "triple_click": _plainly("triple_click"),
    "middle_click": _plainly("middle_click"),
    "right_click": _plainly("right_click"),
    "mouse_move": _plainly("move"),
    "type": lambda given: ("type", {"text": given["text"]}),
    "key": lambda given: ("hotkey", {"keys": given["text"].split("+")}),
    "wait": lambda given: ("wait", {"seconds": max(1, round(given["duration_ms"] / 1_000))}),
    "scroll": lambda given: (
        "scroll",
        {
            "direction": given["scroll_direction"],
            "magnitude_in_pixels": given["scroll_amount"] * PIXELS_PER_NOTCH,
        },
    ),
}


def _share(place: int, extent: int) -> int:
    """The thousandth whose pixel comes nearest to *place*."""
    return min(-(-place * GRID // extent), GRID - 1)


def _screen(conversation: Conversation) -> tuple[int, int]:
    """Width and height of the newest picture, in pixels."""
    for entry in reversed(conversation.entries):
        for output in reversed(entry.outputs):
            for picture in reversed(output.pictures):
                size = _png_size(picture)
                if size is not None:
                    return size
    return DEFAULT_SCREEN


def _png_size(picture: Picture) -> tuple[int, int] | None:
    try:
        head = base64.b64decode(picture.data[:32])
        width, height = struct.unpack(">II", head[16:24])
    except (binascii.Error, struct.error):
        return None
    return (width, height) if picture.media_type == "image/png" and width and height else None
