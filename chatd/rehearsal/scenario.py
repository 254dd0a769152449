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
        {"when": {"call": 4}, "fault": {"kind": "silence", "after_events": 2, "silence_ms": 5000}},
        {"when": {"call": 5}, "fault": {"kind": "report", "after_events": 2, "status": 529}}
      ]
    }

``when``: every field given must match. ``contains`` is looked for in the last
user's text and in a note behind it, whatever its case; ``holds`` in the whole
request. ``tool`` is a tool the request offers (the vendors' own computer tools are named
``computer``). ``call`` counts the model calls this server has answered, from 1; a call that
failed by a fault counts. ``may_call`` false matches requests that forbid tools (a summary is
asked for), and only those; without it they are left to the small language.
``times`` is how often the turn may answer; null means always.

``{{result:spawn_agent[1].chat_id}}`` as a whole text within a call's arguments stands for a field of what an
earlier call gave: here ``chat_id`` of the second call of ``spawn_agent`` in this conversation.

``reply``: ``searches`` that the vendor ran, as ``{"query", "pages": [{"url", "title"}]}``,
if the request lets it; text in pieces, then calls; a call with ``actions`` (canonical actions
of the computer) is one of the computer. ``finish`` defaults to what fits. Without
``reply`` the small language answers. ``fault``: see ``chatd.rehearsal.faults``.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from chatd.rehearsal.codec import ApiError
from chatd.rehearsal.conversation import Call, Chunk, Conversation, Finish, Page, Reply, Search
from chatd.rehearsal.faults import DelayMs, Fault, Strict
from chatd.rehearsal.turn import current_turn, json_result
from computer.wire import MAX_ACTIONS, Action

__all__ = [
    "Player",
    "Scenario",
    "ScenarioTurn",
    "scripted_reply",
]

MAX_TURNS = 1_000
_RESULT = re.compile(r"\{\{result:(\w+)\[(\d{1,3})\]\.(\w+)\}\}")


class When(Strict):
    """What a request must be like."""

    contains: str | None = None
    holds: str | None = None
    tool: str | None = None
    call: Annotated[int, Field(ge=1)] | None = None
    may_call: bool = True


class ScenarioChunk(Strict):
    """A piece of text, and how long it keeps the client waiting."""

    text: str
    delay_ms: DelayMs = 0


class ScenarioCall(Strict):
    """A tool call; with *actions* one of the computer."""

    name: str = "computer"
    arguments: dict[str, Any] = Field(default_factory=dict)
    actions: tuple[Action, ...] = Field(default=(), max_length=MAX_ACTIONS)


class ScenarioPage(Strict):
    """Something that a search found."""

    url: str
    title: str = ""


class ScenarioSearch(Strict):
    """A search that the vendor itself runs, before it says anything (Anthropic, OpenAI)."""

    query: str
    pages: tuple[ScenarioPage, ...] = ()


class ScenarioReply(Strict):
    """A scripted answer."""

    searches: tuple[ScenarioSearch, ...] = ()
    text: tuple[str | ScenarioChunk, ...] = ()
    calls: tuple[ScenarioCall, ...] = ()
    finish: Finish | None = None


class ScenarioTurn(Strict):
    """One answer, and when to give it."""

    when: When = Field(default_factory=When)
    times: Annotated[int, Field(ge=1)] | None = 1
    reply: ScenarioReply | None = None
    fault: Fault | None = None


class Scenario(Strict):
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

    def next_turn(self, conversation: Conversation, whole: str = "") -> ScenarioTurn | None:
        """Count a call, whose request is *whole*, and find its turn; None: the small language answers."""
        self.calls += 1
        text = _last_words(conversation) if self.scenario.turns else ""
        for index, turn in enumerate(self.scenario.turns):
            has_uses = turn.times is None or self.uses[index] < turn.times
            if has_uses and _matches(turn.when, conversation, text, whole, self.calls):
                self.uses[index] += 1
                return turn
        return None


def scripted_reply(reply: ScenarioReply, conversation: Conversation) -> Reply:
    """
    A scenario's answer to *conversation* as a neutral one.

    Raises:
        ApiError: it refers to a result that there is not.
    """
    pieces = [ScenarioChunk(text=piece) if isinstance(piece, str) else piece for piece in reply.text]
    return Reply(
        searches=tuple(
            Search(query=one.query, pages=tuple(Page(url=p.url, title=p.title) for p in one.pages))
            for one in reply.searches
        ),
        chunks=tuple(Chunk(text=piece.text, delay_ms=piece.delay_ms) for piece in pieces),
        calls=tuple(
            Call(name=c.name, arguments=_filled(c.arguments, conversation), actions=c.actions)
            for c in reply.calls
        ),
        finish=reply.finish or ("tool-calls" if reply.calls else "stop"),
    )


def _filled(value: Any, conversation: Conversation) -> Any:  # noqa: ANN401 -- JSON
    """*value* with what it refers to in place of each reference."""
    if isinstance(value, dict):
        return {key: _filled(item, conversation) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, conversation) for item in value]
    reference = _RESULT.fullmatch(value) if isinstance(value, str) else None
    return value if reference is None else _looked_up(conversation, *reference.groups())


def _looked_up(conversation: Conversation, tool: str, number: str, field: str) -> Any:  # noqa: ANN401 -- JSON
    named = [call.call_id for entry in conversation.entries for call in entry.calls if call.name == tool]
    outputs = {output.call_id: output for entry in conversation.entries for output in entry.outputs}
    output = outputs.get(named[int(number)]) if int(number) < len(named) else None
    found = {} if output is None else json_result(output)
    if field not in found:
        raise ApiError(f"the scenario refers to {tool}[{number}].{field}, which this conversation lacks")
    return found[field]


def _last_words(conversation: Conversation) -> str:
    """The last instruction, and what was written since: an answer to a question is no instruction."""
    turn = current_turn(conversation)
    return f"{turn.text}\n{turn.note}"


def _matches(when: When, conversation: Conversation, text: str, whole: str, call: int) -> bool:
    return (
        (when.holds is None or when.holds in whole)
        and (when.contains is None or when.contains.lower() in text.lower())
        and (when.tool is None or when.tool in conversation.tools)
        and (when.call is None or when.call == call)
        and when.may_call == conversation.may_call
    )
