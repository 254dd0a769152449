"""File trees written down as data: ``{"path": "text"}``, with links, sizes and directories."""

import os
from pathlib import Path
from typing import Any

__all__ = ["plant", "relative"]


def plant(folder: Path, files: dict[str, Any]) -> None:
    """
    Make *files* below *folder*.

    A text is a file's content; ``{"link": target}``, ``{"size": bytes}``, ``{"hex": …}``, ``{"fifo": true}``
    and ``{"directory": true}`` are what they say. ``{tmp}`` in a link's target is *folder*.
    """
    for name, what in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        match what:
            case str():
                path.write_bytes(what.encode())
            case {"link": target}:
                path.symlink_to(target.replace("{tmp}", str(folder)))
            case {"size": size}:
                path.write_bytes(b"x" * size)
            case {"hex": digits}:
                path.write_bytes(bytes.fromhex(digits))
            case {"fifo": True}:
                os.mkfifo(path)
            case {"directory": True}:
                path.mkdir()
            case _:
                msg = f"{name}: {what!r}"
                raise ValueError(msg)


def relative(path: str, folder: Path) -> str:
    """*path* below *folder*, for comparing with data."""
    return str(Path(path).relative_to(folder.resolve()))
