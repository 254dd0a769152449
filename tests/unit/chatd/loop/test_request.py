"""From stored rows to a prompt."""

import base64
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

import pytest

from chatd.loop.prompts import system_prompt
from chatd.loop.request import MAX_PICTURES, build_prompt, group_messages, picture_ids
from chatd.store.store import Store
from chatd.wire import Message, Part, TextPart, ToolCallPart, ToolResultPart

CHAT = UUID(int=1)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Files:
    """A store that has only files; *asked* remembers what was wanted."""

    def __init__(self, files: dict[UUID, bytes]) -> None:
        self.files = files
        self.asked: list[UUID] = []

    async def read(self, run: Callable[..., Any], wanted: list[UUID]) -> dict[UUID, bytes]:
        """Answer ``files_by_id``."""
        assert run.__name__ == "files_by_id"
        self.asked += wanted
        return {file_id: self.files[file_id] for file_id in wanted if file_id in self.files}


def rows(*content: tuple[str, tuple[Part, ...]]) -> list[Message]:
    """Messages numbered from 1."""
    return [
        Message.model_validate({"id": n, "chat_id": CHAT, "role": role, "content": parts, "created_at": NOW})
        for n, (role, parts) in enumerate(content, start=1)
    ]


def picture(number: int, *, is_error: bool = False) -> ToolResultPart:
    """A stored screenshot with the file id *number*."""
    value = {"file_id": str(UUID(int=number)), "mime_type": "image/png", "text": f"shot {number}"}
    return ToolResultPart(
        tool_call_id=f"c{number}", tool_name="computer", result=value, is_media=True, is_error=is_error
    )


def history(numbers: range) -> list[Message]:
    """A turn with one screenshot for each number."""
    pairs: list[tuple[str, tuple[Part, ...]]] = []
    for number in numbers:
        call = ToolCallPart(tool_call_id=f"c{number}", tool_name="computer", args={})
        pairs += [("assistant", (call,)), ("tool", (picture(number),))]
    return rows(("user", (TextPart(text="go"),)), *pairs)


def test_neighbouring_tool_rows_become_one_and_system_rows_go() -> None:
    """Spec 4.4: results are rows of their own in storage, one message for the vendor."""
    text = (TextPart(text="x"),)
    first, second = picture(1), picture(2)
    grouped = group_messages(
        rows(("system", text), ("user", text), ("assistant", text), ("tool", (first,)), ("tool", (second,)))
        + rows(("user", text), ("user", text), ("tool", (first,)))
    )

    roles = [message.role for message in grouped]
    assert roles == ["user", "assistant", "tool", "user", "user", "tool"]
    assert grouped[2].content == (first, second)


async def test_pictures_are_loaded_as_base64() -> None:
    """Ours: a prompt carries the bytes, whatever the vendor."""
    store = Files({UUID(int=7): b"png"})
    prompt = await build_prompt(cast("Store", store), history(range(7, 8)))
    result = prompt[-1].content[0].result  # type: ignore[union-attr]

    assert base64.b64decode(result["data"]) == b"png"
    assert (result["mime_type"], result["text"]) == ("image/png", "shot 7")


async def test_only_the_newest_pictures_are_kept() -> None:
    """Ours: past the cap the oldest become text and are not even read."""
    numbers = range(1, MAX_PICTURES + 4)
    store = Files({UUID(int=number): b"x" for number in numbers})
    prompt = await build_prompt(cast("Store", store), history(numbers))
    results = [part for message in prompt for part in message.content if isinstance(part, ToolResultPart)]

    assert [part.is_media for part in results] == [False] * 3 + [True] * MAX_PICTURES
    assert "shot 1\n" in results[0].result["output"]
    assert store.asked == [UUID(int=number) for number in reversed(numbers)][:MAX_PICTURES]


@pytest.mark.parametrize(("is_error", "key"), [(False, "output"), (True, "error")])
async def test_a_missing_picture_becomes_a_sentence(*, is_error: bool, key: str) -> None:
    """Ours: a lost file must not end the chat."""
    call = ToolCallPart(tool_call_id="c9", tool_name="computer", args={})
    messages = rows(("assistant", (call,)), ("tool", (picture(9, is_error=is_error),)))
    prompt = await build_prompt(cast("Store", Files({})), messages)
    part = prompt[-1].content[0]

    assert isinstance(part, ToolResultPart)
    assert part.is_media is False
    assert list(part.result) == [key]


async def test_a_prompt_without_pictures_asks_for_none() -> None:
    """Ours: no read without need; open calls are answered before the vendor sees them."""
    store = Files({})
    call = ToolCallPart(tool_call_id="c", tool_name="t", args={})
    messages = rows(("user", (TextPart(text="a"),)), ("assistant", (call,)), ("user", (TextPart(text="b"),)))
    prompt = await build_prompt(cast("Store", store), messages)

    assert store.asked == []
    assert [message.role for message in prompt] == ["user", "assistant", "tool", "user"]


def test_results_without_a_file_are_no_pictures() -> None:
    """Ours: media without a file id, and results that are no objects, are passed over."""
    odd = [
        ToolResultPart(tool_call_id="a", tool_name="t", result="text", is_media=True),
        ToolResultPart(tool_call_id="b", tool_name="t", result={"data": "x"}, is_media=True),
        ToolResultPart(tool_call_id="c", tool_name="t", result={"file_id": str(uuid.uuid4())}),
    ]

    assert picture_ids(group_messages(rows(("tool", tuple(odd))))) == []


def test_each_kind_of_chat_has_its_own_instructions() -> None:
    """Ours: a root, a desktop agent and a general child are told different things."""
    prompts = {
        system_prompt(mode=None, is_child=False),
        system_prompt(mode="computer_use", is_child=True),
        system_prompt(mode=None, is_child=True),
    }

    assert len(prompts) == 3
    assert system_prompt(mode="computer_use", is_child=False) == system_prompt(
        mode="computer_use", is_child=True
    )
