"""The file tools: what models send and what they get."""

from pathlib import Path
from typing import Any

import pytest

from agentd.files.places import Places
from agentd.tools.files import file_tools
from agentd.wire.content import ToolResult
from agentd.wire.link import ToolCallParams


async def run(name: str, **arguments: Any) -> ToolResult:
    """One call."""
    tools = {tool.definition.name: tool for tool in file_tools(Places())}
    return await tools[name].run(ToolCallParams(call_id="1", name=name, arguments=arguments))


async def test_write_read_edit_list(tmp_path: Path) -> None:
    """One file's life, as data."""
    path = str(tmp_path / "dir" / "f.txt")

    wrote = await run("write_file", path=path, content="a\nb\n")
    read = await run("read_file", path=path, offset=2)
    edited = await run("edit_files", edits=[{"path": path, "old_text": "b", "new_text": "c"}])
    listed = await run("list_directory", path=str(tmp_path))

    assert wrote.structured == {"ok": True, "path": path, "bytes": 4}
    assert read.structured == {"content": "2\tb\n3\t", "file_size": 4, "total_lines": 3, "lines_read": 2}
    assert edited.structured is not None
    assert edited.structured["files"][0]["path"] == path
    assert "-b\n+c" in edited.structured["files"][0]["diff"]
    assert listed.structured == {"path": str(tmp_path), "entries": ["dir/"], "total_entries": 1}
    assert (tmp_path / "dir" / "f.txt").read_bytes() == b"a\nc\n"


async def test_reading_a_directory_shows_its_entries(tmp_path: Path) -> None:
    """Spec 8.2: a window of them, numbered, and where to go on; an offset past the end is an error."""
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text("")
    shown = await run("read_file", path=str(tmp_path), offset=2, limit=1)
    past = await run("read_file", path=str(tmp_path), offset=9)

    assert shown.structured == {
        "content": "2\tb", "is_directory": True, "absolute_path": str(tmp_path), "entries": ["b"],
        "entries_read": 1, "total_entries": 3, "truncated": True, "note": "1 more lines: go on with offset 3",
    }  # fmt: skip
    assert past.is_error


FORMS: list[Any] = [
    {"edits": [{"path": "{}", "old_text": "a", "new_text": "x"}]},
    {"edits": '[{"path": "{}", "old_text": "a", "new_text": "x"}]'},
    {"files": [{"path": "{}", "edits": [{"search": "a", "replace": "x"}]}]},
    {"files": '[{"path": "{}", "edits": [{"search": "a", "replace": "x"}]}]'},
    {"files": [{"path": "{}", "edits": '[{"search": "a", "replace": "x", "replace_all": true}]'}]},
]


@pytest.mark.parametrize("form", FORMS)
async def test_every_form_of_edits(form: dict[str, Any], tmp_path: Path) -> None:
    """The flat form, the older one, and arrays that came as text."""
    path = tmp_path / "f"
    path.write_text("a")

    result = await run("edit_files", **_at(form, str(path)))

    assert not result.is_error, result
    assert path.read_text() == "x"


def _at(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        return {key: _at(item, path) for key, item in value.items()}
    if isinstance(value, list):
        return [_at(item, path) for item in value]
    return value.replace("{}", path) if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("read_file", {}, "path"),
        ("read_file", {"path": "x"}, "absolute"),
        ("read_file", {"path": "/tmp", "offset": 0}, "offset"),
        ("edit_files", {"edits": []}, "edits"),
        ("edit_files", {"edits": "no json"}, "edits"),
        ("edit_files", {"files": [{"path": "/x", "edits": [{"search": "a"}]}]}, "new_text"),
        ("edit_files", {"files": [7]}, "edits"),
        ("write_file", {"path": "/tmp/x", "content": "a", "mode": 1}, "mode"),
    ],
)
async def test_bad_arguments_are_told(name: str, arguments: dict[str, Any], text: str) -> None:
    """A sentence that names the field."""
    result = await run(name, **arguments)

    assert result.is_error
    assert text in str(result.content)
