"""Command lines of the tools that ours is measured beside."""

import base64
from pathlib import Path

from tests.bench.desk import Desk, need

__all__ = ["PNG", "RAW", "ffmpeg", "read_file"]

PNG = ("-f", "image2pipe", "-c:v", "png", "-")
RAW = ("-f", "rawvideo", "-")


def ffmpeg(desk: Desk, *options: str, output: tuple[str, ...] = PNG) -> tuple[str, ...]:
    """Command that grabs one frame of the screen to its output."""
    size = f"{desk.size[0]}x{desk.size[1]}"
    display = desk.environment["DISPLAY"]
    return (
        need("ffmpeg"), "-loglevel", "error", "-f", "x11grab", "-video_size", size, "-i", display,
        "-frames:v", "1", *options, *output,
    )  # fmt: skip


def read_file(desk: Desk, path: Path, *argv: str) -> bytes:
    """Run a command that writes *path*, and read that as base64."""
    desk.spawn(*argv)
    return base64.b64encode(path.read_bytes())
