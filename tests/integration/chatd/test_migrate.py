"""``chatd migrate`` and starts on schemas that do not fit."""

import json
from pathlib import Path

import pytest
import sqlalchemy as sa

from chatd.app import ControlPlane
from chatd.cli import app
from chatd.settings import ChatdSettings
from chatd.store.engines import check_url
from chatd.store.migrating import FLOOR, SchemaUnfit, known_migrations
from tests.postgres import PostgresServer

HEAD = known_migrations()[-1].revision


def run(*arguments: str) -> int:
    """The command's exit code."""
    with pytest.raises(SystemExit) as ended:
        app(["migrate", *arguments])
    return int(ended.value.code or 0)


def settings(path: Path, url: str, **fields: object) -> ChatdSettings:
    """Of a small control plane."""
    return ChatdSettings.model_validate(
        {"data_dir": path, "port": 0, "rehearsal": "always", "database": url, **fields}
    )


@pytest.fixture
def empty_url(postgres: PostgresServer) -> object:
    """A database without any table."""
    url = postgres.create()
    yield url
    postgres.drop(url)


async def refusal(wish: ChatdSettings) -> str:
    """What a start is refused with."""
    with pytest.raises(SchemaUnfit) as refused:
        await ControlPlane(wish).start()
    return str(refused.value)


def test_migrating_by_hand_tells_what_it_did(
    empty_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: rolling upgrade; --check says what is pending by its exit code, and changes nothing."""
    monkeypatch.setattr("chatd.cli._log_to_stderr", lambda: None)
    where = ("--data", str(tmp_path), "--database", empty_url)
    codes = [
        run(*where, "--check", "--json"),
        run(*where, "--phase", "pre", "--json"),
        run(*where, "--check"),
    ]
    before, done, after = capsys.readouterr().out.splitlines()

    assert codes == [1, 0, 0]
    assert json.loads(before)["now"] is None
    assert (json.loads(done)["now"], json.loads(done)["pending"]) == (HEAD, [])
    assert after == f"schema {HEAD}"


async def test_a_start_that_may_not_migrate_says_what_to_run(empty_url: str, tmp_path: Path) -> None:
    """Issue: serve refuses clearly on a schema that does not fit."""
    text = await refusal(settings(tmp_path, empty_url, migrate="never"))

    assert "chatd migrate --phase pre" in text


@pytest.mark.parametrize(("floor", "starts"), [(None, True), (HEAD, True), ("9998", False)])
async def test_old_code_on_a_newer_schema(
    empty_url: str, tmp_path: Path, floor: str | None, *, starts: bool
) -> None:
    """Issue: old code works on the new schema, unless that took away what it needs."""
    plane = ControlPlane(settings(tmp_path, empty_url))
    await plane.start()
    await plane.stop()
    engine = sa.create_engine(check_url(empty_url), poolclass=sa.NullPool)
    with engine.begin() as connection:
        # As a newer version leaves it.
        connection.exec_driver_sql("ALTER TABLE chats ADD COLUMN of_tomorrow text")
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
        if floor is not None:
            statement = "INSERT INTO deployment_settings (name, value, updated_at) VALUES (%s, %s, now())"
            connection.exec_driver_sql(statement, (FLOOR, json.dumps(floor)))
    engine.dispose()
    wish = settings(tmp_path, empty_url)
    if not starts:
        assert "upgrade this chatd" in await refusal(wish)
        return
    again = ControlPlane(wish)
    await again.start()
    await again.stop()
