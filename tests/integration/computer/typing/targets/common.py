"""What the target programs share: the text that they hold goes to a file, and is emptied on request."""

import os
import sys
from pathlib import Path

OUT = Path(sys.argv[1])
CLEAR = OUT.with_suffix(".clear")


def put(text: str) -> None:
    """Replace the file's content, whole."""
    part = OUT.with_suffix(".part")
    part.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
    os.replace(part, OUT)  # noqa: PTH105  the same under any version of Python


def take_clear() -> bool:
    """Whether the test asks for an empty widget."""
    try:
        CLEAR.unlink()
    except FileNotFoundError:
        return False
    return True
