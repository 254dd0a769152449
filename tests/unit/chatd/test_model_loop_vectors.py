"""The 88 vectors of the model loop: each is checked here, or names the test of a running loop that does."""

import ast
import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from chatd.faults import (
    StreamCut,
    TransportReset,
    classify,
    delay_s,
    diagnostic_text,
    effective_delay_s,
    parse_retry_after,
    with_provider,
)
from chatd.prompt.assemble import group_messages, place_files
from chatd.prompt.convert import describe_reference, parse_arguments
from chatd.prompt.message import PromptMessage
from chatd.prompt.pictures import LIMITS
from chatd.prompt.repair import repair_prompt
from chatd.prompt.truncation import budget_bytes, truncate_text
from chatd.provider import anthropic_prompt
from chatd.provider.protocol import FunctionTool, ModelRequest
from chatd.tools.toolset import LocalTool, Toolset, error_outcome
from chatd.wire import (
    FilePart,
    FileReferencePart,
    Message,
    TextPart,
    ToolCallPart,
    ToolResultPart,
    part_list_adapter,
)
from computer.errors import OutOfBounds
from computer.geometry import ModelPoint, Scale, Size, declared_size

ROOT = Path(__file__).parents[3]
DATA: dict[str, Any] = json.loads((ROOT / "tests/vectors/model_loop.json").read_text())
VECTORS: list[dict[str, Any]] = DATA["vectors"]
NOW = datetime(2026, 9, 1, 12, tzinfo=UTC)


class StatusError(Exception):
    """A vendor's refusal, by shape."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(f"Error code: {status} - {message}")
        self.message, self.status_code = message, status
        self.body = {"error": {"message": message}}


def build(given: dict[str, Any]) -> BaseException:
    """A failure as a vector writes it."""
    text = given.get("text", "")
    made: BaseException
    match given:
        case {"join": parts}:
            return BaseExceptionGroup("joined", [build(part) for part in parts])
        case {"status": status, "message": message}:
            made = StatusError(message, status)
        case {"type": "cut", "provider": provider}:
            made = StreamCut(provider)
        case {"type": "cancel"}:
            made = asyncio.CancelledError(text) if text else asyncio.CancelledError()
        case {"type": "deadline"}:
            made = TimeoutError(text)
        case {"type": "reset"}:
            made = TransportReset(text)
        case _:
            made = RuntimeError(text)
    if "cause" in given:
        made.__cause__ = build(given["cause"])
    return made


def check_classify(vector: dict[str, Any]) -> None:
    """4.3: kind, retry, provider, status, words and detail."""
    exc, expected = build(vector["given"]), vector["expected"]
    fault = with_provider(classify(exc, "", now=NOW), vector["hint"])

    assert (fault.kind, fault.retryable) == (expected["kind"], expected["retryable"])
    assert (fault.provider, fault.status_code) == (expected["provider"], expected["status"])
    assert expected["phrase"] in fault.user_text
    if "detail" in expected:
        wanted = str(exc) if expected["detail"] == "same text" else expected["detail"]
        assert fault.detail == wanted


def check_diagnostic(vector: dict[str, Any]) -> None:
    """4.7: what may be shown."""
    assert diagnostic_text(vector["given"]) == vector["expected"]


def check_hint(vector: dict[str, Any]) -> None:
    """4.4: between two numbers of seconds."""
    low, high = vector["expected"]
    for headers in [vector["given"], *vector.get("also", [])]:
        assert low <= parse_retry_after(headers, now=NOW) <= high


def check_delay(vector: dict[str, Any]) -> None:
    """5: doubled, up to a minute."""
    assert [delay_s(n) for n in vector["given"]] == vector["expected"]


def check_effective(vector: dict[str, Any]) -> None:
    """5: a hint is a floor."""
    assert [effective_delay_s(0, hint) for hint in vector["given"]] == vector["expected"]


def check_budget(vector: dict[str, Any]) -> None:
    """2: bytes of one result."""
    assert [budget_bytes(window) for window in vector["given"]] == vector["expected"]


def check_truncate(vector: dict[str, Any]) -> None:
    """2: head and tail, whole characters, within the budget."""
    text = "".join(piece * count for piece, count in vector["given"])
    for budget in vector["budgets"]:
        found = truncate_text(text, budget)
        assert found.removed_bytes == vector["removed"]
        assert budget <= 0 or len(found.text.encode()) <= budget
        head, tail = vector["kept"][0], vector["kept"][-1]
        assert found.text.startswith(head[0] * head[1])
        assert found.text.endswith(tail[0] * tail[1])
        assert vector.get("gone", "\0") not in found.text


def check_arguments(vector: dict[str, Any]) -> None:
    """6.3: always an object."""
    assert [parse_arguments(text)[0] for text in vector["given"]] == vector["expected"]


def check_outline(vector: dict[str, Any]) -> None:
    """6.5: both repair passes; a synthetic error ends in an exclamation mark."""
    messages = [
        PromptMessage(
            role=role,
            content=part_list_adapter.validate_python(parts) if parts else (TextPart(text="x"),),
        )
        for role, parts in vector["given"]
    ]
    lines = []
    for message in repair_prompt(messages):
        ids = [
            part.tool_call_id + ("!" if isinstance(part, ToolResultPart) and part.is_error else "")
            for part in message.content
            if isinstance(part, ToolCallPart | ToolResultPart)
        ]
        lines.append(" ".join([message.role, *ids]))

    assert lines == vector["expected"]


def check_files(vector: dict[str, Any]) -> None:
    """6.2: files, notes in their place, nothing for what is empty."""
    parts = tuple(FilePart.model_validate(given) for given in vector["given"])
    placed = place_files([PromptMessage(role="user", content=parts)], dict[UUID, Any](), LIMITS["anthropic"])
    shown = [
        f"file {part.media_type}" if isinstance(part, FilePart) else part.text  # type: ignore[union-attr]
        for message in placed
        for part in message.content
    ]

    assert shown == vector["expected"]


def check_reference(vector: dict[str, Any]) -> None:
    """6.2: tag and place, no fence without content."""
    assert describe_reference(FileReferencePart.model_validate(vector["given"])) == vector["expected"]


def check_cache_marks(vector: dict[str, Any]) -> None:
    """1.9: where the vendor's cache of the prompt ends."""
    roles = ("user", "assistant", "user")
    messages = tuple(PromptMessage(role=role, content=(TextPart(text="x"),)) for role in roles)  # type: ignore[arg-type]
    written = anthropic_prompt.build_messages(
        ModelRequest(model="m", system="s", messages=messages), "toolset"
    )
    marked = [m["role"] for m in written if any("cache_control" in block for block in m["content"])]
    system = ["system" for block in anthropic_prompt.build_system("s") if "cache_control" in block]

    assert system + marked == vector["expected"]


def check_alone(_: dict[str, Any]) -> None:
    """1.5: neither runs, two policy errors."""

    async def run(context: Any) -> Any:
        return error_outcome(context.call, "ran")

    definitions = [
        FunctionTool(name=name, description="", input_schema={}) for name in ("advisor", "read_file")
    ]
    tools = {d.name: LocalTool(definition=d, run=run, is_exclusive=d.name == "advisor") for d in definitions}
    calls = [ToolCallPart(tool_call_id=name, tool_name=name) for name in tools]
    refused = Toolset(tools=tools).refuse_company(calls)

    assert [outcome.part.is_error for outcome in refused.values()] == [True, True]


def check_size(vector: dict[str, Any]) -> None:
    """8.5: the size that models are told."""
    sizes = [declared_size(Size(width=w, height=h)) for w, h in vector["given"]]
    assert [[size.width, size.height] for size in sizes] == vector["expected"]


def check_axis(vector: dict[str, Any]) -> None:
    """8.5: the centre of a pixel, half up."""
    scale = Scale(native=Size(width=1920, height=1080), model=Size(width=1280, height=720))
    assert [scale.to_native(ModelPoint(x=x, y=0)).x for x in vector["given"]] == vector["expected"]
    for x in vector["refused"]:
        with pytest.raises(OutOfBounds):
            scale.to_native(ModelPoint(x=x, y=0))


def check_rows(vector: dict[str, Any]) -> None:
    """1.7: what the vendor ran stays in its place in the assistant's message."""
    rows = [
        Message.model_validate(
            {"id": n, "chat_id": UUID(int=1), "role": role, "content": parts, "created_at": NOW}
        )
        for n, (role, parts) in enumerate(vector["given"], start=1)
    ]
    found = [
        [f"{part.type.removeprefix('tool-')} {part.tool_call_id}" for part in message.content]  # type: ignore[union-attr]
        for message in group_messages(rows)
    ]

    assert found == vector["expected"]


CHECKS: dict[str, Callable[[dict[str, Any]], None]] = {
    name.removeprefix("check_"): check for name, check in list(globals().items()) if name.startswith("check_")
}


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: str(vector["n"]))
def test_vector(vector: dict[str, Any]) -> None:
    """Spec 12: checked here, or by the test that it names; or a decision says why it does not hold."""
    assert {"check", "covered_by", "superseded"} & vector.keys()
    if "check" in vector:
        CHECKS[vector["check"]](vector)
    if "covered_by" in vector:
        assert is_test(vector["covered_by"])


def is_test(place: str) -> bool:
    """Whether there is a test at ``file::name``."""
    path, _, name = place.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    tests = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
    return name.startswith("test_") and name in tests


@pytest.mark.parametrize("name", list(DATA["named"]))
def test_what_others_test_by_name_is_tested_here(name: str) -> None:
    """Spec 11: under names of ours."""
    assert is_test(DATA["named"][name])


def test_every_vector_is_there_once() -> None:
    """Spec 12: 88 of them."""
    assert [vector["n"] for vector in VECTORS] == list(range(1, 89))
