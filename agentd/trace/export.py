"""
Put a log into one zip that anybody can open: a page to scrub through, the lines, the pictures.

The page loads nothing from anywhere: its script and style are named by hash in its own policy, and
pictures lie beside it.
"""

import base64
import hashlib
import html
import json
import zipfile
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import IO

from agentd.trace.entry import LogEntry, LoggedPicture

__all__ = ["LINES", "PAGE", "render_page", "write_zip"]

PAGE = "index.html"
LINES = "actions.jsonl"


def write_zip(
    target: IO[bytes], entries: Sequence[LogEntry], path_of: Callable[[str, str], Path], *, title: str
) -> None:
    """
    Write the zip to *target*.

    Args:
        target: open for writing.
        entries: oldest first.
        path_of: where a picture of this hash and media type is, if it is kept.
        title: of the page.
    """
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        names = {}
        for picture in _pictures(entries):
            path = path_of(picture.sha256, picture.media_type)
            if picture.sha256 not in names and path.exists():
                names[picture.sha256] = f"pictures/{path.name}"
                # Pictures are compressed already.
                archive.write(path, names[picture.sha256], zipfile.ZIP_STORED)
        lines = "".join(f"{entry.model_dump_json(exclude_none=True)}\n" for entry in entries)
        archive.writestr(LINES, lines)
        archive.writestr(PAGE, render_page(entries, names, title=title))


def render_page(entries: Sequence[LogEntry], names: dict[str, str], *, title: str) -> str:
    """
    Render the page.

    Args:
        entries: what it shows.
        names: where a picture is, by hash, relative to the page.
        title: plain text.
    """
    shown = [entry.model_dump(mode="json", exclude_none=True) for entry in entries]
    data = json.dumps({"entries": shown, "pictures": names}, ensure_ascii=False)
    source = files("agentd.trace")
    script, style = (source.joinpath(f"viewer.{kind}").read_text("utf-8") for kind in ("js", "css"))
    page = source.joinpath("viewer.html").read_text("utf-8")
    for mark, text in {
        "__SCRIPT_HASH__": _hash(script),
        "__STYLE_HASH__": _hash(style),
        "__SCRIPT__": script,
        "__STYLE__": style,
        "__TITLE__": html.escape(title),
        # Last, since it may hold anything; nothing in it ends the element that it is in.
        "__DATA__": data.replace("<", "\\u003c"),
    }.items():
        page = page.replace(mark, text)
    return page


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _pictures(entries: Sequence[LogEntry]) -> list[LoggedPicture]:
    return [picture for entry in entries for picture in (entry.before, entry.after) if picture is not None]
