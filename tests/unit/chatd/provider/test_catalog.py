"""The models there are, by settings."""

from pathlib import Path
from typing import Any

import pytest

from chatd.errors import BadRequest
from chatd.provider.catalog import Catalog, ModelSource, rehearsal_sources, sources_from_settings
from chatd.settings import ChatdSettings


def sources(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> list[ModelSource]:
    """What *fields* alone give."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "CHATD_COMPAT_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return sources_from_settings(ChatdSettings(data_dir=Path("/nowhere"), **fields))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, []),
        ({"anthropic_api_key": "k"}, [("anthropic", None, "k")]),
        ({"openai_api_key": "k", "openai_base_url": "http://x"}, [("openai", "http://x", "k")]),
        ({"gemini_api_key": "k"}, [("google", None, "k")]),
        ({"compat_base_url": "http://x"}, [("openai-compat", "http://x", "none")]),
        ({"compat_base_url": "http://x", "compat_api_key": "c"}, [("openai-compat", "http://x", "c")]),
        (
            {"openai_api_key": "o", "anthropic_api_key": "a"},
            [("anthropic", None, "a"), ("openai", None, "o")],
        ),
    ],
    ids=["none", "anthropic", "openai", "gemini", "compat", "compat with key", "two"],
)
def test_each_key_gives_a_model(
    monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any], expected: list[tuple[str, str | None, str]]
) -> None:
    """Ours: the first one is the default of new chats."""
    found = sources(monkeypatch, **fields)

    assert [(source.provider, source.base_url, source.api_key) for source in found] == expected


def test_keys_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ours: neither settings nor what clients see hold a key in the open."""
    (source,) = sources(monkeypatch, anthropic_api_key="hunter2")
    settings = ChatdSettings(data_dir=Path("/nowhere"), anthropic_api_key="hunter2")  # type: ignore[arg-type]

    assert "hunter2" not in repr(settings)
    assert "hunter2" not in Catalog([source]).configs()[0].model_dump_json()


def test_ids_are_stable_and_distinct() -> None:
    """Ours: chats keep their model across restarts, whatever port the rehearsal server got."""
    first, second = rehearsal_sources("http://a:1"), rehearsal_sources("http://b:2")

    assert [source.id for source in first] == [source.id for source in second]
    assert len({source.id for source in first}) == 4


def test_a_model_is_found_by_any_of_its_names() -> None:
    """Ours: id, provider:model, model, display name; the default for none."""
    catalog = Catalog(rehearsal_sources("http://a"))
    configs = catalog.configs()

    assert [config.is_default for config in configs] == [True, False, False, False]
    assert catalog.resolve(None) == catalog.resolve("rehearsal") == configs[0].id
    for config in configs:
        for name in (str(config.id), f"{config.provider}:rehearsal", config.display_name):
            assert catalog.resolve(name) == config.id
    for name in ("", "gpt-0"):
        with pytest.raises(BadRequest):
            catalog.resolve(name)


async def test_each_model_has_one_client() -> None:
    """Ours: made when first asked for, closed with the catalog; an id whose key is gone is refused."""
    catalog = Catalog(rehearsal_sources("http://127.0.0.1:1"))
    config_id = catalog.default_id
    provider = await catalog.provider(config_id)

    assert await catalog.provider(config_id) is provider
    with pytest.raises(BadRequest):
        await Catalog(rehearsal_sources("http://a")[1:]).provider(config_id)
    await catalog.close()
