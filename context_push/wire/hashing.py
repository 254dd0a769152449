"""
Hashes of contents and of whole sets; equal on every machine and in every order. Pure.

Source: workspace-side specification, 5.4. A skill with files beside its ``SKILL.md``
hashes those too, in the aggregate's own framing; without any it is the plain hash.
"""

import hashlib
from collections.abc import Iterable

from context_push.wire.resources import (
    DRIFT_FREE_KINDS,
    InstructionBody,
    Resource,
    ResourceStatus,
    SkillBody,
    SkillFile,
)

__all__ = ["aggregate_hash", "body_content_hash", "content_hash", "skill_hash"]


def content_hash(data: bytes) -> str:
    """SHA-256 of *data*, in hex."""
    return hashlib.sha256(data).hexdigest()


def skill_hash(data: bytes, files: Iterable[SkillFile]) -> str:
    """SHA-256 of ``SKILL.md`` and of what is carried of the files beside it, in hex."""
    digest = hashlib.sha256(data)
    for file in files:
        digest.update(_field(file.path) + _field(str(file.size_bytes)) + _field(file.text or "") + b"\0")
    return digest.hexdigest()


def body_content_hash(resource: Resource) -> str | None:
    """The hash that an ok body must have by its text; None where the text does not tell."""
    if not resource.is_ok:
        return None
    match resource.body:
        case InstructionBody(text=text):
            return content_hash(text.encode())
        case SkillBody(text=text, files=files):
            return skill_hash(text.encode(), files)
        case _:
            return None


def aggregate_hash(resources: Iterable[Resource]) -> str:
    """
    SHA-256 over the resources sorted by identity, in hex; of none it is SHA-256 of nothing.

    Each gives the fields id, kind and source (decimal byte length, colon, bytes), its
    32 hash bytes, the field status, and one NUL. MCP resources are left out.
    """
    digest = hashlib.sha256()
    for resource in sorted(resources, key=lambda resource: resource.id.encode()):
        if resource.kind in DRIFT_FREE_KINDS:
            continue
        digest.update(_field(resource.id) + _field(resource.kind) + _field(resource.source))
        digest.update(bytes.fromhex(resource.content_hash))
        digest.update(_field(resource.status) + b"\0")
    return digest.hexdigest()


def _field(text: str | ResourceStatus) -> bytes:
    data = text.encode()
    return b"%d:%s" % (len(data), data)
