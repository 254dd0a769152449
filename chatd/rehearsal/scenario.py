"""
Scripted answers: which, when, and how they fail.

A scenario is a JSON object. The first turn whose ``when`` matches and that has
uses left answers the request; with none left, the small language does::

    {
      "turns": [
        {
          "when": {"contains": "hello", "tool": "wait_agent", "call": 1},
          "times": 1,
          "reply": {
            "text": ["Hel", {"text": "lo.", "delay_ms": 200}],
            "calls": [
              {"name": "wait_agent", "arguments": {"chat_id": "…"}},
              {"actions": [{"action": "left_click", "coordinate": [10, 20]}]}
            ],
            "finish": "tool-calls"
          }
        },
        {"when": {"call": 2}, "fault": {"kind": "http", "status": 529, "headers": {"retry-after": "1"}}},
        {"when": {"call": 3}, "fault": {"kind": "cut", "after_events": 4}},
        {"when": {"call": 4}, "fault": {"kind": "silence", "after_events": 2, "silence_ms": 5000}}
      ]
    }

``when``: every field given must match. ``contains`` is looked for in the last
user's text, whatever its case. ``tool`` is a tool the request offers (the
vendors' own computer tools are named ``computer``). ``call`` counts the model
calls this server has answered, from 1; a call that failed by a fault counts.
``times`` is how often the turn may answer; null means always.

``reply``: text in pieces, then calls; a call with ``actions`` (canonical actions
of the computer) is one of the computer. ``finish`` defaults to what fits. Without
``reply`` the small language answers. ``fault``: ``http`` answers a status, with
``body`` instead of the vendor's error if given; ``cut`` closes the connection
after so many events; ``silence`` waits so long before going on.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from chatd.rehearsal.conversation import Call, Chunk, Conversation, Finish, Reply
from chatd.rehearsal.turn import current_turn
from computer.wire import MAX_ACTIONS, Action

__all__ = [
    "CutFault",
    "Fault",
    "HttpFault",
    "Player",
    "Scenario",
    "ScenarioTurn",
    "SilenceFault",
    "scripted_reply",
]

# Milliseconds. Longer than any client's patience.
MAX_DELAY_MS = 3_600_000
MAX_TURNS = 1_000
MAX_EVENTS = 1_000_000

DelayMs = Annotated[int, Field(ge=0, le=MAX_DELAY_MS)]
EventCount = Annotated[int, Field(ge=0, le=MAX_EVENTS)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class When(_Strict):
    """What a request must be like."""

    contains: str | None = None
    tool: str | None = None
    call: Annotated[int, Field(ge=1)] | None = None


class ScenarioChunk(_Strict):
    """A piece of text, and how long it keeps the client waiting."""

    text: str
    delay_ms: DelayMs = 0


class ScenarioCall(_Strict):
    """A tool call; with *actions* one of the computer."""

    name: str = "computer"
    arguments: dict[str, Any] = Field(default_factory=dict)
    actions: tuple[Action, ...] = Field(default=(), max_length=MAX_ACTIONS)


class ScenarioReply(_Strict):
    """A scripted answer."""

    text: tuple[str | ScenarioChunk, ...] = ()
    calls: tuple[ScenarioCall, ...] = ()
    finish: Finish | None = None


class HttpFault(_Strict):
    """Answer with a status other than 200."""

    kind: Literal["http"]
    status: Annotated[int, Field(ge=400, le=599)]
    message: str = "Scripted failure."
    headers: dict[str, str] = Field(default_factory=dict)
    body: dict[str, Any] | str | None = None


class CutFault(_Strict):
    """Close the connection after some events; an answer without events is never sent."""

    kind: Literal["cut"]
    after_events: EventCount = 0


class SilenceFault(_Strict):
    """Send nothing for a while after some events."""

    kind: Literal["silence"]
    after_events: EventCount = 0
    silence_ms: DelayMs


Fault = Annotated[HttpFault | CutFault | SilenceFault, Field(discriminator="kind")]


class ScenarioTurn(_Strict):
    """One answer, and when to give it."""

    when: When = Field(default_factory=When)
    times: Annotated[int, Field(ge=1)] | None = 1
    reply: ScenarioReply | None = None
    fault: Fault | None = None


class Scenario(_Strict):
    """An ordered list of answers."""

    turns: tuple[ScenarioTurn, ...] = Field(default=(), max_length=MAX_TURNS)


@dataclass(slots=True)
class Player:
    """Plays a scenario: the only state the server has, a count of calls and of uses."""

    scenario: Scenario
    calls: int
    uses: list[int]

    @classmethod
    def of(cls, scenario: Scenario | None) -> "Player":
        """A player at the beginning; of nothing when *scenario* is None."""
        scenario = scenario or Scenario()
        return cls(scenario, 0, [0] * len(scenario.turns))

    def next_turn(self, conversation: Conversation) -> ScenarioTurn | None:
        """Count a call and find its turn; None when the small language is to answer."""
        self.calls += 1
        text = current_turn(conversation).text if self.scenario.turns else ""
        for index, turn in enumerate(self.scenario.turns):
            has_uses = turn.times is None or self.uses[index] < turn.times
            if has_uses and _matches(turn.when, conversation, text, self.calls):
                self.uses[index] += 1
                return turn
        return None


def scripted_reply(reply: ScenarioReply) -> Reply:
    """A scenario's answer as a neutral one."""
    pieces = [ScenarioChunk(text=piece) if isinstance(piece, str) else piece for piece in reply.text]
    return Reply(
        chunks=tuple(Chunk(text=piece.text, delay_ms=piece.delay_ms) for piece in pieces),
        calls=tuple(Call(name=c.name, arguments=c.arguments, actions=c.actions) for c in reply.calls),
        finish=reply.finish or ("tool-calls" if reply.calls else "stop"),
    )


def _matches(when: When, conversation: Conversation, text: str, call: int) -> bool:
    return (
        (when.contains is None or when.contains.lower() in text.lower())
        and (when.tool is None or when.tool in conversation.tools)
        and (when.call is None or when.call == call)
    )
