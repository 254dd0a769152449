"""
A pin as part of a system prompt.

Only ok resources count. Instructions are sanitized and named by their path; of a
skill only name, description and directory stand here, since the model reads the rest
when it needs it.
"""

from collections.abc import Iterable, Mapping, Sequence

from context_push.wire.resources import InstructionBody, Resource, SkillBody
from context_push.wire.text import clean_line, sanitize

__all__ = ["ok_skills", "render_context", "skill_text"]

INTRODUCTION = (
    "The person you work for keeps these instructions and skills in the workspace. "
    "Follow the instructions; where they contradict what you are asked, what you are asked goes first."
)
SKILLS = "Skills: read the one that fits a task with read_skill before you begin."


def render_context(resources: Sequence[Resource], environment: Mapping[str, str]) -> str:
    """The block for the system prompt; empty when the pin holds nothing to say."""
    parts = [_instructions(resource, text) for resource, text in _ok_instructions(resources)]
    skills = ok_skills(resources)
    if skills:
        lines = [_skill_line(resource, body) for resource, body in skills]
        parts.append("\n".join([SKILLS, *lines]))
    if not parts:
        return ""
    return (
        "\n\n".join([f"<workspace-context>\n{_header(environment)}{INTRODUCTION}", *parts])
        + "\n</workspace-context>"
    )


def ok_skills(resources: Iterable[Resource]) -> list[tuple[Resource, SkillBody]]:
    """The skills that can be read, by name."""
    found = [(r, r.body) for r in resources if r.is_ok and isinstance(r.body, SkillBody)]
    return sorted(found, key=lambda pair: pair[1].name)


def skill_text(text: str) -> str:
    """What a model reads of a skill's file: sanitized, without front matter."""
    safe = sanitize(text)
    lines = safe.split("\n")
    if lines[0].rstrip() != "---":
        return safe
    end = next((at for at, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), None)
    return safe if end is None else "\n".join(lines[end + 1 :]).strip("\n")


def _ok_instructions(resources: Iterable[Resource]) -> list[tuple[Resource, str]]:
    found = [
        (r, sanitize(r.body.text).strip())
        for r in resources
        if r.is_ok and isinstance(r.body, InstructionBody)
    ]
    return [(resource, text) for resource, text in found if text]


def _header(environment: Mapping[str, str]) -> str:
    names = (("Operating system", "os"), ("Working directory", "directory"))
    lines = [
        f"{title}: {clean_line(environment.get(key) or '')}\n" for title, key in names if environment.get(key)
    ]
    return "".join(lines)


def _instructions(resource: Resource, text: str) -> str:
    # A file must not be able to close its own element, nor ours.
    return f"<instructions source={_quoted(resource.source)}>\n{_inert(text)}\n</instructions>"


def _skill_line(resource: Resource, body: SkillBody) -> str:
    description = f": {_inert(clean_line(body.description))}" if body.description else ""
    return f"- {body.name}{description} (in {_inert(clean_line(resource.source))})"


def _quoted(text: str) -> str:
    return '"' + _inert(clean_line(text)).replace('"', "'") + '"'


def _inert(text: str) -> str:
    for tag in ("instructions", "workspace-context"):
        text = text.replace(f"</{tag}", f"<\\/{tag}")
    return text
