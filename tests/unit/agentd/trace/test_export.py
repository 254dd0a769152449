"""The exported page, as text; that it works is seen in a browser elsewhere."""

import base64
import hashlib
import io
import re
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from PIL import Image

from agentd.errors import BadRequest
from agentd.trace.entry import LogEntry, LoggedAction, LoggedPicture
from agentd.trace.export import render_page, write_zip
from agentd.trace.replay import Trace, similarity

AT = datetime(2026, 1, 1, tzinfo=UTC)
EVIL = '</script><script>alert("__STYLE__")</script>'


def _entry(name: str = "0" * 64) -> LogEntry:
    picture = LoggedPicture(sha256=name, media_type="image/png", size=(4, 3), taken_at=AT)
    action = LoggedAction(action={"action": "type", "text": EVIL}, output=EVIL)
    return LogEntry(
        number=1,
        id="a",
        at=AT,
        desktop="main",
        actor="agent",
        actions=(action,),
        after=picture,
        native_size=(4, 3),
    )


def _png(colour: str, size: tuple[int, int] = (4, 3)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, colour).save(file, "PNG")
    return file.getvalue()


def test_page_runs_its_own_script_and_nothing_else() -> None:
    """Ours: what a model typed is data; the policy names script and style by hash, and no host."""
    page = render_page([_entry()], {}, title="<b>")
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()

    assert len(scripts) == 1
    assert f"script-src 'sha256-{digest}'" in page
    assert EVIL not in page
    assert "&lt;b&gt;" in page
    assert "http" not in re.sub(r"http://www\.w3\.org/\S+|http-equiv", "", page)


def test_zip_holds_each_picture_once_and_can_be_read_again(tmp_path: Path) -> None:
    """Ours: self-contained, and a picture that is gone does no harm."""
    (tmp_path / "a.png").write_bytes(_png("red"))
    target = tmp_path / "run.zip"
    paths = {"a": tmp_path / "a.png", "b": tmp_path / "gone.png"}
    with target.open("wb") as file:
        entries = [_entry("a"), _entry("a"), _entry("b")]
        write_zip(file, entries, lambda name, _: paths[name], title="t")
    trace = Trace(target)
    pictures = [trace.picture(entry.after) for entry in trace.entries if entry.after is not None]
    trace.close()

    assert zipfile.ZipFile(target).namelist() == ["pictures/a.png", "actions.jsonl", "index.html"]
    assert list(trace.entries) == entries
    assert pictures == [_png("red"), _png("red"), None]


def test_anything_else_is_no_trace(tmp_path: Path) -> None:
    """Ours: one sentence that says what to do."""
    path = tmp_path / "a.zip"
    path.write_bytes(b"junk")
    with pytest.raises(BadRequest, match="trace export"):
        Trace(path)


def test_similarity_is_the_part_of_the_screen_that_is_the_same() -> None:
    """Ours: a shade is no difference, another size is all of it."""
    half = Image.new("RGB", (4, 4), "black")
    half.paste("white", (0, 0, 4, 2))
    file = io.BytesIO()
    half.save(file, "PNG")

    assert similarity(_png("black", (4, 4)), file.getvalue()) == 0.5
    assert similarity(_png("#000000"), _png("#050505")) == 1.0
    assert similarity(_png("red"), _png("red", (5, 3))) == 0.0
