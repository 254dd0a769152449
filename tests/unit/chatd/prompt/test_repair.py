"""Calls and results are paired, whatever the history went through."""

from hypothesis import given
from hypothesis import strategies as st

from chatd.prompt.message import PromptMessage
from chatd.prompt.repair import NO_RESULT_TEXT, repair_prompt
from chatd.wire import TextPart, ToolCallPart, ToolResultPart

USER = PromptMessage(role="user", content=(TextPart(text="hi"),))


def calls(*ids: str, server: str = "") -> PromptMessage:
    """Return an assistant message with these calls; *server* was executed by the vendor."""
    made = [ToolCallPart(tool_call_id=name, tool_name="t", args={}) for name in ids]
    if server:
        made.insert(0, ToolCallPart(tool_call_id=server, tool_name="web", args={}, provider_executed=True))
    return PromptMessage(role="assistant", content=tuple(made))


def results(*ids: str, server: str = "") -> PromptMessage:
    """Return a tool message with these results."""
    made = [ToolResultPart(tool_call_id=name, tool_name="t", result={"output": name}) for name in ids]
    if server:
        made.append(ToolResultPart(tool_call_id=server, tool_name="web", provider_executed=True))
    return PromptMessage(role="tool", content=tuple(made))


def outline(messages: tuple[PromptMessage, ...]) -> list[str]:
    """Return role and ids; synthetic results are marked."""
    lines = []
    for message in messages:
        marks = [
            part.tool_call_id + ("!" if isinstance(part, ToolResultPart) and part.is_error else "")
            for part in message.content
            if isinstance(part, (ToolCallPart, ToolResultPart))
        ]
        lines.append(" ".join([message.role, *marks]))
    return lines


def test_a_whole_history_is_unchanged() -> None:
    """Repair is no rewrite."""
    history = (USER, calls("a", "b"), results("a"), results("b"), USER)
    assert repair_prompt(history) == history


def test_unanswered_calls_get_one_error_message_behind_the_real_results() -> None:
    """It says that no result came."""
    repaired = repair_prompt((USER, calls("a", "b", "c"), results("b"), USER))
    assert outline(repaired) == ["user", "assistant a b c", "tool b", "tool a! c!", "user"]
    part = repaired[3].content[0]
    assert isinstance(part, ToolResultPart)
    assert part.result == {"error": NO_RESULT_TEXT}


def test_each_assistant_message_is_answered_before_the_next() -> None:
    """Two in a row each get their own, and so does the last of all."""
    assert outline(repair_prompt((calls("a"), calls("b"), USER, calls("c")))) == [
        "assistant a",
        "tool a!",
        "assistant b",
        "tool b!",
        "user",
        "assistant c",
        "tool c!",
    ]


def test_vendor_executed_calls_are_not_answered_by_us() -> None:
    """Their results cannot be invented."""
    assert outline(repair_prompt((calls("b", server="a"),))) == ["assistant a b", "tool b!"]


def test_orphans_get_a_call_and_doubled_and_vendor_results_go() -> None:
    """Spec 6.5, pass B: a result counts only behind the assistant message that asked; none is lost."""
    history = (
        results("x"),
        USER,
        calls("a"),
        results("a", "a", "y", server="w"),
        results("z"),
        USER,
        results("a"),
    )
    assert outline(repair_prompt(history)) == [
        "assistant x",
        "tool x",
        "user",
        "assistant a",
        "tool a",
        "assistant y",
        "tool y",
        "assistant z",
        "tool z",
        "user",
        "assistant a_2",
        "tool a_2",
    ]


def test_an_orphan_without_a_name_goes() -> None:
    """Spec 6.5: no call can be made for it, and no vendor takes it."""
    nameless = ToolResultPart(tool_call_id="x", tool_name="", result={})
    assert repair_prompt((PromptMessage(role="tool", content=(nameless,)), USER)) == (USER,)


def test_ids_and_names_become_legal_on_both_sides() -> None:
    """Ours: a model's invention must not poison the chat; equal ids in one answer are two calls."""
    made = [ToolCallPart(tool_call_id="a b", tool_name="x.y" * 40, args={}) for _ in range(2)]
    answers = [ToolResultPart(tool_call_id="a b", tool_name="x.y" * 40, result={}) for _ in range(2)]
    asked, answered = repair_prompt(
        [PromptMessage(role="assistant", content=(*made,)), PromptMessage(role="tool", content=(*answers,))]
    )

    ids = [part.tool_call_id for part in asked.content if isinstance(part, ToolCallPart)]
    assert ids == ["a_b", "a_b_2"]
    assert [p.tool_call_id for p in answered.content if isinstance(p, ToolResultPart)] == ids
    names = {part.tool_name for part in (*asked.content, *answered.content) if not isinstance(part, TextPart)}  # type: ignore[union-attr]
    assert names == {("x_y" * 40)[:64]}


def test_ids_used_again_in_a_later_turn_are_separate_calls() -> None:
    """Some vendors count from zero in every answer."""
    history = (calls("0"), results("0"), calls("0"))
    assert outline(repair_prompt(history)) == ["assistant 0", "tool 0", "assistant 0_2", "tool 0_2!"]


MESSAGES = st.lists(
    st.one_of(
        st.just(USER),
        st.lists(st.sampled_from("abc"), max_size=3, unique=True).map(lambda ids: calls(*ids)),
        st.lists(st.sampled_from("abc"), max_size=3).map(lambda ids: results(*ids)),
    ),
    max_size=8,
)


@given(MESSAGES)
def test_after_repair_each_call_has_exactly_one_result(messages: list[PromptMessage]) -> None:
    """The module's invariant, and repairing again changes nothing."""
    repaired = repair_prompt(messages)
    waiting: list[str] = []
    for message in repaired:
        ids = [part.tool_call_id for part in message.content if not isinstance(part, TextPart)]  # type: ignore[union-attr]
        if message.role == "tool":
            for name in ids:
                waiting.remove(name)
        else:
            assert waiting == []
            waiting = ids
    assert waiting == []
    assert repair_prompt(repaired) == repaired
