"""Scenario files: validation, matching and use."""

import pytest
from pydantic import ValidationError

from chatd.rehearsal.codec import ApiError
from chatd.rehearsal.conversation import Conversation, Entry, ToolOutput, ToolUse
from chatd.rehearsal.scenario import Player, Scenario, scripted_reply
from computer.wire import Click


def _says(text: str, *tools: str) -> Conversation:
    return Conversation(model="m", entries=(Entry(role="user", text=text),), tools=frozenset(tools))


def test_the_first_matching_turn_with_uses_left_answers() -> None:
    """Ours: text, tool and number of the call select; a used turn is passed over."""
    scenario = Scenario.model_validate(
        {
            "turns": [
                {"when": {"contains": "HELLO"}, "reply": {"text": ["one"]}},
                {"when": {"tool": "f"}, "times": None, "reply": {"text": ["two"]}},
                {"when": {"call": 4}, "fault": {"kind": "http", "status": 529}},
            ]
        }
    )
    player = Player.of(scenario)

    turns = [
        player.next_turn(conversation)
        for conversation in (
            _says("oh hello"),
            _says("hello", "f"),
            _says("hello"),
            _says("x"),
            _says("y", "f"),
        )
    ]

    assert [scenario.turns[0], scenario.turns[1], None, scenario.turns[2], scenario.turns[1]] == turns


def test_a_scripted_reply_becomes_a_neutral_one() -> None:
    """Ours: plain strings are pieces, actions make a call of the computer, the finish follows."""
    turn = Scenario.model_validate_json(
        '{"turns": [{"reply": {"text": ["a", {"text": "b", "delay_ms": 5}],'
        '"calls": [{"actions": [{"action": "left_click", "coordinate": [0, 0]}]}]}}]}'
    ).turns[0]
    assert turn.reply

    reply = scripted_reply(turn.reply, _says("x"))

    assert (reply.text, reply.chunks[1].delay_ms, reply.finish) == ("ab", 5, "tool-calls")
    assert reply.calls[0].actions == (Click(action="left_click", coordinate=(0, 0)),)


def test_arguments_refer_to_what_earlier_calls_gave() -> None:
    """Ours: ids that nobody knows when a scenario is written; a wrong reference is an error, not a guess."""
    entries = tuple(
        entry
        for name, chat_id in (("a", "first"), ("b", "second"))
        for entry in (
            Entry(role="assistant", calls=(ToolUse(call_id=name, name="spawn_agent"),)),
            Entry(role="tool", outputs=(ToolOutput(call_id=name, text=f'{{"chat_id": "{chat_id}"}}'),)),
        )
    )
    conversation = Conversation(model="m", entries=entries)

    def arguments(text: str) -> object:
        reply = {"calls": [{"name": "f", "arguments": {"deep": [{"chat_id": text}]}}]}
        turn = Scenario.model_validate({"turns": [{"reply": reply}]}).turns[0]
        assert turn.reply
        return scripted_reply(turn.reply, conversation).calls[0].arguments

    assert arguments("{{result:spawn_agent[1].chat_id}}") == {"deep": [{"chat_id": "second"}]}
    assert arguments("not {{result:spawn_agent[1].chat_id}}") == {
        "deep": [{"chat_id": "not {{result:spawn_agent[1].chat_id}}"}]
    }
    for wrong in ("spawn_agent[2].chat_id", "spawn_agent[0].title", "other[0].chat_id"):
        with pytest.raises(ApiError, match="which this conversation lacks"):
            arguments(f"{{{{result:{wrong}}}}}")


@pytest.mark.parametrize(
    "turn",
    [
        {"when": {"contians": "x"}},
        {"times": 0},
        {"fault": {"kind": "http", "status": 200}},
        {"fault": {"kind": "silence", "silence_ms": -1}},
        {"reply": {"calls": [{"actions": [{"action": "fly"}]}]}},
    ],
)
def test_mistakes_in_a_scenario_are_refused(turn: dict) -> None:
    """Ours: a misspelt field must not silently match everything."""
    with pytest.raises(ValidationError):
        Scenario.model_validate({"turns": [turn]})
