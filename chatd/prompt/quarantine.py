"""
What a vendor refuses in a history: where its words point, and what is put in place of it. Pure.

Only what a vendor may take offence at is set aside: its own metadata (signatures, encrypted items, native
shapes of calls), what it ran itself, pictures and files. Words, arguments and results stay.
"""

import re
from collections.abc import Sequence

from chatd.wire import FilePart, Message, Part, TextPart, ToolCallPart, ToolResultPart, part_list_adapter

__all__ = ["note_of", "pointed_at", "pointed_item", "set_aside"]

# "messages.3.content.1", "input[3].content", "GenerateContentRequest.contents[2].parts[0]".
_INDEX = re.compile(r"\b(?:messages|input|contents)\W{1,2}(\d{1,6})\b")
_ID = re.compile(r"\b(?:rs|ws|msg|fc|cu|call|toolu|srvtoolu)_\w{1,128}")


def pointed_item(words: str) -> int | None:
    """The place in the request's history that a vendor's *words* point at, from 0; None where they don't."""
    found = _INDEX.search(words)
    return int(found[1]) if found else None


def pointed_at(words: str, rows: Sequence[Message]) -> list[int]:
    """Places in *rows* of what a vendor's *words* name by its id."""
    ids = set(_ID.findall(words))
    if not ids:
        return []
    texts = [part_list_adapter.dump_json(row.content).decode() for row in rows]
    return [place for place, text in enumerate(texts) if any(f'"{one}"' in text for one in ids)]


def set_aside(content: Sequence[Part]) -> tuple[Part, ...] | None:
    """*content* without what a vendor may refuse, with words in its place; None if there is no such thing."""
    kept = tuple(map(_without, content))
    return None if kept == tuple(content) else kept


def note_of(refused: str) -> str:
    """What people read in the chat."""
    return (
        "Part of this conversation was refused by the model's vendor and has been set aside, so that the "
        f"conversation can go on. The vendor said: {refused}"
    )


def _without(part: Part) -> Part:
    match part:
        case ToolCallPart(provider_executed=True) | ToolResultPart(provider_executed=True):
            return TextPart(text=f"[{part.tool_name}, run by the model's vendor, was set aside]")
        case ToolResultPart(is_media=True, result=dict(value)):
            text = "\n".join(filter(None, [str(value.get("text") or ""), "[its picture was set aside]"]))
            return part.model_copy(
                update={"result": {"output": text}, "is_media": False, "provider_metadata": None}
            )
        case FilePart():
            name = part.name or part.media_type
            return TextPart(text=f"[the file {name} was set aside: the model's vendor refused it]")
    if getattr(part, "provider_metadata", None):
        return part.model_copy(update={"provider_metadata": None})
    return part
