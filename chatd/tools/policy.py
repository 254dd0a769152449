"""
Which tools a chat's model is offered, by what kind of chat it is. Pure.

The model is never trusted to keep to it: a call of a tool that is not offered is refused, and while a
plan is made the workspace itself lets nothing be written but the plan.
"""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from chatd.experiments import ASYNC_QUESTIONS, is_on
from chatd.wire import Chat, ChatMode, ClientType, PlanMode

__all__ = [
    "ChatKind",
    "Origin",
    "asks_meanwhile",
    "is_offered",
    "is_plan_path",
    "kind_of",
    "plan_path",
    "stops_turn",
]


class Origin(StrEnum):
    """Where a tool comes from."""

    OURS = "ours"
    WORKSPACE = "workspace"
    WORKSPACE_MCP = "workspace_mcp"
    DEPLOYMENT_MCP = "deployment_mcp"
    CLIENT = "client"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatKind:
    """What the policy asks of a chat."""

    is_child: bool = False
    mode: ChatMode | None = None
    plan_mode: PlanMode | None = None
    client_type: ClientType = "api"
    experiments: tuple[str, ...] = ()


def kind_of(chat: Chat, experiments: tuple[str, ...] = ()) -> ChatKind:
    """The kind of a chat; *experiments* are the setting."""
    return ChatKind(
        is_child=chat.parent_chat_id is not None,
        mode=chat.mode,
        plan_mode=chat.plan_mode,
        client_type=chat.client_type,
        experiments=experiments,
    )


_READING = frozenset(
    {
        "read_file", "list_directory", "execute", "process_output", "read_skill", "read_skill_file",
    }
)  # fmt: skip
_PLANNING = _READING | {
    "write_file", "edit_files", "propose_plan", "spawn_agent", "wait_agent", "list_agents",
    "ask_user_question",
}  # fmt: skip
_SKILLS = frozenset({"read_skill", "read_skill_file"})
_AT_THE_DESKTOP = _SKILLS | {"computer", "apps"}
# Tools that end a turn whose plan is being made: it is the person's turn then.
_ENDING = frozenset({"propose_plan", "ask_user_question"})


def is_offered(name: str, origin: Origin, kind: ChatKind) -> bool:
    """
    Whether a chat of *kind* has the tool.

    Of the deployment's MCP servers those that are not flagged for plan mode were left out before.
    """
    if kind.mode == "computer_use":
        # Nobody works at the desktop while a plan is made.
        return name in (_AT_THE_DESKTOP if kind.plan_mode is None else _SKILLS)
    if kind.mode == "explore":
        return origin is Origin.DEPLOYMENT_MCP or name in _READING
    if kind.plan_mode is None:
        return name != "propose_plan" and (name != "ask_user_question" or asks_meanwhile(kind))
    if kind.is_child:
        return name in _READING
    return origin is Origin.DEPLOYMENT_MCP or name in _PLANNING


def asks_meanwhile(kind: ChatKind) -> bool:
    """Whether a question does not end the turn: only where a person looks at the chat, and if tried out."""
    is_seen = kind.client_type == "ui" and not kind.is_child and kind.mode is None
    return is_seen and kind.plan_mode is None and is_on(ASYNC_QUESTIONS, kind.experiments)


def stops_turn(name: str, kind: ChatKind) -> bool:
    """Whether the turn is over once the tool has succeeded."""
    return kind.plan_mode is not None and name in _ENDING


def plan_path(chat_id: UUID) -> str:
    """Where the plan of a chat lies in its workspace."""
    return f"~/.agentd/plans/PLAN-{chat_id}.md"


def is_plan_path(path: str, chat_id: UUID) -> bool:
    """Whether *path* names that file, as far as its spelling tells."""
    expected = plan_path(chat_id)
    if path == expected:
        return True
    return path.startswith("/") and path.endswith(expected.removeprefix("~")) and ".." not in path.split("/")
