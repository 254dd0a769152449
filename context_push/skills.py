"""The files beside a skill's ``SKILL.md``: carried as text while they fit, else named with their size."""

import os

from context_push.classify import SKILL_META_NAME, Invalid, decode_text
from context_push.reading import Problem, read
from context_push.wire.resources import SkillFile

__all__ = ["MAX_DEPTH", "MAX_FILES", "read_files"]

# Directories below a skill's that are looked into, and files that are named; a skill is no archive.
MAX_DEPTH = 3
MAX_FILES = 64


def read_files(directory: str, *, budget: int, listed: set[str]) -> tuple[SkillFile, ...]:
    """
    Files below *directory* by relative path, carrying at most *budget* bytes.

    Links and hidden names are left out. Directories looked into are added to *listed*.
    """
    files: list[SkillFile] = []
    for relative in sorted(_walk(directory, "", 0, listed))[:MAX_FILES]:
        file = read(f"{directory}/{relative}")
        if isinstance(file, Problem):
            continue
        fits = not file.is_oversize and len(file.data) <= budget
        text = decode_text(file.data) if fits else None
        if isinstance(text, Invalid):
            text = None
        if text is not None:
            budget -= len(file.data)
        files.append(SkillFile(path=relative, size_bytes=file.size_bytes, text=text))
    return tuple(files)


def _walk(directory: str, prefix: str, depth: int, listed: set[str]) -> list[str]:
    listed.add(directory)
    try:
        with os.scandir(directory) as found:
            entries = sorted(found, key=lambda entry: entry.name)[: MAX_FILES * 4]
    except OSError:
        return []
    files: list[str] = []
    for entry in entries:
        relative = prefix + entry.name
        if entry.name.startswith(".") or relative == SKILL_META_NAME or entry.is_symlink():
            continue
        if not _is_text(relative):
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth < MAX_DEPTH:
                files += _walk(entry.path, f"{relative}/", depth + 1, listed)
        elif entry.is_file(follow_symlinks=False):
            files.append(relative)
        if len(files) >= MAX_FILES * 4:
            break
    return files


def _is_text(name: str) -> bool:
    """Whether a name has an encoding and so can travel."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
