"""The bridge as the conformance suite wants a client: calls every tool of the server at the address given."""

import asyncio
import json
import os
import sys

from mcp_bridge.bridge import Bridge
from mcp_bridge.config import parse_config
from mcp_bridge.hosting.connection import Place

# What tools of the suite want; of others nothing.
ARGUMENTS = {"add_numbers": {"a": 2, "b": 3}}


async def main(url: str) -> None:
    """Connect, list, call."""
    place = Place(environment={}, cwd="/", mark="conformance", client_name="tests", client_version="0")
    bridge = Bridge(place)
    entry = {"mcpServers": {"suite": {"url": url}}}
    await bridge.apply(parse_config(json.dumps(entry), source="", environment=os.environ))
    try:
        assert bridge.statuses()[0].state == "ready", bridge.statuses()
        for tool in bridge.tools():
            await bridge.call(tool.name, ARGUMENTS.get(tool.tool, {}), timeout_s=20)
    finally:
        await bridge.close()


asyncio.run(main(sys.argv[1]))
