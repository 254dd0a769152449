"""
OpenAI's Chat Completions API, from the vendor's side.

Source: the types of the vendor's SDK. The computer is a function named
``computer``; pictures of its results come in a user's message after them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

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
    pairing_problem,
    pieces,
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
from chatd.rehearsal.openai_shapes import call_id_of, error_body, function_arguments, model_list, tool_use

__all__ = ["CompletionsCodec"]

_FINISH_REASONS: dict[Finish, str] = {
    "stop": "stop",
    "tool-calls": "tool_calls",
    "length": "length",
    # A word of some compatible servers; the protocol has none.
    "context-exceeded": "model_length",
    "content-filter": "content_filter",
}


class CompletionsCodec:
    """``POST /v1/chat/completions``."""

    request_id_header = "x-request-id"

    def decode(self, body: Json) -> Conversation:
        """Read a request; ``ApiError`` where the vendor would refuse it."""
        messages = [
            an_object(message, f"messages[{index}]")
            for index, message in enumerate(a_list(body.get("messages"), "messages"))
        ]
        if not messages:
            raise ApiError("messages: at least one message is required", param="messages")
        tools = frozenset(_tool_name(tool) for tool in a_list(body.get("tools") or [], "tools"))
        limit = body.get("max_completion_tokens") or body.get("max_tokens")
        options = an_object(body.get("stream_options") or {}, "stream_options")
        return Conversation(
            model=a_text(body.get("model"), "model", is_required=True),
            max_output_tokens=0 if limit is None else a_count(limit, "max_tokens"),
            system="\n".join(_text(m) for m in messages if m.get("role") in ("system", "developer")),
            entries=_entries(messages),
            tools=tools,
            computer=ComputerForm.FUNCTION if "computer" in tools else None,
            stream=a_bool(body.get("stream"), "stream"),
            include_usage=a_bool(options.get("include_usage"), "stream_options.include_usage"),
            may_call=body.get("tool_choice") != "none",
        )

    def encode(self, conversation: Conversation, reply: Reply, stamp: Stamp) -> Json:
        """Write a whole completion."""
        message: Json = {
            "role": "assistant",
            "content": reply.text or None,
            "refusal": None,
            "annotations": [],
        }
        if reply.calls:
            message["tool_calls"] = _tool_calls(reply, stamp)
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": _FINISH_REASONS[reply.finish],
        }
        return {
            **_head(conversation, stamp, "chat.completion"),
            "choices": [choice],
            "usage": _usage(conversation, reply),
        }

    def events(self, conversation: Conversation, reply: Reply, stamp: Stamp) -> Iterator[Event]:
        """Write a completion as a stream."""
        head = _head(conversation, stamp, "chat.completion.chunk")
        if conversation.include_usage:
            head["usage"] = None
        yield _chunk(head, {"role": "assistant", "content": "", "refusal": None})
        for chunk in reply.chunks:
            yield replace(_chunk(head, {"content": chunk.text}), delay_ms=chunk.delay_ms)
        for index, call in enumerate(_tool_calls(reply, stamp)):
            function = call["function"]
            opening = {**call, "index": index, "function": {"name": function["name"], "arguments": ""}}
            yield _chunk(head, {"tool_calls": [opening]})
            for piece in pieces(function["arguments"]):
                yield _chunk(head, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield _chunk(head, {}, _FINISH_REASONS[reply.finish])
        if conversation.include_usage:
            yield Event(data={**head, "choices": [], "usage": _usage(conversation, reply)})
        yield Event(data="[DONE]")

    def error(self, error: ApiError, request_id: str) -> Json:  # noqa: ARG002 - the vendor sends it in a header
        """Write an error."""
        return error_body(error)

    def report(self, error: ApiError, request_id: str) -> Event:
        """Write an error as an event of a stream."""
        return Event(data=self.error(error, request_id))

    def models(self, names: Sequence[str]) -> Json:
        """Write the list of models."""
        return model_list(names)


def _tool_name(tool: object) -> str:
    value = an_object(tool, "tools")
    if value.get("type") != "function":
        raise ApiError("tools: unknown type of tool", param="tools")
    function = an_object(value.get("function"), "tools.function")
    return a_text(function.get("name"), "tools.function.name", is_required=True)


def _entries(messages: list[Json]) -> tuple[Entry, ...]:
    entries: list[Entry] = []
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        entry = _entry(message, where)
        if entry is None:
            continue
        if entry.role == "user" and entry.pictures and entries and entries[-1].role == "tool":
            entries[-1] = _with_pictures(entries[-1], entry)
        elif entry.role == "tool" and entries:
            entries[-1:] = merge_entries([entries[-1], entry])
        else:
            entries.append(entry)
    problem = pairing_problem(entries)
    if problem is not None:
        kind, call_id = problem
        if kind == "call":
            text = (
                f"'tool_calls' must be followed by tool messages responding to each 'tool_call_id': {call_id}"
            )
        else:
            text = f"messages with role 'tool' must follow a message with its 'tool_calls': {call_id}"
        raise ApiError(text, param="messages")
    return tuple(entries)


def _entry(message: Json, where: str) -> Entry | None:
    """One message; None for the system's."""
    text, pictures = _text(message), _pictures(message, where)
    match message.get("role"):
        case "system" | "developer":
            return None
        case "user":
            return Entry(role="user", text=text, pictures=pictures)
        case "assistant":
            calls = a_list(message.get("tool_calls") or [], f"{where}.tool_calls")
            return Entry(role="assistant", text=text, calls=tuple(_call(call, where) for call in calls))
        case "tool":
            call_id = a_text(message.get("tool_call_id"), f"{where}.tool_call_id", is_required=True)
            return Entry(role="tool", outputs=(ToolOutput(call_id=call_id, text=text, pictures=pictures),))
        case _:
            raise ApiError(f"{where}.role: unknown role", param=f"{where}.role")


def _call(value: object, where: str) -> ToolUse:
    call = an_object(value, f"{where}.tool_calls")
    function = an_object(call.get("function"), f"{where}.tool_calls.function")
    return tool_use(
        a_text(call.get("id"), f"{where}.tool_calls.id", is_required=True),
        a_text(function.get("name"), f"{where}.tool_calls.function.name", is_required=True),
        a_text(function.get("arguments"), f"{where}.tool_calls.function.arguments"),
        f"{where}.tool_calls.function.arguments",
    )


def _with_pictures(entry: Entry, pictures: Entry) -> Entry:
    """Give the pictures of a user's message to the last tool result before it, where they come from."""
    last = entry.outputs[-1]
    text = "\n".join(filter(None, [last.text, pictures.text if last.text == "" else ""]))
    shown = replace(last, text=text, pictures=last.pictures + pictures.pictures)
    return replace(entry, outputs=(*entry.outputs[:-1], shown))


def _parts(message: Json) -> list[Json]:
    content = message.get("content")
    if content is None or isinstance(content, str):
        return [{"type": "text", "text": content or ""}]
    return [an_object(part, "messages.content") for part in a_list(content, "messages.content")]


def _text(message: Json) -> str:
    texts = [part.get("text") for part in _parts(message) if part.get("type") == "text"]
    return "\n".join(a_text(text, "messages.content.text") for text in texts)


def _pictures(message: Json, where: str) -> tuple[Picture, ...]:
    found: list[Picture | None] = []
    for part in _parts(message):
        kind = part.get("type")
        if kind == "image_url":
            url = an_object(part.get("image_url"), f"{where}.content.image_url").get("url")
            found.append(data_picture(url, f"{where}.content.image_url.url"))
        elif kind not in ("text", "refusal", "input_audio", "file"):
            raise ApiError(f"{where}.content: unknown type of part", param=f"{where}.content")
    return tuple(picture for picture in found if picture is not None)


def _head(conversation: Conversation, stamp: Stamp, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{stamp.nonce}",
        "object": kind,
        "created": stamp.created,
        "model": conversation.model,
        "service_tier": "default",
        "system_fingerprint": "fp_rehearsal",
    }


def _usage(conversation: Conversation, reply: Reply) -> Json:
    prompt, completion = conversation.input_tokens, reply.output_tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
    }


def _tool_calls(reply: Reply, stamp: Stamp) -> list[Json]:
    return [
        {
            "id": call_id_of(call, stamp, index),
            "type": "function",
            "function": {"name": call.name, "arguments": function_arguments(call)},
        }
        for index, call in enumerate(reply.calls)
    ]


def _chunk(head: Json, delta: Json, finish_reason: str | None = None) -> Event:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return Event(data={**head, "choices": [choice]})
