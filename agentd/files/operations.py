"""
Read, write, edit and list files; each function blocks and belongs in a thread.

A write goes to a temporary file beside its target and is renamed over it: readers see the old
text or the new, and a crash leaves one of both. Mode and owner are kept, symbolic links followed.
"""

import codecs
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agentd.errors import FileRefused
from agentd.files.edits import Edit, EditRefused, apply_edits, diff
from agentd.files.lines import MAX_LINES, Window, number_lines
from agentd.files.places import Places, refuse

__all__ = [
    "Listing",
    "edit_files",
    "is_directory",
    "list_directory",
    "read_bytes",
    "read_text",
    "write_file",
]

# Bytes of a file that is read by lines or edited: larger ones are data, and a tool's place is a command.
MAX_TEXT_BYTES = 64 * 1024 * 1024
# Mode of a new file, before the umask.
NEW_FILE_MODE = 0o666


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Names in a directory, directories with a slash; *window* numbers them."""

    path: Path
    entries: tuple[str, ...]
    window: Window


def is_directory(places: Places, path: str) -> bool:
    """
    Whether *path* is a directory.

    Raises:
        FileRefused: there is no such file.
    """
    return stat.S_ISDIR(places.regular(path)[1].st_mode)


def read_text(places: Places, path: str, *, offset: int = 1, limit: int = MAX_LINES) -> tuple[Window, int]:
    """
    Numbered lines of a text file and its size in bytes.

    Raises:
        FileRefused: no such text file, or *offset* is past its end.
    """
    resolved, info = places.regular(path)
    if stat.S_ISDIR(info.st_mode):
        raise refuse(path, IsADirectoryError())
    text = _load(resolved, path).removeprefix("\ufeff")
    window = number_lines((line.removesuffix("\r") for line in text.split("\n")), offset=offset, limit=limit)
    if offset > window.total:
        msg = f"offset {offset} is past the end: {path} has {window.total} lines"
        raise FileRefused(msg)
    return window, info.st_size


def read_bytes(places: Places, path: str, max_bytes: int) -> tuple[Path, bytes]:
    """
    A whole file, and where it really is.

    Raises:
        FileRefused: no such file, or it is larger than *max_bytes*.
    """
    resolved, info = places.regular(path)
    if stat.S_ISDIR(info.st_mode):
        raise refuse(path, IsADirectoryError())
    raw = _read(resolved, path, max_bytes)
    if len(raw) > max_bytes:
        msg = f"{path} has more than {max_bytes:,} bytes"
        raise FileRefused(msg)
    return resolved, raw


def list_directory(places: Places, path: str, *, offset: int = 1, limit: int = MAX_LINES) -> Listing:
    """
    Entries of a directory by name, a window of them numbered.

    Raises:
        FileRefused: no such directory, or *offset* is past its end.
    """
    resolved, info = places.regular(path)
    if not stat.S_ISDIR(info.st_mode):
        raise refuse(path, NotADirectoryError())
    try:
        entries = sorted(_entries(resolved))
    except OSError as exc:
        raise refuse(path, exc) from exc
    window = number_lines(entries, offset=offset, limit=limit)
    if entries and offset > window.total:
        msg = f"offset {offset} is past the end: {path} has {window.total} entries"
        raise FileRefused(msg)
    shown = tuple(entries[offset - 1 : offset - 1 + window.count])
    return Listing(path=resolved, entries=shown, window=window)


def write_file(places: Places, path: str, content: str) -> Path:
    """
    Write a whole file, making its directories; answers with where it really is.

    Raises:
        FileRefused: it can't be written; the old content is still there.
    """
    resolved = places.resolve(path)
    if resolved.exists():
        _, info = places.regular(path)
        if stat.S_ISDIR(info.st_mode):
            raise refuse(path, IsADirectoryError())
    try:
        raw = content.encode()
    except UnicodeEncodeError as exc:
        msg = f"the text can't be encoded: {exc.reason} at character {exc.start}"
        raise FileRefused(msg) from exc
    try:
        resolved.parent.mkdir(parents=True, exist_ok=True)
        _replace(resolved, raw)
    except OSError as exc:
        raise refuse(path, exc) from exc
    return resolved


def edit_files(places: Places, edits: Mapping[str, Sequence[Edit]]) -> dict[str, str]:
    """
    Edit files; every file is checked before the first is written. Answers with a diff by path.

    Raises:
        FileRefused: an edit can't be applied, or two paths are one file: nothing was written.
            A write that fails half-way names the files that were written before it.
    """
    planned: dict[Path, tuple[str, str, str]] = {}
    problems = []
    for path, wanted in edits.items():
        try:
            resolved, before = _load_for_edit(places, path)
            if resolved in planned:
                raise _one_file_twice(planned[resolved][0], path)
            planned[resolved] = (path, before, apply_edits(before, wanted))
        except (FileRefused, EditRefused) as exc:
            problems.append(str(exc) if path in str(exc) else f"{path}: {exc}")
    if problems:
        raise FileRefused("nothing was written:\n" + "\n".join(problems))
    return _write_planned(planned)


def _write_planned(planned: Mapping[Path, tuple[str, str, str]]) -> dict[str, str]:
    written: dict[str, str] = {}
    for resolved, (path, before, after) in planned.items():
        try:
            if after != before:
                _replace(resolved, after.encode())
        except OSError as exc:
            done = f"; already written: {', '.join(written)}" if written else "; nothing was written"
            raise FileRefused(f"{refuse(path, exc)}{done}") from exc
        written[path] = diff(before, after, path)
    return written


def _load_for_edit(places: Places, path: str) -> tuple[Path, str]:
    resolved, info = places.regular(path)
    if stat.S_ISDIR(info.st_mode):
        raise refuse(path, IsADirectoryError())
    return resolved, _load(resolved, path)


def _one_file_twice(first: str, second: str) -> FileRefused:
    return FileRefused(f"{first} and {second} are one file: give its edits together")


def _load(resolved: Path, path: str) -> str:
    raw = _read(resolved, path, MAX_TEXT_BYTES)
    if len(raw) > MAX_TEXT_BYTES:
        msg = f"{path} is larger than {MAX_TEXT_BYTES} bytes; look at parts of it with a command"
        raise FileRefused(msg)
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\0" in raw:
        msg = f"{path} is binary ({len(raw)} bytes), not text"
        raise FileRefused(msg)
    try:
        return raw.decode()
    except UnicodeDecodeError as exc:
        msg = f"{path} is not UTF-8 text: byte {exc.start} is 0x{raw[exc.start]:02x}"
        raise FileRefused(msg) from exc


def _read(resolved: Path, path: str, max_bytes: int) -> bytes:
    """The file's bytes, one more than *max_bytes* at most."""
    try:
        # Without O_NONBLOCK, a pipe put in the file's place would hang here.
        descriptor = os.open(resolved, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            return stream.read(max_bytes + 1)
    except OSError as exc:
        raise refuse(path, exc) from exc


def _entries(directory: Path) -> Iterator[str]:
    with os.scandir(directory) as scan:
        for entry in scan:
            name = entry.name.encode("utf-8", "backslashreplace").decode()
            yield f"{name}/" if entry.is_dir() else name


def _replace(target: Path, raw: bytes) -> None:
    """Put *raw* in the place of *target*, whole or not at all."""
    info = target.stat() if target.exists() else None
    if info is not None and not os.access(target, os.W_OK):
        # A rename would get round the file's own mode.
        raise PermissionError(13, "permission denied", str(target))
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(raw)
            stream.flush()
            _keep_attributes(stream.fileno(), info)
            os.fsync(stream.fileno())
        Path(name).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _keep_attributes(descriptor: int, info: os.stat_result | None) -> None:
    if info is None:
        os.fchmod(descriptor, NEW_FILE_MODE & ~_umask())
        return
    if (info.st_uid, info.st_gid) != (os.geteuid(), os.getegid()):
        # Only root may give files away; another's file that we may write becomes ours, as in editors.
        with suppress(PermissionError):
            os.fchown(descriptor, info.st_uid, info.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(info.st_mode))


def _umask() -> int:
    """The process's umask, read without setting it."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    return 0o022
