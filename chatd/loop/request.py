"""From stored messages to a model request: roles grouped, calls repaired, pictures loaded."""

import base64
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from chatd.prompt.message import PromptMessage
from chatd.prompt.repair import repair_prompt
from chatd.store import queries
from chatd.store.store import Store
from chatd.wire import Message, Part, ToolResultPart

__all__ = ["MAX_PICTURES", "build_prompt", "group_messages", "picture_ids"]

# Screenshots kept in a prompt, the newest ones: each costs about 1,500 tokens, and old ones mislead.
MAX_PICTURES = 20


def group_messages(messages: Sequence[Message]) -> list[PromptMessage]:
    """Stored rows as prompt messages; neighbouring tool rows become one."""
    grouped: list[PromptMessage] = []
    for message in messages:
        if message.role == "system":
            continue
        if grouped and message.role == "tool" and grouped[-1].role == "tool":
            content = grouped[-1].content + message.content
            grouped[-1] = PromptMessage(role="tool", content=content)
        else:
            grouped.append(PromptMessage(role=message.role, content=message.content))
    return grouped


def picture_ids(messages: Sequence[PromptMessage]) -> list[UUID]:
    """Files of the newest pictures, newest first, at most ``MAX_PICTURES``."""
    parts = [part for message in reversed(messages) for part in reversed(message.content)]
    ids = [file_id for part in parts if (file_id := _file_id(part)) is not None]
    return ids[:MAX_PICTURES]


def _file_id(part: Part) -> UUID | None:
    """The stored picture that *part* refers to."""
    if not isinstance(part, ToolResultPart) or not part.is_media or not isinstance(part.result, dict):
        return None
    file_id = part.result.get("file_id")
    return None if file_id is None else UUID(str(file_id))


async def build_prompt(store: Store, messages: Sequence[Message]) -> tuple[PromptMessage, ...]:
    """The prompt's messages, ready for any vendor."""
    prompt = repair_prompt(group_messages(messages))
    wanted = picture_ids(prompt)
    pictures = await store.read(queries.files_by_id, wanted) if wanted else {}
    return tuple(
        PromptMessage(
            role=message.role, content=tuple(_with_picture(part, pictures) for part in message.content)
        )
        for message in prompt
    )


def _with_picture(part: Part, pictures: dict[UUID, bytes]) -> Part:
    file_id = _file_id(part)
    if file_id is None or not isinstance(part, ToolResultPart):
        return part
    result: dict[str, Any] = part.result
    data = pictures.get(file_id)
    if data is None:
        text = f"{result.get('text', '')}\n[an older screenshot was left out]".strip()
        value: dict[str, Any] = {"error": text} if part.is_error else {"output": text}
        return part.model_copy(update={"is_media": False, "result": value})
    return part.model_copy(update={"result": {**result, "data": base64.b64encode(data).decode()}})
