"""Messages of a chat: list, send, edit, the queue, stops, the client's results, repairs."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from aiohttp import web

from chatd.errors import BadRequest, TransitionNotAllowed
from chatd.prompt.truncation import UNKNOWN_WINDOW_BYTES, truncate_value
from chatd.provider.efforts import check_effort
from chatd.routes.bodies import (
    Edited,
    EditMessage,
    ListMessages,
    ListPrompts,
    MessageList,
    Promoted,
    PromptList,
    QuestionList,
    SendMessage,
    Sent,
    ToolOutput,
    ToolResults,
)
from chatd.routes.chats import answer, chat_of_caller, idempotency_key, own_chat, readable_chat
from chatd.routes.context import identity, services
from chatd.routes.describe import describe
from chatd.routes.errors import read_body, read_query
from chatd.store import queries, requests
from chatd.store.machine import ChatTx
from chatd.store.mcp_servers import check_chosen
from chatd.store.open_questions import open_questions, require_open
from chatd.store.rows import public_message, public_queued
from chatd.wire import Chat, Message, ToolResultPart
from chatd.worker.announce import take_back, take_back_answered
from chatd.worker.services import Services

__all__ = ["routes"]

routes = web.RouteTableDef()
CHAT = "/api/experimental/chats/{chat_id}"
BUSY = {409: "the chat's state does not allow it"}
LIMIT = {409: "the chat's state does not allow it, or the usage limit is reached"}


async def _active_chat(request: web.Request) -> Chat:
    """
    The chat in the path, which must not be archived.

    Raises:
        NotFound, BadRequest: it is not there for the caller, or is archived.
    """
    chat = await own_chat(request)
    if chat.archived:
        raise BadRequest("this chat is archived")
    return chat


def _row_id(request: web.Request, name: str) -> int:
    """
    The id of a message in the path.

    Raises:
        BadRequest: it is none.
    """
    text = request.match_info[name]
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise BadRequest(f"{name}: must be a number")
    return int(text)


def _seen(messages: list[Message]) -> list[Message]:
    """Those of inserted rows that people see, as they see them."""
    return [public_message(message) for message in messages if message.visibility != "model"]


@routes.get(CHAT + "/messages")
@describe(query=ListMessages, answer=MessageList)
async def list_messages(request: web.Request) -> web.Response:
    """A page of messages; the queue comes with the one that has no cursor."""
    chat = await readable_chat(request)
    wish = read_query(request, ListMessages)
    store = services(request).store
    page = await store.read(
        queries.list_messages, chat.id, after_id=wish.after_id, before_id=wish.before_id, limit=wish.limit
    )
    has_cursor = bool(wish.after_id or wish.before_id)
    queued = [] if has_cursor else await store.read(queries.list_queued, chat.id)
    return answer(
        MessageList(
            messages=[public_message(message) for message in page.messages],
            queued_messages=[public_queued(row) for row in queued],
            has_more=page.has_more,
        )
    )


@routes.post(CHAT + "/messages")
@describe(body=SendMessage, answer=Sent, errors=LIMIT | {429: "20 messages wait already"})
async def send_message(request: web.Request) -> web.Response:
    """Send a message: into the history when idle, else to the queue."""
    chat = await _active_chat(request)
    wish = await read_body(request, SendMessage)
    parts = services(request)
    model = None if wish.model_config_id is None else parts.catalog.resolve(wish.model_config_id)
    user_id = identity(request).user_id

    def send(tx: ChatTx) -> dict[str, Any]:
        parts.store.admit(tx)
        content = wish.parts()
        require_open(tx.connection, chat.id, content)
        check_chosen(tx.connection, wish.mcp_server_ids)
        result = tx.send(
            content,
            created_by=user_id,
            interrupt=wish.busy_behavior == "interrupt",
            steer=wish.busy_behavior == "steer",
            model_config_id=model,
            changes=wish.changes(),
        )
        _judge_effort(tx, parts, wish, model)
        messages = _seen(result.messages)
        sent = Sent(
            message=messages[-1] if messages and result.queued is None else None,
            messages=messages,
            queued_message=None if result.queued is None else public_queued(result.queued),
            queued=result.queued is not None,
            warnings=tx.warnings,
        )
        nothing: dict[str, Any] = {"message": None, "queued_message": None}
        return nothing | sent.model_dump(mode="json", exclude_none=True)

    # What is absent is not null.
    asked = requests.fingerprint(str(chat.id), wish.model_dump_json(exclude_unset=True))
    told = await _once(request, chat.id, asked, send)
    await take_back_answered(parts, chat, wish.parts())
    return web.json_response(told)


def _judge_effort(
    tx: ChatTx, parts: Services, wish: SendMessage | EditMessage, model_config_id: UUID | None
) -> None:
    """
    See that the model offers the effort that was asked for; warn of one from before that it does not.

    Raises:
        BadRequest: it does not.
    """
    if wish.reasoning_effort is None and model_config_id is None:
        return
    source = parts.catalog.source(model_config_id or tx["last_model_config_id"])
    check_effort(wish.reasoning_effort, source.efforts, model=source.display_name)
    chosen = tx["last_reasoning_effort"]
    if "reasoning_effort" not in wish.model_fields_set and chosen not in {None, *source.efforts}:
        used = source.effort(chosen) or "its own"
        tx.warnings.append(f"{source.display_name} does not offer the effort {chosen}: {used} is used")


async def _once(
    request: web.Request, chat_id: UUID, asked: bytes, apply: Callable[[ChatTx], dict[str, Any]]
) -> dict[str, Any]:
    """Apply a transition; with an Idempotency-Key only the first time, later its answer is given again."""
    store, user_id, key = services(request).store, identity(request).user_id, idempotency_key(request)
    if key is None:
        return await store.transition(chat_id, apply)
    earlier = await store.read(requests.earlier_answer, user_id, key, asked)
    if earlier is not None:
        return earlier

    def keep(tx: ChatTx) -> dict[str, Any]:
        # Again under the lock: the same request may have been faster.
        known = requests.earlier_answer(tx.connection, user_id, key, asked)
        if known is not None:
            return known
        given = apply(tx)
        requests.save_answer(tx.connection, user_id, key, asked=asked, answer=given, now=tx.now)
        return given

    return await store.transition(chat_id, keep)


@routes.patch(CHAT + "/messages/{message_id}")
@describe(body=EditMessage, answer=Edited, errors=LIMIT)
async def edit_message(request: web.Request) -> web.Response:
    """Say a message of the user anew; everything behind it and the queue are dropped."""
    chat = await _active_chat(request)
    wish = await read_body(request, EditMessage)
    parts = services(request)
    message_id = _row_id(request, "message_id")
    model = None if wish.model_config_id is None else parts.catalog.resolve(wish.model_config_id)

    def edit(tx: ChatTx) -> Edited:
        parts.store.admit(tx)
        content = wish.parts()
        require_open(tx.connection, chat.id, content, before_id=message_id)
        check_chosen(tx.connection, wish.mcp_server_ids)
        result = tx.edit(message_id, content, model_config_id=model, changes=wish.changes())
        _judge_effort(tx, parts, wish, model)
        messages = _seen(result.messages)
        return Edited(
            message=messages[-1],
            messages=messages,
            deleted_message_ids=result.deleted_ids,
            warnings=tx.warnings,
        )

    edited = await parts.store.transition(chat.id, edit)
    await take_back(parts, chat)
    return answer(edited)


@routes.get(CHAT + "/prompts")
@describe(query=ListPrompts, answer=PromptList)
async def list_prompts(request: web.Request) -> web.Response:
    """What the user asked, as text, newest first."""
    chat = await readable_chat(request)
    limit = read_query(request, ListPrompts).limit
    prompts = await services(request).store.read(queries.list_prompts, chat.id, limit=limit)
    return answer(PromptList(prompts=prompts))


@routes.get(CHAT + "/questions")
@describe(answer=QuestionList)
async def list_questions(request: web.Request) -> web.Response:
    """What the agent asked while it went on and nobody answered yet, oldest first."""
    chat = await readable_chat(request)
    return answer(QuestionList(questions=await services(request).store.read(open_questions, chat.id)))


@routes.delete(CHAT + "/queue/{queued_id}")
@describe(status=204, errors=BUSY)
async def delete_queued(request: web.Request) -> web.Response:
    """Take a waiting message back."""
    chat = await _active_chat(request)
    queued_id = _row_id(request, "queued_id")
    await services(request).store.transition(chat.id, lambda tx: tx.delete_queued(queued_id))
    return web.Response(status=204)


@routes.post(CHAT + "/queue/{queued_id}/promote")
@describe(answer=Promoted, status=202, errors=BUSY)
async def promote_queued(request: web.Request) -> web.Response:
    """Let a waiting message be next: a busy chat is interrupted for it."""
    chat = await _active_chat(request)
    queued_id = _row_id(request, "queued_id")
    rows = await services(request).store.transition(chat.id, lambda tx: tx.promote_queued(queued_id))
    messages = _seen(rows)
    return answer(Promoted(message=messages[-1] if messages else None, messages=messages), status=202)


@routes.post(CHAT + "/interrupt")
@describe(answer=Chat, errors=BUSY)
async def interrupt(request: web.Request) -> web.Response:
    """Stop the turn; what was received is kept. Children at work are stopped too."""
    chat = await chat_of_caller(request)
    store = services(request).store
    await store.transition(chat.id, lambda tx: tx.interrupt())
    # Only now are they all there: a chat that was stopped starts no other.
    for child in (await chat_of_caller(request)).children:
        if child.status == "running":
            await store.transition(child.id, _interrupt_if_running)
    return answer(await chat_of_caller(request))


def _interrupt_if_running(tx: ChatTx) -> None:
    if tx["status"] == "running":
        tx.interrupt()


@routes.post(CHAT + "/tool-results")
@describe(body=ToolResults, status=204, errors={409: "the chat waits for no results"})
async def complete_tools(request: web.Request) -> web.Response:
    """Answer all calls that wait for this client; the turn goes on."""
    chat = await _active_chat(request)
    wish = await read_body(request, ToolResults)
    results = [_result(output) for output in wish.results]
    await services(request).store.transition(chat.id, lambda tx: tx.complete_requires_action(results))
    return web.Response(status=204)


def _result(output: ToolOutput) -> ToolResultPart:
    value = output.output
    if isinstance(value, str):
        value = {"error" if output.is_error else "output": value}
    value, _ = truncate_value(value, UNKNOWN_WINDOW_BYTES)
    return ToolResultPart(
        tool_call_id=output.tool_call_id, tool_name="", result=value, is_error=output.is_error
    )


@routes.post(CHAT + "/clear")
@describe(answer=Chat, errors=BUSY)
async def clear(request: web.Request) -> web.Response:
    """Let the model forget what was said; people keep seeing it."""
    chat = await _active_chat(request)
    await services(request).store.transition(chat.id, lambda tx: tx.clear_context())
    return answer(await chat_of_caller(request))


@routes.post(CHAT + "/compact")
@describe(answer=Chat, errors=LIMIT)
async def compact(request: web.Request) -> web.Response:
    """Summarise what was said: the model goes on with a short prompt, people keep seeing all."""
    chat = await _active_chat(request)
    store = services(request).store

    def ask(tx: ChatTx) -> None:
        store.admit(tx)
        if not any(
            message.role == "assistant" for message in queries.prompt_messages(tx.connection, chat.id)
        ):
            raise TransitionNotAllowed("there is nothing to summarise yet")
        tx.request_compaction()

    await store.transition(chat.id, ask)
    return answer(await chat_of_caller(request))


@routes.post(CHAT + "/reconcile-invalid")
@describe(answer=Chat, errors=BUSY)
async def reconcile(request: web.Request) -> web.Response:
    """Lead a chat in no valid state to an error that explains itself."""
    chat = await chat_of_caller(request)
    await services(request).store.transition(chat.id, lambda tx: tx.reconcile())
    return answer(await chat_of_caller(request))
