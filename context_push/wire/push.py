"""
The push: a workspace tells the control plane its whole context, as one version.

The daemon calls ``context/push`` after hello and after every change. Both ends check
the same bounds: the sender never sends what would be refused, the receiver refuses
the whole push.
"""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from context_push.wire.hashing import aggregate_hash, body_content_hash
from context_push.wire.resources import InstructionBody, McpServerBody, PluginBody, Resource, SkillBody

__all__ = [
    "CONTEXT_PUSH",
    "MAX_BODY_BYTES",
    "MAX_ERROR_BYTES",
    "MAX_PUSH_BYTES",
    "MAX_RESOURCES",
    "MAX_SOURCE_BYTES",
    "ContextPush",
    "PushAnswer",
    "body_bytes",
    "push_problem",
]

CONTEXT_PUSH = "context/push"

# Bounds of what the control plane takes; the daemon's own are lower (context_push.bounds).
MAX_RESOURCES = 1000
# Bytes of one body as JSON, and of all together.
MAX_BODY_BYTES = 256 * 1024
MAX_PUSH_BYTES = 4 * 1024 * 1024
# Bytes of a source or path, and of a diagnostic.
MAX_SOURCE_BYTES = 1024
MAX_ERROR_BYTES = 4096


class ContextPush(BaseModel):
    """Everything the workspace has; *version* rises by change within one life of the daemon."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    version: int = Field(ge=1)
    aggregate_hash: str = Field(pattern=r"^[0-9a-f]{64}$")
    resources: tuple[Resource, ...] = ()
    initial: bool = Field(default=False, description="First accepted push of a connection.")
    snapshot_error: str | None = Field(default=None, description="What is wrong with the whole of it.")
    os: str = Field(default="", max_length=200, description="Operating system, for the prompt's header.")
    directory: str = Field(default="", max_length=4096, description="Working directory, likewise.")


class PushAnswer(BaseModel):
    """Whether the push was taken; one that was not is not tried again."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    accepted: bool
    reason: str | None = None


def body_bytes(resource: Resource) -> int:
    """Bytes of the resource's body as JSON."""
    return len(resource.body.model_dump_json().encode())


def push_problem(push: ContextPush) -> str | None:
    """Why *push* must be refused, or None."""
    problem = _count_problem(push.resources)
    if problem is not None:
        return problem
    for resource in push.resources:
        problem = _resource_problem(resource)
        if problem is not None:
            return f"{resource.source[:200]}: {problem}"
    if sum(map(body_bytes, push.resources)) > MAX_PUSH_BYTES:
        return f"the bodies are more than {MAX_PUSH_BYTES} bytes together"
    if len((push.snapshot_error or "").encode()) > MAX_ERROR_BYTES:
        return f"snapshot_error is longer than {MAX_ERROR_BYTES} bytes"
    if aggregate_hash(push.resources) != push.aggregate_hash:
        return "the aggregate hash is not that of the resources"
    return None


def _count_problem(resources: Sequence[Resource]) -> str | None:
    if len(resources) > MAX_RESOURCES:
        return f"{len(resources)} resources are more than {MAX_RESOURCES}"
    if len({resource.source for resource in resources}) < len(resources):
        return "two resources have the same source"
    return None


def _resource_problem(resource: Resource) -> str | None:
    for text in (resource.source, resource.source_path or ""):
        if len(text.encode(errors="surrogatepass")) > MAX_SOURCE_BYTES or "\0" in text:
            return f"the source is longer than {MAX_SOURCE_BYTES} bytes or holds NUL"
    if len((resource.error or "").encode()) > MAX_ERROR_BYTES:
        return f"the error is longer than {MAX_ERROR_BYTES} bytes"
    if body_bytes(resource) > MAX_BODY_BYTES:
        return f"the body is more than {MAX_BODY_BYTES} bytes"
    if any("\0" in text for text in _texts(resource)):
        return "the body holds NUL"
    expected = body_content_hash(resource)
    return None if expected in {None, resource.content_hash} else "the content hash is not that of the body"


def _texts(resource: Resource) -> tuple[str, ...]:
    match resource.body:
        case InstructionBody(text=text):
            return (text,)
        case SkillBody(name=name, description=description, text=text, files=files):
            return (
                name,
                description,
                text,
                *(part for file in files for part in (file.path, file.text or "")),
            )
        case PluginBody(name=name, version=version, description=description):
            return (name, version, description)
        case McpServerBody(name=name, tools=tools):
            return (name, *tools)
        case _:
            return ()
