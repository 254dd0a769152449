"""
What of a workspace's resources is carried, when there are too many or too much. Pure.

Order is (kind, source) ascending, so which ones are left out does not depend on the
file system. Resources that are appended (MCP servers) come after the files' bounds
and so can't crowd instructions out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from context_push.wire.push import (
    MAX_BODY_BYTES,
    MAX_ERROR_BYTES,
    MAX_PUSH_BYTES,
    MAX_RESOURCES,
    MAX_SOURCE_BYTES,
    body_bytes,
)
from context_push.wire.resources import Body, InstructionBody, Resource, ResourceStatus, SkillBody
from context_push.wire.text import truncate_bytes

__all__ = [
    "MAX_COUNT",
    "MAX_PAYLOAD_BYTES",
    "MAX_TOTAL_BYTES",
    "Bounded",
    "bound",
    "payload_bytes",
    "without_body",
]

# Bytes of one resource; instructions longer than that no model heeds.
MAX_PAYLOAD_BYTES = 64 * 1024
# Bytes of all resources, and how many.
MAX_TOTAL_BYTES = 2 * 1024 * 1024
MAX_COUNT = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """*resources* to push, sorted by (kind, source); *dropped* could not even be named in a push."""

    resources: tuple[Resource, ...]
    dropped: tuple[str, ...] = ()


def bound(found: Iterable[Resource], appended: Sequence[Resource] = ()) -> Bounded:
    """Mark what is too much as excluded, drop what a push can't name."""
    kept: list[Resource] = []
    dropped: list[str] = []
    total, encoded = 0, 0
    for resource in sorted(map(_within_body, found), key=lambda resource: (resource.kind, resource.source)):
        if not _can_be_named(resource) or len(kept) + len(appended) >= MAX_RESOURCES:
            dropped.append(resource.source)
            continue
        problem = _excess(resource, count=len(kept), total=total, encoded=encoded)
        if problem is not None:
            kept.append(without_body(resource, ResourceStatus.EXCLUDED, problem))
            continue
        kept.append(resource)
        total += payload_bytes(resource.body)
        encoded += body_bytes(resource)
    return Bounded(resources=(*kept, *appended), dropped=tuple(dropped))


def payload_bytes(body: Body) -> int:
    """Bytes of text that a body carries."""
    match body:
        case InstructionBody(text=text):
            return len(text.encode())
        case SkillBody(text=text, files=files):
            return len(text.encode()) + sum(len((file.text or "").encode()) for file in files)
        case _:
            return 0


def without_body(resource: Resource, status: ResourceStatus, error: str) -> Resource:
    """The resource with a blank body of its kind, and why."""
    return resource.model_copy(update={"status": status, "error": error, "body": type(resource.body)()})


def _within_body(resource: Resource) -> Resource:
    if resource.error is not None:
        resource = resource.model_copy(update={"error": truncate_bytes(resource.error, MAX_ERROR_BYTES)})
    if body_bytes(resource) <= MAX_BODY_BYTES:
        return resource
    return without_body(
        resource, ResourceStatus.OVERSIZE, f"is more than {MAX_BODY_BYTES} bytes as JSON; make it shorter"
    )


def _can_be_named(resource: Resource) -> bool:
    paths = (resource.source, resource.source_path or "")
    return all(len(path.encode(errors="surrogatepass")) <= MAX_SOURCE_BYTES for path in paths)


def _excess(resource: Resource, *, count: int, total: int, encoded: int) -> str | None:
    if count >= MAX_COUNT:
        return f"there are more than {MAX_COUNT} resources; remove some"
    is_too_much = total + payload_bytes(resource.body) > MAX_TOTAL_BYTES
    if is_too_much or encoded + body_bytes(resource) > MAX_PUSH_BYTES - MAX_RESOURCES * _BLANK_BYTES:
        return f"all resources together are more than {MAX_TOTAL_BYTES} bytes; make some shorter"
    return None


# Bytes of the longest blank body as JSON.
_BLANK_BYTES = 80
