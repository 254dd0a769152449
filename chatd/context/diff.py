"""
What a refresh would change: the pin against what the workspace has now.

MCP resources are left out, as they are of the hash: they change nothing in a prompt.
"""

import difflib
from collections.abc import Iterable, Sequence

from chatd.context_wire import ChangedResource, ContextDiff, ContextResource
from context_push.wire.resources import DRIFT_FREE_KINDS, InstructionBody, Resource, SkillBody
from context_push.wire.text import clean_line, first_line

__all__ = ["diff_resources", "resource_metadata"]

# Characters of one resource's diff; a reader who wants more has the files.
MAX_DIFF = 65_536
# Lines compared as such; difflib takes quadratic time, so longer texts are told without their lines.
MAX_LINES = 5_000


def resource_metadata(resource: Resource) -> ContextResource:
    """What clients see of a resource: everything but its text."""
    body = resource.body
    description = None
    if isinstance(body, InstructionBody):
        description = first_line(body.text) or None
    elif hasattr(body, "description"):
        description = clean_line(body.description) or None
    return ContextResource(
        source=resource.source,
        kind=resource.kind,
        status=resource.status,
        size_bytes=resource.size_bytes,
        error=resource.error,
        description=description,
        skill_name=(body.name or None) if isinstance(body, SkillBody) else None,
    )


def diff_resources(pinned: Iterable[Resource], current: Iterable[Resource]) -> ContextDiff:
    """Resources that a refresh would add, remove, or change, each by source."""
    before, after = _by_id(pinned), _by_id(current)
    return ContextDiff(
        added=tuple(resource_metadata(after[key]) for key in sorted(after.keys() - before.keys())),
        removed=tuple(resource_metadata(before[key]) for key in sorted(before.keys() - after.keys())),
        modified=tuple(
            _changed(before[key], after[key])
            for key in sorted(before.keys() & after.keys())
            if _differs(before[key], after[key])
        ),
    )


def _by_id(resources: Iterable[Resource]) -> dict[str, Resource]:
    return {resource.id: resource for resource in resources if resource.kind not in DRIFT_FREE_KINDS}


def _differs(before: Resource, after: Resource) -> bool:
    return (before.content_hash, before.status) != (after.content_hash, after.status)


def _changed(before: Resource, after: Resource) -> ChangedResource:
    old, new = _texts(before), _texts(after)
    parts = [
        _unified(old.get(name, ""), new.get(name, ""), name)
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]
    diff = "".join(parts)
    is_cut = len(diff) > MAX_DIFF
    return ChangedResource(
        before=resource_metadata(before),
        after=resource_metadata(after),
        diff=diff[:MAX_DIFF],
        truncated=is_cut,
    )


def _texts(resource: Resource) -> dict[str, str]:
    """The texts of a resource by path."""
    path = resource.source_path or resource.source
    match resource.body:
        case InstructionBody(text=text):
            return {path: text}
        case SkillBody(text=text, files=files):
            return {path: text} | {
                f"{resource.source}/{file.path}": f"[{file.size_bytes} bytes]\n"
                if file.text is None
                else file.text
                for file in files
            }
        case _:
            return {}


def _unified(old: str, new: str, path: str) -> str:
    before, after = _lines(old), _lines(new)
    name = clean_line(path)
    if len(before) + len(after) > MAX_LINES:
        return f"--- {name}\n+++ {name}\n@@ {len(before)} lines became {len(after)} lines @@\n"
    lines: Sequence[str] = list(difflib.unified_diff(before, after, name, name))
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _lines(text: str) -> list[str]:
    """Lines with their newlines; nothing else ends one."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
