"""The table of tools by kind of chat, cell by cell."""

from dataclasses import replace
from uuid import UUID

import pytest

from chatd.experiments import ASYNC_QUESTIONS
from chatd.tools.policy import (
    ChatKind,
    Origin,
    asks_meanwhile,
    is_offered,
    is_plan_path,
    plan_path,
    stops_turn,
)
from chatd.wire import ClientType

KINDS = {
    "root": ChatKind(),
    "child": ChatKind(is_child=True),
    "plan root": ChatKind(plan_mode="plan"),
    "plan child": ChatKind(is_child=True, plan_mode="plan"),
    "explore": ChatKind(is_child=True, mode="explore"),
    "desktop": ChatKind(is_child=True, mode="computer_use"),
    "plan desktop": ChatKind(is_child=True, mode="computer_use", plan_mode="plan"),
}
# In which kinds a tool is offered, if the chat has it at all: r root, c child, p plan root, q plan child,
# e explore, d desktop, f desktop while a plan is made.
LETTERS = dict(zip(KINDS, "rcpqedf", strict=True))
TABLE = [
    ("read_file", Origin.WORKSPACE, "rcpqe"),
    ("list_directory", Origin.WORKSPACE, "rcpqe"),
    ("execute", Origin.WORKSPACE, "rcpqe"),
    ("process_output", Origin.WORKSPACE, "rcpqe"),
    ("process_list", Origin.WORKSPACE, "rc"),
    ("process_signal", Origin.WORKSPACE, "rc"),
    ("write_file", Origin.WORKSPACE, "rcp"),
    ("edit_files", Origin.WORKSPACE, "rcp"),
    ("apps", Origin.WORKSPACE, "rcd"),
    ("computer", Origin.WORKSPACE, "rcd"),
    ("read_skill", Origin.OURS, "rcpqedf"),
    ("read_skill_file", Origin.OURS, "rcpqedf"),
    ("spawn_agent", Origin.OURS, "rcp"),
    ("spawn_computer_use_agent", Origin.OURS, "rc"),
    ("wait_agent", Origin.OURS, "rcp"),
    ("list_agents", Origin.OURS, "rcp"),
    ("message_agent", Origin.OURS, "rc"),
    ("interrupt_agent", Origin.OURS, "rc"),
    ("attach_file", Origin.OURS, "rc"),
    ("advisor", Origin.OURS, "rc"),
    ("propose_plan", Origin.OURS, "p"),
    ("ask_user_question", Origin.OURS, "p"),
    ("git__status", Origin.WORKSPACE_MCP, "rc"),
    ("far__echo", Origin.DEPLOYMENT_MCP, "rcpe"),
    ("my_tool", Origin.CLIENT, "rc"),
    ("nobody_knows", Origin.WORKSPACE, "rc"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "origin", "letters"), TABLE, ids=[row[0] for row in TABLE])
def test_who_has_which_tool(name: str, origin: Origin, letters: str, kind: str) -> None:
    """Spec 8.1; planning and exploring chats get nothing that is not listed."""
    assert is_offered(name, origin, KINDS[kind]) is (LETTERS[kind] in letters)


@pytest.mark.parametrize("kind", KINDS)
def test_what_ends_a_turn(kind: str) -> None:
    """Spec 8.1: a plan and a question, while a plan is made."""
    ending = {name for name, *_ in TABLE if stops_turn(name, KINDS[kind])}

    assert ending == ({"propose_plan", "ask_user_question"} if kind.startswith("plan") else set())


@pytest.mark.parametrize("experiments", [(), ("*",), ("other",), (ASYNC_QUESTIONS,), ("*", ASYNC_QUESTIONS)])
@pytest.mark.parametrize("client_type", ["ui", "api"])
@pytest.mark.parametrize("kind", KINDS)
def test_who_may_ask_and_how(kind: str, client_type: ClientType, experiments: tuple[str, ...]) -> None:
    """Spec 8.6: the whole matrix; a wildcard switches nothing on that is hidden."""
    asking = replace(KINDS[kind], client_type=client_type, experiments=experiments)
    offered = is_offered("ask_user_question", Origin.OURS, asking)
    form = None if not offered else "async" if asks_meanwhile(asking) else "blocking"

    expected = {"plan root": "blocking"}.get(kind)
    if (kind, client_type) == ("root", "ui") and ASYNC_QUESTIONS in experiments:
        expected = "async"
    assert form == expected
    assert stops_turn("ask_user_question", asking) == (kind.startswith("plan"))


CHAT = UUID(int=7)


@pytest.mark.parametrize(
    ("path", "is_it"),
    [
        (plan_path(CHAT), True),
        (f"/home/me/.agentd/plans/PLAN-{CHAT}.md", True),
        (f"/home/me/../root/.agentd/plans/PLAN-{CHAT}.md", False),
        (f"/home/me/.agentd/plans/PLAN-{UUID(int=8)}.md", False),
        (f".agentd/plans/PLAN-{CHAT}.md", False),
        (f"~/../.agentd/plans/PLAN-{CHAT}.md", False),
        ("~/plan.md", False),
        ("", False),
    ],
)
def test_where_the_plan_is(path: str, is_it: bool) -> None:
    """By its spelling; where it leads is the workspace's to see."""
    assert is_plan_path(path, CHAT) is is_it
