"""Writes OpenAI Responses: the response object, its output items and its stream of events."""

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from pydantic import BaseModel

from chatd.rehearsal.codec import Event, Json, Stamp, pieces
from chatd.rehearsal.conversation import Call, ComputerForm, Conversation, Page, Reply, Search
from chatd.rehearsal.openai_shapes import call_id_of, function_arguments
from computer.wire import Action, Click, Drag, Key, LeftClickDrag, MouseMove, Scroll, TypeText, Wait

__all__ = ["items_of", "openai_actions", "response_events", "response_object"]

# Pixels the page moves for one notch of the wheel.
PIXELS_PER_NOTCH = 100
_BUTTONS = {"left": "left", "right": "right", "middle": "wheel", "back": "back", "forward": "forward"}
_REASONS = {
    "length": "max_output_tokens",
    "context-exceeded": "max_output_tokens",
    "content-filter": "content_filter",
}


def response_object(
    conversation: Conversation, reply: Reply, stamp: Stamp, *, output: list[Json] | None = None
) -> Json:
    """A response; without *output* one that is still in progress."""
    reason = _REASONS.get(reply.finish)
    status = "in_progress" if output is None else "incomplete" if reason else "completed"
    return {
        "id": f"resp_{stamp.nonce}",
        "object": "response",
        "created_at": stamp.created,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": reason} if reason and output is not None else None,
        "instructions": None,
        "max_output_tokens": conversation.max_output_tokens or None,
        "metadata": {},
        "model": conversation.model,
        "output": output or [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None if output is None else _usage(conversation, reply),
    }


def items_of(conversation: Conversation, reply: Reply, stamp: Stamp) -> list[Json]:
    """The output items: a message when there is text, then the calls."""
    items: list[Json] = [_search_item(search, stamp, index) for index, search in enumerate(reply.searches)]
    if reply.text:
        notes = [_citation(page, reply) for page in reply.pages]
        part = {"type": "output_text", "text": reply.text, "annotations": notes, "logprobs": []}
        items.append(
            {
                "id": f"msg_{stamp.nonce}",
                "type": "message",
                "role": "assistant",
                "status": "incomplete" if reply.finish in _REASONS else "completed",
                "content": [part],
            }
        )
    items += [_call_item(call, conversation.computer, stamp, index) for index, call in enumerate(reply.calls)]
    return items


def response_events(conversation: Conversation, reply: Reply, stamp: Stamp) -> Iterator[Event]:
    """Every event of a stream, numbered."""
    output = items_of(conversation, reply, stamp)
    numbers = count()
    for name, data, delay_ms in _plain_events(conversation, reply, stamp, output):
        numbered = {"type": name, "sequence_number": next(numbers), **data}
        yield Event(name=name, data=numbered, delay_ms=delay_ms)


_Plain = tuple[str, Json, int]


def _plain_events(
    conversation: Conversation, reply: Reply, stamp: Stamp, output: list[Json]
) -> Iterator[_Plain]:
    started = {"response": response_object(conversation, reply, stamp)}
    yield "response.created", started, 0
    yield "response.in_progress", started, 0
    for index, item in enumerate(output):
        place = {"output_index": index}
        if item["type"] == "message":
            yield from _message_events(item, reply, place)
        elif item["type"] == "function_call":
            yield from _function_events(item, place)
        else:
            yield "response.output_item.added", {**place, "item": {**item, "status": "in_progress"}}, 0
        yield "response.output_item.done", {**place, "item": item}, 0
    ended = response_object(conversation, reply, stamp, output=output)
    yield f"response.{ended['status']}", {"response": ended}, 0


def _message_events(item: Json, reply: Reply, place: Json) -> Iterator[_Plain]:
    spot = {**place, "item_id": item["id"], "content_index": 0}
    part = item["content"][0]
    yield "response.output_item.added", {**place, "item": {**item, "status": "in_progress", "content": []}}, 0
    yield "response.content_part.added", {**spot, "part": {**part, "text": "", "annotations": []}}, 0
    for chunk in reply.chunks:
        yield "response.output_text.delta", {**spot, "delta": chunk.text, "logprobs": []}, chunk.delay_ms
    yield "response.output_text.done", {**spot, "text": reply.text, "logprobs": []}, 0
    yield "response.content_part.done", {**spot, "part": part}, 0


def _function_events(item: Json, place: Json) -> Iterator[_Plain]:
    spot = {**place, "item_id": item["id"]}
    yield (
        "response.output_item.added",
        {**place, "item": {**item, "status": "in_progress", "arguments": ""}},
        0,
    )
    for piece in pieces(item["arguments"]):
        yield "response.function_call_arguments.delta", {**spot, "delta": piece}, 0
    done = {**spot, "arguments": item["arguments"], "name": item["name"]}
    yield "response.function_call_arguments.done", done, 0


def _search_item(search: Search, stamp: Stamp, index: int) -> Json:
    sources = [{"type": "url", "url": page.url} for page in search.pages]
    action = {"type": "search", "query": search.query, "queries": [search.query], "sources": sources}
    return {
        "id": f"ws_{stamp.nonce}{index}",
        "type": "web_search_call",
        "status": "completed",
        "action": action,
    }


def _citation(page: Page, reply: Reply) -> Json:
    spot = {"start_index": 0, "end_index": len(reply.text)}
    return {"type": "url_citation", "url": page.url, "title": page.title, **spot}


def _call_item(call: Call, form: ComputerForm | None, stamp: Stamp, index: int) -> Json:
    call_id = call_id_of(call, stamp, index)
    if call.actions and form is not ComputerForm.FUNCTION:
        return {
            "id": f"cu_{stamp.nonce}{index}",
            "type": "computer_call",
            "call_id": call_id,
            "actions": [action for canonical in call.actions for action in openai_actions(canonical)],
            "pending_safety_checks": [],
            "status": "completed",
        }
    return {
        "id": f"fc_{stamp.nonce}{index}",
        "type": "function_call",
        "call_id": call_id,
        "name": call.name,
        "arguments": function_arguments(call),
        "status": "completed",
    }


def _usage(conversation: Conversation, reply: Reply) -> Json:
    given, made = conversation.input_tokens, reply.output_tokens
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given + made,
    }


def openai_actions(action: Action) -> list[dict[str, Any]]:
    """
    A canonical action in the vendor's words.

    Actions without a word of their own (a zoom, a held key) become a screenshot.
    """
    build = _WORDS.get(type(action))
    return [{"type": "screenshot"}] if build is None else build(action)


def _click(action: Click) -> list[dict[str, Any]]:
    x, y = action.coordinate or (0, 0)
    kind = action.action.removesuffix("_click")
    if kind == "double":
        return [{"type": "double_click", "x": x, "y": y}]
    click = {"type": "click", "button": _BUTTONS.get(kind, "left"), "x": x, "y": y}
    return [click] * (3 if kind == "triple" else 1)


def _keypress(action: Key) -> list[dict[str, Any]]:
    keys = [key.upper() for key in action.text.split("+") if key]
    return [{"type": "keypress", "keys": keys or ["+"]}]


def _drag(action: Drag | LeftClickDrag) -> list[dict[str, Any]]:
    path = action.path if isinstance(action, Drag) else (action.start_coordinate or (0, 0), action.coordinate)
    return [{"type": "drag", "path": [{"x": x, "y": y} for x, y in path]}]


def _scroll(action: Scroll) -> list[dict[str, Any]]:
    x, y = action.coordinate or (0, 0)
    sign = 1 if action.scroll_direction in ("down", "right") else -1
    distance = sign * action.scroll_amount * PIXELS_PER_NOTCH
    is_vertical = action.scroll_direction in ("up", "down")
    scroll = {
        "type": "scroll",
        "x": x,
        "y": y,
        "scroll_x": 0 if is_vertical else distance,
        "scroll_y": distance if is_vertical else 0,
    }
    return [scroll]


_WORDS: dict[type[BaseModel], Callable[[Any], list[dict[str, Any]]]] = {
    Click: _click,
    Drag: _drag,
    Key: _keypress,
    LeftClickDrag: _drag,
    MouseMove: lambda action: [{"type": "move", "x": action.coordinate[0], "y": action.coordinate[1]}],
    Scroll: _scroll,
    TypeText: lambda action: [{"type": "type", "text": action.text}],
    Wait: lambda _: [{"type": "wait"}],
}
