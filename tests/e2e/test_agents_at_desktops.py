"""Two agents at the desktop at the same time: one after another, or each at its own. Truth: the forms."""

import json
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Up, poll, running
from tests.e2e.test_agents_in_browser import FORM, SYSTEM_PYTHON

NAMES = ("Ada", "Grace")
REPORT = "Both forms are saved."


def _reply(contains: str, *calls: dict[str, Any], text: str = "") -> dict[str, Any]:
    return {"when": {"contains": contains}, "reply": {"text": [text] if text else [], "calls": list(calls)}}


def _act(action: str, **fields: Any) -> dict[str, Any]:
    return {"actions": [{"action": action, **fields}]}


def _fill(home: Path, name: str) -> list[dict[str, Any]]:
    form = f"{SYSTEM_PYTHON} {FORM} {home}/{name}.json; echo $? > {home}/{name}.exit"
    task = f"fill the form of {name}"
    opening = {"name": "apps", "arguments": {"action": "open", "argv": ["sh", "-c", form]}}
    return [
        _reply(task, _act("screenshot")),
        _reply(task, opening),
        _reply(task, _act("left_click", coordinate=[330, 98])),
        _reply(task, _act("type", text=name)),
        _reply(task, _act("left_click", coordinate=[330, 158])),
        _reply(task, _act("type", text="Green")),
        _reply(task, _act("left_click", coordinate=[280, 295])),
        _reply(task, text=f"{name}'s form is saved."),
    ]


@pytest.fixture
def up(home: Path, request: pytest.FixtureRequest) -> Iterator[Up]:
    """An `agentd up` of a scope, whose root starts an agent for each form."""
    tool, both = "spawn_computer_use_agent", "fill both forms"
    spawns = [{"name": tool, "arguments": {"prompt": f"fill the form of {name}"}} for name in NAMES]
    ids = [f"{{{{result:{tool}[{number}].chat_id}}}}" for number in range(2)]
    waits = [{"name": "wait_agent", "arguments": {"chat_id": chat_id}} for chat_id in ids]
    root = [_reply(both, *spawns), _reply(both, *waits), _reply(both, text=REPORT)]
    turns = [*root, *(turn for name in NAMES for turn in _fill(home, name))]
    with running(home, turns=turns, variables={"AGENTD_DESKTOP_SCOPE": request.param}) as instance:
        yield instance


def _actions(up: Up) -> dict[str, list[dict[str, Any]]]:
    """What agents did, by desktop, in order."""
    logs = (up.data / "workspace" / "actions").glob("*/actions.jsonl")
    found = {log.parent.name: [json.loads(line) for line in log.read_text().splitlines()] for log in logs}
    return {name: [one for one in entries if one.get("chat_id")] for name, entries in found.items()}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("up", ["workspace", "agent"], indirect=True)
def test_two_agents_fill_a_form_each(up: Up) -> None:
    """
    The issue: one desktop each, or one lease in turn, by configuration; each is filmed.

    Both windows are at the same place, so that at a shared desktop a single step of the other in between
    would spoil a form.
    """
    done = up.agentd("ask", "fill both forms", "--json")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["answer"] == REPORT
    for name in NAMES:
        poll((up.home / f"{name}.exit").exists, timeout_s=30, what=f"{name}'s form to end")
        form = json.loads((up.home / f"{name}.json").read_text())
        assert form == {"name": name, "colour": "Green", "sanded": False}
        assert (up.home / f"{name}.exit").read_text() == "7\n"
    desktops = _actions(up)
    turns = {
        name: [chat for chat, _ in groupby(one["chat_id"] for one in log)] for name, log in desktops.items()
    }
    films = json.loads(up.agentd("desktop", "record", "list", "--json").stdout)
    if up.environment["AGENTD_DESKTOP_SCOPE"] == "workspace":
        assert [len(chats) for chats in turns.values()] == [2]
        assert {film["desktop"] for film in films} == {"main"}
    else:
        assert turns == {f"chat-{chats[0]}": [chats[0]] for chats in turns.values()}
        assert len(turns) == 2
        assert {film["desktop"] for film in films} == set(turns)
    assert len(films) == 2
