"""
OpenAI's Responses API, from the vendor's side.

Source: the types of the vendor's SDK. The computer is the tool ``computer``: one
call batches several actions, and its output is a screenshot. Nothing is stored,
so a request must bring its whole history.
"""

from collections.abc import Iterator, Sequence

from chatd.rehearsal.codec import (
    ApiError,
    Event,
    Json,
    Stamp,
    a_bool,
    a_count,
    a_list,
    a_text,
    an_object,
    data_picture,
    merge_entries,
)
from chatd.rehearsal.conversation import (
    ComputerForm,
    Conversation,
    Entry,
    Picture,
    Reply,
    ToolOutput,
    ToolUse,
)
from chatd.rehearsal.openai_shapes import error_body, model_list, tool_use
from chatd.rehearsal.responses_stream import items_of, response_events, response_object

__all__ = ["ResponsesCodec"]

_MESSAGE_ROLES = ("user", "assistant", "system", "developer")
# Items that carry nothing a program in our language could mean.
_IGNORED_ITEMS = frozenset({"compaction", "item_reference", "reasoning", "web_search_call"})
_TEXT_PARTS = frozenset({"input_text", "output_text", "text"})


class ResponsesCodec:
    """``POST /v1/responses``."""

    request_id_header = "x-request-id"

    def decode(self, body: Json) -> Conversation:
        """Read a request; ``ApiError`` where the vendor would refuse it."""
        previous = body.get("previous_response_id")
        if previous is not None:
            text = f"Previous response with id {previous!r:.80} not found."
            raise ApiError(text, param="previous_response_id", reason="previous_response_not_found")
        limit = body.get("max_output_tokens")
        tools = [an_object(tool, "tools") for tool in a_list(body.get("tools") or [], "tools")]
        items = _items(body.get("input"))
        instructions = a_text(body.get("instructions") or "", "instructions")
        return Conversation(
            model=a_text(body.get("model"), "model", is_required=True),
            max_output_tokens=0 if limit is None else a_count(limit, "max_output_tokens"),
            system="\n".join([instructions, *_system_texts(items)]),
            entries=_entries(items),
            tools=frozenset(map(_tool_name, tools)),
            computer=next(filter(None, map(_computer_form, tools)), None),
            stream=a_bool(body.get("stream"), "stream"),
            may_call=body.get("tool_choice") != "none",
        )

    def encode(self, conversation: Conversation, reply: Reply, stamp: Stamp) -> Json:
        """Write a whole response."""
        return response_object(conversation, reply, stamp, output=items_of(conversation, reply, stamp))

    def events(self, conversation: Conversation, reply: Reply, stamp: Stamp) -> Iterator[Event]:
        """Write a response as a stream."""
        return response_events(conversation, reply, stamp)

    def error(self, error: ApiError, request_id: str) -> Json:  # noqa: ARG002 - the vendor sends it in a header
        """Write an error."""
        return error_body(error)

    def report(self, error: ApiError, request_id: str) -> Event:  # noqa: ARG002
        """Write an error as an event of a stream."""
        inner = error_body(error)["error"]
        code = inner.get("code") or inner.get("type")
        data = {
            "type": "error",
            "code": code,
            "message": error.user_text,
            "param": None,
            "sequence_number": 0,
        }
        return Event(name="error", data=data)

    def models(self, names: Sequence[str]) -> Json:
        """Write the list of models."""
        return model_list(names)


def _tool_name(tool: Json) -> str:
    kind = a_text(tool.get("type"), "tools.type", is_required=True)
    if kind in ("function", "custom"):
        return a_text(tool.get("name"), "tools.name", is_required=True)
    return "computer" if kind.startswith("computer") else kind


def _computer_form(tool: Json) -> ComputerForm | None:
    if tool.get("type") in ("computer", "computer_use_preview"):
        return ComputerForm.OPENAI_TOOL
    return ComputerForm.FUNCTION if tool.get("name") == "computer" else None


def _items(value: object) -> list[Json]:
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    items = [an_object(item, f"input[{index}]") for index, item in enumerate(a_list(value, "input"))]
    if not items:
        raise ApiError("input: at least one item is required", param="input")
    return items


def _kind(item: Json, where: str) -> str:
    kind = item.get("type", "message" if "role" in item else None)
    return a_text(kind, f"{where}.type", is_required=True)


def _system_texts(items: list[Json]) -> list[str]:
    return [
        _content(item.get("content"), "input.content")[0]
        for item in items
        if item.get("role") in _SYSTEM_ROLES
    ]


_SYSTEM_ROLES = ("system", "developer")


def _entries(items: list[Json]) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    called: set[str] = set()
    answered: set[str] = set()
    for index, item in enumerate(items):
        entry = _entry(item, f"input[{index}]")
        if entry is None:
            continue
        entries.append(entry)
        called.update(call.call_id for call in entry.calls)
        for output in entry.outputs:
            if output.call_id not in called:
                text = f"No tool call found for function call output with call_id {output.call_id}."
                raise ApiError(text, param="input")
            answered.add(output.call_id)
    missing = sorted(called - answered)
    if missing:
        raise ApiError(f"No tool output found for function call {missing[0]}.", param="input")
    return merge_entries(entries)


def _entry(item: Json, where: str) -> Entry | None:
    """One item; None for the system's and for those without meaning here."""
    match _kind(item, where):
        case "message":
            return _message(item, where)
        case "function_call" | "computer_call":
            return Entry(role="assistant", calls=(_call(item, where),))
        case "function_call_output":
            text, pictures = _content(item.get("output"), f"{where}.output")
            return _output(item, where, text=text, pictures=pictures)
        case "computer_call_output":
            return _output(item, where, pictures=_screenshot(item, where))
        case kind if kind in _IGNORED_ITEMS:
            return None
        case kind:
            raise ApiError(f"Invalid value: {kind!r:.80}.", param=f"{where}.type", reason="invalid_value")


def _message(item: Json, where: str) -> Entry | None:
    role = item.get("role")
    if role not in _MESSAGE_ROLES:
        raise ApiError(f"Invalid value: {role!r:.80}.", param=f"{where}.role", reason="invalid_value")
    text, pictures = _content(item.get("content"), f"{where}.content")
    if role in _SYSTEM_ROLES:
        return None
    return Entry(role="user" if role == "user" else "assistant", text=text, pictures=pictures)


def _call(item: Json, where: str) -> ToolUse:
    call_id = a_text(item.get("call_id"), f"{where}.call_id", is_required=True)
    if item["type"] == "computer_call":
        actions = item.get("actions")
        count = len(a_list(actions, f"{where}.actions")) if actions is not None else 1
        return ToolUse(call_id=call_id, name="computer", action_count=max(1, count))
    name = a_text(item.get("name"), f"{where}.name", is_required=True)
    arguments = a_text(item.get("arguments"), f"{where}.arguments")
    return tool_use(call_id, name, arguments, f"{where}.arguments")


def _output(item: Json, where: str, *, text: str = "", pictures: tuple[Picture, ...] = ()) -> Entry:
    call_id = a_text(item.get("call_id"), f"{where}.call_id", is_required=True)
    return Entry(role="tool", outputs=(ToolOutput(call_id=call_id, text=text, pictures=pictures),))


def _screenshot(item: Json, where: str) -> tuple[Picture, ...]:
    output = an_object(item.get("output"), f"{where}.output")
    if output.get("type") not in ("computer_screenshot", "input_image"):
        raise ApiError("Invalid value: expected 'computer_screenshot'.", param=f"{where}.output.type")
    if output.get("image_url") is None:
        return ()
    picture = data_picture(output["image_url"], f"{where}.output.image_url")
    return () if picture is None else (picture,)


def _content(value: object, where: str) -> tuple[str, tuple[Picture, ...]]:
    if isinstance(value, str):
        return value, ()
    texts: list[str] = []
    pictures: list[Picture] = []
    for item in a_list(value, where):
        part = an_object(item, where)
        kind = part.get("type")
        if isinstance(kind, str) and kind in _TEXT_PARTS:
            texts.append(a_text(part.get("text"), f"{where}.text"))
        elif kind == "input_image":
            picture = data_picture(part["image_url"], f"{where}.image_url") if part.get("image_url") else None
            pictures += [picture] if picture else []
        elif kind not in ("refusal", "input_file"):
            raise ApiError(f"Invalid value: {kind!r:.80}.", param=f"{where}.type", reason="invalid_value")
    return "\n".join(texts), tuple(pictures)
