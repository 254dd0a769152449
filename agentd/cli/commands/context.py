"""``agentd context`` and ``agentd ready``: what the workspace tells its chats, from the shell."""

import sys
from typing import Annotated, Any

from cyclopts import Parameter

from agentd.cli.client import local_client
from agentd.cli.exits import print_json
from agentd.cli.run import Json, load_settings, run

__all__ = ["context", "ready"]

Resync = Annotated[
    bool, Parameter(name="--resync", negative="", help="Scan now instead of showing the last scan.")
]


def _ask(method: str, path: str, *, as_json: bool) -> Any:  # noqa: ANN401 -- JSON
    async def work() -> Any:  # noqa: ANN401 -- JSON
        async with local_client(load_settings().runtime_dir) as client:
            return await client.request(method, path)

    return run(work, as_json=as_json)


def context(*, resync: Resync = False, as_json: Json = False) -> None:
    """Show the instructions and skills that chats get."""
    found = (
        _ask("POST", "/api/v0/context/resync", as_json=as_json)
        if resync
        else _ask("GET", "/api/v0/context", as_json=as_json)
    )
    if as_json:
        print_json(found)
        return
    if not found["ready"]:
        sys.stdout.write("The workspace is not ready yet; nothing is scanned before `agentd ready`.\n")
        return
    _print_resources(found)


def _print_resources(found: dict[str, Any]) -> None:
    """One line each, uncut: paths are there to be copied; under what can't be used, why."""
    lines = []
    for resource in found["resources"]:
        size = f"  ({resource['size_bytes']:,} bytes)"
        lines.append(f"{resource['status']:<11}{resource['kind']:<17} {resource['source']}{size}")
        if resource["error"]:
            lines.append(f"{'':<29}{resource['error']}")
    lines += [f"{'-':<28} {note['path']}\n{'':<29}{note['reason']}" for note in found["notes"]]
    if found["error"]:
        lines.append(f"warning: {found['error']}")
    lines += _push_lines(found)
    sys.stdout.write("\n".join(lines) + "\n")


# What is said of a push that chats can't be pinned to.
TROUBLES = {
    "rejected": "the control plane did not take version {version}: {reason}",
    "refused": "the control plane takes no context: {reason}",
    "waiting": "version {version} could not be pushed yet, it is tried again: {reason}",
}


def _push_lines(found: dict[str, Any]) -> list[str]:
    """What became of it on the control plane, when there is something to say."""
    push = found.get("last_push")
    if push is None:
        return []
    if push["outcome"] == "accepted":
        return [f"pushed: version {push['version']}, {push['at'][:19]}Z"]
    told = TROUBLES[push["outcome"]].format(
        version=push["version"], reason=push["reason"] or "no reason given"
    )
    return [f"warning: {told}"]


def ready(*, as_json: Json = False) -> None:
    """Say that the workspace is ready."""
    state = _ask("POST", "/api/v0/ready", as_json=as_json)
    if as_json:
        print_json(state)
    else:
        sys.stdout.write("ready\n")
