"""Why a chat is stuck: over HTTP, and from the shell beside a running chatd."""

from pathlib import Path
from uuid import UUID

import pytest

from chatd.ask_why import ask_why, render_why
from chatd.cli import app
from tests.integration.chatd.http.site import Site


async def test_the_api_and_the_command_tell_the_same(site: Site) -> None:
    """Issue: answered from state; a stranger's chat is not there."""
    chat_id = await site.quiet_chat()
    told = await site.ask("GET", f"/chats/{chat_id}/why")
    await site.ask("GET", f"/chats/{chat_id}/why", who="other", status=404)
    asked = await ask_why(site.plane.settings, UUID(chat_id))

    assert (told["waits_for"], told["state"]) == ("nothing", "W")
    assert asked.model_dump(mode="json", exclude_none=True) == told
    assert "its owner can help" in render_why(asked)


def test_a_place_without_chats_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ours: exit 1, and nothing is made there."""
    with pytest.raises(SystemExit) as ended:
        app(["why", str(UUID(int=1)), "--data", str(tmp_path)])

    assert ended.value.code == 1
    assert "--data" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
