"""
Which pictures a prompt carries, and how each is made to fit what its vendor takes. Pure.

A picture that a vendor refuses ends the chat for good, since it is sent again with
every step. So each is looked at before it is sent: what it really is, how large, how
heavy. What is changed or left out is always told.

Old pictures go in batches, oldest first. Between two batches the prompt only grows,
so the vendor's cache of it stays good.
"""

import io
import zlib
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from PIL import Image

__all__ = [
    "LIMITS",
    "Fitted",
    "PictureLimits",
    "Sniffed",
    "Unfit",
    "fit_picture",
    "kept_pictures",
    "mend",
    "sniff",
]

# Pictures kept in a prompt: at the upper number the oldest go until the lower one is left. One costs about
# 1,500 tokens, and old ones mislead.
MOST_PICTURES = 40
FEWEST_PICTURES = 20
# Pixels that are decoded at all: more is a bomb or a mistake.
MAX_PIXELS = 80_000_000
# Each try to make a picture lighter shrinks it so much, and there are so many.
SHRINK = 0.75
TRIES = 8
JPEG_QUALITY = 85
FORMATS = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
# Bytes of a chunk beside its data: length, type and checksum; and the bit of a type that may be skipped.
CHUNK_BYTES = 12
EXTRA_BIT = 0x20


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureLimits:
    """
    What a vendor takes.

    Args:
        picture_bytes: of one picture, before base64.
        edge: pixels of the longer side.
        total_bytes: of all pictures and files of one request, before base64.
    """

    picture_bytes: int
    edge: int
    total_bytes: int


# Where a vendor counts base64, a quarter is taken off. Anthropic takes edges of 8,000, but of 2,000 only as
# soon as there are more than 20 pictures; a chat gets there, so it is 2,000 always (and exactly 2,000 was
# refused, too). Servers of others get what common ones take.
LIMITS: dict[str, PictureLimits] = {
    "anthropic": PictureLimits(picture_bytes=3_900_000, edge=1_999, total_bytes=18_000_000),
    "openai": PictureLimits(picture_bytes=15_000_000, edge=8_000, total_bytes=30_000_000),
    "openai-compat": PictureLimits(picture_bytes=3_900_000, edge=4_096, total_bytes=14_000_000),
    "google": PictureLimits(picture_bytes=5_000_000, edge=8_000, total_bytes=14_000_000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sniffed:
    """What a picture's bytes say that it is."""

    media_type: str
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A picture that may be sent; *note* says what was done to it."""

    media_type: str
    data: bytes
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Unfit:
    """A picture that can't be sent, and why."""

    reason: str


def mend(data: bytes) -> bytes:
    """
    A PNG without those of its extra chunks (profile, comments) that are broken; all else as it is.

    Browsers skip such chunks, other readers refuse the whole picture. Source: PNG, 5.4 and 13.1.
    """
    if not data.startswith(PNG_MAGIC):
        return data
    kept, at = [PNG_MAGIC], len(PNG_MAGIC)
    while at < len(data):
        end = at + CHUNK_BYTES + int.from_bytes(data[at : at + 4])
        chunk = data[at:end]
        is_extra = len(chunk) > CHUNK_BYTES and bool(chunk[4] & EXTRA_BIT)
        if not is_extra or zlib.crc32(chunk[4:-4]) == int.from_bytes(chunk[-4:]):
            kept.append(chunk)
        at = end
    return b"".join(kept)


def sniff(data: bytes) -> Sniffed | None:
    """What the bytes are, by their header alone; None for no picture that vendors take."""
    try:
        with Image.open(io.BytesIO(data), formats=list(FORMATS)) as image:
            return Sniffed(media_type=FORMATS[image.format or ""], width=image.width, height=image.height)
    except (OSError, ValueError, KeyError, SyntaxError, Image.DecompressionBombError):
        return None


def fit_picture(data: bytes, limits: PictureLimits) -> Fitted | Unfit:
    """
    Make a picture fit; costs nothing when it does already.

    Its type is what its bytes say, whatever it was called.
    """
    data = mend(data)
    found = sniff(data)
    if found is None:
        return Unfit("it is broken, or of no kind that models take (PNG, JPEG, GIF, WebP)")
    if found.width * found.height > MAX_PIXELS:
        return Unfit(f"its {found.width} x {found.height} pixels are too many")
    is_small = max(found.width, found.height) <= limits.edge
    if is_small and len(data) <= limits.picture_bytes:
        return Fitted(media_type=found.media_type, data=data)
    try:
        return _shrink(data, found, limits)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return Unfit("it is broken")


def _shrink(data: bytes, found: Sniffed, limits: PictureLimits) -> Fitted | Unfit:
    with Image.open(io.BytesIO(data), formats=list(FORMATS)) as image:
        whole = image.convert("RGBA" if image.has_transparency_data else "RGB")
    scale = min(1.0, limits.edge / max(found.width, found.height))
    for _ in range(TRIES):
        size = (max(1, int(found.width * scale)), max(1, int(found.height * scale)))
        scaled = whole if size == whole.size else whole.resize(size, Image.Resampling.LANCZOS)
        for media_type, encoded in _encodings(scaled):
            if len(encoded) <= limits.picture_bytes:
                width, height = size
                note = f"shrunk from {found.width} x {found.height} to {width} x {height} pixels"
                return Fitted(media_type=media_type, data=encoded, note=note)
        scale *= SHRINK
    return Unfit("it is too heavy")


def _encodings(image: Image.Image) -> Iterable[tuple[str, bytes]]:
    """Exactly, then lightly."""
    for name, options in (("PNG", {}), ("JPEG", {"quality": JPEG_QUALITY})):
        buffer = io.BytesIO()
        (image.convert("RGB") if name == "JPEG" else image).save(buffer, name, **options)
        yield FORMATS[name], buffer.getvalue()


def kept_pictures(sizes: Iterable[tuple[Hashable, int]], *, total_bytes: int) -> set[Hashable]:
    """
    Which pictures stay in a prompt.

    Args:
        sizes: name and bytes of each, oldest first.
        total_bytes: of all that stay.

    Returns:
        The names that stay. What the first n give is the same whatever follows, until a batch goes.
    """
    kept: dict[int, tuple[Hashable, int]] = {}
    weight = 0
    for place, (name, size) in enumerate(sizes):
        kept[place] = (name, size)
        weight += size
        if len(kept) < MOST_PICTURES and weight <= total_bytes:
            continue
        while len(kept) > FEWEST_PICTURES or (weight > total_bytes // 2 and len(kept) > 1):
            weight -= kept.pop(next(iter(kept)))[1]
    return {name for name, _ in kept.values()}
