"""
One pass over the sources: what is there, what is wrong with it, and where to look for changes.

Only the sources' own names are looked at, never the trees around them. Order is
priority: the first valid skill of a name wins.
"""

import os
import platform
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from context_push.bounds import MAX_PAYLOAD_BYTES, without_body
from context_push.classify import (
    INSTRUCTION_NAMES,
    MCP_CONFIG_NAME,
    PLUGIN_SCHEMA,
    SKILL_META_NAME,
    Invalid,
    check_mcp_config,
    decode_text,
    parse_manifest,
    parse_skill,
)
from context_push.reading import Located, Problem, ReadFile, is_inside, locate, read
from context_push.skills import read_files
from context_push.wire.hashing import content_hash, skill_hash
from context_push.wire.resources import (
    Body,
    InstructionBody,
    McpConfigBody,
    PluginBody,
    Resource,
    ResourceStatus,
    SkillBody,
)

__all__ = ["Discovery", "Interest", "Note", "discover", "operating_system"]

SKILL_CONTAINERS = ("skills", ".agents/skills", ".claude/skills", ".codex/skills")
PLUGIN_CONTAINERS = ("plugins", ".agents/plugins")
PLUGIN_MANIFEST = "plugin.json"
PLUGIN_MCP_CONFIG = "mcp.json"
# Entries of one container that are looked at, by name; more is no collection of skills.
MAX_ENTRIES = 2000


@dataclass(frozen=True, slots=True)
class Note:
    """Something that is no resource, and why; for people in the workspace."""

    path: str
    reason: str


@dataclass(slots=True)
class Interest:
    """Where a change matters: *named* paths, and everything directly in *listed* directories."""

    named: set[str] = field(default_factory=set)
    listed: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """What one pass found; resources are unbounded and in order of priority."""

    resources: tuple[Resource, ...]
    notes: tuple[Note, ...]
    interest: Interest


def operating_system() -> str:
    """The workspace's system, for the prompt's header."""
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "") or platform.system()
    except OSError:
        return platform.system()


def discover(roots: Iterable[str]) -> Discovery:
    """Read every root in order; never raises for what it finds there."""
    scan = _Scan()
    for root in roots:
        scan.root(root)
    return Discovery(resources=tuple(scan.resources()), notes=tuple(scan.notes), interest=scan.interest)


class _Scan:
    """The state of one pass."""

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self.interest = Interest()
        self._files: dict[str, Resource] = {}
        self._skills: dict[str, list[Resource]] = {}
        self._plugins: dict[str, str] = {}
        self._seen: set[str] = set()

    def resources(self) -> Iterable[Resource]:
        """Everything found, each source once."""
        yield from self._files.values()
        for skills in self._skills.values():
            yield from skills

    # -- roots -----------------------------------------------------------------

    def root(self, path: str) -> None:
        """A directory, or a single file of a known name; a missing one is no news."""
        self.interest.named.add(path)
        try:
            real = os.path.realpath(path, strict=True)
            mode = Path(real).stat().st_mode
            real.encode()
        except (FileNotFoundError, NotADirectoryError):
            self._note(path, "does not exist")
            return
        except (OSError, UnicodeEncodeError) as exc:
            self._note(
                path, f"can't be looked at: {getattr(exc, 'strerror', None) or 'its name is no UTF-8'}"
            )
            return
        self.interest.named.add(real)
        if stat.S_ISDIR(mode):
            self._directory(real, is_skills=Path(path).name == "skills")
        elif stat.S_ISREG(mode):
            self._single(path, real)
        else:
            self._note(path, "is neither a directory nor a regular file")

    def _single(self, path: str, real: str) -> None:
        root, name = str(Path(real).parent), Path(path).name
        if name in INSTRUCTION_NAMES:
            self._file(real, root, _read_instructions)
        elif name == MCP_CONFIG_NAME:
            self._file(real, root, _read_mcp_config)
        elif name == SKILL_META_NAME:
            self._skill(str(Path(root).parent), root)
        else:
            self._note(
                path, f"is none of {', '.join((*INSTRUCTION_NAMES, MCP_CONFIG_NAME, SKILL_META_NAME))}"
            )

    def _directory(self, root: str, *, is_skills: bool) -> None:
        for name in INSTRUCTION_NAMES:
            self._file(f"{root.rstrip('/')}/{name}", root, _read_instructions)
        self._file(f"{root.rstrip('/')}/{MCP_CONFIG_NAME}", root, _read_mcp_config)
        if is_skills:
            self._skills_in(root, root)
        for container in SKILL_CONTAINERS:
            self._skills_in(root, f"{root.rstrip('/')}/{container}")
        self._plugin(root)
        for container in PLUGIN_CONTAINERS:
            for plugin in self._children(root, f"{root.rstrip('/')}/{container}"):
                self._plugin(plugin)

    # -- files -----------------------------------------------------------------

    def _file(self, path: str, root: str, classify: Callable[[ReadFile], "_Read"]) -> None:
        self.interest.named.add(path)
        located = locate(path, root)
        if located is None:
            return
        source = located.path if isinstance(located, Located) else path
        self.interest.named.add(source)
        resource = _resource(source, source, located, classify)
        known = self._files.get(resource.id)
        if known is None or (resource.is_ok and not known.is_ok):
            self._files[resource.id] = resource

    # -- skills ----------------------------------------------------------------

    def _skills_in(self, root: str, container: str) -> None:
        for directory in self._children(root, container):
            self._skill(root, directory)

    def _skill(self, root: str, directory: str) -> None:
        meta = f"{directory}/{SKILL_META_NAME}"
        self.interest.named.add(meta)
        located = locate(meta, root)
        if located is None:
            return
        if isinstance(located, Located):
            self.interest.named.add(located.path)
        name = Path(directory).name

        def classify(file: ReadFile) -> _Read:
            return _read_skill(file, name, directory, self.interest.listed)

        self._keep_skill(name, _resource(directory, meta, located, classify))

    def _keep_skill(self, name: str, skill: Resource) -> None:
        known = self._skills.setdefault(name, [])
        if any(other.source == skill.source for other in known):
            return
        winner = next((other for other in known if other.is_ok), None)
        if winner is not None:
            self._note(skill.source, f"is a skill of the same name as {winner.source}, which comes first")
            return
        if skill.is_ok:
            for other in known:
                self._note(other.source, f"{other.error}; {skill.source} takes its place")
            known.clear()
        known.append(skill)

    # -- plugins ---------------------------------------------------------------

    def _plugin(self, directory: str) -> None:
        path = f"{directory.rstrip('/')}/{PLUGIN_MANIFEST}"
        self.interest.named.add(path)
        located = locate(path, directory)
        if located is None:
            return
        if isinstance(located, Problem):
            # Without its content nobody knows whether it wants to be a plugin of ours.
            self._note(path, located.text)
            return
        file = read(located.path)
        if isinstance(file, Problem):
            self._note(path, file.text)
            return
        self._manifest(directory, path, file)

    def _manifest(self, directory: str, path: str, file: ReadFile) -> None:
        manifest = parse_manifest(file.data)
        if manifest is None:
            self._note(path, f"declares no $schema {PLUGIN_SCHEMA}")
            return
        plugin = Resource(
            source=path,
            source_path=path,
            content_hash=content_hash(file.data),
            size_bytes=file.size_bytes,
            body=PluginBody(),
        )
        if isinstance(manifest, Invalid):
            self._files[plugin.id] = without_body(plugin, ResourceStatus.INVALID, manifest.problem)
            return
        if (other := self._plugins.setdefault(manifest.name, path)) != path:
            text = f"the name {manifest.name} is taken by {other}"
            self._files[plugin.id] = without_body(plugin, ResourceStatus.INVALID, text)
            return
        for key in manifest.unknown:
            self._note(path, f"unknown key {key}")
        body = PluginBody(name=manifest.name, version=manifest.version, description=manifest.description)
        self._files[plugin.id] = plugin.model_copy(update={"body": body})
        self._skills_in(directory, f"{directory.rstrip('/')}/skills")
        self._file(f"{directory.rstrip('/')}/{PLUGIN_MCP_CONFIG}", directory, _read_mcp_config)

    # -- directories -----------------------------------------------------------

    def _children(self, root: str, container: str) -> list[str]:
        """Real subdirectories of *container*, by name; one that leads out of *root* has none."""
        self._name_below(root, container)
        try:
            real = os.path.realpath(container, strict=True)
            if not is_inside(real, root):
                self._note(container, f"is a link that leads out of {root}")
                return []
            if real in self._seen:
                return []
            self._seen.add(real)
            self.interest.listed.add(real)
            with os.scandir(real) as entries:
                return self._directories_of(real, list(entries))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as exc:
            self._note(container, f"can't be listed: {exc.strerror}")
            return []

    def _directories_of(self, real: str, entries: list["os.DirEntry[str]"]) -> list[str]:
        directories: list[str] = []
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_symlink():
                if entry.is_dir():
                    self._note(entry.path, "is a link; directories are not followed")
            elif entry.is_dir():
                directories.append(entry.path)
        for path in directories[MAX_ENTRIES:]:
            self._note(path, f"{real} has more than {MAX_ENTRIES} directories")
        return [path for path in directories[:MAX_ENTRIES] if _has_encoding(path)]

    def _name_below(self, root: str, path: str) -> None:
        """Each step from *root* down to *path* matters: any of them may appear."""
        while len(path) > len(root):
            self.interest.named.add(path)
            path = str(Path(path).parent)

    def _note(self, path: str, reason: str) -> None:
        self.notes.append(Note(path.encode(errors="replace").decode(), reason))


@dataclass(frozen=True, slots=True)
class _Read:
    """A body, or what is wrong; *hash* replaces that of the bytes alone."""

    body: Body
    problem: str | None = None
    hash: str | None = None


def _resource(
    source: str, source_path: str, located: Located | Problem, classify: Callable[[ReadFile], _Read]
) -> Resource:
    file = read(located.path) if isinstance(located, Located) else located
    if isinstance(file, Problem):
        blank = classify(ReadFile(b"", 0)).body
        resource = Resource(
            source=source, source_path=source_path, content_hash=content_hash(b""), size_bytes=0, body=blank
        )
        return without_body(resource, file.status, file.text)
    result = classify(file)
    resource = Resource(
        source=source,
        source_path=source_path,
        content_hash=result.hash or content_hash(file.data),
        size_bytes=file.size_bytes,
        body=result.body,
    )
    if file.is_oversize:
        text = f"is {file.size_bytes} bytes, more than {MAX_PAYLOAD_BYTES}; make it shorter"
        return without_body(resource, ResourceStatus.OVERSIZE, text).model_copy(
            update={"content_hash": content_hash(file.data)}
        )
    if result.problem is not None:
        return without_body(resource, ResourceStatus.INVALID, result.problem)
    return resource


def _read_instructions(file: ReadFile) -> _Read:
    text = decode_text(file.data)
    if isinstance(text, Invalid):
        return _Read(InstructionBody(), text.problem)
    return _Read(InstructionBody(text=text))


def _read_mcp_config(file: ReadFile) -> _Read:
    problem = check_mcp_config(file.data)
    return _Read(McpConfigBody(), problem.problem if problem else None)


def _read_skill(file: ReadFile, name: str, directory: str, listed: set[str]) -> _Read:
    text = decode_text(file.data)
    if isinstance(text, Invalid):
        return _Read(SkillBody(), text.problem)
    meta = parse_skill(text, name)
    if isinstance(meta, Invalid) or file.is_oversize:
        return _Read(SkillBody(), meta.problem if isinstance(meta, Invalid) else None)
    files = read_files(directory, budget=MAX_PAYLOAD_BYTES - len(file.data), listed=listed)
    body = SkillBody(name=meta.name, description=meta.description, text=text, files=files)
    return _Read(body, hash=skill_hash(file.data, files))


def _has_encoding(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
