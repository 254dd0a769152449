"""A prompt's messages from a chat's rows: repaired, with the files that its vendor takes."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from chatd.prompt.assemble import (
    GONE,
    LEFT_OUT,
    Inline,
    Missing,
    file_ids,
    fit_file,
    frame,
    group_messages,
    place_files,
)
from chatd.prompt.message import PromptMessage
from chatd.prompt.pictures import LIMITS, PictureLimits, kept_pictures
from chatd.prompt.repair import repair_prompt
from chatd.store import queries
from chatd.store.store import Store
from chatd.wire import FilePart, Message, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart

__all__ = ["FileCache", "build_prompt", "prompt_bytes"]

# Characters of base64 that are kept between steps: a dozen chats' screenshots.
CACHE_CHARACTERS = 64 * 1024 * 1024


class FileCache:
    """Files as they were sent last; a step needs only those that are new."""

    def __init__(self, limit: int = CACHE_CHARACTERS) -> None:
        self._limit = limit
        self._size = 0
        self._files: OrderedDict[tuple[UUID, PictureLimits], Inline | Missing] = OrderedDict()

    def get(self, key: tuple[UUID, PictureLimits]) -> Inline | Missing | None:
        """A file, which is then the last to go."""
        found = self._files.get(key)
        if found is not None:
            self._files.move_to_end(key)
        return found

    def put(self, key: tuple[UUID, PictureLimits], file: Inline | Missing) -> None:
        """Keep a file; those used longest ago go."""
        if key in self._files:
            return
        self._files[key] = file
        self._size += _weight(file)
        while self._size > self._limit:
            self._size -= _weight(self._files.popitem(last=False)[1])


def _weight(file: Inline | Missing) -> int:
    return len(file.data) if isinstance(file, Inline) else 1


async def build_prompt(
    store: Store, messages: Sequence[Message], *, provider: str, cache: FileCache
) -> tuple[PromptMessage, ...]:
    """The prompt's messages, ready for *provider*: files inline, references as text."""
    prompt = repair_prompt(group_messages(messages))
    wanted, limits = file_ids(prompt), LIMITS[provider]
    if not wanted:
        return frame(place_files(prompt, {}, limits))
    sizes = await store.read(queries.file_sizes, wanted)
    stored = [(file_id, sizes[file_id]) for file_id in wanted if file_id in sizes]
    kept = kept_pictures(stored, total_bytes=limits.total_bytes)
    files: dict[UUID, Inline | Missing] = {
        file_id: LEFT_OUT if file_id in sizes else GONE for file_id in wanted if file_id not in kept
    }
    files |= await _load(store, [file_id for file_id in wanted if file_id in kept], limits, cache)
    return frame(place_files(prompt, files, limits))


async def _load(
    store: Store, wanted: Sequence[UUID], limits: PictureLimits, cache: FileCache
) -> dict[UUID, Inline | Missing]:
    files = {file_id: found for file_id in wanted if (found := cache.get((file_id, limits))) is not None}
    fresh = [file_id for file_id in wanted if file_id not in files]
    if not fresh:
        return files
    stored = await store.read(queries.files_by_id, fresh)
    # Shrinking takes a tenth of a second of processor time: not on the event loop.
    fitted = await asyncio.to_thread(
        lambda: {name: fit_file(file.media_type, file.data, limits) for name, file in stored.items()}
    )
    for file_id, file in fitted.items():
        cache.put((file_id, limits), file)
    return files | fitted


def prompt_bytes(messages: Sequence[PromptMessage]) -> int:
    """Bytes of what a prompt says: text, reasoning, files, arguments and results."""
    return sum(_part_bytes(part) for message in messages for part in message.content)


def _part_bytes(part: Part) -> int:
    match part:
        case TextPart(text=text) | ReasoningPart(text=text):
            return _bytes(text)
        case FilePart(data=data):
            return _bytes(data)
        case ToolCallPart(args=value) | ToolResultPart(result=value):
            return _bytes(value)
        case _:
            return 0


def _bytes(value: Any) -> int:  # noqa: ANN401 -- JSON
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode(errors="replace"))
    if isinstance(value, dict):
        return sum(_bytes(key) + _bytes(item) for key, item in value.items())
    return sum(map(_bytes, value)) if isinstance(value, list | tuple) else 0
