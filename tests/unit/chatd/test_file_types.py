"""What a file is, and what it may be called."""

import pytest

from chatd.file_types import base_name, media_type_of

PNG = b"\x89PNG\r\n\x1a\n..."


@pytest.mark.parametrize(
    ("data", "name", "media_type"),
    [
        (PNG, "a.html", "image/png"),
        (b"RIFF....WEBP", "a", "image/webp"),
        (b"<script>", "a.html", "text/plain"),
        (b"<svg/>", "a.svg", "text/plain"),
        (b"# a", "A.MD", "text/markdown"),
        (b"a,b", "a.csv", "text/csv"),
        (b"\x00\xff", "a.json", "application/octet-stream"),
    ],
)
def test_a_type_is_what_the_bytes_say(data: bytes, name: str, media_type: str) -> None:
    """A name tells kinds of text apart; nothing that a browser runs gets its type."""
    assert media_type_of(data, name) == media_type


@pytest.mark.parametrize(
    ("path", "name"),
    [("/a/b.txt", "b.txt"), ("C:\\a\\b.txt", "b.txt"), ("a/", None), ("", None), ("é" * 200, "é" * 127)],
)
def test_a_name_has_no_folders(path: str, name: str | None) -> None:
    """Either slash; cut where a character ends."""
    assert base_name(path) == name
