"""Refuses to build a wheel without the page: `pip install` of it would serve an empty site."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageHook(BuildHookInterface):  # type: ignore[type-arg]
    """Checks that ``script/bootstrap`` built the page."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 -- hatchling's signature
        """Run before a build; an editable install may come before the page."""
        if version != "editable" and not (Path(self.root) / "chatd/page/index.html").is_file():
            msg = "the page is not built: run script/bootstrap first (it needs Node for this)"
            raise RuntimeError(msg)
