"""Context for tests of the store: pushes made by hand, and the check that every pin is true."""

import random
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from chatd.store import pins, schema
from context_push.wire.hashing import aggregate_hash, body_content_hash, content_hash
from context_push.wire.push import ContextPush
from context_push.wire.resources import (
    InstructionBody,
    McpConfigBody,
    Resource,
    ResourceStatus,
    SkillBody,
)

__all__ = ["config", "instruction", "pin_problems", "push", "random_push", "skill"]


def instruction(source: str = "/w/AGENTS.md", text: str = "Be kind.") -> Resource:
    """An ok instruction file."""
    data = text.encode()
    return Resource(
        source=source,
        source_path=source,
        content_hash=content_hash(data),
        size_bytes=len(data),
        body=InstructionBody(text=text),
    )


def skill(name: str, text: str = "") -> Resource:
    """An ok skill."""
    whole = f"---\nname: {name}\n---\n{text}"
    return Resource(
        source=f"/w/skills/{name}",
        source_path=f"/w/skills/{name}/SKILL.md",
        content_hash=content_hash(whole.encode()),
        size_bytes=len(whole.encode()),
        body=SkillBody(name=name, description=f"Does {name}.", text=whole),
    )


def config(text: str) -> Resource:
    """An MCP configuration, which makes nobody dirty."""
    return Resource(
        source="/w/.mcp.json",
        content_hash=content_hash(text.encode()),
        size_bytes=len(text),
        body=McpConfigBody(),
    )


def push(version: int, *resources: Resource, **fields: Any) -> ContextPush:
    """A push of *resources*."""
    values = {"aggregate_hash": aggregate_hash(resources), "os": "Debian", "directory": "/w"} | fields
    return ContextPush(version=version, resources=resources, **values)


def random_push(rng: random.Random, version: int, *, initial: bool) -> ContextPush:
    """A push of a few of a few resources, some of them broken."""
    resources: list[Resource] = [
        instruction(f"/w/{n}/AGENTS.md", f"text {rng.randrange(3)}") for n in range(4) if rng.random() < 0.6
    ]
    resources += [skill(f"s{n}", f"{rng.randrange(2)}") for n in range(3) if rng.random() < 0.5]
    if rng.random() < 0.5:
        resources.append(config(f"{rng.randrange(4)}"))
    if resources and rng.random() < 0.2:
        broken = resources.pop(rng.randrange(len(resources)))
        changes = {"status": ResourceStatus.INVALID, "error": "broken", "body": type(broken.body)()}
        resources.append(broken.model_copy(update=changes))
    rng.shuffle(resources)
    return push(version, *resources, initial=initial)


def pin_problems(connection: sa.Connection) -> list[str]:
    """
    Every way in which what is stored contradicts the invariant.

    A chat's pinned bodies are those of its pinned hash, a live chat is dirty if and only
    if its hash is not its agent's, and a chat without a pin has nothing at all.
    """
    snapshots: dict[UUID, bytes] = {}
    problems: list[str] = []
    for snapshot in connection.execute(sa.select(schema.context_snapshots)).mappings():
        snapshots[snapshot["agent_id"]] = snapshot["aggregate_hash"]
        pushed = pins.agent_resources(connection, snapshot["agent_id"]) or []
        problems += _hash_problems(f"agent {snapshot['agent_id']}", snapshot["aggregate_hash"], pushed)
    chats = connection.execute(sa.select(schema.chats)).mappings().all()
    for chat in chats:
        current = snapshots.get(chat["agent_id"]) if chat["agent_id"] else None
        problems += _chat_problems(chat, pins.pinned_resources(connection, chat["id"]), current)
    return problems


def _chat_problems(chat: sa.RowMapping, pinned: Sequence[Resource], current: bytes | None) -> list[str]:
    name, dirty = f"chat {chat['id']}", chat["context_dirty_since"] is not None
    if not pins.is_pinned(chat):
        is_blank = chat["context_pin_id"] is None and not dirty and chat["context_environment"] is None
        return [] if is_blank else [f"{name} has no hash, but {len(pinned)} resources, dirty {dirty}"]
    problems = _hash_problems(name, chat["context_aggregate_hash"], pinned)
    differs = current is not None and current != chat["context_aggregate_hash"]
    if not chat["archived"] and dirty is not differs:
        problems.append(f"{name} is dirty: {dirty}, differs: {differs}")
    return problems


def _hash_problems(name: str, expected: bytes, resources: Sequence[Resource]) -> list[str]:
    problems = [
        f"{name}: {resource.id} has another text than its hash"
        for resource in resources
        if body_content_hash(resource) not in {None, resource.content_hash}
    ]
    actual = aggregate_hash(resources)
    if actual != expected.hex():
        problems.append(f"{name}: {len(resources)} resources give {actual}, the hash is {expected.hex()}")
    return problems
