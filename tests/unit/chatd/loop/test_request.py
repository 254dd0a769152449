"""From stored rows to a prompt."""

import base64
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

import pytest

from chatd.loop.prompts import system_prompt
from chatd.loop.request import FileCache, build_prompt
from chatd.prompt.assemble import Inline, file_ids, frame, group_messages, insert_system, system_texts
from chatd.prompt.message import PromptMessage
from chatd.prompt.pictures import LIMITS
from chatd.store.queries import StoredFile
from chatd.store.store import Store
from chatd.wire import FilePart, Message, Part, TextPart, ToolCallPart, ToolResultPart

CHAT = UUID(int=1)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
)


def file_id_of(number: int) -> UUID:
    """A file's id."""
    return UUID(int=number)


class Files:
    """A store that has only files; *asked* remembers what was wanted."""

    def __init__(self, files: dict[UUID, bytes]) -> None:
        self.files = files
        self.asked: list[UUID] = []

    async def read(self, run: Callable[..., Any], wanted: list[UUID]) -> dict[UUID, Any]:
        """Answer ``file_sizes`` and ``files_by_id``."""
        found = {file_id: self.files[file_id] for file_id in wanted if file_id in self.files}
        if run.__name__ == "file_sizes":
            return {name: len(data) for name, data in found.items()}
        self.asked += wanted
        return {name: StoredFile("image/png", data) for name, data in found.items()}


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


async def build(files: Files, messages: list[Message], cache: FileCache | None = None) -> tuple[Any, ...]:
    """The prompt for Anthropic."""
    return await build_prompt(
        cast("Store", files), messages, provider="anthropic", cache=cache or FileCache()
    )


async def test_pictures_are_loaded_as_base64() -> None:
    """Ours: a prompt carries the bytes, whatever the vendor."""
    prompt = await build(Files({UUID(int=7): PNG}), history(range(7, 8)))
    result = prompt[-1].content[0].result

    assert base64.b64decode(result["data"]) == PNG
    assert (result["mime_type"], result["text"]) == ("image/png", "shot 7")


async def test_old_pictures_go_in_batches() -> None:
    """Ours: between two batches the prompt only grows, so the vendor's cache of it stays good."""
    store, cache = Files(dict.fromkeys(map(file_id_of, range(1, 100)), PNG)), FileCache()
    before: list[bool] = []
    changes = []
    for newest in range(1, 100):
        prompt = await build(store, history(range(1, newest + 1)), cache)
        shown = [p.is_media for m in prompt for p in m.content if isinstance(p, ToolResultPart)]
        if shown[: len(before)] != before:
            changes.append(newest)
        assert sum(shown) <= 40
        assert shown == sorted(shown)
        before = shown

    assert changes == [40, 60, 80]
    assert len(store.asked) == len(set(store.asked)) == 99


async def test_a_left_out_picture_is_told_and_not_read() -> None:
    """Ours: never silently."""
    store = Files(dict.fromkeys(map(file_id_of, range(1, 41)), PNG))
    prompt = await build(store, history(range(1, 41)))
    first = prompt[2].content[0]

    assert "shot 1\n[the picture is not shown: older" in first.result["output"]
    assert len(store.asked) == 20


async def test_the_weight_of_all_pictures_is_bounded() -> None:
    """Ours: vendors refuse requests of dozens of megabytes."""
    heavy = PNG + b"\0" * 3_000_000
    store = Files(dict.fromkeys(map(file_id_of, range(1, 12)), heavy))
    prompt = await build(store, history(range(1, 12)))
    shown = [p for m in prompt for p in m.content if isinstance(p, ToolResultPart) and p.is_media]

    assert sum(len(part.result["data"]) * 3 // 4 for part in shown) <= LIMITS["anthropic"].total_bytes
    assert shown


@pytest.mark.parametrize(("is_error", "key"), [(False, "output"), (True, "error")])
@pytest.mark.parametrize("files", [{}, {UUID(int=9): b"\x89PNG"}])
async def test_a_missing_or_broken_picture_becomes_a_sentence(
    *, is_error: bool, key: str, files: dict[UUID, bytes]
) -> None:
    """Ours: it must not end the chat."""
    call = ToolCallPart(tool_call_id="c9", tool_name="computer", args={})
    messages = rows(("assistant", (call,)), ("tool", (picture(9, is_error=is_error),)))
    part = (await build(Files(files), messages))[-1].content[0]

    assert isinstance(part, ToolResultPart)
    assert part.is_media is False
    assert list(part.result) == [key]


async def test_a_prompt_without_pictures_asks_for_none() -> None:
    """Ours: no read without need; open calls are answered before the vendor sees them."""
    store = Files({})
    call = ToolCallPart(tool_call_id="c", tool_name="t", args={})
    messages = rows(("user", (TextPart(text="a"),)), ("assistant", (call,)), ("user", (TextPart(text="b"),)))
    prompt = await build(store, messages)

    assert store.asked == []
    assert [message.role for message in prompt] == ["user", "assistant", "tool", "user"]


def test_results_without_a_file_are_no_pictures() -> None:
    """Ours: media without a file id, and results that are no objects, are passed over."""
    odd = [
        ToolResultPart(tool_call_id="a", tool_name="t", result="text", is_media=True),
        ToolResultPart(tool_call_id="b", tool_name="t", result={"data": "x"}, is_media=True),
        ToolResultPart(tool_call_id="c", tool_name="t", result={"file_id": str(uuid.uuid4())}),
        ToolResultPart(tool_call_id="d", tool_name="t", result={"file_id": "no id"}, is_media=True),
    ]

    assert file_ids(group_messages(rows(("tool", tuple(odd))))) == []


def test_the_files_kept_between_steps_are_bounded() -> None:
    """Ours: those used longest ago go."""
    limits = LIMITS["anthropic"]
    cache = FileCache(limit=10)
    for number in (1, 2, 1, 3):
        if cache.get((UUID(int=number), limits)) is None:
            cache.put((UUID(int=number), limits), Inline(media_type="image/png", data="x" * 5))

    kept = [number for number in (1, 2, 3) if cache.get((UUID(int=number), limits)) is not None]
    assert kept == [1, 3]


async def test_what_was_pasted_is_text_and_bounded() -> None:
    """Spec 6.2: by its name; the first 128 KiB, and a note."""
    part = FilePart(
        media_type="text/plain",
        data=base64.b64encode(b"x" * 200_000).decode(),
        name="pasted-text-2026-01-02-03-04-05.txt",
    )
    ((pasted,),) = [message.content for message in await build(Files({}), rows(("user", (part,))))]

    assert isinstance(pasted, TextPart)
    assert "pasted-text-2026" in pasted.text
    assert "truncated" in pasted.text
    assert len(pasted.text) < 132_000


def test_instructions_are_put_together() -> None:
    """Spec 6.5: trimmed, blank ones left out, those of stored system rows last."""
    stored = system_texts(rows(("system", (TextPart(text="stored"),)), ("user", (TextPart(text="x"),))))

    assert insert_system("first ", "", "\n", *stored) == "first\n\nstored"


@pytest.mark.parametrize("roles", [(), ("assistant",), ("user", "assistant")])
def test_a_prompt_begins_and_ends_with_the_other_side(roles: tuple[Any, ...]) -> None:
    """Ours: vendors refuse an empty prompt, one that begins with an answer, and one that ends with it."""
    framed = frame([PromptMessage(role=role, content=(TextPart(text="x"),)) for role in roles])

    assert (framed[0].role, framed[-1].role) == ("user", "user")


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
