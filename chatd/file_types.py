"""
Pure: what a file is, by what is in it, and what it may be called.

Files are served from the page's own origin, so nothing that a browser could run gets a type of its own.
"""

from chatd.constants import MAX_FILE_NAME_BYTES

__all__ = ["TEXT_TYPES", "TYPES", "base_name", "media_type_of", "sniff"]

MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
TEXT_TYPES = frozenset({"text/plain", "text/markdown", "text/csv", "application/json"})
TYPES = frozenset({media_type for _, media_type in MAGIC}) | {"image/webp"} | TEXT_TYPES
# Kinds of text that only a name tells.
TEXT_ENDINGS = {"md": "text/markdown", "csv": "text/csv", "json": "application/json"}


def sniff(data: bytes) -> str | None:
    """What the bytes are: a picture or PDF by its first bytes, ``text/plain`` for any text, else None."""
    for magic, media_type in MAGIC:
        if data.startswith(magic):
            return media_type
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else "text/plain"


def media_type_of(data: bytes, name: str) -> str:
    """The type to keep the bytes as; a name tells kinds of text apart, and nothing else."""
    found = sniff(data) or "application/octet-stream"
    if found != "text/plain":
        return found
    return TEXT_ENDINGS.get(name.rpartition(".")[2].lower(), found)


def base_name(path: str) -> str | None:
    """A file's name without its folders, either slash, cut where a character ends; None: there is none."""
    name = path.replace("\\", "/").rpartition("/")[2]
    return name.encode("utf-8", "replace")[:MAX_FILE_NAME_BYTES].decode("utf-8", "ignore") or None
