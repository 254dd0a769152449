"""
From stored messages to a prompt's: roles grouped, files in place, what can't be sent told in words. Pure.

The bytes come from outside, by file id; which of them a prompt carries is
``pictures.kept_pictures``'s to say.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from chatd.prompt.convert import IMAGE_TYPES, describe_reference
from chatd.prompt.message import PromptMessage
from chatd.prompt.pictures import PictureLimits, Unfit, fit_picture
from chatd.prompt.truncation import truncate_text
from chatd.wire import (
    ContextFilePart,
    FilePart,
    FileReferencePart,
    Message,
    Part,
    QuestionAnswerPart,
    ReasoningPart,
    Role,
    SkillPart,
    SourcePart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)

__all__ = [
    "GONE",
    "LEFT_OUT",
    "Inline",
    "Missing",
    "file_ids",
    "fit_file",
    "frame",
    "group_messages",
    "insert_system",
    "place_files",
    "system_texts",
]

# Bytes of a pasted text that a model reads at once.
PASTED_BYTES = 131_072
_PASTED = re.compile(r"^pasted-text-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d\.txt$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inline:
    """A file as it is sent; *data* is base64, *note* says what was done to it."""

    media_type: str
    data: str
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Missing:
    """A file that is not sent, and why."""

    reason: str


GONE = Missing("it is not stored any more")
LEFT_OUT = Missing("older pictures and files are left out")


def group_messages(messages: Sequence[Message]) -> list[PromptMessage]:
    """Stored rows as prompt messages, without the system's; neighbouring tool rows become one."""
    grouped: list[PromptMessage] = []
    for message in messages:
        if message.role == "system":
            continue
        content = tuple(part for part in message.content if _belongs(part, message.role))
        if grouped and message.role == "tool" and grouped[-1].role == "tool":
            grouped[-1] = PromptMessage(role="tool", content=grouped[-1].content + content)
        else:
            grouped.append(PromptMessage(role=message.role, content=content))
    return grouped


def _belongs(part: Part, role: Role) -> bool:
    """Whether a message of *role* may say *part*: nobody answers for the model, nor the model for a tool."""
    match part:
        case ToolResultPart():
            return role == "tool" or (role == "assistant" and part.provider_executed)
        case ToolCallPart() | ReasoningPart():
            return role == "assistant"
    return role != "tool"


def system_texts(messages: Sequence[Message]) -> list[str]:
    """What the stored system rows say."""
    rows = [message for message in messages if message.role == "system"]
    return [part.text for row in rows for part in row.content if isinstance(part, TextPart)]


def insert_system(*texts: str) -> str:
    """One system prompt of several instructions, in order; blank ones go."""
    return "\n\n".join(text.strip() for text in texts if text.strip())


def file_ids(messages: Sequence[PromptMessage]) -> list[UUID]:
    """Files that messages refer to, oldest first; each place counts."""
    return [
        file_id for message in messages for part in message.content if (file_id := _file_id(part)) is not None
    ]


def _file_id(part: Part) -> UUID | None:
    """The stored file that *part* refers to."""
    match part:
        case FilePart(file_id=str(found)):
            return _parsed(found)
        case ToolResultPart(is_media=True, result=dict(value)):
            return _parsed(value.get("file_id"))
    return None


def _parsed(value: object) -> UUID | None:
    try:
        return UUID(str(value)) if value else None
    except ValueError:
        return None


def fit_file(media_type: str, data: bytes, limits: PictureLimits) -> Inline | Missing:
    """A file as a vendor takes it; pictures are looked at, and made to fit."""
    if media_type not in IMAGE_TYPES or not data:
        return Inline(media_type=media_type, data=base64.b64encode(data).decode())
    found = fit_picture(data, limits)
    if isinstance(found, Unfit):
        return Missing(found.reason)
    encoded = base64.b64encode(found.data).decode()
    return Inline(media_type=found.media_type, data=encoded, note=found.note)


def place_files(
    messages: Sequence[PromptMessage], files: Mapping[UUID, Inline | Missing], limits: PictureLimits
) -> tuple[PromptMessage, ...]:
    """
    The messages with files inline and references as text; what is empty then is gone.

    Args:
        messages: repaired.
        files: those that are stored, by id.
        limits: for pictures that are in the messages themselves.
    """
    placer = _Placer(files, limits)
    placed = (PromptMessage(role=message.role, content=tuple(placer.placed(message))) for message in messages)
    return tuple(message for message in placed if message.content)


def frame(messages: Sequence[PromptMessage]) -> tuple[PromptMessage, ...]:
    """The messages, beginning and ending with somebody who is no assistant, as vendors want."""
    framed = list(messages)
    if not framed or framed[0].role != "user":
        framed.insert(0, _note("The conversation begins here."))
    if framed[-1].role == "assistant":
        framed.append(_note("The user's message is empty."))
    return tuple(framed)


def _note(text: str) -> PromptMessage:
    return PromptMessage(role="user", content=(TextPart(text=f"[{text}]"),))


class _Placer:
    def __init__(self, files: Mapping[UUID, Inline | Missing], limits: PictureLimits) -> None:
        self._files = files
        self._limits = limits

    def placed(self, message: PromptMessage) -> Iterator[Part]:
        for part in message.content:
            match part:
                case FileReferencePart():
                    yield TextPart(text=describe_reference(part))
                case QuestionAnswerPart():
                    yield TextPart(text=f"[answer to question {part.question_id}]\n{part.text}")
                case FilePart():
                    yield from self._attached(part, is_users=message.role == "user")
                case TextPart(text=text) if not text.strip():
                    continue
                case SourcePart() | ContextFilePart() | SkillPart():
                    # Where something came from, and what the system prompt holds already.
                    continue
                case ToolResultPart():
                    yield self._with_picture(part)
                case _:
                    yield part

    def _attached(self, part: FilePart, *, is_users: bool) -> Iterator[Part]:
        """A file with its bytes; of one that is not sent, the user's leaves a note, the model's nothing."""
        file_id = _file_id(part)
        found = self._files.get(file_id, GONE) if file_id is not None else self._own_data(part)
        if isinstance(found, Missing):
            if is_users:
                yield TextPart(text=f"[file{_label(part)}: {found.reason}]")
            return
        if not found.data:
            return
        if _PASTED.match(part.name or "") and part.media_type.startswith("text/"):
            yield _pasted(part, found)
            return
        # The message's own word on the type counts, but for pictures: their bytes say what they are.
        media_type = found.media_type if found.media_type in IMAGE_TYPES else part.media_type
        if media_type in IMAGE_TYPES and found.media_type not in IMAGE_TYPES:
            media_type = found.media_type
        yield part.model_copy(update={"data": found.data, "media_type": media_type})
        if found.note is not None:
            yield TextPart(text=f"[file{_label(part)}: {found.note}]")

    def _own_data(self, part: FilePart) -> Inline | Missing:
        if part.data is None:
            return GONE
        try:
            data = base64.b64decode(part.data, validate=True)
        except (binascii.Error, ValueError):
            return Missing("its content is damaged")
        return fit_file(part.media_type, data, self._limits)

    def _with_picture(self, part: ToolResultPart) -> ToolResultPart:
        file_id = _file_id(part)
        if file_id is None:
            return part
        result: dict[str, Any] = part.result
        text = str(result.get("text") or "")
        found = self._files.get(file_id, GONE)
        if isinstance(found, Inline) and found.media_type not in IMAGE_TYPES:
            found = Missing("it is none")
        if isinstance(found, Missing):
            text = f"{text}\n[the picture is not shown: {found.reason}]".strip()
            value: dict[str, Any] = {"error": text} if part.is_error else {"output": text}
            return part.model_copy(update={"is_media": False, "result": value})
        if found.note is not None:
            text = f"{text}\n[the picture was {found.note}]".strip()
        shown = {**result, "text": text, "mime_type": found.media_type, "data": found.data}
        return part.model_copy(update={"result": shown})


def _label(part: FilePart) -> str:
    kind = "" if part.media_type in ("", "application/octet-stream") else f" ({part.media_type})"
    return (f" {part.name!r}" if part.name else "") + kind


def _pasted(part: FilePart, found: Inline) -> TextPart:
    text = base64.b64decode(found.data).decode(errors="replace")
    shown = truncate_text(text, PASTED_BYTES).text
    return TextPart(text=f"[text that the user pasted, {part.name}]\n{shown}")
